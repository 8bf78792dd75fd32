//! Firewall rules of public addresses in isolated networks.

use ipnet::IpNet;

use super::{Answer, Call};
use crate::error::ApiError;
use crate::jobs::Effect;
use crate::model::{AddressState, FirewallRule, PublicAddress, RuleState};
use crate::state::ALL_PORTS;
use crate::wire;

const KIND: &str = "FirewallRule";

/// Sources of a rule that names none.
pub(super) const EVERYBODY: &str = "0.0.0.0/0";

impl Call<'_> {
    pub(super) fn list_firewall_rules(&self) -> Answer {
        let scope = self.scope()?;
        self.check_id("id", |id| self.state.firewall.contains_key(id))?;
        self.check_id("ipaddressid", |id| self.state.addresses.contains_key(id))?;
        self.check_id("networkid", |id| self.state.networks.contains_key(id))?;
        let named = self.params.text("ipaddressid");
        let address = named.and_then(|id| self.state.addresses.get(id));
        // A server that lets rules be on an address that is not there lists them.
        let behaviour = &self.state.behaviour;
        let is_listed = |it: &PublicAddress| match it.state {
            AddressState::Allocated => true,
            AddressState::Allocating => behaviour.pending_addresses_take_rules,
            AddressState::Free => behaviour.releases_leave_rules,
            AddressState::Releasing => false,
        };
        if let Some(address) = address.filter(|it| !is_listed(it)) {
            return Err(ApiError::parameter(format!(
                "Ip address id={} not ready for firewall rules yet",
                address.id
            )));
        }
        let fits = |it: &&FirewallRule| {
            self.sees(&scope, &it.owner)
                && self.fits("id", Some(&it.id))
                && self.fits("ipaddressid", Some(&it.address))
                && self.fits("networkid", Some(&it.network))
                && self.fits_tags(&it.tags)
        };
        let found = self.state.firewall.values().filter(fits).collect();
        self.page("firewallrule", found, |it| wire::firewall_rule(self.state, it))
    }

    pub(super) fn create_firewall_rule(&mut self) -> Answer {
        let params = self.params;
        let id = params.required("ipaddressid")?;
        let address = self.known(&self.state.addresses, "ipaddressid", id)?;
        let protocol = params.required("protocol")?.to_lowercase();
        let Some(owner) = address.owner.clone() else {
            return Err(ApiError::parameter(format!(
                "Unable to create firewall rule; ip {} is not associated with any network",
                address.address
            )));
        };
        self.permit(&owner, id)?;
        let network = address.network.as_ref().filter(|_| address.vpc.is_none());
        let network = network.and_then(|id| self.state.networks.get(id));
        let Some(network) = network.filter(|it| it.offers("Firewall")) else {
            return Err(ApiError::parameter(format!(
                "Unable to create firewall rule for ip {}: no network with the service Firewall is associated with it",
                address.address
            )));
        };
        let network = network.id.clone();
        let ports = match protocol.as_str() {
            "tcp" | "udp" => self.ports()?,
            "icmp" => None,
            other => {
                return Err(ApiError::parameter(format!("Invalid protocol {other}")));
            }
        };
        let mut cidrs: Vec<String> = named(params.list("cidrlist"));
        if cidrs.is_empty() {
            cidrs.push(EVERYBODY.to_owned());
        }
        let is_good = |cidr: &str| {
            let takes_ipv6 = self.state.behaviour.firewall_takes_ipv6;
            cidr.parse::<IpNet>()
                .is_ok_and(|it| takes_ipv6 || matches!(it, IpNet::V4(_)))
        };
        if let Some(bad) = cidrs.iter().find(|it| !is_good(it)) {
            return Err(ApiError::parameter(format!(
                "Source cidrs formatting error {bad}"
            )));
        }
        if let Some(met) = self.state.overlapping(id, &protocol, ports, &cidrs) {
            let (wanted, taken) = (ports.unwrap_or(ALL_PORTS), met.ports.unwrap_or(ALL_PORTS));
            return Err(ApiError::conflict(wanted, met.number, taken));
        }
        let rule = FirewallRule {
            id: self.state.id(),
            number: self.state.number(),
            address: id.to_owned(),
            network: network.clone(),
            protocol,
            ports,
            cidrs,
            state: RuleState::Add,
            owner,
            tags: Vec::new(),
        };
        let id = rule.id.clone();
        self.state.firewall.insert(id.clone(), rule);
        self.accept(
            Some(network),
            Some((KIND, &id)),
            Effect::CreateFirewall(id.clone()),
        )
    }

    /// The ports of a rule; the last one is the first one unless it is said.
    pub(super) fn ports(&self) -> Result<Option<(u16, u16)>, ApiError> {
        let Some(start) = self.params.port("startport", "startPort")? else {
            return Ok(None);
        };
        let end = self.params.port("endport", "endPort")?.unwrap_or(start);
        if start > end {
            return Err(ApiError::parameter("Start port can't be bigger than end port"));
        }
        Ok(Some((start, end)))
    }

    pub(super) fn delete_firewall_rule(&mut self) -> Answer {
        let id = self.params.required("id")?;
        let rule = self.known(&self.state.firewall, "id", id)?;
        self.permit(&rule.owner, id)?;
        let lane = Some(rule.network.clone());
        self.accept(lane, Some((KIND, id)), Effect::DeleteFirewall(id.to_owned()))
    }
}

pub(super) fn named(list: Option<Vec<&str>>) -> Vec<String> {
    list.unwrap_or_default().into_iter().map(str::to_owned).collect()
}
