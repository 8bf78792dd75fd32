//! What is not known about the real API, or changes from day to day, as switches.

mod table;

use std::time::Duration;

use bowline_cloud_kit::millis;
use serde::{Deserialize, Serialize};

/// Switches that may be changed while the simulator runs. [`Default`] is the most likely behaviour, without waiting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Behaviour {
    /// How long a new load balancer is `changing`.
    #[serde(rename = "lb_create_time_ms", with = "millis")]
    pub lb_create_time: Duration,
    /// How long a load balancer is `changing` after a write to it or to a part of it.
    #[serde(rename = "lb_change_time_ms", with = "millis")]
    pub lb_change_time: Duration,
    /// How long a deleted load balancer can still be read.
    #[serde(rename = "lb_delete_time_ms", with = "millis")]
    pub lb_delete_time: Duration,
    /// How long a write to a load balancer or a part of it takes, from arrival to answer.
    #[serde(rename = "lb_write_time_ms", with = "millis")]
    pub lb_write_time: Duration,
    /// How long a server is `changing` when it is created, started, stopped or rebooted.
    #[serde(rename = "server_change_time_ms", with = "millis")]
    pub server_change_time: Duration,
    /// How long after its creation lists do not show an object.
    #[serde(rename = "list_lag_ms", with = "millis")]
    pub list_lag: Duration,
    /// Whether the answer to a POST of a load balancer says `changing` even if it is ready at once.
    pub create_answers_changing: bool,
    /// What becomes of a write that meets another one on the same load balancer.
    pub overlap: OverlapMode,
    /// Status with which writes are refused while a load balancer is `changing`; `None` accepts them.
    pub refuse_writes_while_changing: Option<u16>,
    /// Whether a DELETE of something that is still being created is refused with 400.
    pub refuse_delete_while_creating: bool,
    /// Whether a pool may have several members with the same address and port.
    pub duplicate_members: bool,
    /// Whether a (protocol, port) pair can be used by one listener of a load balancer only.
    pub unique_listener_ports: bool,
    /// Whether a pool can have one monitor only.
    pub one_monitor_per_pool: bool,
    /// What is said of a second monitor of a pool. The API's own words are not known.
    pub second_monitor_text: String,
    /// Whether protocol and port of a listener can be changed by PATCH.
    pub listener_port_patchable: bool,
    /// What a DELETE of a pool does to its parts.
    pub pool_delete: PoolDelete,
    /// The order of the addresses of a load balancer that was created without wishes.
    pub vip_order: VipOrder,
    /// Whether lists begin with the newest object rather than the oldest.
    pub lists_newest_first: bool,
    /// Whether a PATCH of anything but a server is refused as well if it holds several attributes.
    pub one_attribute_per_patch: bool,
    /// Whether a network with the bits of a host in it is taken, and shown without them, rather than refused.
    pub masks_host_bits: bool,
    /// Attributes that a PATCH is answered for and does not change, such as `allowed_cidrs` or `http.host`.
    pub unkept_attributes: Vec<String>,
    /// How many characters of a name are kept; `None` keeps all.
    pub cuts_names_to: Option<usize>,
    /// Which keys a refusal of a health monitor has.
    pub monitor_refusals: RefusalKeys,
    /// The least `delay_s` of a `udp-connect` monitor; `None` accepts all.
    pub min_udp_connect_delay_s: Option<u32>,
    /// Whether the status of a load balancer follows the health of its members.
    pub status_follows_members: bool,
    /// What a monitored member shows before its health is known.
    pub unprobed_member: MonitorStatus,
    /// Whether every request is answered with 503.
    pub maintenance: bool,
    /// Limits of the project.
    pub quota: Quota,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            lb_create_time: Duration::ZERO,
            lb_change_time: Duration::ZERO,
            lb_delete_time: Duration::ZERO,
            lb_write_time: Duration::ZERO,
            server_change_time: Duration::ZERO,
            list_lag: Duration::ZERO,
            create_answers_changing: true,
            overlap: OverlapMode::ApplyAtOnce,
            refuse_writes_while_changing: None,
            refuse_delete_while_creating: true,
            duplicate_members: true,
            unique_listener_ports: true,
            one_monitor_per_pool: true,
            second_monitor_text: "The pool already has a health monitor.".to_owned(),
            listener_port_patchable: false,
            pool_delete: PoolDelete::Cascade,
            vip_order: VipOrder::V4First,
            lists_newest_first: false,
            one_attribute_per_patch: false,
            masks_host_bits: false,
            unkept_attributes: Vec::new(),
            cuts_names_to: None,
            monitor_refusals: RefusalKeys::Attribute,
            min_udp_connect_delay_s: None,
            status_follows_members: true,
            unprobed_member: MonitorStatus::Up,
            maintenance: false,
            quota: Quota::default(),
        }
    }
}

/// What becomes of a write that meets another one on the same load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OverlapMode {
    /// It is applied as if it were alone.
    ApplyAtOnce,
    /// It is held until the other one is done.
    Hold,
    /// It is refused with this status.
    Refuse(u16),
}

/// Which keys a refusal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalKeys {
    /// The attribute; for a field of an object the object's.
    Attribute,
    /// The field itself, also of an object.
    Field,
    /// `detail`, whatever it is about.
    Detail,
    /// `non_field_errors`, whatever it is about.
    NonField,
}

/// What a DELETE of a pool does to its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolDelete {
    /// Members, monitor and listeners go with it.
    Cascade,
    /// Members and monitor go with it, listeners stay without a pool.
    DetachListeners,
    /// It is refused with 400 while the pool has parts.
    RefuseIfUsed,
}

/// The order of automatic addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VipOrder {
    /// IPv4, then IPv6.
    V4First,
    /// IPv6, then IPv4.
    V6First,
}

/// What the API says about a member's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MonitorStatus {
    /// It passes its probes.
    Up,
    /// It fails its probes.
    Down,
    /// It is being changed.
    Changing,
    /// The pool has no monitor.
    NoMonitor,
    /// Not known.
    Unknown,
}

/// The most objects of a kind; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quota {
    /// Servers.
    pub servers: Option<usize>,
    /// Load balancers.
    pub load_balancers: Option<usize>,
    /// Pools of one load balancer.
    pub pools_per_load_balancer: Option<usize>,
    /// Members of one pool.
    pub members_per_pool: Option<usize>,
    /// Listeners of one load balancer. Whether the API has such a quota is not known.
    pub listeners_per_load_balancer: Option<usize>,
    /// Floating IPs.
    pub floating_ips: Option<usize>,
}
