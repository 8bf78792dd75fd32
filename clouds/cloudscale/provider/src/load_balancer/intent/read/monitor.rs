//! Reads how members are checked.

use bowline_cloud_provider::facts;
use bowline_cloud_provider::k8s::{Service, ServicePort};
use bowline_cloudscale_client::{MonitorHttp, MonitorType};
use bowline_plan::Note;
use serde::Deserialize;

use crate::load_balancer::annotations::{self as keys, Fields, Reader};
use crate::load_balancer::http_codes::are_codes;
use crate::load_balancer::intent::{DEFAULT_HTTP_VERSION, HttpWish, MonitorSettings, kube_proxy_check};
use crate::messages::{LOCAL_POLICY_HTTP, UDP_MONITOR};

/// The HTTP part as people write it; keys arrive in lower case.
#[derive(Deserialize)]
struct HttpJson {
    expected_codes: Option<Vec<String>>,
    method: Option<String>,
    url_path: Option<String>,
    version: Option<String>,
    host: Option<String>,
}

pub(super) fn monitor(service: &Service, reader: &mut Reader<'_>, notes: &mut Vec<Note>) -> MonitorSettings {
    let is_local = facts::is_local_traffic_only(service);
    let mut problems = reader.count();
    let kind = MonitorType::from(reader.word(&keys::MONITOR_TYPE));
    let kind = if is_local { MonitorType::Http } else { kind };
    let is_kind_clear = is_local || reader.count() == problems;
    problems = reader.count();
    // Upstream compares the text: `{ }` already counts as something.
    let asked = if reader.text(&keys::MONITOR_HTTP) == keys::MONITOR_HTTP.default {
        None
    } else {
        reader
            .json(&keys::MONITOR_HTTP, "invalid json in")
            .map(|Fields::<HttpJson>(asked)| asked)
    };
    if is_local && asked.is_some() {
        notes.push(LOCAL_POLICY_HTTP.note(format!(
            "externalTrafficPolicy is Local and {} is set: members are checked as the annotation says",
            keys::MONITOR_HTTP.key
        )));
    }
    let http = match (kind == MonitorType::Http || kind == MonitorType::Https, asked) {
        (false, _) => HttpWish::None,
        (true, Some(asked)) => {
            let http = filled(asked);
            check(&http, reader);
            HttpWish::Exactly(http)
        }
        (true, None) if is_local => HttpWish::Exactly(kube_proxy_check()),
        (true, None) => HttpWish::Defaults,
    };
    MonitorSettings {
        is_clear: is_kind_clear && (http == HttpWish::None || reader.count() == problems),
        kind,
        delay_s: reader.int(&keys::MONITOR_DELAY),
        timeout_s: reader.int(&keys::MONITOR_TIMEOUT),
        up_threshold: reader.int(&keys::MONITOR_UP_THRESHOLD),
        down_threshold: reader.int(&keys::MONITOR_DOWN_THRESHOLD),
        http,
    }
}

fn filled(asked: HttpJson) -> MonitorHttp {
    let given = |text: Option<String>| {
        let text = text.map(|text| text.trim().to_owned());
        text.filter(|text| !text.is_empty())
    };
    let or = |text: Option<String>, default: &str| Some(given(text).unwrap_or(default.into()));
    MonitorHttp {
        expected_codes: asked
            .expected_codes
            .filter(|codes| !codes.is_empty())
            .map_or_else(
                || vec!["200".into()],
                |codes| codes.iter().map(|code| code.trim().to_owned()).collect(),
            ),
        method: or(asked.method, "GET").map(|method| method.to_ascii_uppercase()),
        url_path: or(asked.url_path, "/"),
        version: or(asked.version, DEFAULT_HTTP_VERSION),
        host: given(asked.host),
    }
}

/// The methods and versions of a check (cloudscale.ch API, "Health Monitors").
const METHODS: [&str; 9] = [
    "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
];
const VERSIONS: [&str; 2] = ["1.0", "1.1"];

/// Finds what the API would refuse only when all but the monitor is made.
fn check(http: &MonitorHttp, reader: &mut Reader<'_>) {
    let key = keys::MONITOR_HTTP.key;
    for (field, value, words) in [
        ("method", &http.method, METHODS.as_slice()),
        ("version", &http.version, VERSIONS.as_slice()),
    ] {
        if let Some(word) = value.as_deref().filter(|word| !words.contains(word)) {
            let words = words.join(", ");
            reader.problem(format!(
                "unsupported `{field}` '{word}' of {key}, must be one of: {words}"
            ));
        }
    }
    if http.version.as_deref() == Some("1.0") && http.host.is_some() {
        reader.problem(format!("`host` cannot be used with `version` 1.0 ({key})"));
    }
    if let Some(path) = http.url_path.as_deref().filter(|path| !path.starts_with('/')) {
        reader.problem(format!("`url_path` must begin with `/`, and is '{path}' ({key})"));
    }
    if !are_codes(&http.expected_codes) {
        reader.problem(format!(
            "`expected_codes` must be HTTP status codes, or one range such as 200-204, and is '{}' ({key})",
            http.expected_codes.join(", ")
        ));
    }
}

pub(super) fn warn_of_udp(
    service: &Service,
    reader: &Reader<'_>,
    monitor: &MonitorSettings,
    notes: &mut Vec<Note>,
) {
    if monitor.kind != MonitorType::Tcp || reader.has(&keys::MONITOR_TYPE) {
        return;
    }
    let ports: Vec<&ServicePort> = service
        .spec
        .iter()
        .flat_map(|spec| spec.ports.iter().flatten())
        .collect();
    let is = |port: &ServicePort, protocol: &str| port.protocol.as_deref().unwrap_or("TCP") == protocol;
    let lonely: Vec<String> = ports
        .iter()
        .filter(|udp| is(udp, "UDP"))
        .filter(|udp| {
            !ports
                .iter()
                .any(|tcp| is(tcp, "TCP") && tcp.node_port == udp.node_port)
        })
        .map(|udp| udp.port.to_string())
        .collect();
    if !lonely.is_empty() {
        notes.push(UDP_MONITOR.note(format!(
            "UDP ports whose node port is no TCP port too are checked over TCP and may count as down: {}; set {} to udp-connect",
            lonely.join(", "),
            keys::MONITOR_TYPE.key
        )));
    }
}
