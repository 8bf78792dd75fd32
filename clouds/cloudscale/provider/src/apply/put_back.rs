//! Puts back what went for something that the API then refused.

use std::sync::Arc;

use bowline_cloudscale_client::{ListenerId, MonitorId, NewListener, NewMonitor, NewMonitorHttp};

use super::Writer;
use crate::planning::http_of;

impl Writer<'_> {
    /// Creates a monitor as it was; `new` is the one that it went for.
    pub(super) async fn put_back_monitor(&self, id: MonitorId, new: &NewMonitor) {
        if let Some(again) = self.as_it_was(id, new) {
            let made = self.client.create_monitor(&again).await;
            tracing::debug!(pool = %again.pool, is_done = made.is_ok(), "Health monitor put back");
        }
    }

    /// What creates a monitor as it was; `new` is the one that it goes for.
    pub(super) fn as_it_was(&self, id: MonitorId, new: &NewMonitor) -> Option<NewMonitor> {
        let mut monitors = self.seen.pools.iter().flat_map(|pool| &pool.monitors);
        let old = monitors.find(|old| old.uuid == id)?;
        let http = http_of(old).cloned().unwrap_or_default();
        Some(NewMonitor {
            pool: old.pool.uuid,
            delay_s: old.delay_s,
            timeout_s: old.timeout_s,
            up_threshold: old.up_threshold,
            down_threshold: old.down_threshold,
            kind: old.kind.clone(),
            http: NewMonitorHttp {
                expected_codes: http.expected_codes,
                method: http.method,
                url_path: http.url_path,
                version: http.version,
                host: http.host,
            },
            tags: Arc::clone(&new.tags),
        })
    }

    /// Creates a listener as it was; `new` is the one that it went for.
    pub(super) async fn put_back_listener(&self, id: ListenerId, new: &NewListener) {
        let mut pools = self.seen.pools.iter();
        let found = pools.find_map(|pool| Some((pool, pool.listeners.iter().find(|old| old.uuid == id)?)));
        let Some((pool, old)) = found else {
            return;
        };
        let again = NewListener {
            name: old.name.clone(),
            pool: pool.pool.uuid,
            protocol: old.protocol.clone(),
            protocol_port: old.protocol_port,
            allowed_cidrs: old.allowed_cidrs.clone(),
            timeout_client_data_ms: old.timeout_client_data_ms.unwrap_or(new.timeout_client_data_ms),
            timeout_member_connect_ms: old
                .timeout_member_connect_ms
                .unwrap_or(new.timeout_member_connect_ms),
            timeout_member_data_ms: old.timeout_member_data_ms.unwrap_or(new.timeout_member_data_ms),
            tags: Arc::clone(&new.tags),
        };
        let made = self.client.create_listener(&again).await;
        tracing::debug!(listener = again.name, is_done = made.is_ok(), "Listener put back");
    }
}
