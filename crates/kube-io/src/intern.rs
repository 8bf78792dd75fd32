//! Strings that many objects share.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// The set is swept for strings that nobody holds any more when it has grown to this many, and from then on whenever
/// it has doubled.
const FIRST_SWEEP: usize = 4096;

/// Gives the same allocation for the same text.
///
/// A thousand Nodes have the same twenty label keys and nearly as few values; and the next version of a Node repeats
/// what the last one held.
#[derive(Debug, Default)]
pub(crate) struct Interner(Mutex<Strings>);

#[derive(Debug, Default)]
struct Strings {
    // Only asked for members, never walked in order.
    known: HashSet<Arc<str>>,
    sweep_at: usize,
}

impl Interner {
    pub(crate) fn share(&self, text: &str) -> Arc<str> {
        let mut strings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = strings.known.get(text) {
            return Arc::clone(known);
        }
        if strings.known.len() >= strings.sweep_at.max(FIRST_SWEEP) {
            strings.known.retain(|held| Arc::strong_count(held) > 1);
            strings.sweep_at = strings.known.len() * 2;
        }
        let shared: Arc<str> = Arc::from(text);
        strings.known.insert(Arc::clone(&shared));
        shared
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
    fn strings_that_nobody_holds_are_let_go() {
        let interner = Interner::default();
        let held = interner.share("held");
        for number in 0..10 * FIRST_SWEEP {
            interner.share(&number.to_string());
        }
        assert!(interner.0.lock().unwrap().known.len() <= FIRST_SWEEP);
        assert!(Arc::ptr_eq(&held, &interner.share("held")));
    }
}
