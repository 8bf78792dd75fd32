//! How requests stand to each other.

/// How a request stands to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// Waits for its turn.
    Ordinary,
    /// Gives way to everything else.
    Event,
    /// Waits for nobody: leadership must not be lost because the controllers are busy. One at a time by construction.
    Lease,
    /// Waits for nobody and holds no slot: watches, of which there are a few, and the lists that they begin with.
    Watch,
}

/// Which connections a request takes. What is slow in one pool keeps nobody waiting in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pool {
    Ordinary,
    Watches,
    Leases,
}

impl Rank {
    pub(crate) fn pool(self) -> Pool {
        match self {
            Self::Ordinary | Self::Event => Pool::Ordinary,
            Self::Watch => Pool::Watches,
            Self::Lease => Pool::Leases,
        }
    }
}
