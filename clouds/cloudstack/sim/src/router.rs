//! The virtual routers: what the load balancer of each network really does, whatever the API stores and says.
//!
//! The server tells a router all rules of its network at once, and only for changes that it takes for ones: of members, of an
//! algorithm, of a list of clients, or a rule that goes. The router writes one file of them for haproxy, the lists of clients
//! as they are stored. If haproxy cannot read the file, it goes on with the one before. The server hears nothing of that.

use std::collections::BTreeMap;

use crate::model::LoadBalancerRule;

/// The routers by the ID of their network.
#[derive(Debug, Default)]
pub(crate) struct Routers(BTreeMap<String, Router>);

/// The router of a network.
#[derive(Debug, Default)]
struct Router {
    /// The rules as haproxy runs them.
    running: Vec<LoadBalancerRule>,
    /// Why haproxy cannot read what the router was told last.
    complaint: Option<String>,
}

impl Routers {
    /// The rules that are in force, as they are in force.
    pub(crate) fn running(&self) -> impl Iterator<Item = &LoadBalancerRule> {
        self.0.values().flat_map(|router| &router.running)
    }

    /// A rule as it is in force.
    pub(crate) fn running_rule(&self, id: &str) -> Option<&LoadBalancerRule> {
        self.running().find(|rule| rule.id == id)
    }

    /// Why routers take no change, with the ID of the network of each.
    pub(crate) fn complaints(&self) -> impl Iterator<Item = (&str, &str)> {
        let routers = self.0.iter();
        routers.filter_map(|(network, router)| Some((network.as_str(), router.complaint.as_deref()?)))
    }

    /// Tells the router of a network all of its rules.
    pub(crate) fn tell(&mut self, network: &str, rules: Vec<LoadBalancerRule>) {
        let router = self.0.entry(network.to_owned()).or_default();
        router.complaint = rules.iter().find_map(complaint);
        if router.complaint.is_none() {
            router.running = rules;
        }
    }

    /// Forgets a router and what it runs.
    pub(crate) fn remove(&mut self, network: &str) {
        self.0.remove(network);
    }
}

/// What haproxy cannot read in a rule: `acl network_allowed src 10.0.0.0/8,192.0.2.0/24` names no network.
fn complaint(rule: &LoadBalancerRule) -> Option<String> {
    let list = rule.cidrs.as_deref().filter(|list| list.contains(','))?;
    Some(format!("rule {} lists clients as `{list}`", rule.name))
}
