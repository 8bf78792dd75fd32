//! Health monitors (Load Balancer API v2).

use bowline_cloud_http::lenient::{list, or_default};
use serde::{Deserialize, Serialize};

use super::{MonitorId, MonitorType, PoolId, ProvisioningStatus, Reference};

/// The health monitor of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitor {
    /// Its id.
    pub id: MonitorId,
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// How it probes.
    #[serde(rename = "type")]
    pub kind: MonitorType,
    /// The time between two probes, in seconds.
    #[serde(default, deserialize_with = "or_default")]
    pub delay: i64,
    /// How long a probe may take, in seconds.
    #[serde(default, deserialize_with = "or_default")]
    pub timeout: i64,
    /// How many good probes in a row make a member up.
    #[serde(default, deserialize_with = "or_default")]
    pub max_retries: i64,
    /// How many bad probes in a row make a member down.
    #[serde(default, deserialize_with = "or_default")]
    pub max_retries_down: i64,
    /// The path that it asks for, over HTTP.
    pub url_path: Option<String>,
    /// The method that it asks with, over HTTP.
    pub http_method: Option<String>,
    /// The statuses that count as good, over HTTP.
    pub expected_codes: Option<String>,
    /// The pool whose members it probes.
    #[serde(default, deserialize_with = "list")]
    pub pools: Vec<Reference<PoolId>>,
    /// Whether it takes changes.
    #[serde(default, deserialize_with = "or_default")]
    pub provisioning_status: ProvisioningStatus,
}

/// A health monitor to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMonitor {
    /// The pool whose members it shall probe; `None` inside of a [`NewPool`](super::NewPool).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_id: Option<PoolId>,
    /// Its name.
    pub name: String,
    /// How it shall probe.
    #[serde(rename = "type")]
    pub kind: MonitorType,
    /// The time between two probes, in seconds.
    pub delay: i64,
    /// How long a probe may take, in seconds.
    pub timeout: i64,
    /// How many good probes in a row make a member up.
    pub max_retries: i64,
    /// How many bad probes in a row make a member down.
    pub max_retries_down: i64,
    /// What it shall ask and expect over HTTP.
    #[serde(flatten)]
    pub http: Option<NewMonitorHttp>,
}

/// What a new monitor shall ask and expect over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewMonitorHttp {
    /// The path.
    pub url_path: String,
    /// The method.
    pub http_method: String,
    /// The statuses that count as good.
    pub expected_codes: String,
}

/// What a call changes at a monitor. Its type cannot be changed: such a monitor is made anew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MonitorUpdate {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The time between two probes, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<i64>,
    /// How long a probe may take, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<i64>,
    /// How many good probes in a row make a member up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<i64>,
    /// How many bad probes in a row make a member down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retries_down: Option<i64>,
}
