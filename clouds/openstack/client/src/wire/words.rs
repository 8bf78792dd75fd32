//! Words of the APIs. New ones may come at any time, so every set is open.

bowline_cloud_http::words!(
    /// The state of a server (Nova).
    ServerStatus {
        /// It runs.
        Active = "ACTIVE",
        /// It is being made.
        Build = "BUILD",
        /// It is shut down.
        Shutoff = "SHUTOFF",
        /// It failed.
        Error = "ERROR",
        /// It is deleted and still shown.
        Deleted = "DELETED",
    }
    /// What an address of a server is (Nova, `OS-EXT-IPS:type`).
    AddressKind {
        /// It stands on a port of the server.
        Fixed = "fixed",
        /// A floating IP leads to the server.
        Floating = "floating",
    }
    /// The state of a port (Neutron).
    PortStatus {
        /// It carries traffic.
        Active = "ACTIVE",
        /// It carries none.
        Down = "DOWN",
        /// It is being made.
        Build = "BUILD",
        /// It failed.
        Error = "ERROR",
    }
    /// Which way a rule of a security group looks (Neutron).
    Direction {
        /// Towards the port.
        Ingress = "ingress",
        /// Away from the port.
        Egress = "egress",
    }
    /// The IP version of a rule of a security group (Neutron).
    EtherType {
        /// IPv4.
        Ipv4 = "IPv4",
        /// IPv6.
        Ipv6 = "IPv6",
    }
    /// Whether an object of a load balancer takes changes (Octavia).
    ProvisioningStatus {
        /// It does.
        Active = "ACTIVE",
        /// It is being made.
        PendingCreate = "PENDING_CREATE",
        /// It is being changed.
        PendingUpdate = "PENDING_UPDATE",
        /// It is being deleted.
        PendingDelete = "PENDING_DELETE",
        /// The last change failed. A load balancer takes nothing but its deletion then. A listener, pool, member or monitor of one
        /// that is active takes changes, too, but a pool takes none of its members and its monitor.
        Error = "ERROR",
        /// It is deleted and still shown.
        Deleted = "DELETED",
    }
    /// Whether a load balancer or a part of it carries traffic (Octavia). It is what its amphorae reported last, and says nothing about
    /// changes: of one that died it tells what was true before.
    OperatingStatus {
        /// It does.
        Online = "ONLINE",
        /// It does, and some members do not answer.
        Degraded = "DEGRADED",
        /// No member answers probes, or the load balancer's provider says that it failed. A load balancer is in this state as soon as
        /// no member of one pool answers, and may carry the traffic of its other pools.
        Error = "ERROR",
        /// It is switched off, or nothing was ever reported of it.
        Offline = "OFFLINE",
        /// Nothing watches it.
        NoMonitor = "NO_MONITOR",
    }
    /// What a listener accepts (Octavia).
    ListenerProtocol {
        /// TCP.
        Tcp = "TCP",
        /// UDP.
        Udp = "UDP",
        /// SCTP.
        Sctp = "SCTP",
        /// HTTP.
        Http = "HTTP",
        /// TLS, carried on as it is.
        Https = "HTTPS",
        /// TLS, ended at the load balancer.
        TerminatedHttps = "TERMINATED_HTTPS",
    }
    /// What a pool speaks to its members (Octavia).
    PoolProtocol {
        /// TCP.
        Tcp = "TCP",
        /// UDP.
        Udp = "UDP",
        /// SCTP.
        Sctp = "SCTP",
        /// HTTP.
        Http = "HTTP",
        /// TLS, carried on as it is.
        Https = "HTTPS",
        /// TCP with a PROXY protocol header, version 1.
        Proxy = "PROXY",
        /// TCP with a PROXY protocol header, version 2.
        ProxyV2 = "PROXYV2",
    }
    /// How a pool keeps a client at a member (Octavia).
    PersistenceType {
        /// By the client's address.
        SourceIp = "SOURCE_IP",
    }
    /// How a monitor probes a member (Octavia).
    MonitorType {
        /// A TCP connection.
        Tcp = "TCP",
        /// A UDP datagram.
        UdpConnect = "UDP-CONNECT",
        /// An SCTP association.
        Sctp = "SCTP",
        /// An HTTP request.
        Http = "HTTP",
        /// An HTTPS request.
        Https = "HTTPS",
        /// An echo request.
        Ping = "PING",
        /// A TLS handshake.
        TlsHello = "TLS-HELLO",
    }
);
