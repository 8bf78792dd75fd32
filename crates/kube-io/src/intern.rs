//! Strings that many objects share.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// The set is swept for strings that nobody holds any more when it has grown to this many, and from then on whenever
/// it has doubled.
const FIRST_SWEEP: usize = 4096;

/// Gives the same allocation for the same text, and for the same list of texts.
///
/// A thousand Nodes have the same twenty label keys and nearly as few values; and the next version of a Node repeats
/// what the last one held.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    strings: Mutex<Known<str>>,
    lists: Mutex<Known<[Arc<str>]>>,
}

#[derive(Debug)]
struct Known<T: ?Sized> {
    // Only asked for members, never walked in order.
    shared: HashSet<Arc<T>>,
    sweep_at: usize,
}

impl Interner {
    pub(crate) fn share(&self, text: &str) -> Arc<str> {
        Known::share(&self.strings, text, || Arc::from(text))
    }

    /// A list of texts that are shared themselves.
    pub(crate) fn share_list(&self, texts: Vec<Arc<str>>) -> Arc<[Arc<str>]> {
        Known::share(&self.lists, &*texts, || Arc::from(&*texts))
    }
}

impl<T: ?Sized + Eq + Hash> Known<T> {
    fn share(known: &Mutex<Self>, item: &T, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = known.shared.get(item) {
            return Arc::clone(shared);
        }
        if known.shared.len() >= known.sweep_at.max(FIRST_SWEEP) {
            known.shared.retain(|held| Arc::strong_count(held) > 1);
            known.sweep_at = known.shared.len() * 2;
        }
        let shared = make();
        known.shared.insert(Arc::clone(&shared));
        shared
    }
}

impl<T: ?Sized> Default for Known<T> {
    fn default() -> Self {
        Self {
            shared: HashSet::new(),
            sweep_at: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_allocation() {
        let interner = Interner::default();
        let first = interner.share("kubernetes.io/arch");
        assert!(Arc::ptr_eq(
            &first,
            &interner.share(&String::from("kubernetes.io/arch"))
        ));
        assert!(!Arc::ptr_eq(&first, &interner.share("kubernetes.io/os")));
    }

    #[test]
    fn equal_lists_are_one_allocation() {
        let interner = Interner::default();
        let keys = || vec![interner.share("a"), interner.share("b")];
        let first = interner.share_list(keys());
        assert!(Arc::ptr_eq(&first, &interner.share_list(keys())));
        assert!(!Arc::ptr_eq(
            &first,
            &interner.share_list(vec![interner.share("a")])
        ));
    }

    #[test]
    fn strings_that_nobody_holds_are_let_go() {
        let interner = Interner::default();
        let held = interner.share("held");
        for number in 0..10 * FIRST_SWEEP {
            interner.share(&number.to_string());
        }
        assert!(interner.strings.lock().unwrap().shared.len() <= FIRST_SWEEP);
        assert!(Arc::ptr_eq(&held, &interner.share("held")));
    }
}
