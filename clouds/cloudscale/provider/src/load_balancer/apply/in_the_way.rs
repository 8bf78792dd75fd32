//! Finds out what a refusal is about that leaves it open.

use bowline_cloudscale_client::{ApiError, Class, LoadBalancerId, NewMonitor, PoolId};
use uuid::Uuid;

use crate::load_balancer::apply::Writer;
use crate::load_balancer::apply::refusals::{leaves_open, repeats};
use crate::load_balancer::step::PartChange;

/// No pool.
const NOBODYS: PoolId = PoolId(Uuid::nil());

impl Writer<'_> {
    /// Whether a new monitor is refused because its pool has the old one. The API's words for that are not known, so two more
    /// creations tell it, which would be refused as well:
    ///
    /// - the new monitor for a pool that does not exist. If the same is said of it, the pool does not matter: a value is wrong, or
    ///   the API takes no monitor at all now.
    /// - the old monitor once more. If something else is said of it, the values of the new one matter.
    ///
    /// Nothing is deleted for an answer but what one of them created. Not if the balancer is busy.
    pub(super) async fn is_in_the_way(
        &self,
        balancer: LoadBalancerId,
        change: &PartChange,
        refusal: &ApiError,
    ) -> bool {
        let (PartChange::Monitor { new, .. }, true) = (change, leaves_open(refusal)) else {
            return false;
        };
        let is_only = self
            .seen
            .pool(new.pool)
            .is_some_and(|pool| pool.monitors.len() == 1);
        let Some(PartChange::Monitor { new: again, .. }) = self.as_it_was(change).filter(|_| is_only) else {
            return false;
        };
        if !self.is_at_rest(balancer).await {
            return false;
        }
        let elsewhere = NewMonitor {
            pool: NOBODYS,
            ..(**new).clone()
        };
        match self.client.create_monitor(&elsewhere).await {
            Err(other)
                if matches!(other.class, Class::Invalid | Class::NotFound) && !repeats(&other, refusal) => {}
            _ => return false,
        }
        match self.client.create_monitor(&again).await {
            Err(other) => other.class == refusal.class && other.fields == refusal.fields,
            Ok(made) => {
                // What is left of it is a surplus monitor to the next reconcile.
                let gone = self.client.delete_monitor(made.uuid).await;
                tracing::debug!(pool = %new.pool, is_gone = gone.is_ok(), "A second health monitor is not refused");
                false
            }
        }
    }
}
