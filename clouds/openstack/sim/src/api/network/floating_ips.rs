//! `/v2.0/floatingips`

use http::StatusCode;

use super::{exhausted, no_port};
use crate::api::{Answer, Call, path_id};
use crate::error::ApiError;
use crate::fields::Fields;
use crate::model::network::{FixedIp, FloatingIp, FloatingTarget};
use crate::model::{Id, Meta};
use crate::state::NoAddress;

const FILTERS: &str = "port_id floating_ip_address floating_network_id fixed_ip_address router_id";

fn bad_request(text: impl std::fmt::Display) -> ApiError {
    let text = format!("Bad floatingip request: {text}.");
    ApiError::neutron(StatusCode::BAD_REQUEST, "BadRequest", text)
}

impl Call<'_> {
    pub(super) fn floating_ips(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", []) => {
                let all = self.state.floating_ips.values();
                let all = all.filter(|it| self.sees(&it.meta.project));
                let shown = all.map(|it| self.wire().floating_ip(it)).collect();
                self.neutron_list("floatingips", FILTERS, shown)
            }
            ("POST", []) => self.create_floating_ip(),
            ("GET", [id]) => {
                let floating = self.floating_ip(id)?;
                self.one("floatingip", self.wire().floating_ip(floating))
            }
            ("PUT", [id]) => {
                let mut floating = self.floating_ip(id)?.clone();
                self.check_revision(&floating.meta)?;
                let fields = self.neutron_fields("floatingip")?;
                fields.only("port_id fixed_ip_address description")?;
                if let Some(description) = fields.text("description")? {
                    floating.meta.description = description;
                }
                if fields.has("port_id") {
                    check_forwardings(&floating)?;
                }
                // Without a port the floating IP loses the one it has, whatever else is written.
                floating.target = self.target(&fields, &floating)?;
                floating.meta.touch(&self.state.clock.rfc3339_seconds());
                self.state.floating_ips.insert(floating.id, floating.clone());
                self.answer(StatusCode::OK, "floatingip", self.wire().floating_ip(&floating))
            }
            ("DELETE", [id]) => {
                let floating = self.floating_ip(id)?.clone();
                self.check_revision(&floating.meta)?;
                check_forwardings(&floating)?;
                self.state.floating_ips.shift_remove(&floating.id);
                self.state.release(floating.address);
                self.done()
            }
            _ => self.no_such_path(),
        }
    }

    fn floating_ip(&self, id: &str) -> Result<&FloatingIp, ApiError> {
        let floating = path_id(id).and_then(|id| self.state.floating_ips.get(&id));
        let floating = floating.filter(|it| self.sees(&it.meta.project));
        floating.ok_or_else(|| ApiError::no("FloatingIPNotFound", "Floating IP", id))
    }

    fn create_floating_ip(&mut self) -> Answer {
        let fields = self.neutron_fields("floatingip")?;
        fields.only(
            "floating_network_id floating_ip_address subnet_id port_id fixed_ip_address \
            description project_id tenant_id",
        )?;
        let network = fields.given("floating_network_id", fields.id("floating_network_id")?)?;
        let known = self.state.networks.get(&network);
        let known = known.filter(|it| it.is_external || it.is_shared || self.sees(&it.meta.project));
        let known = known.ok_or_else(|| ApiError::no("NetworkNotFound", "Network", network))?;
        if !known.is_external {
            let text = format!("Network {network} is not a valid external network");
            return Err(bad_request(text));
        }
        if fields.has("floating_ip_address")
            && !self.caller.is_admin
            && !self.state.behaviour.users_choose_addresses
        {
            let text = "(rule:create_floatingip and rule:create_floatingip:floating_ip_address) is disallowed by policy";
            return Err(ApiError::neutron(
                StatusCode::FORBIDDEN,
                "PolicyNotAuthorized",
                text,
            ));
        }
        let own = self.state.floating_ips.values();
        let own = own.filter(|it| it.meta.project == self.caller.project).count();
        let most = self.state.behaviour.quota.floating_ips;
        if most.is_some_and(|most| own >= most) {
            return Err(ApiError::over_quota("floatingip"));
        }
        let description = fields.text("description")?.unwrap_or_default();
        let mut floating = FloatingIp {
            id: self.state.seed.uuid(),
            address: self.new_address(&fields, network)?,
            network,
            target: None,
            forwards_through: None,
            meta: Meta {
                description,
                ..self.state.meta(&self.caller.project)
            },
        };
        // Its address is taken first, and given back where it cannot lead to where it is to.
        match self.target(&fields, &floating) {
            Ok(target) => floating.target = target,
            Err(error) => {
                self.state.release(floating.address);
                return Err(error);
            }
        }
        self.state.floating_ips.insert(floating.id, floating.clone());
        self.created("floatingip", self.wire().floating_ip(&floating))
    }

    fn new_address(&mut self, fields: &Fields, network: Id) -> Result<FixedIp, ApiError> {
        let subnet = fields.id("subnet_id")?;
        let belongs = |subnet: Id| self.state.subnets_of(network).any(|it| it.id == subnet);
        if let Some(subnet) = subnet.filter(|it| !belongs(*it)) {
            let text = format!(
                "Invalid input for operation: Failed to create port on network {network}, because fixed_ips included \
                 invalid subnet {subnet}."
            );
            return Err(ApiError::neutron(StatusCode::BAD_REQUEST, "InvalidInput", text));
        }
        let wish = fields.address("floating_ip_address")?;
        let made = match (wish, subnet) {
            (Some(address), _) => {
                let holding = self.state.subnet_holding(network, address);
                let Some(subnet) = holding else {
                    let text = format!(
                        "IP address {address} is not a valid IP for any of the subnets on the specified network."
                    );
                    return Err(ApiError::neutron(
                        StatusCode::BAD_REQUEST,
                        "InvalidIpForNetwork",
                        text,
                    ));
                };
                self.state.reserve(FixedIp { subnet, address })
            }
            (None, Some(subnet)) => self.state.allocate(subnet),
            (None, None) => self.state.allocate_in(network),
        };
        made.map_err(|reason| match reason {
            NoAddress::Taken(it) => {
                let text = format!(
                    "IP address {} already allocated in subnet {}",
                    it.address, it.subnet
                );
                ApiError::neutron(StatusCode::CONFLICT, "IpAddressAlreadyAllocated", text)
            }
            NoAddress::Exhausted(_) | NoAddress::NoSubnet(_) | NoAddress::Outside(_) => exhausted(network),
        })
    }

    /// Where a body says that a floating IP shall lead; `None` if it names no port.
    fn target(&self, fields: &Fields, floating: &FloatingIp) -> Result<Option<FloatingTarget>, ApiError> {
        let network = floating.network;
        let Some(id) = fields.id("port_id")? else {
            return match fields.address("fixed_ip_address")? {
                Some(_) => Err(bad_request(
                    "fixed_ip_address cannot be specified without a port_id",
                )),
                None => Ok(None),
            };
        };
        let port = self.port(&id.to_string()).map_err(|_| no_port(id))?;
        let wish = fields.address("fixed_ip_address")?;
        let fits = |it: &&FixedIp| it.address.is_ipv4() && wish.is_none_or(|wish| wish == it.address);
        let mut fixed_ips = port.fixed_ips.iter().filter(fits);
        let fixed_ip = match (fixed_ips.next(), fixed_ips.next()) {
            (Some(fixed_ip), None) => *fixed_ip,
            (None, _) => {
                let text = match wish {
                    Some(wish) => format!("Port {id} does not have fixed ip {wish}"),
                    None => format!("Cannot add floating IP to port {id} that has no fixed IPv4 addresses"),
                };
                return Err(bad_request(text));
            }
            (Some(_), Some(_)) => {
                let text = format!(
                    "Port {id} has multiple fixed IPv4 addresses.  Must provide a specific IPv4 address when assigning a \
                     floating IP"
                );
                return Err(bad_request(text));
            }
        };
        let router = self.state.router_between(network, fixed_ip.subnet);
        let router = router.ok_or_else(|| {
            let text = format!(
                "External network {network} is not reachable from subnet {}.  Therefore, cannot associate Port {id} with a \
                 Floating IP.",
                fixed_ip.subnet
            );
            ApiError::neutron(StatusCode::NOT_FOUND, "ExternalGatewayForFloatingIPNotFound", text)
        })?;
        let target = FloatingTarget {
            port: id,
            address: fixed_ip.address,
            router,
        };
        let is_there = |it: &FloatingIp| {
            let leads_there = |to: FloatingTarget| (to.port, to.address) == (target.port, target.address);
            it.id != floating.id && it.network == network && it.target.is_some_and(leads_there)
        };
        if !self.state.floating_ips.values().any(is_there) {
            return Ok(Some(target));
        }
        // The one that it names is the one that comes too late.
        let text = format!(
            "Cannot associate floating IP {} ({}) with port {id} using fixed IP {}, as that fixed IP already has a floating IP \
             on external network {network}.",
            floating.address.address, floating.id, fixed_ip.address
        );
        let kind = "FloatingIPPortAlreadyAssociated";
        Err(ApiError::neutron(StatusCode::CONFLICT, kind, text))
    }
}

/// One that forwards single ports neither leads to a port nor goes (`_check_floatingip_request` in Neutron's
/// `services/portforwarding/pf_plugin.py`).
fn check_forwardings(floating: &FloatingIp) -> Result<(), ApiError> {
    match floating.forwards_through {
        None => Ok(()),
        Some(_) => {
            let text = format!("Floating IP {} in use by Port Forwarding resources.", floating.id);
            Err(ApiError::neutron(
                StatusCode::CONFLICT,
                "FipInUseByPortForwarding",
                text,
            ))
        }
    }
}
