//! What stands on the wire: ids, objects as the APIs answer them, and bodies as they take them.
//!
//! Only fields that are used are here. A field that may be missing or `null` has a default; an update holds what it
//! changes and nothing else.

mod compute;
mod envelope;
mod floating_ip;
mod ids;
mod listener;
mod load_balancer;
mod monitor;
mod network;
mod pool;
mod port;
mod quota;
mod security_group;
mod words;

pub use self::compute::{Flavor, Server, ServerAddress, ServerFlavor};
pub(crate) use self::envelope::{One, PER_PAGE, Page, Resource, Wrapped};
pub use self::floating_ip::{FloatingIp, NewFloatingIp};
pub use self::ids::{
    FlavorId, FloatingIpId, ListenerId, LoadBalancerId, MemberId, MonitorId, NetworkId, PoolId, PortId,
    RouterId, SecurityGroupId, SecurityGroupRuleId, ServerId, SubnetId,
};
pub use self::listener::{Listener, ListenerAttributes, ListenerUpdate, NewListener};
pub use self::load_balancer::{
    AdditionalVip, ApiVersion, LoadBalancer, LoadBalancerUpdate, NewAdditionalVip, NewLoadBalancer, Reference,
};
pub use self::monitor::{Monitor, MonitorUpdate, NewMonitor, NewMonitorHttp};
pub use self::network::{Extension, Network, Router, RouterRoute, Subnet};
pub use self::pool::{
    Member, MemberSettings, MemberUpdate, NewMember, NewPool, Pool, PoolUpdate, SessionPersistence,
};
pub use self::port::{AddressPair, FixedIp, Port, PortFilter, PortUpdate, SubPort, TrunkDetails};
pub use self::quota::Usage;
pub(crate) use self::quota::{BalancerQuota, NetworkQuota};
pub use self::security_group::{NewSecurityGroup, NewSecurityGroupRule, SecurityGroup, SecurityGroupRule};
pub use self::words::{
    AddressKind, Direction, EtherType, ListenerProtocol, MonitorType, OperatingStatus, PersistenceType,
    PoolProtocol, PortStatus, ProvisioningStatus, ServerStatus,
};
