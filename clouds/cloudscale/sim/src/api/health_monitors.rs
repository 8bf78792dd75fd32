//! `/v1/load-balancers/health-monitors`

use serde_json::{Map, Value};
use uuid::Uuid;

use super::{Answer, Call, found, path_id};
use crate::behaviour::RefusalKeys;
use crate::error::ApiError;
use crate::fields::{Fields, given};
use crate::model::{HealthMonitor, HttpProbe, MonitorKind};
use crate::wire::Wire;

const KINDS: [&str; 6] = ["ping", "tcp", "http", "https", "tls-hello", "udp-connect"];
const METHODS: [&str; 9] = [
    "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
];
const VERSIONS: [&str; 2] = ["1.0", "1.1"];
/// Assumed: the API names no limits; these keep mistakes of units out.
const MAX_SECONDS: u32 = 86_400;
const MAX_THRESHOLD: u32 = 1_000;

impl Call<'_> {
    pub(super) fn health_monitors(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", []) => self.list(self.state.monitors.values(), |it| &it.tags, Wire::monitor),
            ("POST", []) => {
                let keys = self.state.behaviour.monitor_refusals;
                self.create_monitor().map_err(|error| error.with_keys(keys))
            }
            (_, []) => self.wrong_method(),
            (method, [id]) => {
                let uuid = path_id(id)?;
                let monitor = found(&self.state.monitors, &uuid)?;
                let balancer = self.state.balancer_of_pool(monitor.pool);
                match method {
                    "GET" => return self.one(&self.wire().monitor(monitor)),
                    "PATCH" => {
                        let keys = self.state.behaviour.monitor_refusals;
                        let changed = self
                            .patched_monitor(monitor.clone())
                            .map_err(|error| error.with_keys(keys))?;
                        self.state.monitors.insert(uuid, changed);
                    }
                    "DELETE" => {
                        let pool = monitor.pool;
                        self.state.monitors.shift_remove(&uuid);
                        self.forget_health(pool);
                    }
                    _ => return self.wrong_method(),
                }
                if let Some(balancer) = balancer {
                    self.state.touch(balancer);
                }
                self.done()
            }
            _ => Err(ApiError::not_found()),
        }
    }

    fn forget_health(&mut self, pool: Uuid) {
        let members = self.state.members.values_mut();
        members
            .filter(|member| member.pool == pool)
            .for_each(|member| member.healthy = None);
    }

    fn patched_monitor(&self, mut monitor: HealthMonitor) -> Result<HealthMonitor, ApiError> {
        let mut fields = self.patch(false)?;
        fields.forbid(&["pool", "type"]);
        numbers(&mut fields, &mut monitor);
        monitor.tags = fields.tags().unwrap_or(monitor.tags);
        if let Some(http) = http_object(&mut fields) {
            if http.contains_key("version") {
                fields.refuse("http", "The version cannot be changed.");
            }
            match &mut monitor.http {
                // Fields that are not named stay as they are.
                Some(probe) => self.fill(probe, &mut fields, http),
                None if http.is_empty() => {}
                None => fields.refuse("http", "Only monitors of type http or https have this attribute."),
            }
        }
        self.refuse_short_udp_delay(&mut fields, &monitor);
        fields.check()?;
        Ok(monitor)
    }

    fn create_monitor(&mut self) -> Answer {
        let mut fields = self.new_fields(&["pool", "type"])?;
        let pool = fields.known("pool", "Pool", &self.state.pools);
        let kind: Option<MonitorKind> = fields.word("type", &KINDS);
        let (uuid, created_at) = self.birth();
        let mut monitor = HealthMonitor {
            uuid,
            pool: pool.unwrap_or_default(),
            created_at,
            delay_s: 2,
            timeout_s: 1,
            up_threshold: 2,
            down_threshold: 3,
            kind: kind.unwrap_or(MonitorKind::Tcp),
            http: None,
            tags: fields.tags().unwrap_or_default(),
        };
        numbers(&mut fields, &mut monitor);
        let http = http_object(&mut fields).unwrap_or_default();
        if matches!(monitor.kind, MonitorKind::Http | MonitorKind::Https) {
            let mut probe = HttpProbe {
                expected_codes: vec!["200".to_owned()],
                method: "GET".to_owned(),
                url_path: "/".to_owned(),
                version: "1.1".to_owned(),
                host: None,
            };
            self.fill(&mut probe, &mut fields, http);
            monitor.http = Some(probe);
        } else if !http.is_empty() {
            fields.refuse("http", "Only monitors of type http or https have this attribute.");
        }
        self.refuse_short_udp_delay(&mut fields, &monitor);
        fields.check()?;
        given(kind, "type")?;
        if self.state.behaviour.one_monitor_per_pool && self.state.monitor_of(monitor.pool).is_some() {
            let text = self.state.behaviour.second_monitor_text.clone();
            return Err(ApiError::field("pool", text));
        }
        self.state.monitors.insert(uuid, monitor.clone());
        if let Some(balancer) = self.state.balancer_of_pool(monitor.pool) {
            self.state.touch(balancer);
        }
        self.created(&self.wire().monitor(&monitor))
    }

    /// Takes over what the request names, with checks.
    fn fill(&self, probe: &mut HttpProbe, fields: &mut Fields, http: Map<String, Value>) {
        let Err(error) = checked(probe, http) else {
            return;
        };
        match self.state.behaviour.monitor_refusals {
            RefusalKeys::Field => {
                for (field, text) in error.into_fields() {
                    fields.refuse(&field, text);
                }
            }
            _ => fields.refuse("http", error.texts()),
        }
    }

    fn refuse_short_udp_delay(&self, fields: &mut Fields, monitor: &HealthMonitor) {
        if let (MonitorKind::UdpConnect, Some(least)) =
            (monitor.kind, self.state.behaviour.min_udp_connect_delay_s)
            && monitor.delay_s < least
        {
            fields.refuse(
                "delay_s",
                format!("The delay_s of an udp-connect monitor must be at least {least}."),
            );
        }
    }
}

fn numbers(fields: &mut Fields, monitor: &mut HealthMonitor) {
    for (name, most, number) in [
        ("delay_s", MAX_SECONDS, &mut monitor.delay_s),
        ("timeout_s", MAX_SECONDS, &mut monitor.timeout_s),
        ("up_threshold", MAX_THRESHOLD, &mut monitor.up_threshold),
        ("down_threshold", MAX_THRESHOLD, &mut monitor.down_threshold),
    ] {
        *number = fields.number(name, 1, most).unwrap_or(*number);
    }
}

fn http_object(fields: &mut Fields) -> Option<Map<String, Value>> {
    match fields.value("http")?.clone() {
        Value::Object(map) => Some(map),
        Value::Null => None,
        _ => {
            fields.refuse("http", "Expected an object.");
            None
        }
    }
}

fn checked(probe: &mut HttpProbe, http: Map<String, Value>) -> Result<(), ApiError> {
    let mut http = Fields::new(http);
    if let Some(codes) = http.texts("expected_codes") {
        if !valid_codes(&codes) {
            let text = "Expect a list of HTTP status codes or one range like \"200-204\".";
            http.refuse("expected_codes", text);
        }
        probe.expected_codes = codes;
    }
    probe.method = http
        .word("method", &METHODS)
        .unwrap_or_else(|| probe.method.clone());
    if !METHODS.contains(&probe.method.as_str()) {
        let (method, known) = (&probe.method, METHODS.join(", "));
        http.refuse(
            "method",
            format!("{method:?} is not valid. Expect one of: {known}."),
        );
    }
    if let Some(path) = http.text("url_path") {
        if !path.starts_with('/') {
            http.refuse("url_path", "The url_path must begin with a slash.");
        }
        probe.url_path = path;
    }
    probe.version = http
        .word("version", &VERSIONS)
        .unwrap_or_else(|| probe.version.clone());
    if !VERSIONS.contains(&probe.version.as_str()) {
        let text = format!("{:?} is not valid. Expect one of: 1.0, 1.1.", probe.version);
        http.refuse("version", text);
    }
    if let Some(host) = http.nullable_text("host") {
        probe.host = host;
    }
    if probe.host.is_some() && probe.version == "1.0" {
        http.refuse("host", "The host argument can not be used with HTTP version 1.0.");
    }
    http.check()
}

/// A list of codes, or one range alone.
fn valid_codes(codes: &[String]) -> bool {
    let code = |text: &str| text.parse::<u16>().ok().filter(|code| (100..600).contains(code));
    match codes {
        [] => false,
        [one] if one.contains('-') => one.split_once('-').is_some_and(
            |(low, high)| matches!((code(low), code(high)), (Some(low), Some(high)) if low <= high),
        ),
        codes => codes.iter().all(|text| code(text).is_some()),
    }
}
