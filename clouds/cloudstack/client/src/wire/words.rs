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
    /// The state of a load balancer rule, a firewall rule or an item of an ACL list.
    RuleState {
        /// It never had a member, or is not in force yet.
        Add = "Add",
        /// It is in force.
        Active = "Active",
        /// It is being removed, or that failed half-way. See [`RuleState::is_going`].
        Deleting = "Deleting",
        /// The same in the server's own word.
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

impl RuleState {
    /// Whether it is on its way out. Servers say `Deleting` for what they call `Revoke` themselves.
    pub fn is_going(&self) -> bool {
        let mut words = [Self::Deleting, Self::Revoke].into_iter();
        words.any(|word| word.as_str().eq_ignore_ascii_case(self.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_on_its_way_out_has_two_words() {
        for word in ["Deleting", "Revoke", "REVOKE", "deleting"] {
            assert!(RuleState::from(word).is_going(), "{word}");
        }
        for word in ["Add", "Active", "Staged", ""] {
            assert!(!RuleState::from(word).is_going(), "{word}");
        }
    }
}
