//! Ids, one type per kind of object, so that none is taken for another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// Reads any spelling of a UUID; writes lower case with hyphens.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                Uuid::parse_str(text).map(Self)
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }
    };
}

id!(
    /// The id of a server.
    ServerId
);
id!(
    /// The id of a load balancer.
    LoadBalancerId
);
id!(
    /// The id of a load balancer's pool.
    PoolId
);
id!(
    /// The id of a member of a pool.
    MemberId
);
id!(
    /// The id of a load balancer's listener.
    ListenerId
);
id!(
    /// The id of a pool's health monitor.
    MonitorId
);
