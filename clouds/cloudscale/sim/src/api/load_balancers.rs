//! `/v1/load-balancers`

use bowline_cloud_kit::clock::{later, pending};
use serde_json::{Map, Value};

use super::{Answer, Call, found, path_id};
use crate::behaviour::VipOrder;
use crate::error::ApiError;
use crate::fields::{Fields, given};
use crate::model::{Address, LoadBalancer};
use crate::wire::Wire;

/// The only flavor.
const FLAVOR: &str = "lb-standard";

impl Call<'_> {
    pub(super) fn load_balancers(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", []) => self.list(
                self.state.load_balancers.values(),
                |it| &it.tags,
                Wire::load_balancer,
            ),
            ("POST", []) => self.create_load_balancer(),
            (_, []) => self.wrong_method(),
            (method, [id]) => {
                let uuid = path_id(id)?;
                let balancer = found(&self.state.load_balancers, &uuid)?;
                match method {
                    "GET" => self.one(&self.wire().load_balancer(balancer)),
                    "PATCH" => {
                        let mut fields = self.patch(false)?;
                        fields.forbid(&["flavor", "zone", "vip_addresses"]);
                        let (name, tags) = (fields.text("name"), fields.tags());
                        fields.check()?;
                        if let Some(balancer) = self.state.load_balancers.get_mut(&uuid) {
                            balancer.name = name.unwrap_or_else(|| balancer.name.clone());
                            balancer.tags = tags.unwrap_or_else(|| balancer.tags.clone());
                        }
                        self.state.touch(uuid);
                        self.done()
                    }
                    "DELETE" => {
                        if pending(balancer.creating_until) {
                            return Err(ApiError::detail("The load balancer is still being created."));
                        }
                        match later(self.state.behaviour.lb_delete_time) {
                            None => self.state.remove_load_balancer(uuid),
                            Some(at) => {
                                if let Some(balancer) = self.state.load_balancers.get_mut(&uuid) {
                                    balancer.deleted_at.get_or_insert(at);
                                }
                            }
                        }
                        self.done()
                    }
                    _ => self.wrong_method(),
                }
            }
            _ => Err(ApiError::not_found()),
        }
    }

    fn create_load_balancer(&mut self) -> Answer {
        let mut fields = self.new_fields(&["name"])?;
        let name = fields.text("name");
        let flavor = fields.text("flavor").unwrap_or_else(|| FLAVOR.to_owned());
        if flavor != FLAVOR {
            let text = format!("{flavor:?} is not a valid choice. Choose one of: {FLAVOR}.");
            fields.refuse("flavor", text);
        }
        let zone = self.zone(&mut fields);
        let tags = fields.tags().unwrap_or_default();
        let wishes = fields.objects("vip_addresses").unwrap_or_default();
        fields.check()?;
        let most = self.state.behaviour.quota.load_balancers;
        ApiError::unless_full(most, self.state.load_balancers.len(), "load balancers")?;
        let vips = self.vips(wishes)?;
        let (uuid, created_at) = self.birth();
        let balancer = LoadBalancer {
            uuid,
            name: given(name, "name")?,
            created_at,
            zone,
            flavor,
            vips,
            tags,
            creating_until: later(self.state.behaviour.lb_create_time),
            changing_until: None,
            deleted_at: None,
            status: None,
        };
        self.state.load_balancers.insert(uuid, balancer.clone());
        let mut answer = self.wire().load_balancer(&balancer);
        answer["status"] = Value::from("changing");
        self.created(&answer)
    }

    /// The addresses for a new load balancer. All or none are taken.
    fn vips(&mut self, wishes: Vec<Map<String, Value>>) -> Result<Vec<Address>, ApiError> {
        if wishes.is_empty() {
            let home = self.state.home;
            let v4 = self.state.allocate(home.vip_v4)?;
            let v6 = self.state.allocate(home.public_v6)?;
            return Ok(match self.state.behaviour.vip_order {
                VipOrder::V4First => vec![v4, v6],
                VipOrder::V6First => vec![v6, v4],
            });
        }
        let mut vips = Vec::new();
        for wish in wishes {
            match self.vip(wish) {
                Ok(vip) => vips.push(vip),
                Err(error) => {
                    for vip in &vips {
                        self.state.release(vip);
                    }
                    return Err(error);
                }
            }
        }
        Ok(vips)
    }

    fn vip(&mut self, wish: Map<String, Value>) -> Result<Address, ApiError> {
        let mut wish = Fields::new(wish);
        let subnet = wish.has("subnet").then(|| wish.uuid("subnet"));
        let address = wish.has("address").then(|| wish.address("address"));
        wish.check()?;
        let (subnet, address) = (subnet.flatten(), address.flatten());
        let known = |state: &crate::state::State, subnet| {
            let known = state.subnets.get(&subnet).map(|subnet| subnet.cidr);
            known.ok_or_else(|| {
                ApiError::field("vip_addresses", format!("Subnet \"{subnet}\" does not exist."))
            })
        };
        match (subnet, address) {
            (Some(subnet), None) => {
                known(self.state, subnet)?;
                self.state.allocate(subnet)
            }
            (Some(subnet), Some(address)) => {
                if !known(self.state, subnet)?.contains(&address) {
                    let text = format!("{address} is not a valid IP for the specified subnet.");
                    return Err(ApiError::field("vip_addresses", text));
                }
                self.state.reserve(subnet, address)
            }
            (None, Some(address)) => {
                let private = self
                    .state
                    .subnets
                    .values()
                    .filter(|subnet| !self.state.networks[&subnet.network].public);
                let found = private
                    .filter(|subnet| subnet.cidr.contains(&address))
                    .map(|subnet| subnet.uuid)
                    .next();
                let subnet = found.ok_or_else(|| {
                    ApiError::field(
                        "vip_addresses",
                        format!("{address} is not part of a subnet of the project."),
                    )
                })?;
                self.state.reserve(subnet, address)
            }
            (None, None) => self.state.allocate(self.state.home.vip_v4),
        }
    }
}
