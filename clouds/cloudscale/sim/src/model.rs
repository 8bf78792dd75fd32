//! The objects of a project as the simulator holds them. How they look on the wire is another matter.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use uuid::Uuid;

use crate::behaviour::MonitorStatus;

/// Labels for people and programs.
pub type Tags = BTreeMap<String, String>;

/// A virtual machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Server {
    /// Its id.
    pub uuid: Uuid,
    /// Host name; several servers may share one.
    pub name: String,
    /// RFC 3339.
    pub created_at: String,
    /// Status once nothing is under way.
    pub status: ServerStatus,
    /// Until when it is `changing`.
    #[serde(skip)]
    pub changing_until: Option<Instant>,
    /// Whether the change under way is its creation.
    pub creating: bool,
    /// Zone slug.
    pub zone: String,
    /// Flavor slug.
    pub flavor: String,
    /// Image slug.
    pub image: String,
    /// Root volume first.
    pub volumes: Vec<Volume>,
    /// In the order given.
    pub interfaces: Vec<Interface>,
    /// Labels.
    pub tags: Tags,
}

/// A disk of a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Volume {
    /// Its id.
    pub uuid: Uuid,
    /// Size in GB.
    pub size_gb: u32,
}

/// What a server is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerStatus {
    /// Powered on.
    Running,
    /// Powered off.
    Stopped,
    /// On the way from one to the other.
    Changing,
}

/// A network interface of a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Interface {
    /// Whether it is in the public network.
    pub public: bool,
    /// The network's id.
    pub network: Uuid,
    /// None if the network has no subnet.
    pub addresses: Vec<Address>,
}

/// An address out of a subnet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The address.
    pub address: IpAddr,
    /// The subnet's id.
    pub subnet: Uuid,
}

/// A network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Network {
    /// Its id.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// RFC 3339.
    pub created_at: String,
    /// Zone slug.
    pub zone: String,
    /// Bytes.
    pub mtu: u32,
    /// Whether it is the provider's, which lists do not show.
    pub public: bool,
    /// Labels.
    pub tags: Tags,
}

/// An address range of a network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Subnet {
    /// Its id.
    pub uuid: Uuid,
    /// The network's id.
    pub network: Uuid,
    /// The range.
    pub cidr: IpNet,
    /// The router, if any.
    pub gateway: Option<IpAddr>,
    /// Name servers handed out.
    pub dns_servers: Vec<IpAddr>,
    /// Labels.
    pub tags: Tags,
}

/// A load balancer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadBalancer {
    /// Its id.
    pub uuid: Uuid,
    /// Its name; not unique.
    pub name: String,
    /// RFC 3339.
    pub created_at: String,
    /// Zone slug.
    pub zone: String,
    /// Flavor slug.
    pub flavor: String,
    /// Its addresses in the order of the API.
    pub vips: Vec<Address>,
    /// Labels.
    pub tags: Tags,
    /// Until when it is being created.
    #[serde(skip)]
    pub creating_until: Option<Instant>,
    /// Until when it is being changed.
    #[serde(skip)]
    pub changing_until: Option<Instant>,
    /// When it vanishes.
    #[serde(skip)]
    pub deleted_at: Option<Instant>,
    /// Set by a test: wins over what the members say.
    pub status: Option<String>,
}

/// How a pool spreads connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// In turn.
    RoundRobin,
    /// To the member with the fewest open connections.
    LeastConnections,
    /// By the client's address.
    SourceIp,
}

/// What a pool sends to its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PoolProtocol {
    /// TCP as it came.
    Tcp,
    /// TCP with a PROXY header, version 1.
    Proxy,
    /// TCP with a PROXY header, version 2.
    Proxyv2,
    /// Datagrams.
    Udp,
}

/// A set of members.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pool {
    /// Its id.
    pub uuid: Uuid,
    /// Its name; not unique.
    pub name: String,
    /// RFC 3339.
    pub created_at: String,
    /// The load balancer's id.
    pub load_balancer: Uuid,
    /// How connections are spread.
    pub algorithm: Algorithm,
    /// What members get.
    pub protocol: PoolProtocol,
    /// Labels.
    pub tags: Tags,
}

/// A target of a pool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Member {
    /// Its id.
    pub uuid: Uuid,
    /// The pool's id.
    pub pool: Uuid,
    /// Its name.
    pub name: String,
    /// Whether it gets connections.
    pub enabled: bool,
    /// RFC 3339.
    pub created_at: String,
    /// Port for traffic.
    pub protocol_port: u16,
    /// Port for probes; the traffic's if absent.
    pub monitor_port: Option<u16>,
    /// Its address.
    pub address: IpAddr,
    /// The subnet's id.
    pub subnet: Uuid,
    /// Labels.
    pub tags: Tags,
    /// What the probes found; `None` before the first.
    pub healthy: Option<bool>,
    /// Set by a test: wins over the probes.
    pub monitor_status: Option<MonitorStatus>,
}

/// What a listener accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ListenerProtocol {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

/// A port of a load balancer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Listener {
    /// Its id.
    pub uuid: Uuid,
    /// The load balancer's id.
    pub load_balancer: Uuid,
    /// The pool's id; lost if the pool was deleted and the behaviour says so.
    pub pool: Option<Uuid>,
    /// Its name.
    pub name: String,
    /// RFC 3339.
    pub created_at: String,
    /// What it accepts.
    pub protocol: ListenerProtocol,
    /// Where it listens.
    pub protocol_port: u16,
    /// Clients that may connect; everybody if empty. In the order given.
    pub allowed_cidrs: Vec<String>,
    /// Milliseconds of silence of a client.
    pub timeout_client_data_ms: u32,
    /// Milliseconds to connect to a member.
    pub timeout_member_connect_ms: u32,
    /// Milliseconds of silence of a member.
    pub timeout_member_data_ms: u32,
    /// Labels.
    pub tags: Tags,
}

/// How a monitor probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MonitorKind {
    /// ICMP echo.
    Ping,
    /// A TCP connection.
    Tcp,
    /// An HTTP request.
    Http,
    /// An HTTP request over TLS.
    Https,
    /// A TLS handshake.
    TlsHello,
    /// A datagram that is not refused.
    UdpConnect,
}

/// The HTTP part of a monitor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpProbe {
    /// Codes, or one range.
    pub expected_codes: Vec<String>,
    /// Method.
    pub method: String,
    /// Path.
    pub url_path: String,
    /// `1.0` or `1.1`.
    pub version: String,
    /// Host header, with 1.1 only.
    pub host: Option<String>,
}

/// A health monitor of a pool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HealthMonitor {
    /// Its id.
    pub uuid: Uuid,
    /// The pool's id.
    pub pool: Uuid,
    /// RFC 3339.
    pub created_at: String,
    /// Seconds between probes.
    pub delay_s: u32,
    /// Seconds for one probe.
    pub timeout_s: u32,
    /// Good probes in a row that make a member up.
    pub up_threshold: u32,
    /// Bad probes in a row that make a member down.
    pub down_threshold: u32,
    /// How it probes.
    pub kind: MonitorKind,
    /// For `http` and `https`.
    pub http: Option<HttpProbe>,
    /// Labels.
    pub tags: Tags,
}

/// Where a floating IP points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Target {
    /// A server.
    Server(Uuid),
    /// A load balancer.
    LoadBalancer(Uuid),
}

/// An address that can move.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FloatingIp {
    /// Address and prefix length.
    pub network: IpNet,
    /// RFC 3339.
    pub created_at: String,
    /// Where it points.
    pub target: Option<Target>,
    /// Region slug; `None` is a global one.
    pub region: Option<String>,
    /// Reverse name, if any.
    pub reverse_ptr: Option<String>,
    /// Labels.
    pub tags: Tags,
}
