//! The statuses that a health monitor expects: how they are written, and when two lists mean the same.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Whether two lists of statuses and ranges expect the same.
pub(super) fn same_codes(a: &[String], b: &[String]) -> bool {
    let all = |list: &[String]| {
        let ranges: Option<Vec<RangeInclusive<u16>>> = list.iter().map(|text| codes(text)).collect();
        ranges.map(|ranges| ranges.into_iter().flatten().collect::<BTreeSet<u16>>())
    };
    a == b || all(a).is_some_and(|codes| all(b) == Some(codes))
}

/// A status, or a range of them such as `200-204`.
fn codes(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let code = |text: &str| text.trim().parse().ok().filter(|code| (100..1000).contains(code));
    Some(code(first)?..=code(last)?)
}

/// Whether the API takes a list of statuses: one range alone, or statuses.
pub(super) fn are_codes(list: &[String]) -> bool {
    match list {
        [one] => codes(one).is_some_and(|codes| !codes.is_empty()),
        all => all
            .iter()
            .all(|text| !text.contains('-') && codes(text).is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn codes_are_equal_however_they_are_listed() {
        let same = |a: &[&str], b: &[&str]| same_codes(&texts(a), &texts(b));
        assert!(same(&["200-202"], &["202", "200", "201"]));
        assert!(same(&["2xx"], &["2xx"]));
        assert!(!same(&["2xx"], &["200"]));
        assert!(!same(&["200-202"], &["200", "202"]));
        assert!(!same(&["200"], &[]));
    }
}
