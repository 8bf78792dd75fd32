//! Words of the API. New ones may come at any time, so every set is open.

bowline_cloud_http::words!(
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
