//! Ids, one type per kind of object, so that none is taken for another.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        ///
        /// Opaque; the services make UUIDs. A clone shares the text.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as it stands on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        /// So that texts find it in maps.
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

id!(
    /// The id of a server (Nova).
    ServerId
    /// The id of a flavor of servers (Nova): any text that an operator chose.
    FlavorId
    /// The id of a network (Neutron).
    NetworkId
    /// The id of a subnet (Neutron).
    SubnetId
    /// The id of a port (Neutron).
    PortId
    /// The id of a router (Neutron).
    RouterId
    /// The id of a floating IP (Neutron).
    FloatingIpId
    /// The id of a security group (Neutron).
    SecurityGroupId
    /// The id of a rule of a security group (Neutron).
    SecurityGroupRuleId
    /// The id of a load balancer (Octavia).
    LoadBalancerId
    /// The id of a listener of a load balancer (Octavia).
    ListenerId
    /// The id of a pool of a load balancer (Octavia).
    PoolId
    /// The id of a member of a pool (Octavia).
    MemberId
    /// The id of the health monitor of a pool (Octavia).
    MonitorId
);
