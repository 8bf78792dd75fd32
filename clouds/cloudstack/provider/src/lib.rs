//! The Apache CloudStack provider: virtual machines as the machines of Nodes, load balancer rules for Services.
