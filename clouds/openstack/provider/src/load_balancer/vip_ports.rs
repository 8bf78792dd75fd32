//! The ports that Octavia makes for load balancers: it makes the port first, looks at all else then, and does not take the port back.

use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_cloud_provider::spelling;
use bowline_openstack_client::{
    LoadBalancer, LoadBalancerId, NetworkId, NewLoadBalancer, Port, PortId, SubnetId,
};

/// Ports that were there at a moment.
pub(crate) type Known = Arc<BTreeSet<PortId>>;

/// The load balancer that Octavia made a port for, where name, owner and device all say so: as of its amphorae (`allocate_vip` of Octavia
/// 19), and of the provider ovn (`create_vip_port` of ovn-octavia-provider; its older ports bear the name alone).
pub(crate) fn made_for(port: &Port) -> Option<LoadBalancerId> {
    let id = port.device_id.strip_prefix("lb-")?;
    let name = match port.device_owner.as_str() {
        "Octavia" => "octavia-lb-",
        "ovn-lb:vip" => "ovn-lb-vip-",
        _ => return None,
    };
    (port.name.strip_prefix(name) == Some(id)).then(|| LoadBalancerId::from(id))
}

/// Those that Octavia made.
pub(crate) fn known(ports: &[Port]) -> Known {
    let made = ports.iter().filter(|port| made_for(port).is_some());
    Arc::new(made.map(|port| port.id.clone()).collect())
}

/// Those whose load balancer is not listed: it is being made, or gone.
pub(crate) fn without_balancer<'a>(
    ports: &'a [Port],
    listed: &'a [LoadBalancer],
) -> impl Iterator<Item = (LoadBalancerId, &'a Port)> {
    let made = ports.iter().filter_map(|port| Some((made_for(port)?, port)));
    made.filter(|(id, _)| listed.iter().all(|there| there.id != *id))
}

/// Where Octavia makes the port of a load balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    network: Option<NetworkId>,
    subnet: Option<SubnetId>,
    pub(crate) address: Option<String>,
}

impl Place {
    /// `None` where the load balancer is to stand on a port that is there.
    pub(crate) fn of(new: &NewLoadBalancer) -> Option<Self> {
        new.vip_port_id.is_none().then(|| Self {
            network: new.vip_network_id.clone(),
            subnet: new.vip_subnet_id.clone(),
            address: new.vip_address.clone(),
        })
    }

    /// Whether a port may be the one.
    pub(crate) fn fits(&self, port: &Port) -> bool {
        let is_in = |subnet: &SubnetId| port.fixed_ips.iter().any(|fixed| fixed.subnet_id == *subnet);
        let has = |address: &String| {
            let asked = spelling::of_address(address);
            let mut fixed = port.fixed_ips.iter();
            fixed.any(|fixed| spelling::of_address(&fixed.ip_address) == asked)
        };
        let is_of = |network: &NetworkId| port.network_id.as_ref().is_none_or(|of| of == network);
        self.network.as_ref().is_none_or(is_of)
            && self.subnet.as_ref().is_none_or(is_in)
            && self.address.as_ref().is_none_or(has)
    }
}
