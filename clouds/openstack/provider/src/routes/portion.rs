//! How many changes of a router one write asks for.

/// How much one write asks for: everything, until one fails in a way that names no route. That may be because of a single route on which
/// Neutron breaks, or because of the size, so the next one asks for half as much, and one that succeeds doubles it again.
#[derive(Debug)]
pub(super) struct Portion {
    pub(super) most: usize,
    /// Calls since it is not everything. Each begins with another change, so that none waits for ever behind one that fails.
    calls: usize,
}

impl Default for Portion {
    fn default() -> Self {
        Self {
            most: usize::MAX,
            calls: 0,
        }
    }
}

impl Portion {
    /// How many changes this call puts off to its end.
    pub(super) fn turn(&mut self) -> usize {
        self.calls = match self.most {
            usize::MAX => 0,
            _ => self.calls + 1,
        };
        self.calls
    }

    pub(super) fn made(&mut self) {
        self.most = self.most.saturating_mul(2);
    }

    pub(super) fn failed(&mut self, asked: usize) {
        self.most = (asked / 2).max(1);
    }
}
