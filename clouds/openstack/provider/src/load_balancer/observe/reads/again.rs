//! What is read again in a reconcile: while Octavia is at work, and after the writes.

use bowline_cloud_provider::CloudError;
use bowline_openstack_client::{LoadBalancer, LoadBalancerId, PoolId, ProvisioningStatus};

use super::{Listing, Reads};
use crate::load_balancer::evidence;
use crate::load_balancer::intent::{Identity, Intent};
use crate::load_balancer::memory::Memory;
use crate::load_balancer::observe::{confirm, patience};
use crate::load_balancer::observed::{Observed, is_pending};

impl Reads {
    /// Looks again at load balancers that are pending or went, and reads what is missing by now.
    pub(crate) async fn again(
        &self,
        intent: &Intent,
        mut observed: Observed,
        memory: &mut Memory,
    ) -> Result<Observed, CloudError> {
        let identity = intent.identity();
        let own = || {
            let all = observed.balancers.iter();
            all.filter(|balancer| evidence::is_candidate(identity, balancer))
        };
        let is_sought = memory.inherits() && !memory.waited().is_zero() && own().next().is_none();
        if own().any(is_pending) || is_sought || memory.own.is_unseen || memory.own.is_busy {
            // Who waited can wait for others; one look straight after a write spares the pause where Octavia is quick.
            let list = if memory.waited().is_zero() {
                &self.balancers
            } else {
                &self.polled
            };
            self.refresh(identity, &mut observed, list).await?;
            memory.own.is_unseen = false;
            memory.own.change_pause = self.under_way.pause();
            confirm::note(&observed, memory, false);
            patience::give_up_in_time(intent, &mut observed, memory, |id| self.under_way.is_ours(id))?;
            memory.own.is_busy = false; // to be seen anew
            let is_pool_locked = std::mem::take(&mut memory.own.is_pool_locked);
            match observed.balancers.iter().any(is_pending) {
                true => memory.own.at_rest.is_explained(),
                false if is_pool_locked => observed.parts.clear(),
                false => {}
            }
        }
        let is_verified = memory.own.is_verified;
        if is_verified {
            observed.parts.clear(); // something of them was not as it was written
        }
        self.complete(intent, &mut observed, memory).await?;
        if is_verified {
            confirm::note(&observed, memory, true);
        }
        Ok(observed)
    }

    /// Reads at the end of a reconcile what its own writes left in doubt.
    ///
    /// The load balancer was listed after the last write to it. Octavia answers a write of a part before it makes it, and may fail then:
    /// the provisioning status of what was written tells, and of members only their own list shows it. Floating IPs are read again where
    /// the way to the load balancer was changed, because others write them too.
    pub(crate) async fn after_writes(
        &self,
        intent: &Intent,
        mut observed: Observed,
        memory: &mut Memory,
    ) -> Result<Observed, CloudError> {
        memory.new_wait();
        for pool in std::mem::take(&mut memory.own.members_written) {
            observed
                .parts
                .values_mut()
                .for_each(|parts| _ = parts.members.remove(&pool));
        }
        if memory.own.is_address_changed {
            observed.floating_ips = None;
        }
        if memory.own.is_unseen {
            self.refresh(intent.identity(), &mut observed, &self.balancers)
                .await?;
            memory.own.is_unseen = false;
        }
        self.confirm_parts(&mut observed, memory).await?;
        self.complete(intent, &mut observed, memory).await?;
        memory.own.is_verified = true;
        confirm::note(&observed, memory, true);
        Ok(observed)
    }

    /// Reads the parts of load balancers again of which some were written.
    async fn confirm_parts(&self, observed: &mut Observed, memory: &mut Memory) -> Result<(), CloudError> {
        for of in std::mem::take(&mut memory.own.parts_written) {
            let Some(before) = observed.parts.remove(&of) else {
                continue;
            };
            let mut now = self.parts(observed, of.clone()).await?;
            let is_there = |id: &PoolId| now.pools.iter().any(|pool| pool.id == *id);
            now.members = before.members;
            now.members.retain(|pool, _| is_there(pool));
            now.unread = before.unread;
            observed.parts.insert(of, now);
        }
        Ok(())
    }

    /// Lists the load balancers again. One that is not listed any more is asked for: only then it is gone.
    async fn refresh(
        &self,
        identity: &Identity,
        observed: &mut Observed,
        list: &Listing<LoadBalancer>,
    ) -> Result<(), CloudError> {
        let all = self.list_with(list).await?;
        let was_seen = |id: &LoadBalancerId| observed.balancers.iter().any(|there| there.id == *id);
        let of_service = all.iter().filter(|balancer| {
            let is_ours = evidence::is_candidate(identity, balancer)
                && !observed.is_of_another(&balancer.id)
                && !observed.left_alone.contains(&balancer.id);
            is_ours || was_seen(&balancer.id)
        });
        let mut now: Vec<LoadBalancer> = of_service.cloned().collect();
        let vanished = observed.balancers.iter().map(|balancer| &balancer.id);
        let vanished: Vec<LoadBalancerId> = vanished
            .filter(|id| now.iter().all(|balancer| balancer.id != **id))
            .cloned()
            .collect();
        for id in &vanished {
            now.extend(self.client.load_balancer(id).await?);
        }
        for id in &vanished {
            if now.iter().all(|balancer| balancer.id != *id) {
                observed.is_gone(id);
                // The one that led to it leads nowhere now, and the next load balancer takes it.
                observed.floating_ips = None;
            }
        }
        // Whether a load balancer that failed still carries traffic is seen in its parts as they are now.
        let has_failed_now = |id: &LoadBalancerId| {
            let failed = |balancer: &&LoadBalancer| {
                balancer.id == *id && balancer.provisioning_status == ProvisioningStatus::Error
            };
            let is_news = observed.balancers.iter().all(|before| !failed(&before));
            is_news && now.iter().any(|balancer| failed(&balancer))
        };
        observed.parts.retain(|id, _| !has_failed_now(id));
        observed.balancers = now;
        Ok(())
    }
}
