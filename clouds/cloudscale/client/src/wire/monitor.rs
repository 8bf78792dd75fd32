//! Health monitors (cloudscale.ch API, "Load Balancer Health Monitors").

use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::{LoadBalancerId, MonitorId, MonitorType, PoolId, Stub, Tags};

/// The health monitor of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitor {
    /// Its id.
    pub uuid: MonitorId,
    /// When it was made; see [`LoadBalancer::created_at`](super::LoadBalancer::created_at).
    #[serde(default)]
    pub created_at: Option<String>,
    /// The pool whose members it probes.
    pub pool: Stub<PoolId>,
    /// The load balancer that it belongs to.
    #[serde(default)]
    pub load_balancer: Option<Stub<LoadBalancerId>>,
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
    #[serde(default)]
    pub http: Option<MonitorHttp>,
}

/// What a monitor asks and expects over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitorHttp {
    /// The statuses that count as good: a list of codes, or one range such as `200-204`.
    #[serde(default, deserialize_with = "super::list")]
    pub expected_codes: Vec<String>,
    /// The method.
    #[serde(default)]
    pub method: Option<String>,
    /// The path.
    #[serde(default)]
    pub url_path: Option<String>,
    /// `1.0` or `1.1`.
    #[serde(default)]
    pub version: Option<String>,
    /// The `Host` header; only with version 1.1.
    #[serde(default)]
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
    pub http: NewMonitorHttp,
    /// Tags.
    #[serde(skip_serializing_if = "super::is_empty")]
    pub tags: Arc<Tags>,
}

/// What a new monitor shall ask and expect over HTTP; the API fills what is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NewMonitorHttp {
    /// The statuses that count as good.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected_codes: Vec<String>,
    /// The method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_path: Option<String>,
    /// `1.0` or `1.1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The `Host` header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// The one attribute of a monitor that a call changes.
///
/// `type`, `pool` and the version of HTTP cannot be changed: such a monitor is made anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MonitorChange {
    /// The time between two probes, in seconds.
    DelayS(i64),
    /// How long a probe may take, in seconds.
    TimeoutS(i64),
    /// How many good probes in a row make a member up.
    UpThreshold(i64),
    /// How many bad probes in a row make a member down.
    DownThreshold(i64),
    /// The method.
    HttpMethod(String),
    /// The path.
    HttpPath(String),
    /// The `Host` header; `None` takes it away.
    HttpHost(Option<String>),
    /// The statuses that count as good.
    HttpExpectedCodes(Vec<String>),
}

impl Serialize for MonitorChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// An object with one field.
        struct One<'a, T>(&'static str, &'a T);

        impl<T: Serialize> Serialize for One<'_, T> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(self.0, self.1)?;
                map.end()
            }
        }

        match self {
            Self::DelayS(value) => One("delay_s", value).serialize(serializer),
            Self::TimeoutS(value) => One("timeout_s", value).serialize(serializer),
            Self::UpThreshold(value) => One("up_threshold", value).serialize(serializer),
            Self::DownThreshold(value) => One("down_threshold", value).serialize(serializer),
            Self::HttpMethod(value) => One("http", &One("method", value)).serialize(serializer),
            Self::HttpPath(value) => One("http", &One("url_path", value)).serialize(serializer),
            Self::HttpHost(value) => One("http", &One("host", value)).serialize(serializer),
            Self::HttpExpectedCodes(value) => {
                One("http", &One("expected_codes", value)).serialize(serializer)
            }
        }
    }
}
