//! What is missing, what is surplus, what stays: the comparison that every plan begins with.

/// The outcome of comparing what is wanted with what is there.
#[derive(Debug, PartialEq, Eq)]
pub struct Diff<'a, W, A> {
    /// Wanted and not there, in the order of the wanted list.
    pub missing: Vec<&'a W>,
    /// There and not wanted, or there more often than wanted, in the order of the actual list.
    pub surplus: Vec<&'a A>,
    /// Wanted and there, in the order of the wanted list.
    pub kept: Vec<(&'a W, &'a A)>,
}

impl<W, A> Diff<'_, W, A> {
    /// Whether nothing has to be created and nothing removed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.surplus.is_empty()
    }
}

/// Compares two lists by a key, as multisets: of several actual items with one key the first ones are kept and the
/// others are surplus. Hand in the actual items in order of preference (oldest first).
///
/// Same input, same output, whatever the key type: the order of both lists is kept.
pub fn diff<'a, W, A, K: Ord>(
    wanted: &'a [W],
    actual: &'a [A],
    wanted_key: impl Fn(&'a W) -> K,
    actual_key: impl Fn(&'a A) -> K,
) -> Diff<'a, W, A> {
    let mut unmatched: std::collections::BTreeMap<K, Vec<usize>> = std::collections::BTreeMap::new();
    for (index, item) in actual.iter().enumerate().rev() {
        unmatched.entry(actual_key(item)).or_default().push(index); // reversed: pop gives the first
    }
    let mut is_kept = vec![false; actual.len()];
    let mut outcome = Diff {
        missing: Vec::new(),
        surplus: Vec::new(),
        kept: Vec::new(),
    };
    for item in wanted {
        match unmatched.get_mut(&wanted_key(item)).and_then(Vec::pop) {
            Some(index) => {
                is_kept[index] = true;
                outcome.kept.push((item, &actual[index]));
            }
            None => outcome.missing.push(item),
        }
    }
    outcome.surplus = actual
        .iter()
        .zip(is_kept)
        .filter(|(_, kept)| !kept)
        .map(|(item, _)| item)
        .collect();
    outcome
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn duplicates_are_surplus_and_the_first_one_stays() {
        let outcome = diff(&["a", "b"], &[("a", 1), ("a", 2), ("c", 3)], |w| *w, |a| a.0);
        assert_eq!(outcome.missing, [&"b"]);
        assert_eq!(outcome.surplus, [&("a", 2), &("c", 3)]);
        assert_eq!(outcome.kept, [(&"a", &("a", 1))]);
    }

    proptest! {
        #[test]
        fn applying_a_diff_leaves_nothing_to_do(wanted in prop::collection::vec(0u8..6, 0..12), actual in prop::collection::vec(0u8..6, 0..12)) {
            let first = diff(&wanted, &actual, |w| *w, |a| *a);
            let after: Vec<u8> = first.kept.iter().map(|(_, a)| **a).chain(first.missing.iter().map(|w| **w)).collect();
            prop_assert_eq!(first.kept.len() + first.surplus.len(), actual.len());
            prop_assert!(diff(&wanted, &after, |w| *w, |a| *a).is_empty());
        }
    }
}
