//! Words of the API. New ones may come at any time, so every set is open.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$word_doc])* $variant,)*
            /// A word that this client does not know.
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

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $($word => Self::$variant,)*
                    other => Self::Other(other.to_owned()),
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                Self::from(word.as_str())
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.as_str().to_owned()
            }
        }

        impl FromStr for $name {
            type Err = Infallible;

            fn from_str(word: &str) -> Result<Self, Infallible> {
                Ok(Self::from(word))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words!(
    /// The state of a server.
    ServerStatus {
        /// It runs.
        Running = "running",
        /// It is shut down.
        Stopped = "stopped",
        /// It is on its way from one state to another.
        Changing = "changing",
    }
);

words!(
    /// Where an interface of a server leads.
    InterfaceType {
        /// The internet.
        Public = "public",
        /// A network of the project.
        Private = "private",
    }
);

words!(
    /// The state of a load balancer.
    LoadBalancerStatus {
        /// It is being created or changed; do not write.
        Changing = "changing",
        /// All is well.
        Running = "running",
        /// Some members are down.
        Degraded = "degraded",
        /// All monitored members are down, or the balancer has a fault.
        Error = "error",
    }
);

words!(
    /// How a pool chooses a member.
    PoolAlgorithm {
        /// One after the other.
        RoundRobin = "round_robin",
        /// The one with the fewest connections.
        LeastConnections = "least_connections",
        /// The same one for the same client address.
        SourceIp = "source_ip",
    }
);

words!(
    /// What a pool speaks to its members.
    PoolProtocol {
        /// TCP.
        Tcp = "tcp",
        /// TCP with a PROXY protocol header, version 1.
        Proxy = "proxy",
        /// TCP with a PROXY protocol header, version 2.
        ProxyV2 = "proxyv2",
        /// UDP.
        Udp = "udp",
    }
);

words!(
    /// What a listener accepts.
    ListenerProtocol {
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
    }
);

words!(
    /// How a monitor probes a member.
    MonitorType {
        /// An echo request.
        Ping = "ping",
        /// A TCP connection.
        Tcp = "tcp",
        /// An HTTP request.
        Http = "http",
        /// An HTTPS request.
        Https = "https",
        /// A TLS handshake.
        TlsHello = "tls-hello",
        /// A UDP datagram.
        UdpConnect = "udp-connect",
    }
);

words!(
    /// What the monitor thinks of a member.
    MonitorStatus {
        /// It answers.
        Up = "up",
        /// It does not answer.
        Down = "down",
        /// The balancer is being changed.
        Changing = "changing",
        /// The pool has no monitor.
        NoMonitor = "no_monitor",
        /// Not known.
        Unknown = "unknown",
    }
);

words!(
    /// Where a floating IP may go.
    FloatingIpType {
        /// Anywhere within its region.
        Regional = "regional",
        /// Anywhere.
        Global = "global",
    }
);
