//! Health monitors (cloudscale.ch API, "Load Balancer Health Monitors").

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{MonitorId, MonitorType, PoolId, Stub, Tags};

/// The health monitor of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitor {
    /// Its id.
    pub uuid: MonitorId,
    /// When it was made; see [`LoadBalancer::created_at`](super::LoadBalancer::created_at).
    pub created_at: Option<String>,
    /// The pool whose members it probes.
    pub pool: Stub<PoolId>,
    /// The time between two probes, in seconds.
    pub delay_s: i64,
    /// How long a probe may take, in seconds.
    pub timeout_s: i64,
    /// How many good probes in a row make a member up.
    pub up_threshold: i64,
    /// How many bad probes in a row make a member down.
    pub down_threshold: i64,
    /// How it probes.
    #[serde(rename = "type")]
    pub kind: MonitorType,
    /// What it asks and expects, for the types `http` and `https`.
    pub http: Option<MonitorHttp>,
}

impl Monitor {
    /// What it asks and expects over HTTP; `None` if it does not speak HTTP.
    pub fn http(&self) -> Option<&MonitorHttp> {
        let speaks_http = matches!(self.kind, MonitorType::Http | MonitorType::Https);
        self.http.as_ref().filter(|_| speaks_http)
    }
}

/// What a monitor asks and expects over HTTP. Of a new one, the API fills what is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitorHttp {
    /// The statuses that count as good: a list of codes, or one range such as `200-204`.
    #[serde(
        default,
        deserialize_with = "super::list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub expected_codes: Vec<String>,
    /// The method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url_path: Option<String>,
    /// `1.0` or `1.1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The `Host` header; only with version 1.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// A health monitor to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewMonitor {
    /// The pool whose members it shall probe.
    pub pool: PoolId,
    /// The time between two probes, in seconds.
    pub delay_s: i64,
    /// How long a probe may take, in seconds.
    pub timeout_s: i64,
    /// How many good probes in a row make a member up.
    pub up_threshold: i64,
    /// How many bad probes in a row make a member down.
    pub down_threshold: i64,
    /// How it shall probe.
    #[serde(rename = "type")]
    pub kind: MonitorType,
    /// What it shall ask and expect. Sent as `{}` for types that know no HTTP; the API takes it.
    pub http: MonitorHttp,
    /// Tags.
    #[serde(skip_serializing_if = "super::is_empty")]
    pub tags: Arc<Tags>,
}

/// The one attribute of a monitor that a call changes.
///
/// `type`, `pool` and the version of HTTP cannot be changed: such a monitor is made anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MonitorChange {
    /// The time between two probes, in seconds.
    DelayS(i64),
    /// How long a probe may take, in seconds.
    TimeoutS(i64),
    /// How many good probes in a row make a member up.
    UpThreshold(i64),
    /// How many bad probes in a row make a member down.
    DownThreshold(i64),
    /// What it asks or expects over HTTP.
    Http(HttpChange),
}

/// The one attribute of what a monitor asks and expects over HTTP that a call changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpChange {
    /// The method.
    Method(String),
    /// The path.
    UrlPath(String),
    /// The `Host` header; `None` takes it away.
    Host(Option<String>),
    /// The statuses that count as good.
    ExpectedCodes(Vec<String>),
}
