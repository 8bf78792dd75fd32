//! Words of the API. New ones may come at any time, so every set is open.

bowline_cloud_http::words!(
    /// The state of a server.
    ServerStatus {
        /// It runs.
        Running = "running",
        /// It is shut down.
        Stopped = "stopped",
        /// It is on its way from one state to another.
        Changing = "changing",
    }
    /// Where an interface of a server leads.
    InterfaceType {
        /// The internet.
        Public = "public",
        /// A network of the project.
        Private = "private",
    }
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
    /// How a pool chooses a member.
    PoolAlgorithm {
        /// One after the other.
        RoundRobin = "round_robin",
        /// The one with the fewest connections.
        LeastConnections = "least_connections",
        /// The same one for the same client address.
        SourceIp = "source_ip",
    }
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
    /// What a listener accepts.
    ListenerProtocol {
        /// TCP.
        Tcp = "tcp",
        /// UDP.
        Udp = "udp",
    }
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
    /// Where a floating IP may go.
    FloatingIpType {
        /// Anywhere within its region.
        Regional = "regional",
        /// Anywhere.
        Global = "global",
    }
);
