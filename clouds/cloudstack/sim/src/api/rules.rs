//! Load balancer rules, and the port forwardings beside them.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{Answer, Call, contains};
use crate::error::ApiError;
use crate::jobs::{Effect, RuleChange};
use crate::model::{AddressState, FirewallRule, LoadBalancerRule, PortForwarding, PublicAddress, RuleState};
use crate::wire;

/// The type of a rule in what is said about jobs.
const KIND: &str = "FirewallRule";

const ALGORITHMS: [&str; 3] = ["roundrobin", "leastconn", "source"];
const PROTOCOLS: [&str; 4] = ["tcp", "udp", "tcp-proxy", "ssl"];
const DNS_PORT: u16 = 53;

impl Call<'_> {
    pub(super) fn list_rules(&self) -> Answer {
        let scope = self.scope()?;
        self.check_id("id", |id| self.state.rules.contains_key(id))?;
        self.check_id("publicipid", |id| self.state.addresses.contains_key(id))?;
        self.check_id("networkid", |id| self.state.networks.contains_key(id))?;
        self.check_id("virtualmachineid", |id| self.state.vms.contains_key(id))?;
        let fits = |it: &&LoadBalancerRule| {
            self.sees(&scope, &it.owner)
                && self.fits("id", Some(&it.id))
                && self.fits("name", Some(&it.name))
                && self.passes("keyword", |part| {
                    contains(&it.name, part) || contains(it.description.as_deref().unwrap_or_default(), part)
                })
                && self.fits("publicipid", Some(&it.address))
                && self.fits("networkid", Some(&it.network))
                && self.passes("virtualmachineid", |vm| {
                    it.members.iter().any(|member| member == vm)
                })
                && self.fits_tags(&it.tags)
        };
        let found = self.state.rules.values().filter(fits).collect();
        self.page("loadbalancerrule", found, |it| wire::rule(self.state, it))
    }

    pub(super) fn create_rule(&mut self) -> Answer {
        let params = self.params;
        let name = params.required("name")?.to_owned();
        let algorithm = check_algorithm(params.required("algorithm")?)?;
        params.required("privateport")?;
        params.required("publicport")?;
        let private_port = params.port("privateport", "privatePort")?.unwrap_or_default();
        let public_port = params.port("publicport", "publicPort")?.unwrap_or_default();
        let protocol = params.text("protocol").map(check_protocol).transpose()?;
        let word = protocol.as_deref().unwrap_or("tcp").to_lowercase();
        let cidrs = self.new_cidrs()?;
        let address = self.usable_address()?.clone();
        let network = self.network_of(&address)?;
        self.check_port(&address, &network, public_port)?;
        let behaviour = &self.state.behaviour;
        if behaviour.stats_port == Some(public_port) || (word == "udp" && !behaviour.takes_udp) {
            return Err(ApiError::parameter(
                "LB service provider cannot support this rule",
            ));
        }
        if let Some((number, taken)) = self.state.holder(&address.id, public_port, &word) {
            return Err(ApiError::conflict((public_port, public_port), number, taken));
        }
        let Some(owner) = address.owner.clone() else {
            return Err(ApiError::parameter("the public IP is nobody's"));
        };
        let rule = LoadBalancerRule {
            id: self.state.id(),
            number: self.state.number(),
            name,
            description: params.text("description").map(str::to_owned),
            algorithm,
            protocol,
            address: address.id.clone(),
            public_port,
            private_port,
            network: network.clone(),
            cidrs,
            state: RuleState::Add,
            members: Vec::new(),
            policies: Vec::new(),
            owner,
            tags: Vec::new(),
        };
        if params.flag("openfirewall") != Some(false) && address.vpc.is_none() {
            self.open_firewall(&rule);
        }
        if address.vpc.is_some()
            && let Some(address) = self.state.addresses.get_mut(&address.id)
        {
            address.network = Some(network.clone());
        }
        let id = rule.id.clone();
        self.state.rules.insert(id.clone(), rule);
        let lane = address.vpc.or(Some(network));
        self.accept(lane, Some((KIND, &id)), Effect::CreateRule(id.clone()))
    }

    /// The CIDR list of a new rule as it is stored: separated by blanks.
    fn new_cidrs(&self) -> Result<Option<String>, ApiError> {
        let Some(list) = self.params.list("cidrlist") else {
            return Ok(None);
        };
        if !self.state.behaviour.is_at_least(4, 18) {
            return Err(ApiError::parameter(
                "Parameter cidrList is deprecated; if you need to open firewall rule for the specific cidr, please \
                 refer to createFirewallRule command",
            ));
        }
        check_cidrs(&list)?;
        Ok(Some(list.join(" ")))
    }

    /// The public address that is named, which must be the caller's and ready.
    fn usable_address(&self) -> Result<&PublicAddress, ApiError> {
        let id = self.params.required("publicipid")?;
        let address = self.known(&self.state.addresses, "publicipid", id)?;
        let is_ready = match address.state {
            AddressState::Allocated => true,
            AddressState::Allocating => self.state.behaviour.pending_addresses_take_rules,
            _ => false,
        };
        if !is_ready {
            return Err(ApiError::parameter(format!(
                "Unable to create load balancer rule; ip address {} is in {} state",
                address.address,
                address.state.name()
            )));
        }
        if let Some(owner) = &address.owner {
            self.permit(owner, &address.id)?;
        }
        if address.static_nat.is_some() {
            return Err(ApiError::parameter(format!(
                "Unable to create load balancer rule; ip address {} is used for static nat",
                address.address
            )));
        }
        Ok(address)
    }

    /// The network that a rule on an address is for.
    fn network_of(&self, address: &PublicAddress) -> Result<String, ApiError> {
        let wanted = self.params.text("networkid");
        let id = match (&address.vpc, &address.network) {
            (Some(_), associated) => wanted.or(associated.as_deref()).ok_or_else(|| {
                ApiError::parameter(format!(
                    "Unable to create load balancer rule; ip address {} is not associated with any network",
                    address.address
                ))
            })?,
            (None, Some(network)) => match wanted {
                Some(other) if other != network => {
                    return Err(ApiError::parameter(format!(
                        "ip address {} is not associated with network {other}",
                        address.address
                    )));
                }
                _ => network,
            },
            (None, None) => {
                return Err(ApiError::parameter("the public IP is in no network"));
            }
        };
        let network = self.known(&self.state.networks, "networkid", id)?;
        if network.vpc != address.vpc {
            return Err(ApiError::parameter(format!(
                "The network {id} is not part of the VPC of ip address {}",
                address.address
            )));
        }
        let tier = address.network.as_ref().filter(|it| *it != id);
        if let Some(tier) = tier.filter(|_| address.vpc.is_some()) {
            if !self.state.behaviour.other_tiers_conflict {
                return Ok(tier.clone());
            }
            let text = "New rule is for a different network than what's specified in rule";
            let there = self.state.rules.values().find(|rule| rule.address == address.id);
            let number = there.map_or(0, |rule| rule.number);
            return Err(ApiError::new(537, format!("{text} {number}")));
        }
        if !network.offers("Lb") {
            return Err(ApiError::parameter(format!(
                "LB service is not supported in network id= {id}"
            )));
        }
        Ok(id.to_owned())
    }

    /// That a port is not the router's own.
    fn check_port(&self, address: &PublicAddress, network: &str, port: u16) -> Result<(), ApiError> {
        let has_dns = self
            .state
            .networks
            .get(network)
            .is_some_and(|it| it.offers("Dns"));
        if port == DNS_PORT && address.is_source_nat && has_dns {
            return Err(ApiError::parameter(
                "Error adding load balancer rule, cant add port 53 when network service DNS is enabled",
            ));
        }
        Ok(())
    }

    fn open_firewall(&mut self, rule: &LoadBalancerRule) {
        let protocol = match rule.protocol_word().as_str() {
            "udp" => "udp",
            _ => "tcp",
        };
        let opened = FirewallRule {
            id: self.state.id(),
            number: self.state.number(),
            address: rule.address.clone(),
            network: rule.network.clone(),
            protocol: protocol.to_owned(),
            ports: Some((rule.public_port, rule.public_port)),
            cidrs: vec!["0.0.0.0/0".to_owned()],
            state: RuleState::Active,
            owner: rule.owner.clone(),
            tags: Vec::new(),
        };
        self.state.firewall.insert(opened.id.clone(), opened);
    }

    pub(super) fn update_rule(&mut self) -> Answer {
        let (id, lane) = self.rule_to_change()?;
        let params = self.params;
        let is_new = self.state.behaviour.is_at_least(4, 22);
        let cidrs = params.list("cidrlist").filter(|_| is_new);
        let change = RuleChange {
            name: params.text("name").map(str::to_owned),
            description: params.text("description").map(str::to_owned),
            algorithm: params.text("algorithm").map(check_algorithm).transpose()?,
            protocol: params.text("protocol").map(check_protocol).transpose()?,
            // Separated by commas, unlike that of a new rule.
            cidrs: cidrs.map(|list| list.join(",")),
        };
        let effect = Effect::UpdateRule {
            rule: id.clone(),
            change,
        };
        self.accept(lane, Some((KIND, &id)), effect)
    }

    pub(super) fn delete_rule(&mut self) -> Answer {
        let (id, lane) = self.rule_to_change()?;
        self.accept(lane, Some((KIND, &id)), Effect::DeleteRule(id.clone()))
    }

    /// The id of the rule that is named, which must be the caller's, and the lane of its jobs.
    pub(super) fn rule_to_change(&self) -> Result<(String, Option<String>), ApiError> {
        let id = self.params.required("id")?;
        let rule = self.known(&self.state.rules, "id", id)?;
        self.permit(&rule.owner, &rule.id)?;
        Ok((id.to_owned(), self.lane(rule)))
    }

    /// The lane of a rule's jobs: its VPC's, else its network's.
    pub(super) fn lane(&self, rule: &LoadBalancerRule) -> Option<String> {
        let network = self.state.networks.get(&rule.network);
        let vpc = network.and_then(|it| it.vpc.clone());
        vpc.or_else(|| Some(rule.network.clone()))
    }

    pub(super) fn list_port_forwardings(&self) -> Answer {
        let scope = self.scope()?;
        let fits = |it: &&PortForwarding| {
            let owner = self
                .state
                .addresses
                .get(&it.address)
                .and_then(|it| it.owner.as_ref());
            owner.is_some_and(|owner| self.sees(&scope, owner))
                && self.fits("id", Some(&it.id))
                && self.fits("ipaddressid", Some(&it.address))
                && self.fits("networkid", Some(&it.network))
        };
        let found = self.state.forwardings.values().filter(fits).collect();
        self.page("portforwardingrule", found, |it| {
            wire::port_forwarding(self.state, it)
        })
    }
}

fn check_algorithm(word: &str) -> Result<String, ApiError> {
    if ALGORITHMS.contains(&word) {
        Ok(word.to_owned())
    } else {
        Err(ApiError::parameter(format!("Invalid algorithm: {word}")))
    }
}

/// Any letters will do, and are kept.
fn check_protocol(word: &str) -> Result<String, ApiError> {
    if PROTOCOLS.contains(&word.to_lowercase().as_str()) {
        Ok(word.to_owned())
    } else {
        Err(ApiError::parameter(format!("Invalid protocol: {word}")))
    }
}

/// That each element is a range or an address of either family.
fn check_cidrs(list: &[&str]) -> Result<(), ApiError> {
    let is_bad = |it: &&&str| it.parse::<IpNet>().is_err() && it.parse::<IpAddr>().is_err();
    match list.iter().find(is_bad) {
        Some(bad) => Err(ApiError::parameter(format!("CIDR [{bad}] is invalid."))),
        None => Ok(()),
    }
}
