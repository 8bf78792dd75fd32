//! `/v2.0/lbaas/loadbalancers`

use std::collections::BTreeSet;

use serde_json::Value;

use super::kind::{Kind as _, Written};
use super::{Parent, patch_part};
use crate::api::{Answer, Call};
use crate::error::ApiError;
use crate::model::Id;
use crate::model::balancing::{Forwarder, LoadBalancer, Provisioning};

impl Written for LoadBalancer {
    const TAKEN: &'static str = "name description admin_state_up tags vip_qos_policy_id vip_sg_ids";
    const FIXED: &'static str = "project_id provider flavor_id availability_zone listeners pools \
         vip_address vip_port_id vip_subnet_id vip_network_id vip_vnic_type additional_vips tenant_id";
    const FILTERS: &'static str = "vip_address vip_port_id vip_subnet_id vip_network_id provider flavor_id \
         availability_zone listeners pools";
    const KEY: &'static str = "name";

    fn key(&self) -> String {
        self.part.name.clone()
    }

    fn create(call: &mut Call<'_>) -> Result<Id, ApiError> {
        let fields = call.new_fields::<Self>()?;
        let project = call.caller.project.clone();
        let behaviour = &call.state.behaviour;
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
        call.check_quota::<Self>(&project, 1)?;
        let text = |name| fields.text(name).map(Option::unwrap_or_default);
        let tags = fields.texts("tags")?.unwrap_or_default();
        let part = call
            .state
            .part(&project, text("name")?, text("description")?, tags);
        let vip_groups = fields.texts("vip_sg_ids")?.unwrap_or_default();
        let wish = call.vip_wish(&fields, &provider)?;
        let parent = Parent {
            id: part.id,
            project,
            provider,
            vips: wish.fixed_ips().to_vec(),
            has_groups: !vip_groups.is_empty(),
        };
        let id = part.id;
        let (vip, additional_vips, owns_port) = call.vip(wish, id, &parent.provider)?;
        // The port is there by now. Whatever is refused from here on takes back the load balancer, and not the port: so does Octavia 19
        // (`post` in `octavia/api/v2/controllers/load_balancer.py`, which only rolls back its database). What cannot be read is
        // refused before all that.
        let tree = match call.tree(&fields, &parent) {
            Err(refused) if refused.is_unreadable() && owns_port => {
                call.state.remove_port(vip.port);
                return Err(refused);
            }
            tree => tree?,
        };
        let balancer = Self {
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
        call.state.load_balancers.insert(id, balancer);
        tree.insert(call.state);
        call.state.keep_clients(id);
        call.state.begin(id, Provisioning::PendingCreate);
        Ok(id)
    }

    fn change(call: &mut Call<'_>, id: Id) -> Result<(), ApiError> {
        call.check_state(id, &[Provisioning::Active])?;
        let fields = call.changed_fields::<Self>()?;
        let now = call.state.clock.rfc3339_seconds();
        if let Some(mut balancer) = call.state.load_balancers.get(&id).cloned() {
            patch_part(&mut balancer.part, &fields, &now)?;
            balancer.vip_groups = fields.texts("vip_sg_ids")?.unwrap_or(balancer.vip_groups);
            call.state.load_balancers.insert(id, balancer);
        }
        call.touch(id);
        Ok(())
    }

    fn remove(call: &mut Call<'_>, id: Id) -> Result<(), ApiError> {
        call.check_state(id, &[Provisioning::Active, Provisioning::Error])?;
        let has_children =
            call.state.listeners_of(id).next().is_some() || call.state.pools_of(id).next().is_some();
        if has_children && !call.query.flag("cascade") {
            let text = format!("Cannot delete Load Balancer {id} - it has children");
            return Err(ApiError::invalid(text));
        }
        call.state.begin(id, Provisioning::PendingDelete);
        Ok(())
    }

    fn show_made(call: &Call<'_>, id: Id) -> Answer {
        let made = call.state.load_balancers.get(&id);
        let shown = made.map_or(Value::Null, |it| call.wire().created_load_balancer(it));
        call.created(Self::ROOT, call.dated(shown))
    }
}

impl Call<'_> {
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
}
