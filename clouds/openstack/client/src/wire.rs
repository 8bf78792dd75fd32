//! What stands on the wire: ids, objects as the APIs answer them, and bodies as they take them.
//!
//! Only fields that are used are here. A field that may be missing or `null` has a default or is an `Option`; an update holds
//! what it changes and nothing else.

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
pub(crate) use self::quota::NetworkQuota;
pub use self::quota::{BalancerQuota, Usage};
pub use self::security_group::{NewSecurityGroup, NewSecurityGroupRule, SecurityGroup, SecurityGroupRule};
pub use self::words::{
    AddressKind, Direction, EtherType, ListenerProtocol, MonitorType, OperatingStatus, PersistenceType,
    PoolProtocol, PortStatus, ProvisioningStatus, ServerStatus,
};

/// Kinds of objects: the key of one, to which a list adds an `s`, and the field that no two of a list have in common.
macro_rules! resources {
    ($($kind:ident: $one:literal by $id:ident;)*) => {$(
        impl Resource for $kind {
            const ONE: &'static str = $one;
            const MANY: &'static str = concat!($one, "s");

            fn id(&self) -> &str {
                self.$id.as_str()
            }
        }
    )*};
}

resources! {
    Extension: "extension" by alias;
    Flavor: "flavor" by id;
    FloatingIp: "floatingip" by id;
    Listener: "listener" by id;
    LoadBalancer: "loadbalancer" by id;
    Member: "member" by id;
    Monitor: "healthmonitor" by id;
    Network: "network" by id;
    Pool: "pool" by id;
    Port: "port" by id;
    Router: "router" by id;
    SecurityGroup: "security_group" by id;
    SecurityGroupRule: "security_group_rule" by id;
    Server: "server" by id;
    Subnet: "subnet" by id;
}
