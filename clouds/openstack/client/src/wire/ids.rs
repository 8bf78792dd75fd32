//! Ids, one type per kind of object, so that none is taken for another.

bowline_cloud_http::ids!(
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
