//! Attributes that are changed where they stand: one per call, as the API wants it.
//!
//! The API need not show a value as it was written: whatever means the same is equal, however it is spelt.

use bowline_cloud_provider::spelling;
use bowline_cloudscale_client::{
    HttpChange, Listener, ListenerChange, Monitor, MonitorChange, MonitorHttp, MonitorType,
};

use crate::load_balancer::http_codes::same_codes;
use crate::load_balancer::intent::{ListenerSettings, MonitorSettings, kube_proxy_check};

/// What differs at a listener.
pub(super) fn listener_changes(wanted: &ListenerSettings, listener: &Listener) -> Vec<ListenerChange> {
    let wishes = [
        ListenerChange::AllowedCidrs(wanted.allowed_cidrs.clone()),
        ListenerChange::TimeoutClientDataMs(wanted.timeout_client_data_ms),
        ListenerChange::TimeoutMemberConnectMs(wanted.timeout_member_connect_ms),
        ListenerChange::TimeoutMemberDataMs(wanted.timeout_member_data_ms),
    ];
    let differs = |wish: &ListenerChange| !listener_shows(listener, wish);
    wishes.into_iter().filter(differs).collect()
}

/// Whether a listener shows what a change asks for.
pub(super) fn listener_shows(listener: &Listener, change: &ListenerChange) -> bool {
    let timeout = |there: Option<i64>, wanted: i64| there.is_none_or(|there| there == wanted);
    match change {
        ListenerChange::AllowedCidrs(cidrs) => spelling::same_networks(cidrs, &listener.allowed_cidrs),
        ListenerChange::TimeoutClientDataMs(ms) => timeout(listener.timeout_client_data_ms, *ms),
        ListenerChange::TimeoutMemberConnectMs(ms) => timeout(listener.timeout_member_connect_ms, *ms),
        ListenerChange::TimeoutMemberDataMs(ms) => timeout(listener.timeout_member_data_ms, *ms),
    }
}

/// Whether a monitor asks kube-proxy, as that of a Service with the traffic policy Local does unless an annotation says otherwise.
/// Whatever it says, such a Service's monitor speaks HTTP.
pub(super) fn asks_kube_proxy(monitor: &Monitor) -> bool {
    let check = kube_proxy_check();
    let asked = monitor.http().filter(|_| monitor.kind == MonitorType::Http);
    asked.is_some_and(|http| http.version == check.version && http.url_path == check.url_path)
}

/// What differs at a monitor.
pub(super) fn monitor_changes(wanted: &MonitorSettings, monitor: &Monitor) -> Vec<MonitorChange> {
    let mut wishes = Vec::new();
    if let (Some(wanted), Some(_)) = (wanted.http.resolved(), monitor.http()) {
        let (path, method) = (
            wanted.url_path.map(HttpChange::UrlPath),
            wanted.method.map(HttpChange::Method),
        );
        let (host, codes) = (
            HttpChange::Host(wanted.host),
            HttpChange::ExpectedCodes(wanted.expected_codes),
        );
        let all = [Some(host), path, method, Some(codes)].into_iter().flatten();
        wishes.extend(all.map(MonitorChange::Http));
    }
    wishes.extend([
        MonitorChange::DelayS(wanted.delay_s),
        MonitorChange::TimeoutS(wanted.timeout_s),
        MonitorChange::UpThreshold(wanted.up_threshold),
        MonitorChange::DownThreshold(wanted.down_threshold),
    ]);
    // The API may want no timeout above the delay, not even between two writes: one of them waits until the other is made.
    let fits = |delay: i64, timeout: i64| timeout <= delay;
    let fit = fits(wanted.delay_s, wanted.timeout_s) && fits(monitor.delay_s, monitor.timeout_s);
    wishes.retain(|wish| {
        let may_be_made = match wish {
            MonitorChange::DelayS(delay) => !fit || fits(*delay, monitor.timeout_s),
            MonitorChange::TimeoutS(timeout) => !fit || fits(monitor.delay_s, *timeout),
            _ => true,
        };
        may_be_made && !monitor_shows(monitor, wish)
    });
    wishes
}

/// Whether a monitor shows what a change asks for.
pub(super) fn monitor_shows(monitor: &Monitor, change: &MonitorChange) -> bool {
    match change {
        MonitorChange::DelayS(wanted) => monitor.delay_s == *wanted,
        MonitorChange::TimeoutS(wanted) => monitor.timeout_s == *wanted,
        MonitorChange::UpThreshold(wanted) => monitor.up_threshold == *wanted,
        MonitorChange::DownThreshold(wanted) => monitor.down_threshold == *wanted,
        MonitorChange::Http(change) => http_shows(&monitor.http().cloned().unwrap_or_default(), change),
    }
}

fn http_shows(there: &MonitorHttp, change: &HttpChange) -> bool {
    let is =
        |there: &Option<String>, wanted: &str| there.as_deref().unwrap_or_default().trim() == wanted.trim();
    match change {
        HttpChange::Method(wanted) => is(&there.method, wanted),
        HttpChange::UrlPath(wanted) => is(&there.url_path, wanted),
        // The letters of a host name have no case (RFC 9110, 4.2.3).
        HttpChange::Host(wanted) => {
            let text =
                |host: &Option<String>| host.as_deref().unwrap_or_default().trim().to_ascii_lowercase();
            text(wanted) == text(&there.host)
        }
        HttpChange::ExpectedCodes(wanted) => same_codes(wanted, &there.expected_codes),
    }
}
