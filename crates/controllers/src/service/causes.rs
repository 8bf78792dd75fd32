//! Why a Service is to be looked at.

/// Why a Service is to be looked at. Causes add up until the next sync takes them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Causes(u8);

impl Causes {
    /// A person (or a program on their behalf) changed the Service: the sync is announced by events.
    pub(super) const CHANGED: Self = Self(1);
    /// The set of Nodes changed. With no other cause the sync is upstream's "update", in contrast to its "ensure".
    pub(super) const NODES: Self = Self(2);
    /// It is time to look whether all is still as it should be; also the first look after a start.
    pub(super) const VERIFY: Self = Self(4);
    /// An earlier sync did not come to its end.
    pub(super) const RETRY: Self = Self(8);

    /// Whether there is no cause: then a sync only goes on with what is parked.
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Both.
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether one of these is among them.
    pub(super) fn has(self, some: Self) -> bool {
        self.0 & some.0 != 0
    }
}
