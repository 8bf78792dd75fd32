//! The virtual routers: what the load balancer of each network really does, whatever the API stores and says.
//!
//! The server tells a router all rules of its network at once, and only for changes that it takes for ones: of members, of an
//! algorithm, of a list of clients, or a rule that goes. The router writes one file of them for haproxy, the lists of clients
//! as they are stored. If haproxy cannot read the file, it goes on with the one before. The server hears nothing of that.

use std::collections::BTreeMap;

use crate::model::{LoadBalancerRule, StickinessPolicy};

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

    /// Tells the router of a network all of its rules. `is_haproxy`: the balancer is that, and no other make.
    pub(crate) fn tell(&mut self, network: &str, rules: Vec<LoadBalancerRule>, is_haproxy: bool) {
        let router = self.0.entry(network.to_owned()).or_default();
        router.complaint = rules
            .iter()
            .find_map(|rule| complaint(rule).or_else(|| stickiness_complaint(rule).filter(|_| is_haproxy)));
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

/// What haproxy 2 cannot read in the policies of a rule. The server checks little of them, and writes nothing of them for a rule
/// without members.
fn stickiness_complaint(rule: &LoadBalancerRule) -> Option<String> {
    let mut policies = rule.policies.iter().filter(|_| !rule.members.is_empty());
    policies.find_map(|policy| Some(format!("rule {}: {}", rule.name, unreadable(policy)?)))
}

fn unreadable(policy: &StickinessPolicy) -> Option<&'static str> {
    let param = |name: &str| {
        let mut params = policy.params.iter();
        params.find_map(|(key, value)| key.eq_ignore_ascii_case(name).then_some(value.as_str()))
    };
    let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    match policy.method.to_lowercase().as_str() {
        "appcookie" => Some("'appsession' is not supported anymore since HAProxy 1.6"),
        "lbcookie" if policy.params.iter().any(|(_, value)| !is_word(value)) => {
            Some("a word too many in 'cookie'")
        }
        "lbcookie" => match param("mode").unwrap_or("insert") {
            "rewrite" if param("indirect").is_some() => {
                Some("cookie 'rewrite' and 'indirect' are mutually exclusive")
            }
            "insert" | "rewrite" | "prefix" => None,
            _ => Some("'cookie' supports 'rewrite', 'insert' and 'prefix'"),
        },
        _ => None,
    }
}
