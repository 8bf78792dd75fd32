//! What is to be read of the parts, and what could not be.

use bowline_openstack_client::PoolId;
use bowline_plan::Refusal;

use super::PartsPlan;
use crate::load_balancer::observe::view::{Need, View};

impl PartsPlan<'_> {
    /// Notes what is to be read of the parts. Nothing is written to ids that are made up: what was sent is read as it came to be.
    pub(super) fn note_unread(&self, seen: &View<'_>) {
        let of = &self.balancer.id;
        if self.there.is_predicted {
            if self.next().is_some() {
                seen.lack(Need::Parts(of.clone()));
            }
            return;
        }
        let unread = &self.there.unread.members;
        let pools = self.desired.iter().flat_map(|port| self.pools_to_be(port));
        let pools =
            pools.filter(|pool| !self.there.members.contains_key(&pool.id) && !unread.contains_key(&pool.id));
        let pools: Vec<PoolId> = pools.map(|pool| pool.id.clone()).collect();
        if !pools.is_empty() {
            seen.lack(Need::Members(of.clone(), pools));
        }
        if self.needs_monitors() {
            seen.monitors(self.there);
        }
    }

    /// Why it is not known whether all parts are as they shall be, though everything that is known is.
    pub(crate) fn unread(&self) -> Option<Refusal> {
        let unread = &self.there.unread;
        let mut pools = self.desired.iter().flat_map(|port| self.pools_to_be(port));
        let members = pools.find_map(|pool| {
            let why = unread.members.get(&pool.id)?;
            Some(format!("the members of pool {} cannot be read: {why}", pool.name))
        });
        let monitors = || unread.monitors.as_ref().filter(|_| self.needs_monitors());
        let why = members.or_else(|| Some(format!("health monitors cannot be read: {}", monitors()?)))?;
        let text = format!("{why}; what else the load balancer has follows the Service");
        Some(Refusal::new(text).with_remedy("Bowline reads them again from time to time"))
    }

    /// Whether there are monitors to be compared.
    fn needs_monitors(&self) -> bool {
        let mut ports = self.desired.iter();
        ports.any(|port| {
            port.monitor.is_some() && self.pools_to_be(port).any(|pool| pool.healthmonitor_id.is_some())
        })
    }
}
