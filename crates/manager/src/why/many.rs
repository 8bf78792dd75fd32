//! What is told of many objects at once: those with one cause are one entry with their names.

use std::cmp::Reverse;

use super::{Cause, Why};

/// How many names are told; the rest is counted.
const NAMES: usize = 5;

/// The first names and how many more there are.
pub(crate) fn some_of(names: impl IntoIterator<Item = String>) -> String {
    let mut names = names.into_iter();
    let mut text = names.by_ref().take(NAMES).collect::<Vec<_>>().join(", ");
    let rest = names.count();
    if rest > 0 {
        text.push_str(&format!(" and {rest} more"));
    }
    text
}

/// A cause, and who has it.
struct Entry<'a> {
    cause: Option<&'a Cause>,
    /// The reason, with no word that is of one of them alone.
    same: String,
    /// Which cause of them it is: the lowest of all places.
    place: usize,
    all: Vec<&'a Why>,
}

/// The causes of these objects in entries of one or two lines: what keeps them from their use first, of these the causes that stand
/// first with their objects.
pub(crate) fn of_many<'a>(whys: impl IntoIterator<Item = &'a Why>, most: usize) -> Vec<String> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for why in whys {
        if why.causes.is_empty() {
            entries.push(Entry {
                cause: None,
                same: String::new(),
                place: 0,
                all: vec![why],
            });
        }
        for (place, cause) in why.causes.iter().enumerate() {
            let same = same(why, cause);
            let is_same = |it: &&mut Entry<'_>| {
                it.same == same
                    && it
                        .cause
                        .is_some_and(|it| it.id == cause.id && it.remedy == cause.remedy)
            };
            match entries.iter_mut().find(is_same) {
                Some(entry) => {
                    entry.place = entry.place.min(place);
                    entry.all.push(why);
                }
                None => entries.push(Entry {
                    cause: Some(cause),
                    same,
                    place,
                    all: vec![why],
                }),
            }
        }
    }
    entries.sort_by_key(|it| (Reverse(it.cause.map(|cause| cause.outcome)), it.place));
    let more = entries.len().saturating_sub(most);
    let mut lines: Vec<String> = entries.iter().take(most).flat_map(lines).collect();
    lines.extend((more > 0).then(|| format!("and {more} more")));
    lines
}

/// The reason, as it is the same for all objects that have it.
fn same(why: &Why, cause: &Cause) -> String {
    let text = match cause.timeless.is_empty() {
        true => &cause.text,
        false => &cause.timeless,
    };
    match why.object.split_once('/') {
        Some((_, name)) => text.replace(name, "NAME"),
        None => text.clone(),
    }
}

fn lines(entry: &Entry<'_>) -> Vec<String> {
    let Entry { cause, same, all, .. } = entry;
    let of_one = |why: &Why| {
        let is = why.is.first().map_or("", String::as_str);
        let since = cause.map_or("", |cause| &cause.since);
        let dash = if since.is_empty() { "" } else { ", " };
        let text = cause.map_or(String::new(), |cause| format!(": {}", cause.text));
        format!("{}: {is}{dash}{since}{text}", why.object)
    };
    let head = match all[..] {
        [why] => of_one(why),
        _ => format!("{}: {same}", some_of(all.iter().map(|why| why.object.clone()))),
    };
    let remedy = cause
        .map(|cause| cause.remedy.as_str())
        .filter(|it| !it.is_empty());
    let remedy = remedy.map(|remedy| format!("  do: {remedy}"));
    [head].into_iter().chain(remedy).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;

    fn why(name: &str, causes: &[(Outcome, &str)]) -> Why {
        let mut why = Why::new(format!("service/default/{name}"));
        why.is.push("no address".to_owned());
        let causes = causes.iter();
        let causes = causes.map(|(outcome, text)| Cause::new("service.refused", *outcome, *text, "do it"));
        why.causes.extend(causes);
        why
    }

    #[test]
    fn names_are_told_up_to_five_and_the_rest_is_counted() {
        let names = |count: usize| (1..=count).map(|index| format!("n{index}"));
        assert_eq!(some_of(names(2)), "n1, n2");
        assert!(some_of(names(5)).ends_with("n4, n5"));
        assert!(some_of(names(7)).ends_with("n4, n5 and 2 more"));
    }

    #[test]
    fn one_cause_of_many_is_one_entry_and_causes_stand_before_what_follows() {
        let mut all: Vec<Why> = (1..8)
            .map(|index| {
                let quota = format!("no room for service default/s{index}");
                why(&format!("s{index}"), &[(Outcome::Failed, &quota)])
            })
            .collect();
        all[6]
            .causes
            .push(Cause::new("service.differs", Outcome::Warning, "it differs", ""));
        all.insert(0, why("odd", &[(Outcome::Warning, "it is odd")]));
        assert_eq!(
            of_many(&all, 10),
            [
                "service/default/s1, service/default/s2, service/default/s3, service/default/s4, service/default/s5 and 2 more: no room for service NAME",
                "  do: do it",
                "service/default/odd: no address: it is odd",
                "  do: do it",
                "service/default/s7: no address: it differs",
            ]
        );
        assert_eq!(of_many(&all, 1).last().unwrap(), "and 2 more");
        let later = |last: &str| {
            let mut why = why("a", &[(Outcome::Failed, last)]);
            why.causes[0].timeless = "quota".to_owned();
            why.object = format!("service/default/{}", last.len());
            why
        };
        let lines = of_many(&[later("40 s ago: quota"), later("7 s ago: quota")], 10);
        assert_eq!(lines[0], "service/default/15, service/default/14: quota");
    }
}
