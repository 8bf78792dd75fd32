//! The rules of others: on an address, and behind an ACL list.

use std::collections::BTreeSet;

use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::{Class, NetworkId, PortForwardingRule, PublicIpId, PublicIpQuery, RuleQuery};
use futures::future::try_join3;

use crate::load_balancer::intent::{Identity, Intent};
use crate::load_balancer::objects::{Firewall, FirewallRule, IngressPort, Neighbour, Rule};
use crate::load_balancer::observe::learn::Learned;
use crate::load_balancer::observe::lists::saying;
use crate::load_balancer::observe::observed::{Fact, Observed};
use crate::load_balancer::observe::reads::Reads;
use crate::load_balancer::observe::times::RECENT;
use crate::load_balancer::observe::wire;

impl Reads {
    /// The rules of others on an address.
    pub(super) async fn rules_of_others(
        &self,
        identity: &Identity,
        address: &PublicIpId,
    ) -> Result<Vec<Rule>, CloudError> {
        self.others(identity, &RuleQuery::On(address.clone())).await
    }

    /// What there is on an address besides what the Service has there: it is not what it was at a look some time ago, or rules of
    /// others are on it, or a person forwards ports of it.
    pub(super) async fn not_alone(
        &self,
        identity: &Identity,
        observed: &Observed,
        id: &PublicIpId,
    ) -> Result<Option<Learned>, CloudError> {
        let is_recent = observed.looked.is_some_and(|looked| looked.elapsed() <= RECENT);
        let then = observed.known_address(id).filter(|_| !is_recent);
        let now = async {
            match then {
                Some(_) => self.address(id).await,
                None => Ok(None),
            }
        };
        let others = self.rules_of_others(identity, id);
        let (now, others, forwarded) = try_join3(now, others, self.forwarded(id)).await?;
        if then.is_some_and(|then| now.as_ref().is_none_or(|now| !now.is_as(then))) {
            return Ok(Some(Learned::Seen(Fact::Address(id.clone(), now))));
        }
        if !others.is_empty() {
            return Ok(Some(Learned::Seen(Fact::RulesOfOthers(id.clone(), others))));
        }
        Ok(forwarded.map(|forwarded| Learned::Seen(Fact::Forwarded(id.clone(), forwarded))))
    }

    /// What an address forwards to a virtual machine, which nobody but a person can have asked for. Whoever may not ask sees
    /// nothing of it.
    async fn forwarded(&self, id: &PublicIpId) -> Result<Option<String>, CloudError> {
        let rules = self.forwardings(Some(id)).await?;
        Ok(rules.first().map(|rule| match rule.public_port {
            Some(port) => format!("port forwarding rule {} for port {port}", rule.id),
            None => format!("port forwarding rule {}", rule.id),
        }))
    }

    /// The port forwarding rules of an address, or all. Whoever may not ask sees none.
    async fn forwardings(&self, address: Option<&PublicIpId>) -> Result<Vec<PortForwardingRule>, CloudError> {
        match self.whole.port_forwarding_rules(address).await {
            Ok(rules) => Ok(rules),
            Err(error) if is_refusal(error.class) => {
                tracing::warn!(
                    address = address.map(PublicIpId::as_str),
                    err = %error,
                    "A public IP is released, or a network ACL item deleted, without a look at the ports that are forwarded. Let the role of the API keys use listPortForwardingRules"
                );
                Ok(Vec::new())
            }
            Err(error) => {
                let error = CloudError::from(error);
                Err(error.context("error retrieving port forwarding rules"))
            }
        }
    }

    async fn others(&self, identity: &Identity, query: &RuleQuery) -> Result<Vec<Rule>, CloudError> {
        let rules = self.whole.load_balancer_rules(query);
        let rules = saying("error retrieving load balancer rules", rules).await?;
        let rules = rules.iter().map(wire::rule);
        Ok(rules.filter(|rule| !identity.is_own_rule(rule)).collect())
    }

    /// What others have that relies on an item of an ACL list, in all networks behind it. `items` are all that the list holds.
    pub(super) async fn users_of(
        &self,
        identity: &Identity,
        list: &Firewall,
        item: &FirewallRule,
        items: &[FirewallRule],
    ) -> Result<Vec<Neighbour>, CloudError> {
        let is_user = |other: &Neighbour| identity.is_relied_on(item, items, other);
        self.behind(identity, Some(list), None, is_user).await
    }

    /// What others have on the ports in question, in all networks behind the same ACL list.
    pub(super) async fn neighbours(
        &self,
        intent: &Intent,
        observed: &Observed,
        network: &NetworkId,
    ) -> Result<Vec<Neighbour>, CloudError> {
        let identity = intent.identity();
        let known = observed.known_network(network);
        let list = known.and_then(|network| network.acl.as_ref());
        let rules = observed.rules.iter();
        let of_rules = rules.filter_map(|rule| rule.ingress(&identity.name));
        let replaced = identity.replaced.ports().map(|port| port.ingress);
        let mut ports: BTreeSet<IngressPort> = of_rules.chain(replaced).collect();
        if let Intent::Wanted(wanted) = intent {
            ports.extend(wanted.ingress_ports());
        }
        let is_on_port = |other: &Neighbour| ports.iter().any(|port| other.may_need(*port));
        self.behind(identity, list, Some(network), is_on_port).await
    }

    /// What others have in a network, or in any other one behind an ACL list.
    async fn behind(
        &self,
        identity: &Identity,
        list: Option<&Firewall>,
        network: Option<&NetworkId>,
        is_wanted: impl Fn(&Neighbour) -> bool + Send,
    ) -> Result<Vec<Neighbour>, CloudError> {
        let (rules, forwardings, addresses) = try_join3(
            self.others(identity, &RuleQuery::All),
            self.forwardings(None),
            self.addresses(&PublicIpQuery::Allocated),
        )
        .await?;
        let rules = rules
            .into_iter()
            .map(|rule| (rule.network.clone(), Neighbour::Rule(rule)));
        let forwardings = forwardings
            .into_iter()
            .filter_map(|rule| Some((rule.network_id.clone()?, Neighbour::Forwarding(rule))));
        let nats = addresses.into_iter().filter(|address| address.is_static_nat);
        let nats = nats.filter_map(|nat| Some((nat.network?, Neighbour::StaticNat(nat.address))));
        let mut behind = Vec::new();
        for (place, other) in rules.chain(forwardings).chain(nats) {
            if is_wanted(&other) && (network == Some(&place) || self.has_list(&place, list).await?) {
                behind.push(other);
            }
        }
        Ok(behind)
    }

    async fn has_list(&self, network: &NetworkId, list: Option<&Firewall>) -> Result<bool, CloudError> {
        let (Some(list), false) = (list, network.is_empty()) else {
            return Ok(false);
        };
        let network = self.network(network).await?;
        let acl = network.as_ref().and_then(|network| network.acl.as_ref());
        Ok(acl.is_some_and(|acl| acl.id == list.id))
    }
}

/// Whether a question is not answered at all: the role may not use the command, or there is none of this name.
fn is_refusal(class: Class) -> bool {
    matches!(
        class,
        Class::Denied | Class::Unauthenticated | Class::Invalid | Class::NotFound
    )
}
