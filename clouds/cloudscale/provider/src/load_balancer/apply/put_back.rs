//! Puts back what went for something that the API then refused.

use bowline_cloudscale_client::{NewListener, NewMonitor};

use crate::load_balancer::apply::Writer;
use crate::load_balancer::step::PartChange;

impl Writer<'_> {
    /// Makes again what went for a change. A pool or a member is left to a later wave.
    pub(super) async fn put_back(&self, change: &PartChange) {
        if let Some(again) = self.as_it_was(change) {
            let is_done = self.make(&again).await.is_ok();
            tracing::debug!(object = again.object(), is_done, "Put back what went for it");
        }
    }

    /// The change that makes what goes for this one as it was; `None` of a pool or a member.
    pub(super) fn as_it_was(&self, change: &PartChange) -> Option<PartChange> {
        let mut again = change.clone();
        match &mut again {
            PartChange::Monitor {
                new, old: Some(old), ..
            } => {
                let old = self.seen.monitor(old.id)?;
                **new = NewMonitor {
                    pool: old.pool.uuid,
                    delay_s: old.delay_s,
                    timeout_s: old.timeout_s,
                    up_threshold: old.up_threshold,
                    down_threshold: old.down_threshold,
                    kind: old.kind.clone(),
                    http: old.http().cloned().unwrap_or_default(),
                    tags: new.tags.clone(),
                };
            }
            PartChange::Listener {
                new, old: Some(old), ..
            } => {
                let old = self.seen.listener(old.id)?;
                *new = NewListener {
                    name: old.name.clone(),
                    pool: old.pool.as_ref()?.uuid,
                    protocol: old.protocol.clone(),
                    protocol_port: old.protocol_port,
                    allowed_cidrs: old.allowed_cidrs.clone(),
                    timeout_client_data_ms: old.timeout_client_data_ms.unwrap_or(new.timeout_client_data_ms),
                    timeout_member_connect_ms: old
                        .timeout_member_connect_ms
                        .unwrap_or(new.timeout_member_connect_ms),
                    timeout_member_data_ms: old.timeout_member_data_ms.unwrap_or(new.timeout_member_data_ms),
                    tags: new.tags.clone(),
                };
            }
            _ => return None,
        }
        Some(again)
    }
}
