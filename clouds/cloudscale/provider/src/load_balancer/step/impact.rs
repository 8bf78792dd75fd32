//! What a write to a part of a balancer costs those whose traffic goes through it.

use bowline_cloudscale_client::ListenerChange;
use bowline_plan::Impact;

use super::PartChange;

/// Who serves while a member is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meanwhile {
    /// The other members of the pool.
    Others,
    /// The other members of the pool, of which one went to make room.
    Fewer,
    /// Nobody: the pool has no other member.
    Nobody,
    /// Perhaps nobody: this one, and the others after it, are probed elsewhere from now on. The monitor, which was replaced before, does
    /// not find its answer where they were probed until now, and after some checks counts them as down until they are replaced.
    CheckMoves,
}

impl PartChange {
    pub(super) fn impact(&self) -> Impact {
        match self {
            Self::Pool { old, .. } => {
                if old.is_some() {
                    Impact::Considerable
                } else {
                    Impact::None
                }
            }
            Self::DeletePool { is_live, .. } => {
                if *is_live {
                    Impact::Considerable
                } else {
                    Impact::None
                }
            }
            Self::Member { old, meanwhile, .. } => match (old, meanwhile) {
                (None, _) => Impact::None,
                (Some(_), Meanwhile::Others | Meanwhile::Fewer) => Impact::Minimal,
                (Some(_), Meanwhile::Nobody | Meanwhile::CheckMoves) => Impact::Considerable,
            },
            Self::Listener {
                old, changes_pool, ..
            } => match (old, changes_pool) {
                (None, _) => Impact::None,
                (Some(_), false) => Impact::Minimal,
                (Some(_), true) => Impact::Considerable,
            },
            Self::Monitor {
                moves_checks: true, ..
            } => Impact::Considerable,
            Self::Monitor { old, .. } => {
                if old.is_some() {
                    Impact::Minimal
                } else {
                    Impact::None
                }
            }
            Self::UpdateListener { change, .. } => match change {
                ListenerChange::AllowedCidrs(_) => Impact::Minimal,
                _ => Impact::None,
            },
            Self::DeleteMember { .. }
            | Self::DeleteListener { .. }
            | Self::DeleteMonitor { .. }
            | Self::UpdateMonitor { .. } => Impact::Minimal,
        }
    }
}
