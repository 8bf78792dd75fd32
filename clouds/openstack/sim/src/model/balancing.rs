//! Octavia: load balancers and their parts.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bowline_cloud_kit::moment;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::network::FixedIp;
use super::{Id, Meta};

/// Where something is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Provisioning {
    /// As it was asked for.
    Active,
    /// On its way.
    PendingCreate,
    /// Being changed.
    PendingUpdate,
    /// On its way out.
    PendingDelete,
    /// The last change failed. A load balancer can only be deleted then, as a whole; a part of one that is active takes changes, too, but a
    /// pool takes none of its members or its monitor.
    Error,
}

impl Provisioning {
    /// As Octavia writes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::PendingCreate => "PENDING_CREATE",
            Self::PendingUpdate => "PENDING_UPDATE",
            Self::PendingDelete => "PENDING_DELETE",
            Self::Error => "ERROR",
        }
    }
}

/// What every Octavia object has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// Its id.
    pub id: Id,
    /// Its name; not unique.
    pub name: String,
    /// Where it is in its life.
    pub status: Provisioning,
    /// Whether it is switched on.
    pub is_up: bool,
    /// Whether Octavia has made it: a later change that fails leaves it where it is.
    pub is_made: bool,
    /// The rest.
    #[serde(flatten)]
    pub meta: Meta,
}

/// An address of a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vip {
    /// The address and its subnet.
    pub fixed_ip: FixedIp,
    /// The network's id.
    pub network: Id,
    /// The port's id.
    pub port: Id,
}

/// What carries a load balancer's traffic, such as an amphora. Changes that fail leave it as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Forwarder {
    /// It was not made yet, and perhaps never will be.
    Absent,
    /// It works.
    Working,
    /// It was lost. An amphora that died reports nothing any more, so what it reported last stands.
    Lost,
    /// It was lost, and the load balancer's provider says so of everything.
    KnownLost,
}

/// A load balancer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadBalancer {
    /// What every object has.
    #[serde(flatten)]
    pub part: Part,
    /// Its first address.
    pub vip: Vip,
    /// Further addresses, on the same port.
    pub additional_vips: Vec<FixedIp>,
    /// Whether Octavia made the port, which then goes with the load balancer.
    pub owns_port: bool,
    /// `amphora`, `ovn`, ...
    pub provider: String,
    /// The flavor's id.
    pub flavor: Option<String>,
    /// Where it runs.
    pub zone: Option<String>,
    /// What carries its traffic.
    pub forwarder: Forwarder,
    /// What is under way, if anything is.
    pub change: Option<Change>,
    /// Members and pools that `ovn` takes away one after the other, and says to be `ACTIVE` meanwhile.
    pub ending: Vec<Id>,
    /// The protocols of which `ovn` keeps a client at a member: an option of all pools of a protocol together.
    pub sticky: BTreeSet<PoolProtocol>,
    /// The security groups that a person set on its address.
    pub vip_groups: Vec<String>,
}

/// What is under way on a load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// When it is done.
    #[serde(with = "moment")]
    pub until: Instant,
    /// Whether it fails.
    pub fails: bool,
    /// Whether it fails for the part alone that it is made to.
    pub part_fails: bool,
}

/// What a client talks to a listener in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ListenerProtocol {
    /// Connections.
    Tcp,
    /// Requests.
    Http,
    /// Connections whose TLS goes through.
    Https,
    /// Requests over TLS that ends here.
    TerminatedHttps,
    /// Datagrams.
    Udp,
    /// Associations.
    Sctp,
    /// Metrics of the load balancer itself.
    Prometheus,
}

/// What a pool talks to its members in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum PoolProtocol {
    /// Connections.
    Tcp,
    /// Requests.
    Http,
    /// Connections whose TLS goes through.
    Https,
    /// Connections that begin with a header in text.
    Proxy,
    /// Connections that begin with a binary header.
    Proxyv2,
    /// Datagrams.
    Udp,
    /// Associations.
    Sctp,
}

/// How a pool spreads connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Algorithm {
    /// In turn.
    RoundRobin,
    /// To the member with the fewest connections.
    LeastConnections,
    /// By the client's address.
    SourceIp,
    /// By the client's address and port.
    SourceIpPort,
}

/// How a monitor probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MonitorKind {
    /// A request.
    #[serde(rename = "HTTP")]
    Http,
    /// A request over TLS.
    #[serde(rename = "HTTPS")]
    Https,
    /// An echo.
    #[serde(rename = "PING")]
    Ping,
    /// A connection.
    #[serde(rename = "TCP")]
    Tcp,
    /// A handshake.
    #[serde(rename = "TLS-HELLO")]
    TlsHello,
    /// A datagram that is not refused.
    #[serde(rename = "UDP-CONNECT")]
    UdpConnect,
    /// An association.
    #[serde(rename = "SCTP")]
    Sctp,
}

/// A place where clients arrive.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Listener {
    /// What every object has.
    #[serde(flatten)]
    pub part: Part,
    /// The load balancer's id.
    pub load_balancer: Id,
    /// What clients talk.
    pub protocol: ListenerProtocol,
    /// The port.
    pub port: u16,
    /// The pool's id.
    pub default_pool: Option<Id>,
    /// Policies that send some requests to another pool; they go with the listener.
    pub redirects: Vec<Redirect>,
    /// What can be changed.
    pub settings: ListenerSettings,
}

/// An L7 policy of a listener, with the action `REDIRECT_TO_POOL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirect {
    /// The policy's id.
    pub id: Id,
    /// The pool's id.
    pub pool: Id,
    /// Whether it is switched on.
    pub is_up: bool,
    /// Whether it has rules: without any it sends nothing.
    pub has_rules: bool,
}

impl Listener {
    /// Whether the listener reaches a pool, by default or through a policy that sends something: Octavia names both in the pool. That
    /// a policy could send to a pool is enough to bar its deletion.
    pub(crate) fn reaches(&self, pool: Id) -> bool {
        let mut sending = self.redirects.iter().filter(|it| it.is_up && it.has_rules);
        self.default_pool == Some(pool) || sending.any(|it| it.pool == pool)
    }
}

/// What can be changed about a listener.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListenerSettings {
    /// The most connections; -1 is no limit.
    pub connection_limit: i64,
    /// Headers that members get.
    pub insert_headers: BTreeMap<String, String>,
    /// The certificate.
    pub tls_container: Option<String>,
    /// Further certificates.
    pub sni_containers: Vec<String>,
    /// In milliseconds.
    pub timeout_client_data_ms: u32,
    /// In milliseconds.
    pub timeout_member_connect_ms: u32,
    /// In milliseconds.
    pub timeout_member_data_ms: u32,
    /// In milliseconds.
    pub timeout_tcp_inspect_ms: u32,
    /// Who may come; everybody if absent.
    pub allowed_cidrs: Option<Vec<String>>,
}

impl Default for ListenerSettings {
    fn default() -> Self {
        Self {
            connection_limit: -1,
            insert_headers: BTreeMap::new(),
            tls_container: None,
            sni_containers: Vec::new(),
            timeout_client_data_ms: 50_000,
            timeout_member_connect_ms: 5_000,
            timeout_member_data_ms: 50_000,
            timeout_tcp_inspect_ms: 0,
            allowed_cidrs: None,
        }
    }
}

/// Members and how they are used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pool {
    /// What every object has.
    #[serde(flatten)]
    pub part: Part,
    /// The load balancer's id.
    pub load_balancer: Id,
    /// What members get.
    pub protocol: PoolProtocol,
    /// How connections are spread.
    pub algorithm: Algorithm,
    /// How a client stays with a member.
    pub persistence: Option<Persistence>,
}

/// How a client stays with a member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Persistence {
    /// `SOURCE_IP`, `HTTP_COOKIE` or `APP_COOKIE`.
    #[serde(rename = "type")]
    pub kind: String,
    /// For `APP_COOKIE`.
    #[serde(default)]
    pub cookie_name: Option<String>,
    /// For UDP, in seconds.
    #[serde(default)]
    pub persistence_timeout: Option<u32>,
    /// For UDP.
    #[serde(default)]
    pub persistence_granularity: Option<String>,
}

/// A target.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Member {
    /// What every object has.
    #[serde(flatten)]
    pub part: Part,
    /// The pool's id.
    pub pool: Id,
    /// Where it is.
    pub address: IpAddr,
    /// Port for traffic.
    pub port: u16,
    /// The subnet's id.
    pub subnet: Option<Id>,
    /// Port for probes, if another one.
    pub monitor_port: Option<u16>,
    /// Address for probes, if another one.
    pub monitor_address: Option<IpAddr>,
    /// Share of the connections, 0 to 256.
    pub weight: u16,
    /// Whether it is used only when all others are down.
    pub is_backup: bool,
    /// Whether its pool had a monitor when it was made. One that comes with a load balancer says `NO_MONITOR` until it is probed.
    pub began_watched: bool,
    /// What the probes found.
    pub healthy: Option<bool>,
}

/// How the members of a pool are watched.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Monitor {
    /// What every object has.
    #[serde(flatten)]
    pub part: Part,
    /// The pool's id.
    pub pool: Id,
    /// How it probes.
    pub kind: MonitorKind,
    /// From one probe to the next, in seconds.
    pub delay_s: u32,
    /// For one probe, in seconds.
    pub timeout_s: u32,
    /// Good probes until a member is up.
    pub max_retries: u32,
    /// Bad probes until a member is down.
    pub max_retries_down: u32,
    /// For HTTP and HTTPS.
    pub http: Option<HttpProbe>,
}

/// The request of an HTTP monitor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpProbe {
    /// Method.
    pub method: String,
    /// Path.
    pub url_path: String,
    /// `200`, `200,202` or `200-204`.
    pub expected_codes: String,
    /// Version of HTTP.
    pub version: Option<String>,
    /// Host, for version 1.1.
    pub domain_name: Option<String>,
}

impl Default for HttpProbe {
    fn default() -> Self {
        Self {
            method: "GET".to_owned(),
            url_path: "/".to_owned(),
            expected_codes: "200".to_owned(),
            version: None,
            domain_name: None,
        }
    }
}
