//! Attributes that are changed where they stand: one per call, as the API wants it.

use bowline_cloudscale_client::{Listener, ListenerChange, Monitor, MonitorChange, MonitorHttp, MonitorType};
use ipnet::IpNet;

use crate::intent::{ListenerSettings, MonitorSettings};

/// What differs at a listener.
pub(super) fn listener_changes(wanted: &ListenerSettings, listener: &Listener) -> Vec<ListenerChange> {
    let mut changes = Vec::new();
    if !cidrs_equal(&wanted.allowed_cidrs, &listener.allowed_cidrs) {
        changes.push(ListenerChange::AllowedCidrs(wanted.allowed_cidrs.clone()));
    }
    let mut timeout = |wanted: i64, there: Option<i64>, change: fn(i64) -> ListenerChange| {
        if there.is_some_and(|there| there != wanted) {
            changes.push(change(wanted));
        }
    };
    timeout(
        wanted.timeout_client_data_ms,
        listener.timeout_client_data_ms,
        ListenerChange::TimeoutClientDataMs,
    );
    timeout(
        wanted.timeout_member_connect_ms,
        listener.timeout_member_connect_ms,
        ListenerChange::TimeoutMemberConnectMs,
    );
    timeout(
        wanted.timeout_member_data_ms,
        listener.timeout_member_data_ms,
        ListenerChange::TimeoutMemberDataMs,
    );
    changes
}

/// Whether two lists hold the same networks in the same order, however they are spelt.
fn cidrs_equal(a: &[String], b: &[String]) -> bool {
    let equal = |a: &str, b: &str| match (a.parse::<IpNet>(), b.parse::<IpNet>()) {
        (Ok(a), Ok(b)) => a == b,
        _ => a == b,
    };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
}

/// What a monitor asks and expects over HTTP; none if it does not speak HTTP.
pub(super) fn http_of(monitor: &Monitor) -> Option<&MonitorHttp> {
    monitor
        .http
        .as_ref()
        .filter(|_| matches!(monitor.kind, MonitorType::Http | MonitorType::Https))
}

/// What differs at a monitor.
pub(super) fn monitor_changes(wanted: &MonitorSettings, monitor: &Monitor) -> Vec<MonitorChange> {
    let mut changes = Vec::new();
    if let (Some(wanted), Some(there)) = (wanted.http.resolved(), http_of(monitor)) {
        if wanted.host.as_deref().unwrap_or_default() != there.host.as_deref().unwrap_or_default() {
            changes.push(MonitorChange::HttpHost(wanted.host));
        }
        if let Some(path) = wanted
            .url_path
            .filter(|path| there.url_path.as_ref() != Some(path))
        {
            changes.push(MonitorChange::HttpPath(path));
        }
        if let Some(method) = wanted
            .method
            .filter(|method| there.method.as_ref() != Some(method))
        {
            changes.push(MonitorChange::HttpMethod(method));
        }
        if wanted.expected_codes != there.expected_codes {
            changes.push(MonitorChange::HttpExpectedCodes(wanted.expected_codes));
        }
    }
    let mut number = |wanted: i64, there: i64, change: fn(i64) -> MonitorChange| {
        if wanted != there {
            changes.push(change(wanted));
        }
    };
    number(wanted.delay_s, monitor.delay_s, MonitorChange::DelayS);
    number(wanted.timeout_s, monitor.timeout_s, MonitorChange::TimeoutS);
    number(
        wanted.up_threshold,
        monitor.up_threshold,
        MonitorChange::UpThreshold,
    );
    number(
        wanted.down_threshold,
        monitor.down_threshold,
        MonitorChange::DownThreshold,
    );
    changes
}
