use super::*;

/// Parts are words: `a1` is the twin of `a`, `a2` its forerunner, `a3` serves the same port; `x...` serves nothing that is wanted, and
/// what begins otherwise fits nothing.
fn fit(wanted: &str, old: &str) -> Option<Fit> {
    match old.strip_prefix(wanted) {
        Some("1") => Some(Fit::Twin),
        Some("2") => Some(Fit::Forerunner),
        Some("3") => Some(Fit::SamePort),
        _ => old.starts_with('x').then_some(Fit::Stranger),
    }
}

/// What comes of it in one line: `a` comes, `a<b` comes in place of `b`, `!a` cannot come, `a=b` waits for `b`, `-b` goes, `+b` stays.
fn outcome(terms: Terms, missing: &str, surplus: &str) -> String {
    let missing: Vec<&str> = missing.split_whitespace().collect();
    let surplus: Vec<&str> = surplus.split_whitespace().collect();
    let exchange = Exchange::new(terms, &missing, &surplus, |wanted| wanted != "r", fit);
    let coming = exchange.coming.iter().map(|(wanted, old)| match old {
        Some((old, _)) => format!("{wanted}<{old}"),
        None => (*wanted).to_owned(),
    });
    let all = coming
        .chain(exchange.kept_out.iter().map(|it| format!("!{it}")))
        .chain(
            exchange
                .held
                .iter()
                .map(|(wanted, old)| format!("{wanted}={old}")),
        )
        .chain(exchange.going.iter().map(|it| format!("-{it}")))
        .chain(exchange.staying.iter().map(|it| format!("+{it}")));
    all.collect::<Vec<_>>().join(" ")
}

#[test]
fn nothing_that_serves_goes_for_something_that_cannot_come() {
    use Room::{Free, Full, StillFull};
    use Twins::{AtOnce, Last, Never};
    const OWN: Stead = Stead::Forerunners;
    const ALONE: Stead = Stead::Anybody { is_one_kept: false };
    const AMONG: Stead = Stead::Anybody { is_one_kept: true };
    // `r` is what the API refuses for itself.
    let table = [
        // Beside what is there, as long as there is room.
        (Free, AtOnce, OWN, "a b", "a2 x", "a b -a2 -x"),
        (Free, AtOnce, OWN, "a b", "b1", "a b<b1"),
        (Free, Last, ALONE, "a b", "b1", "a b=b1"),
        (Free, Last, ALONE, "a b", "a1 b1 x", "a<a1 b<b1 -x"),
        // What is refused keeps those who serve for it, unless others do.
        (Free, AtOnce, OWN, "r a", "r2 a2", "a !r -a2 +r2"),
        (Free, AtOnce, OWN, "r", "x r3", "!r -x +r3"),
        (Free, Last, ALONE, "r", "r2 x", "!r -x +r2"),
        (Free, Last, AMONG, "r", "r2 x", "!r -r2 -x"),
        (Free, Last, ALONE, "r a", "r2 a1", "!r a=a1 -r2"),
        // What was refused in the place of another one lets nobody else go for anything.
        (Free, Never, ALONE, "a b", "a1 b1 x", "a=a1 b=b1 -x"),
        (Free, Never, ALONE, "a", "a2", "a -a2"),
        // Without room, one makes it for another, the nearest first.
        (Full, AtOnce, OWN, "a b", "x b2 a3", "a<a3 b<b2 -x"),
        (Full, AtOnce, OWN, "a b c", "x", "a<x !b !c"),
        (Full, AtOnce, OWN, "a", "x a2", "a<a2 -x"),
        (Full, AtOnce, OWN, "a b", "b1 b2", "b<b1 !a -b2"),
        (Full, Last, ALONE, "a b", "a2 b1", "a<a2 b=b1"),
        (Full, Last, ALONE, "r a", "a2", "a<a2 !r"),
        // Where that made none, nothing more goes.
        (StillFull, AtOnce, OWN, "a b", "a2 b1 x", "!a b=b1 -x +a2"),
        (StillFull, AtOnce, OWN, "a", "a1 a2 a3", "a=a1 +a2 +a3"),
        (StillFull, Last, ALONE, "a", "a2", "!a +a2"),
        (StillFull, Last, AMONG, "a", "a2", "!a -a2"),
        (StillFull, Last, ALONE, "a b", "a1 b2", "!b a=a1 -b2"),
    ];
    for (room, twins, stead, missing, surplus, expected) in table {
        let terms = Terms { room, twins, stead };
        assert_eq!(
            outcome(terms, missing, surplus),
            expected,
            "{terms:?}: {missing} for {surplus}"
        );
    }
}
