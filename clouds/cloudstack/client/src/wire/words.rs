//! Words of the API. New ones may come at any time, so every set is open.

use std::fmt;

use serde::Deserialize;

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
        #[serde(from = "String")]
        pub enum $name {
            $($(#[$word_doc])* $variant,)*
            /// A word that this client does not know, or none.
            Other(String),
        }

        impl $name {
            /// The word as it stands on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Other(word) => word,
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $($word => Self::$variant,)*
                    _ => Self::Other(word),
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

words!(
    /// The state of a virtual machine.
    VmState {
        /// On its way up.
        Starting = "Starting",
        /// It runs.
        Running = "Running",
        /// On its way down.
        Stopping = "Stopping",
        /// It is shut down.
        Stopped = "Stopped",
        /// It was shut down from the inside, or its host is.
        Shutdown = "Shutdown",
        /// It is deleted, and can be recovered for a while.
        Destroyed = "Destroyed",
        /// It is being removed for good.
        Expunging = "Expunging",
        /// It moves to another host.
        Migrating = "Migrating",
        /// It could not be started.
        Error = "Error",
        /// The server does not know.
        Unknown = "Unknown",
    }
    /// The state of a public address.
    IpState {
        /// Nobody has it.
        Free = "Free",
        /// It is being acquired.
        Allocating = "Allocating",
        /// Somebody has it.
        Allocated = "Allocated",
        /// It is being given back.
        Releasing = "Releasing",
    }
    /// The state of a load balancer rule.
    RuleState {
        /// It never had a member.
        Add = "Add",
        /// It is in force.
        Active = "Active",
        /// It is being removed.
        Revoke = "Revoke",
    }
    /// How a load balancer rule chooses a member.
    Algorithm {
        /// One after the other.
        RoundRobin = "roundrobin",
        /// The same one for the same client address.
        Source = "source",
        /// The one with the fewest connections.
        LeastConnections = "leastconn",
    }
    /// What a load balancer rule accepts, and how it hands it on.
    RuleProtocol {
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
        /// TCP, handed on with a PROXY protocol header.
        TcpProxy = "tcp-proxy",
    }
);
