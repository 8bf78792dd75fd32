//! `/v2.0/lbaas/loadbalancers`

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Parent, patch_part};
use crate::api::{Answer, Call};
use crate::error::ApiError;
use crate::model::Id;
use crate::model::balancing::{Forwarder, LoadBalancer, Provisioning};

const NEW: [&str; 19] = [
    "name",
    "description",
    "admin_state_up",
    "project_id",
    "provider",
    "flavor_id",
    "availability_zone",
    "tags",
    "listeners",
    "pools",
    "vip_address",
    "vip_port_id",
    "vip_subnet_id",
    "vip_network_id",
    "vip_qos_policy_id",
    "vip_vnic_type",
    "vip_sg_ids",
    "additional_vips",
    "tenant_id",
];
const CHANGED: [&str; 6] = [
    "name",
    "description",
    "admin_state_up",
    "tags",
    "vip_qos_policy_id",
    "vip_sg_ids",
];
const FILTERS: [&str; 9] = [
    "vip_address",
    "vip_port_id",
    "vip_subnet_id",
    "vip_network_id",
    "provider",
    "flavor_id",
    "availability_zone",
    "listeners",
    "pools",
];

impl Call<'_> {
    pub(super) fn load_balancers(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("GET", []) => {
                let may_pass = |it: &LoadBalancer| self.query.may_be("name", &it.part.name);
                self.list(&FILTERS, &[], may_pass)
            }
            ("POST", []) => self.create_load_balancer(),
            ("GET", [id]) => self.show::<LoadBalancer>(self.found::<LoadBalancer>(id)?),
            ("PUT", [id]) => {
                let id = self.found::<LoadBalancer>(id)?;
                self.check_state(id, &[Provisioning::Active])?;
                let fields = self.octavia_fields("loadbalancer", &CHANGED)?;
                let now = self.state.clock.rfc3339_seconds();
                if let Some(mut balancer) = self.state.load_balancers.get(&id).cloned() {
                    patch_part(&mut balancer.part, &fields, &now)?;
                    balancer.vip_groups = fields.texts("vip_sg_ids")?.unwrap_or(balancer.vip_groups);
                    self.state.load_balancers.insert(id, balancer);
                }
                self.touch(id);
                self.show::<LoadBalancer>(id)
            }
            ("DELETE", [id]) => {
                let id = self.found::<LoadBalancer>(id)?;
                self.check_state(id, &[Provisioning::Active, Provisioning::Error])?;
                let has_children =
                    self.state.listeners_of(id).next().is_some() || self.state.pools_of(id).next().is_some();
                if has_children && !self.query.flag("cascade") {
                    let text = format!("Cannot delete Load Balancer {id} - it has children");
                    return Err(ApiError::invalid(text));
                }
                self.state.begin(id, Provisioning::PendingDelete);
                self.done()
            }
            _ => self.no_such_path(),
        }
    }

    fn check_state(&self, id: Id, fitting: &[Provisioning]) -> Result<(), ApiError> {
        let status = self.state.load_balancers.get(&id).map(|it| it.part.status);
        match status {
            Some(status) if !fitting.contains(&status) => {
                let text = format!("Invalid state {} of loadbalancer resource {id}", status.word());
                Err(ApiError::octavia_conflict(text))
            }
            _ => Ok(()),
        }
    }

    fn create_load_balancer(&mut self) -> Answer {
        let fields = self.octavia_fields("loadbalancer", &NEW)?;
        let project = self.caller.project.clone();
        let behaviour = &self.state.behaviour;
        let provider = fields.text("provider")?.unwrap_or_else(|| "amphora".to_owned());
        if !behaviour.providers.contains(&provider) {
            let text = format!("Provider '{provider}' is not enabled.");
            return Err(ApiError::octavia(http::StatusCode::BAD_REQUEST, text));
        }
        let flavor = fields.id("flavor_id")?.map(|id| id.to_string());
        if flavor
            .as_ref()
            .is_some_and(|it| !behaviour.lb_flavors.contains(it))
        {
            return Err(ApiError::invalid("Invalid flavor_id."));
        }
        let zone = fields.text("availability_zone")?;
        if zone.as_ref().is_some_and(|it| !behaviour.lb_zones.contains(it)) {
            return Err(ApiError::invalid("Invalid availability zone."));
        }
        self.check_quota::<LoadBalancer>(&project, 1)?;
        let text = |name| fields.text(name).map(Option::unwrap_or_default);
        let tags = fields.texts("tags")?.unwrap_or_default();
        let part = self
            .state
            .part(&project, text("name")?, text("description")?, tags);
        let vip_groups = fields.texts("vip_sg_ids")?.unwrap_or_default();
        let wish = self.vip_wish(&fields, &provider)?;
        let parent = Parent {
            id: part.id,
            project,
            provider,
            vips: wish.fixed_ips().to_vec(),
            has_groups: !vip_groups.is_empty(),
        };
        let id = part.id;
        let (vip, additional_vips, owns_port) = self.vip(wish, id, &parent.provider)?;
        // The port is there by now. Whatever is refused from here on takes back the load balancer, and not the port: so does Octavia 19
        // (`post` in `octavia/api/v2/controllers/load_balancer.py`, which only rolls back its database). What cannot be read is
        // refused before all that.
        let tree = match self.tree(&fields, &parent) {
            Err(refused) if refused.is_unreadable() && owns_port => {
                self.state.remove_port(vip.port);
                return Err(refused);
            }
            tree => tree?,
        };
        let balancer = LoadBalancer {
            part,
            vip,
            additional_vips,
            owns_port,
            provider: parent.provider,
            flavor,
            zone,
            forwarder: Forwarder::Absent,
            change: None,
            ending: Vec::new(),
            sticky: BTreeSet::new(),
            vip_groups,
        };
        self.state.load_balancers.insert(id, balancer);
        tree.insert(self.state);
        self.state.keep_clients(id);
        self.state.begin(id, Provisioning::PendingCreate);
        let made = self.state.load_balancers.get(&id);
        let shown = made.map_or(Value::Null, |it| self.wire().created_load_balancer(it));
        self.created("loadbalancer", self.dated(shown))
    }
}
