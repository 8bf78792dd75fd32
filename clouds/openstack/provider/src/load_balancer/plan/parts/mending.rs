//! What failed by itself is written once more.

use bowline_openstack_client::{Monitor, Pool, PoolUpdate, ProvisioningStatus};

use super::{PartsPlan, has_failed};
use crate::load_balancer::memory::PartRefusals as _;
use crate::load_balancer::step::PartChange;

impl PartsPlan<'_> {
    /// A write of a part as it is, if it failed and stays so: Octavia notes what is asked for before it puts it in place, and any write
    /// makes it do that again. Once in a reconcile.
    pub(super) fn once_more(
        &self,
        id: &str,
        has_failed: bool,
        write: impl FnOnce() -> PartChange,
    ) -> Option<PartChange> {
        let write = (has_failed && self.own.stuck.contains(id)).then(write);
        write.filter(|write| !self.own.changes.contains(write))
    }

    /// The write that mends a pool that failed: to make it anew where it has no members yet, else to [touch](Self::touch) it.
    pub(super) fn mend(&self, pool: &Pool) -> Option<PartChange> {
        // Both tell, so that no pool with members goes because an answer left them out.
        let read = self.there.members.get(&pool.id);
        let is_empty = pool.members.is_empty() && read.is_none_or(Vec::is_empty);
        let is_read = !self.there.unread.members.contains_key(&pool.id);
        let may_go = is_empty && is_read && self.own.stuck.contains(pool.id.as_str());
        match may_go && self.refusals.of_deletion(&pool.id).is_none() {
            true => Some(PartChange::delete_pool(pool)),
            false => self.touch(pool),
        }
    }

    /// A write of a pool that failed, which makes Octavia put all of it in place.
    pub(super) fn touch(&self, pool: &Pool) -> Option<PartChange> {
        self.once_more(pool.id.as_str(), has_failed(pool), || {
            let update = PoolUpdate {
                name: Some(pool.name.clone()),
                ..PoolUpdate::default()
            };
            PartChange::update_pool(pool, update)
        })
    }

    /// Whether the change of a monitor failed. Octavia may leave it `PENDING_UPDATE` then, and mark nothing.
    pub(super) fn is_monitor_stuck(&self, monitor: &Monitor) -> bool {
        let mut changes = self.own.changes.iter();
        let is_it =
            |change: &PartChange| matches!(change, PartChange::UpdateMonitor { id, .. } if *id == monitor.id);
        match monitor.provisioning_status {
            ProvisioningStatus::Error => true,
            ProvisioningStatus::Active => false,
            _ => self.own.stuck.contains(monitor.id.as_str()) && !changes.any(is_it),
        }
    }
}
