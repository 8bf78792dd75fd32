//! The address of a new load balancer.

use std::net::IpAddr;

use http::StatusCode;

use crate::api::Call;
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::Id;
use crate::model::balancing::Vip;
use crate::model::network::FixedIp;
use crate::state::{NoAddress, PortWish};

/// Addresses that are held for a load balancer, the first one first.
#[derive(Debug)]
pub(super) struct VipWish {
    network: Id,
    fixed_ips: Vec<FixedIp>,
    /// The port that has them already.
    port: Option<Id>,
}

impl VipWish {
    pub(super) fn fixed_ips(&self) -> &[FixedIp] {
        &self.fixed_ips
    }
}

/// Something in Neutron that a body names and that is not there.
fn not_found(what: &str, id: Id) -> ApiError {
    ApiError::octavia(StatusCode::BAD_REQUEST, format!("{what} {id} not found."))
}

/// What becomes of Neutron's answers to the driver: Octavia's own one passes on its conflicts as such, OVN's none (`create_vip_port` of
/// Octavia 19 and of ovn-octavia-provider).
fn refused(provider: &str, network: Id, reason: NoAddress) -> ApiError {
    match reason {
        NoAddress::NoSubnet(id) => not_found("Subnet", id),
        NoAddress::Taken(it) => {
            let text = format!(
                "IP address {} already allocated in subnet {}",
                it.address, it.subnet
            );
            conflict(provider, text)
        }
        // What Neutron says is lost on Octavia's own driver.
        NoAddress::Outside(_) if provider != "ovn" => {
            ApiError::of_provider(provider, "BadRequestException: 400")
        }
        NoAddress::Outside(it) => {
            let text = format!(
                "IP address {} is not a valid IP for the specified subnet.",
                it.address
            );
            ApiError::of_provider(provider, text)
        }
        NoAddress::Exhausted(_) => {
            let text = format!("No more IP addresses available on network {network}.");
            conflict(provider, text)
        }
    }
}

fn conflict(provider: &str, text: impl std::fmt::Display) -> ApiError {
    match provider {
        "ovn" => ApiError::of_provider(provider, text),
        _ => ApiError::octavia_conflict(format!("The VIP IP address is already in use: {text}")),
    }
}

impl Call<'_> {
    pub(super) fn vip_wish(&mut self, fields: &Fields, provider: &str) -> Result<VipWish, ApiError> {
        let address = fields.address("vip_address")?;
        let (port, subnet, network) = (
            fields.id("vip_port_id")?,
            fields.id("vip_subnet_id")?,
            fields.id("vip_network_id")?,
        );
        let mut wish = match (port, subnet, network) {
            (Some(port), subnet, _) => self.on_port(port, subnet, address, provider)?,
            (None, Some(subnet), _) => self.in_subnet(subnet, address, provider)?,
            (None, None, Some(network)) => self.in_network(network, address, provider)?,
            (None, None, None) => {
                let text = "VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id.";
                return Err(ApiError::invalid(text));
            }
        };
        for further in fields.objects("additional_vips")?.unwrap_or_default() {
            if let Err(refused) = self.add_vip(&mut wish, &further, provider) {
                self.release_vip(wish);
                return Err(refused);
            }
        }
        Ok(wish)
    }

    /// An existing port: one of its addresses becomes the load balancer's.
    fn on_port(
        &self,
        id: Id,
        subnet: Option<Id>,
        address: Option<IpAddr>,
        provider: &str,
    ) -> Result<VipWish, ApiError> {
        let port = self.state.ports.get(&id);
        let port = port.filter(|it| self.sees(&it.meta.project));
        let port = port.ok_or_else(|| not_found("Port", id))?;
        if !port.device.is_empty() {
            let text = format!("Port {id} is already used by device {} ", port.device);
            return Err(ApiError::invalid(text));
        }
        let mut own = port.fixed_ips.iter();
        let (found, lacking) = match (subnet, address) {
            // The first one there, whatever address is named.
            (Some(subnet), _) => (
                own.find(|it| it.subnet == subnet),
                "No VIP address found on the specified VIP port within the specified subnet.",
            ),
            (None, Some(address)) => (
                own.find(|it| it.address == address),
                "Specified VIP address not found on the specified VIP port.",
            ),
            (None, None) => (
                own.next().filter(|_| port.fixed_ips.len() == 1),
                "VIP port's subnet could not be determined. Please specify either a VIP subnet or address.",
            ),
        };
        let found = *found.ok_or_else(|| ApiError::invalid(lacking))?;
        if provider == "ovn" && !self.state.behaviour.ovn_takes_ports {
            return Err(refused(provider, port.network, NoAddress::Taken(found)));
        }
        Ok(VipWish {
            network: port.network,
            fixed_ips: vec![found],
            port: Some(id),
        })
    }

    /// Whether the project may have one more port.
    fn check_ports(&self, provider: &str) -> Result<(), ApiError> {
        let own = self.state.ports.values();
        let own = own.filter(|it| it.meta.project == self.caller.project).count();
        match self.state.behaviour.quota.ports.is_some_and(|most| own >= most) {
            false => Ok(()),
            true => Err(conflict(provider, "Quota exceeded for resources: ['port'].")),
        }
    }

    fn in_subnet(
        &mut self,
        subnet: Id,
        address: Option<IpAddr>,
        provider: &str,
    ) -> Result<VipWish, ApiError> {
        let known = self.state.subnets.get(&subnet);
        let known = known.filter(|it| self.sees_subnet(it));
        let network = known.map(|it| it.network);
        let network = network.ok_or_else(|| not_found("Subnet", subnet))?;
        self.check_ports(provider)?;
        let fixed_ip = match address {
            Some(address) => self.state.reserve(FixedIp { subnet, address }),
            None => self.state.allocate(subnet),
        };
        Ok(VipWish {
            network,
            fixed_ips: vec![fixed_ip.map_err(|reason| refused(provider, network, reason))?],
            port: None,
        })
    }

    /// With only a network an IPv4 subnet is preferred.
    fn in_network(
        &mut self,
        network: Id,
        address: Option<IpAddr>,
        provider: &str,
    ) -> Result<VipWish, ApiError> {
        let known = self.state.networks.get(&network);
        known
            .filter(|it| self.sees_network(it))
            .ok_or_else(|| not_found("Network", network))?;
        if let Some(address) = address {
            let holding = self.state.subnet_holding(network, address);
            let text = "Supplied network does not contain a subnet for VIP address specified.";
            let subnet = holding.ok_or_else(|| ApiError::invalid(text))?;
            return self.in_subnet(subnet, Some(address), provider);
        }
        self.check_ports(provider)?;
        let fixed_ip = self.state.allocate_in(network).map_err(|reason| match reason {
            NoAddress::NoSubnet(_) => ApiError::invalid("Supplied network does not contain a subnet."),
            NoAddress::Exhausted(_) => {
                ApiError::invalid("Subnet(s) in the supplied network do not contain enough available IPs.")
            }
            reason => refused(provider, network, reason),
        })?;
        Ok(VipWish {
            network,
            fixed_ips: vec![fixed_ip],
            port: None,
        })
    }

    fn add_vip(&mut self, wish: &mut VipWish, further: &Fields, provider: &str) -> Result<(), ApiError> {
        further.only("subnet_id ip_address")?;
        let subnet = further.given("subnet_id", further.id("subnet_id")?)?;
        let known = self.state.subnets.get(&subnet).map(|it| it.network);
        if known.ok_or_else(|| not_found("Subnet", subnet))? != wish.network {
            return Err(ApiError::invalid(
                "All VIP subnets must belong to the same network.",
            ));
        }
        if wish.fixed_ips.iter().any(|it| it.subnet == subnet) {
            let text = "Duplicate VIP subnet(s) specified. Only one IP can be bound per subnet.";
            return Err(ApiError::invalid(text));
        }
        let address = further.address("ip_address")?;
        let fixed_ip = match (wish.port, address) {
            (Some(port), address) => {
                let port = self.state.ports.get(&port);
                let mut own = port.into_iter().flat_map(|it| &it.fixed_ips);
                let own = own.find(|it| it.subnet == subnet && address.is_none_or(|wish| wish == it.address));
                let text = "The VIP port has no address in an additional VIP's subnet.";
                Ok(*own.ok_or_else(|| ApiError::invalid(text))?)
            }
            (None, Some(address)) => self.state.reserve(FixedIp { subnet, address }),
            (None, None) => self.state.allocate(subnet),
        };
        wish.fixed_ips
            .push(fixed_ip.map_err(|reason| refused(provider, wish.network, reason))?);
        Ok(())
    }

    /// Gives the addresses back that are held for a port which is not made.
    fn release_vip(&mut self, wish: VipWish) {
        if wish.port.is_none() {
            for fixed_ip in wish.fixed_ips {
                self.state.release(fixed_ip);
            }
        }
    }

    /// The first address, the further ones, and whether the port was made for them.
    pub(super) fn vip(
        &mut self,
        wish: VipWish,
        balancer: Id,
        provider: &str,
    ) -> Result<(Vip, Vec<FixedIp>, bool), ApiError> {
        let VipWish {
            network,
            fixed_ips,
            port,
        } = wish;
        let (first, further) = fixed_ips.split_first().ok_or_else(|| {
            ApiError::invalid("VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id.")
        })?;
        let (fixed_ip, further) = (*first, further.to_vec());
        let made = port.is_none();
        // `allocate_vip` of Octavia 19, and `create_vip_port` of ovn-octavia-provider.
        let device = format!("lb-{balancer}");
        let (name, device_owner, device) = match (provider, self.state.behaviour.ovn_marks_vip_ports) {
            ("ovn", true) => (format!("ovn-lb-vip-{balancer}"), "ovn-lb:vip", device),
            ("ovn", false) => (format!("ovn-lb-vip-{balancer}"), "", String::new()),
            _ => (format!("octavia-lb-{balancer}"), "Octavia", device),
        };
        let port = port.unwrap_or_else(|| {
            self.state.add_port(PortWish {
                name,
                network,
                project: self.caller.project.clone(),
                device,
                device_owner,
                fixed_ips,
                is_active: false,
            })
        });
        let vip = Vip {
            fixed_ip,
            network,
            port,
        };
        Ok((vip, further, made))
    }
}
