//! Facts that a decision lacks.
//!
//! Whoever decides asks the observation. If what it takes was not read yet, the answer is [`Unread`], which names it: it ends that
//! decision by `?`, the session reads what is named, and the decision is made anew. So nothing unread is taken for empty, and no list
//! of what a plan needs repeats the conditions of the plan.

use std::collections::{BTreeMap, BTreeSet};

/// A decision lacks facts: what has to be read for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Unread<N>(pub BTreeSet<N>);

impl<N: Ord> From<N> for Unread<N> {
    fn from(need: N) -> Self {
        Self(BTreeSet::from([need]))
    }
}

impl<N: Ord> Unread<N> {
    /// All of it, or what has to be read for all of it: that is read side by side.
    ///
    /// # Errors
    ///
    /// A part was not read.
    pub fn all<T>(parts: impl IntoIterator<Item = Result<T, Self>>) -> Result<Vec<T>, Self> {
        let (mut known, mut unread) = (Vec::new(), BTreeSet::new());
        for part in parts {
            match part {
                Ok(part) => known.push(part),
                Err(Self(needs)) => unread.extend(needs),
            }
        }
        match unread.is_empty() {
            true => Ok(known),
            false => Err(Self(unread)),
        }
    }

    /// What was read under a key.
    ///
    /// # Errors
    ///
    /// Nothing was.
    pub fn known<'a, K: Ord + Clone, T>(
        all: &'a BTreeMap<K, T>,
        key: &K,
        need: impl FnOnce(K) -> N,
    ) -> Result<&'a T, Self> {
        all.get(key).ok_or_else(|| need(key.clone()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_missing_is_named_at_once() {
        let read = BTreeMap::from([(1, "a")]);
        let known = |key| Unread::known(&read, &key, |key| key);
        assert_eq!(Unread::all([1, 1].map(known)), Ok(vec![&"a", &"a"]));
        assert_eq!(Unread::all([3, 1, 2].map(known)), Err(Unread([2, 3].into())));
    }
}
