//! What is not known about the real API, or changes from day to day, as switches.

use std::time::Duration;

use bowline_cloud_kit::millis;
use serde::{Deserialize, Serialize};

const SDK: &str = "The vendor's Go SDK and its live tests.";
const CLIENTS: &str = "The vendor's Terraform provider and Ansible collection.";
const OCTAVIA: &str =
    "Octavia is as in the unkind world; what the vendor's load balancers are made of is not known.";
const NOBODY: &str = "Nobody says.";

bowline_cloud_kit::switches! {
    /// Switches that may be changed while the simulator runs. [`Default`] is the most likely behaviour, without waiting.
    Behaviour {
        /// How long a new load balancer is `changing`.
        lb_create_time as "lb_create_time_ms" with "millis": Duration = Duration::ZERO,
            documented(SDK) "A new load balancer is `changing` for this time, from zero to two minutes.";
        /// How long a load balancer is `changing` after a write to it or to a part of it.
        lb_change_time as "lb_change_time_ms" with "millis": Duration = Duration::ZERO,
            documented(CLIENTS)
            "A load balancer is `changing` for this time after a write to it or to a part of it.";
        /// How long a deleted load balancer can still be read.
        lb_delete_time as "lb_delete_time_ms" with "millis": Duration = Duration::ZERO,
            documented(CLIENTS) "A deleted load balancer can be read for this time.";
        /// How long a write to a load balancer or a part of it takes, from arrival to answer.
        lb_write_time as "lb_write_time_ms" with "millis": Duration = Duration::ZERO,
            documented(CLIENTS) "A write to a load balancer takes this time, up to two minutes.";
        /// How long a server is `changing` when it is created, started, stopped or rebooted.
        server_change_time as "server_change_time_ms" with "millis": Duration = Duration::ZERO,
            documented(SDK) "A server that is created, started, stopped or rebooted is `changing` for this time.";
        /// How long after its creation lists do not show an object.
        list_lag as "list_lag_ms" with "millis": Duration = Duration::ZERO,
            on_demand() "Lists do not show an object for this time after its creation.";
        /// What becomes of a write that meets another one on the same load balancer.
        overlap: OverlapMode = OverlapMode::ApplyAtOnce,
            assumed(OverlapMode::ApplyAtOnce => OverlapMode::Refuse(409), "Clients of the vendor write one thing \
                 after the other; what happens otherwise, nobody says.")
            "A write that meets another one on the same load balancer is applied at once, held back or refused.";
        /// Status with which writes are refused while a load balancer is `changing`; `None` accepts them.
        refuse_writes_while_changing: Option<u16> = None,
            assumed(None => Some(409), NOBODY) "A write to a load balancer that is `changing` is taken or refused.";
        /// Whether a pool may have several members with the same address and port.
        duplicate_members: bool = true,
            assumed(true => false, OCTAVIA)
            "A pool takes several members with the same address and port, or refuses the second one.";
        /// Whether a (protocol, port) pair can be used by one listener of a load balancer only.
        unique_listener_ports: bool = true,
            assumed(false => true, OCTAVIA) "A load balancer has one listener for each protocol and port.";
        /// Whether a pool can have one monitor only.
        one_monitor_per_pool: bool = true,
            assumed(false => true, OCTAVIA) "A pool has one monitor, and refuses the second one.";
        /// What is said of a second monitor of a pool. The API's own words are not known.
        second_monitor_text: String = "The pool already has a health monitor.".to_owned(),
            assumed("The pool already has a health monitor.".to_owned() => "Invalid.".to_owned(), NOBODY)
            "The words of that refusal.";
        /// Whether protocol and port of a listener can be changed by PATCH.
        listener_port_patchable: bool = false,
            assumed(true => false, "One client of the vendor sends such a PATCH, another one does not.")
            "The protocol and the port of a listener can be changed, or only by a new listener.";
        /// What a DELETE of a pool does to its parts.
        pool_delete: PoolDelete = PoolDelete::Cascade,
            assumed(PoolDelete::Cascade => PoolDelete::DetachListeners, "The Go manager deletes pools and leaves \
                 their listeners to the API; Octavia detaches them, and answers show listeners whose pool is \
                 null.")
            "A DELETE of a pool takes its listeners along, leaves them without a pool, or is refused while there \
             are parts. Members and monitor go with it.";
        /// The order of the addresses of a load balancer that was created without wishes.
        vip_order: VipOrder = VipOrder::V4First,
            documented(SDK)
            "A load balancer that was created without wishes has an IPv4 and an IPv6 address, IPv4 first.";
        /// Whether lists begin with the newest object rather than the oldest.
        lists_newest_first: bool = false,
            assumed(false => true, "The vendor promises no order.")
            "Lists begin with the oldest or the newest object.";
        /// Whether a PATCH of anything but a server is refused as well if it holds several attributes.
        one_attribute_per_patch: bool = false,
            assumed(false => true, "The vendor says so of servers, and of nothing else.")
            "A PATCH of several attributes is refused.";
        /// Whether a network with the bits of a host in it is taken, and shown without them, rather than refused.
        masks_host_bits: bool = false,
            assumed(true => false, NOBODY)
            "A network with the bits of a host in it is refused, or taken and shown without them.";
        /// Attributes that a PATCH is answered for and does not change, such as `allowed_cidrs` or `http.host`.
        unkept_attributes: Vec<String> = Vec::new(),
            on_demand() "A PATCH of these attributes is answered with 204 and changes nothing.";
        /// How many characters of a name are kept; `None` keeps all.
        cuts_names_to: Option<usize> = None,
            assumed(None => Some(255), "Databases do; the vendor names no limit.") "A name that is longer is cut.";
        /// Which keys a refusal of a health monitor has.
        monitor_refusals: RefusalKeys = RefusalKeys::Attribute,
            assumed(RefusalKeys::Attribute => RefusalKeys::NonField, "Those of a field, in one public test; \
                 whether all have, nobody says.")
            "Which key the refusal of a health monitor has.";
        /// The least `delay_s` of a `udp-connect` monitor; `None` accepts all.
        min_udp_connect_delay_s: Option<u32> = None,
            assumed(None => Some(3), OCTAVIA) "A shorter delay of a `udp-connect` monitor is refused.";
        /// What a monitored member shows before its health is known.
        unprobed_member: MonitorStatus = MonitorStatus::Up,
            assumed(MonitorStatus::Up => MonitorStatus::Changing, NOBODY)
            "What a member shows before its health is known.";
        /// Whether every request is answered with 503.
        maintenance: bool = false,
            on_demand() "Every request is answered with 503.";
        /// Limits of the project.
        quota: Quota = Quota::default(),
            on_demand() "What exceeds a limit of the project is refused.";
    } and {
        "the answer to a POST of a load balancer": documented(SDK) "It says `changing`.";
        "a DELETE of what is still being created": documented(CLIENTS) "It is refused with 400.";
        "the status of a load balancer": documented(CLIENTS) "It follows the health of the members.";
        "the name of a load balancer": documented(CLIENTS) "Several may have the same.";
        "the deletion of a load balancer": documented(CLIENTS)
            "Its pools, listeners, members and monitors go with it; floating IPs lose their target.";
        "the order of `allowed_cidrs`": documented(CLIENTS) "It is kept.";
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
