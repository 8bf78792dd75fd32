//! `/v1/floating-ips`

use std::net::IpAddr;

use bowline_cloud_kit::addresses::nth;
use ipnet::IpNet;

use super::{Answer, Call, found};
use crate::error::ApiError;
use crate::fields::{Fields, given};
use crate::model::{Address, FloatingIp, Tags, Target};
use crate::options::region;
use crate::state::State;
use crate::wire::{Wire, reverse_name};

/// The only prefix length other than one address.
const V6_NETWORK_PREFIX: u8 = 56;

impl Call<'_> {
    pub(super) fn floating_ips(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", []) => self.list(self.state.floating_ips.values(), |it| &it.tags, Wire::floating_ip),
            ("POST", []) => self.create_floating_ip(),
            (_, []) => self.wrong_method(),
            (method, [id]) => {
                let address: IpAddr = id.parse().map_err(|_| ApiError::not_found())?;
                let floating = found(&self.state.floating_ips, &address)?;
                match method {
                    "GET" => return self.one(&self.wire().floating_ip(floating)),
                    "PATCH" => {
                        let mut floating = floating.clone();
                        let mut fields = self.patch(false)?;
                        fields.forbid(&["ip_version", "prefix_length", "region", "type"]);
                        let target = self.target(&mut fields);
                        let (reverse, tags) = (fields.nullable_text("reverse_ptr"), fields.tags());
                        fields.check()?;
                        floating.target = target.or(floating.target);
                        floating.reverse_ptr = reverse.unwrap_or(floating.reverse_ptr);
                        floating.tags = tags.unwrap_or(floating.tags);
                        check_target(self.state, &floating)?;
                        self.state.floating_ips.insert(address, floating);
                    }
                    "DELETE" => {
                        self.state.floating_ips.shift_remove(&address);
                        self.state.release_floating(address);
                    }
                    _ => return self.wrong_method(),
                }
                self.done()
            }
            _ => Err(ApiError::not_found()),
        }
    }

    fn target(&self, fields: &mut Fields) -> Option<Target> {
        let is_named = |name: &str| fields.value(name).is_some_and(|it| !it.is_null());
        match (is_named("server"), is_named("load_balancer")) {
            (true, true) => {
                // Also what is no id is told.
                let _ = (fields.uuid("server"), fields.uuid("load_balancer"));
                fields.refuse("detail", "Only one of server and load_balancer can be given.");
                None
            }
            (true, false) => fields
                .known("server", "Server", &self.state.servers)
                .map(Target::Server),
            (false, true) => {
                let balancer = fields.known("load_balancer", "Load balancer", &self.state.load_balancers);
                balancer.map(Target::LoadBalancer)
            }
            (false, false) => None,
        }
    }

    fn create_floating_ip(&mut self) -> Answer {
        let mut fields = self.new_fields(&["ip_version"])?;
        let version = fields.number("ip_version", 4, 6);
        if version == Some(5) {
            fields.refuse("ip_version", "Expect one of: 4, 6.");
        }
        let target = self.target(&mut fields);
        let global = match fields.text("type").as_deref() {
            None | Some("regional") => false,
            Some("global") => true,
            Some(other) => {
                let text = format!("{other:?} is not a valid choice. Expect one of: regional, global.");
                fields.refuse("type", text);
                false
            }
        };
        let wanted = fields.text("region");
        if let Some(wanted) = &wanted
            && !self.state.options.zones.iter().any(|zone| region(zone) == wanted)
        {
            fields.refuse("region", format!("{wanted:?} is not a valid choice."));
        }
        if global && wanted.is_some() {
            fields.refuse("region", "A global floating IP has no region.");
        }
        let prefix = fields.number("prefix_length", 0, 128);
        if prefix.is_some_and(|prefix| version != Some(6) || prefix != u32::from(V6_NETWORK_PREFIX)) {
            fields.refuse("prefix_length", "Only 56 is allowed, and with ip_version 6 only.");
        }
        let reverse = fields.nullable_text("reverse_ptr").flatten();
        let tags = fields.tags().unwrap_or_default();
        fields.check()?;
        let wish = FloatingIpSpec {
            v6: given(version, "ip_version")? == 6,
            network: prefix.is_some(),
            target,
            region: if global { None } else { Some(wanted) },
            address: None,
        };
        let address = self.state.create_floating_ip(wish, reverse, tags)?;
        let floating = found(&self.state.floating_ips, &address)?;
        self.created(&self.wire().floating_ip(floating))
    }
}

/// What is asked of a new floating IP.
pub(crate) struct FloatingIpSpec {
    pub(crate) v6: bool,
    /// A whole network instead of one address.
    pub(crate) network: bool,
    pub(crate) target: Option<Target>,
    /// `None` is a global one, `Some(None)` one of the target's or the default region.
    pub(crate) region: Option<Option<String>>,
    /// This address rather than the next free one.
    pub(crate) address: Option<IpAddr>,
}

impl State {
    pub(crate) fn create_floating_ip(
        &mut self,
        wish: FloatingIpSpec,
        reverse: Option<String>,
        tags: Tags,
    ) -> Result<IpAddr, ApiError> {
        let most = self.behaviour.quota.floating_ips;
        ApiError::unless_full(most, self.floating_ips.len(), "floating IPs")?;
        let network = match wish.address {
            Some(address) => IpNet::from(address),
            None => self.free_floating(wish.v6, wish.network)?,
        };
        let address = network.addr();
        if self.floating_ips.contains_key(&address) {
            return Err(ApiError::detail(format!(
                "The floating IP {address} already exists."
            )));
        }
        let of_target = wish.target.and_then(|target| self.target_zone(target));
        let of_target = of_target.map(|zone| region(zone).to_owned());
        let default = region(self.options.default_zone()).to_owned();
        let floating = FloatingIp {
            network,
            created_at: self.clock.rfc3339_micros(),
            target: wish.target,
            region: wish.region.map(|wanted| wanted.or(of_target).unwrap_or(default)),
            reverse_ptr: reverse.or_else(|| (!wish.network).then(|| reverse_name(address))),
            tags,
        };
        if let Err(error) = check_target(self, &floating) {
            self.release_floating(address);
            return Err(error);
        }
        self.floating_ips.insert(address, floating);
        Ok(address)
    }

    fn release_floating(&mut self, address: IpAddr) {
        let subnet = if address.is_ipv4() {
            self.home.floating_v4
        } else {
            self.home.floating_v6
        };
        self.release(&Address { address, subnet });
    }

    fn free_floating(&mut self, v6: bool, network: bool) -> Result<IpNet, ApiError> {
        let home = self.home;
        if !network {
            let subnet = if v6 { home.floating_v6 } else { home.floating_v4 };
            return Ok(self.allocate(subnet)?.address.into());
        }
        // One /56 after the other, behind the single addresses in the first one.
        let networks = self.floating_ips.values().map(|it| it.network.prefix_len());
        let count = networks.filter(|length| *length == V6_NETWORK_PREFIX).count() as u128;
        let base = nth(self.options.floating_v6, (count + 1) << (128 - V6_NETWORK_PREFIX));
        IpNet::new(base, V6_NETWORK_PREFIX).map_err(|_| ApiError::detail("No free network."))
    }

    fn target_zone(&self, target: Target) -> Option<&str> {
        match target {
            Target::Server(uuid) => self.servers.get(&uuid).map(|server| server.zone.as_str()),
            Target::LoadBalancer(uuid) => self
                .load_balancers
                .get(&uuid)
                .map(|balancer| balancer.zone.as_str()),
        }
    }
}

fn check_target(state: &State, floating: &FloatingIp) -> Result<(), ApiError> {
    let Some(target) = floating.target else {
        return Ok(());
    };
    if matches!(target, Target::LoadBalancer(_)) && floating.network.prefix_len() == V6_NETWORK_PREFIX {
        return Err(ApiError::field(
            "load_balancer",
            "A floating network cannot be assigned to a load balancer.",
        ));
    }
    let target_region = state.target_zone(target).map(region);
    match (&floating.region, target_region) {
        (Some(own), Some(other)) if own != other => {
            let text =
                format!("A regional floating IP of region {own} cannot be assigned in region {other}.");
            Err(ApiError::detail(text))
        }
        _ => Ok(()),
    }
}
