//! Attributes that are changed where they stand: one per call, as the API wants it.
//!
//! The API need not show a value as it was written: whatever means the same is equal, however it is spelt.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use bowline_cloud_provider::spelling;
use bowline_cloudscale_client::{Listener, ListenerChange, Monitor, MonitorChange, MonitorHttp, MonitorType};

use crate::intent::{ListenerSettings, MonitorSettings, kube_proxy_check};

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

/// What a monitor asks and expects over HTTP; `None` if it does not speak HTTP.
pub(crate) fn http_of(monitor: &Monitor) -> Option<&MonitorHttp> {
    monitor
        .http
        .as_ref()
        .filter(|_| matches!(monitor.kind, MonitorType::Http | MonitorType::Https))
}

/// Whether a monitor asks kube-proxy, as that of a Service with the traffic policy Local does unless an annotation says otherwise.
/// Whatever it says, such a Service's monitor speaks HTTP.
pub(super) fn asks_kube_proxy(monitor: &Monitor) -> bool {
    let check = kube_proxy_check();
    let asked = http_of(monitor).filter(|_| monitor.kind == MonitorType::Http);
    asked.is_some_and(|http| http.version == check.version && http.url_path == check.url_path)
}

/// What differs at a monitor.
pub(super) fn monitor_changes(wanted: &MonitorSettings, monitor: &Monitor) -> Vec<MonitorChange> {
    let mut wishes = Vec::new();
    if let (Some(wanted), Some(_)) = (wanted.http.resolved(), http_of(monitor)) {
        wishes.push(MonitorChange::HttpHost(wanted.host));
        wishes.extend(wanted.url_path.map(MonitorChange::HttpPath));
        wishes.extend(wanted.method.map(MonitorChange::HttpMethod));
        wishes.push(MonitorChange::HttpExpectedCodes(wanted.expected_codes));
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
    let http = http_of(monitor).cloned().unwrap_or_default();
    let is = |there: Option<&String>, wanted: &str| there.map_or("", |text| text.trim()) == wanted.trim();
    match change {
        MonitorChange::DelayS(wanted) => monitor.delay_s == *wanted,
        MonitorChange::TimeoutS(wanted) => monitor.timeout_s == *wanted,
        MonitorChange::UpThreshold(wanted) => monitor.up_threshold == *wanted,
        MonitorChange::DownThreshold(wanted) => monitor.down_threshold == *wanted,
        MonitorChange::HttpMethod(wanted) => is(http.method.as_ref(), wanted),
        MonitorChange::HttpPath(wanted) => is(http.url_path.as_ref(), wanted),
        // The letters of a host name have no case (RFC 9110, 4.2.3).
        MonitorChange::HttpHost(wanted) => {
            let (wanted, there) = (
                wanted.as_deref().unwrap_or_default(),
                http.host.unwrap_or_default(),
            );
            there.trim().eq_ignore_ascii_case(wanted.trim())
        }
        MonitorChange::HttpExpectedCodes(wanted) => same_codes(wanted, &http.expected_codes),
    }
}

/// Whether two lists of statuses and ranges expect the same.
fn same_codes(a: &[String], b: &[String]) -> bool {
    let all = |list: &[String]| {
        let ranges: Option<Vec<RangeInclusive<u16>>> = list.iter().map(|text| codes(text)).collect();
        ranges.map(|ranges| ranges.into_iter().flatten().collect::<BTreeSet<u16>>())
    };
    a == b || all(a).is_some_and(|codes| all(b) == Some(codes))
}

/// A status, or a range of them such as `200-204`.
fn codes(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let code = |text: &str| text.trim().parse().ok().filter(|code| (100..1000).contains(code));
    Some(code(first)?..=code(last)?)
}

/// Whether the API takes a list of statuses: one range alone, or statuses.
pub(crate) fn are_codes(list: &[String]) -> bool {
    match list {
        [one] => codes(one).is_some_and(|codes| !codes.is_empty()),
        all => all
            .iter()
            .all(|text| !text.contains('-') && codes(text).is_some()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn codes_are_equal_however_they_are_listed() {
        let same = |a: &[&str], b: &[&str]| same_codes(&texts(a), &texts(b));
        assert!(same(&["200-202"], &["202", "200", "201"]));
        assert!(same(&["2xx"], &["2xx"]));
        assert!(!same(&["2xx"], &["200"]));
        assert!(!same(&["200-202"], &["200", "202"]));
        assert!(!same(&["200"], &[]));
    }
}
