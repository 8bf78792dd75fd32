//! What stands on the wire: ids, objects as the API answers them, and bodies as it takes them.

mod balancer;
mod floating_ip;
mod ids;
mod listener;
mod monitor;
mod pool;
mod server;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_http::lenient::{list, or_default, shared};
use serde::{Deserialize, Serialize};

pub use self::balancer::{LoadBalancer, NewLoadBalancer, NewVipAddress, VipAddress};
pub use self::floating_ip::FloatingIp;
pub use self::ids::{ListenerId, LoadBalancerId, MemberId, MonitorId, PoolId, ServerId};
pub use self::listener::{Listener, ListenerChange, NewListener};
pub use self::monitor::{HttpChange, Monitor, MonitorChange, MonitorHttp, NewMonitor};
pub use self::pool::{Member, NewMember, NewPool, Pool};
pub use self::server::{Address, Interface, Server};
pub use self::words::{
    FloatingIpType, InterfaceType, ListenerProtocol, LoadBalancerStatus, MonitorStatus, MonitorType,
    PoolAlgorithm, PoolProtocol, ServerStatus,
};

/// Tags of an object: a flat map of texts.
pub type Tags = BTreeMap<String, String>;

fn is_empty(tags: &Tags) -> bool {
    tags.is_empty()
}

/// A reference to another object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stub<Id> {
    /// The object's id.
    pub uuid: Id,
}

/// A reference to something that has a word for a name: a zone, a region, a flavor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Slug {
    /// The word, e.g. `rma1`.
    #[serde(deserialize_with = "shared")]
    pub slug: Arc<str>,
}

/// A reference to a subnet.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SubnetStub {
    /// The subnet's id.
    #[serde(deserialize_with = "shared")]
    pub uuid: Arc<str>,
}
