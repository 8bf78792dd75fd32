//! `/v2.0/lbaas/healthmonitors`

use super::kind::Written;
use super::protocols::{MONITOR_KINDS, check_monitor, word};
use super::{Parent, patch_part};
use crate::api::Call;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::Id;
use crate::model::balancing::{HttpProbe, Monitor, MonitorKind, Pool};

/// Those of HTTP that monitors of other kinds do not take.
const HTTP_FIELDS: [&str; 3] = ["http_method", "url_path", "expected_codes"];
const METHODS: [&str; 9] = [
    "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
];
/// The most seconds that the API takes for a time.
const MAX_SECONDS: i64 = i32::MAX as i64;

impl Written for Monitor {
    const TAKEN: &'static str = "name admin_state_up delay timeout max_retries max_retries_down http_method \
         url_path expected_codes http_version domain_name tags";
    const FIXED: &'static str = "type pool_id project_id tenant_id";
    const FILTERS: &'static str = "type delay timeout max_retries max_retries_down http_method url_path \
         expected_codes http_version domain_name";
    const KEY: &'static str = "pool_id";

    fn key(&self) -> String {
        self.pool.to_string()
    }

    fn create(call: &mut Call<'_>) -> Result<Id, ApiError> {
        let fields = call.new_fields::<Self>()?;
        let pool = fields.given("pool_id", fields.id("pool_id")?)?;
        call.found::<Pool>(&pool.to_string())?;
        if let Some(pool) = call.state.pools.get(&pool)
            && let Some(kind) = fields.word("type", &call.state.words(&MONITOR_KINDS))?
        {
            check_monitor(pool.protocol, kind)?;
            let parent = call.parent(pool.load_balancer)?;
            call.check_quota::<Self>(&parent.project, 1)?;
        }
        let (pool, parent) = call.mutable_pool(pool)?;
        let monitor = call.new_monitor(&fields, &pool, &parent)?;
        if call.state.monitor_of(pool.part.id).is_some() {
            let text = "This pool already has a health monitor";
            return Err(ApiError::octavia_conflict(text));
        }
        let id = monitor.part.id;
        call.state.monitors.insert(id, monitor);
        call.touch_pool(pool.part.id);
        Ok(id)
    }

    fn change(call: &mut Call<'_>, id: Id) -> Result<(), ApiError> {
        let fields = call.changed_fields::<Self>()?;
        if let Some(mut monitor) = call.state.monitors.get(&id).cloned() {
            let pool = monitor.pool;
            call.change_monitor(&mut monitor, &fields)?;
            call.mutable_pool(pool)?;
            patch_part(&mut monitor.part, &fields, &call.state.clock.rfc3339_seconds())?;
            call.state.monitors.insert(id, monitor);
            call.touch_pool(pool);
        }
        Ok(())
    }

    fn remove(call: &mut Call<'_>, id: Id) -> Result<(), ApiError> {
        let pool = call.state.monitors.get(&id).map(|it| it.pool);
        let pool = pool.unwrap_or_default();
        call.mutable_pool(pool)?;
        call.begin_to_delete::<Self>(id);
        call.touch_pool(pool);
        Ok(())
    }
}

impl Call<'_> {
    pub(super) fn new_monitor(
        &self,
        fields: &Fields,
        pool: &Pool,
        parent: &Parent,
    ) -> Result<Monitor, ApiError> {
        self.only(fields, [Monitor::TAKEN, Monitor::FIXED, ""])?;
        let kind: Option<MonitorKind> = fields.word("type", &self.state.words(&MONITOR_KINDS))?;
        let kind = fields.given("type", kind)?;
        check_monitor(pool.protocol, kind)?;
        let probed = [MonitorKind::Tcp, MonitorKind::UdpConnect];
        let why = format!(
            "OVN provider does not support {} health monitor type. Supported types: UDP-CONNECT, TCP",
            word(kind)
        );
        parent.unless_ovn(!probed.contains(&kind), why)?;
        for name in ["delay", "timeout", "max_retries"] {
            if !fields.has(name) {
                return Err(fields.bad(name, "Mandatory field missing."));
            }
        }
        let part = self.new_part(fields, &parent.project)?;
        let speaks_http = matches!(kind, MonitorKind::Http | MonitorKind::Https);
        let mut monitor = Monitor {
            part,
            pool: pool.part.id,
            kind,
            delay_s: 0,
            timeout_s: 0,
            max_retries: 1,
            max_retries_down: 3,
            http: speaks_http.then(HttpProbe::default),
        };
        self.change_monitor(&mut monitor, fields)?;
        Ok(monitor)
    }

    /// A time-out above the delay is fine.
    fn change_monitor(&self, monitor: &mut Monitor, fields: &Fields) -> Result<(), ApiError> {
        for (name, target, least, most) in [
            ("delay", &mut monitor.delay_s, 0, MAX_SECONDS),
            ("timeout", &mut monitor.timeout_s, 0, MAX_SECONDS),
            ("max_retries", &mut monitor.max_retries, 1, 10),
            ("max_retries_down", &mut monitor.max_retries_down, 1, 10),
        ] {
            if let Some(number) = fields.small(name, least, most)? {
                *target = number;
            } else if fields.is_null(name) && name != "max_retries_down" {
                return Err(ApiError::invalid_option("None", name));
            }
        }
        let least = self.state.behaviour.min_udp_connect_delay_s;
        if monitor.kind == MonitorKind::UdpConnect && monitor.delay_s < least {
            return Err(ApiError::invalid(format!(
                "The request delay value {} should be larger than {least} for UDP-CONNECT health monitor type.",
                monitor.delay_s
            )));
        }
        match &mut monitor.http {
            Some(probe) => change_probe(probe, fields),
            None => match HTTP_FIELDS
                .iter()
                .find(|it| fields.has(it) && !fields.is_null(it))
            {
                None => Ok(()),
                Some(name) => {
                    let kind = format!("health monitors of type {}", word(monitor.kind));
                    Err(ApiError::invalid_option(name, kind))
                }
            },
        }
    }
}

fn change_probe(probe: &mut HttpProbe, fields: &Fields) -> Result<(), ApiError> {
    if let Some(method) = fields.word("http_method", &METHODS)? {
        probe.method = method;
    }
    if let Some(path) = fields.text("url_path")? {
        if !path.starts_with('/') {
            return Err(fields.bad("url_path", "Value must be a valid URL Path string"));
        }
        probe.url_path = path;
    }
    if let Some(codes) = fields.text("expected_codes")? {
        let is_code = |it: &str| it.len() == 3 && it.bytes().all(|byte| byte.is_ascii_digit());
        let is_good = |it: &str| match it.split_once('-') {
            Some((low, high)) => is_code(low) && is_code(high),
            None => is_code(it.trim()),
        };
        if !codes.split(',').all(is_good) {
            let text = r"Value should match the pattern ^(\d{3}(\s*,\s*\d{3})*)$|^(\d{3}-\d{3})$";
            return Err(fields.bad("expected_codes", text));
        }
        probe.expected_codes = codes;
    }
    if let Some(version) = fields.read::<f64>("http_version", "is not a version of HTTP")? {
        if version != 1.0 && version != 1.1 {
            return Err(fields.bad("http_version", "Value should be one of: 1.0, 1.1"));
        }
        probe.version = Some(format!("{version:.1}"));
    }
    if let Some(name) = fields.text("domain_name")? {
        match probe.version.as_deref() {
            Some("1.1") => {}
            None => {
                let text = "'http_version' must be specified when 'domain_name' is provided.";
                return Err(ApiError::invalid(text));
            }
            Some(old) => {
                let option = "health monitors HTTP 1.1 domain name health check";
                return Err(ApiError::invalid_option(format!("http_version {old}"), option));
            }
        }
        probe.domain_name = Some(name);
    }
    Ok(())
}
