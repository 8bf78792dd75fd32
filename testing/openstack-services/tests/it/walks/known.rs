//! What the simulator answers otherwise than the real services, and why that is right or does no harm.

use crate::compare::Difference;

/// A row of `known.txt`, which says what its columns are.
type Row = [&'static str; 4];

fn known() -> impl Iterator<Item = Row> {
    let lines = include_str!("known.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split(" | ").collect::<Vec<_>>().try_into().unwrap())
}

fn matches(row: &Row, walk: &str, difference: &Difference) -> bool {
    let [of, step, place, _] = row;
    let found = difference.place.as_str();
    let is_there = match (place.strip_suffix("/**"), place.strip_prefix("**")) {
        (Some(start), _) => found
            .strip_prefix(start)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        (None, Some(end)) => found.ends_with(end),
        (None, None) => found == *place,
    };
    *of == walk && (*step == "*" || *step == difference.step) && is_there
}

/// Whether the table has it.
pub(crate) fn is_known(walk: &str, difference: &Difference) -> bool {
    known().any(|row| matches(&row, walk, difference))
}

/// Rows of this walk that no difference needs.
pub(crate) fn idle(walk: &str, found: &[Difference]) -> Vec<(&'static str, &'static str)> {
    known()
        .filter(|row| row[0] == walk)
        .filter(|row| !found.iter().any(|difference| matches(row, walk, difference)))
        .map(|[_, step, place, _]| (step, place))
        .collect()
}

#[test]
fn a_row_stands_for_its_step_and_its_places() {
    let difference = |place: &str| Difference {
        step: "pools".to_owned(),
        place: place.to_owned(),
        real: String::new(),
        simulated: String::new(),
    };
    for (place, found, is_known) in [
        ("/a", "/a", true),
        ("/a", "/a/b", false),
        ("/a/**", "/a/b", true),
        ("/a/**", "/a", true),
        ("/a/**", "/ab", false),
        ("**/b", "/a/b", true),
        ("**", "status", true),
    ] {
        let row = ["balancers", "*", place, ""];
        assert_eq!(
            matches(&row, "balancers", &difference(found)),
            is_known,
            "{place} {found}"
        );
    }
    assert!(!matches(
        &["balancers", "members", "**", ""],
        "balancers",
        &difference("/a")
    ));
    assert!(!matches(
        &["network", "*", "**", ""],
        "balancers",
        &difference("/a")
    ));
}
