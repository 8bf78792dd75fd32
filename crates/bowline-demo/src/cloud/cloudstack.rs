//! Apache CloudStack: virtual machines, and rules on a public IP address for load balancers.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use bowline_cloud_kit::Entry;
use bowline_cloud_kit::dataplane::Transport;
use bowline_cloudstack_sim::model::RuleState;
use bowline_cloudstack_sim::{Behaviour, CloudstackSim, Operation, VmSpec};
use serde_json::Value;

use super::served::WORK_TIME;
use super::{Cloud, Hint, INSTANCES, Served, Thing, Tone, hints, on_its_simulator, short, worded};
use crate::loopback::Block;

/// The zone, which is the region as well.
const ZONE: &str = "demo-zone";

pub(super) struct CloudStack {
    sim: CloudstackSim,
    served: Served,
}

impl CloudStack {
    pub(super) async fn start(seed: u64) -> anyhow::Result<Self> {
        let addresses = Block::take()?;
        let mut behaviour = Behaviour {
            // Each balancer takes a few of them.
            job_time: WORK_TIME / 4,
            ..Behaviour::default()
        };
        behaviour.carry_everything();
        let sim = CloudstackSim::builder()
            .settings(Served::settings(seed))
            .behaviour(behaviour)
            .zone(ZONE)
            .guest_range(addresses.nodes().parse()?)
            .public_range(addresses.balancers().parse()?)
            .build();
        for name in INSTANCES {
            sim.add_vm(VmSpec::new(name));
        }
        let served = Served::start(sim.service(), addresses).await?;
        Ok(Self { sim, served })
    }
}

fn tone(state: RuleState) -> Tone {
    match state {
        RuleState::Active => Tone::Good,
        RuleState::Add | RuleState::Revoke => Tone::Busy,
    }
}

impl Cloud for CloudStack {
    on_its_simulator!();

    fn title(&self) -> &'static str {
        "Apache CloudStack"
    }

    fn manifest(&self) -> &'static str {
        include_str!("../../../../deploy/cloudstack/deployment.yaml")
    }

    fn config(&self) -> Option<String> {
        Some(format!(
            "[Global]\napi-url = {}{}\napi-key = {}\nsecret-key = {}\n",
            self.url(),
            CloudstackSim::PATH,
            CloudstackSim::API_KEY,
            CloudstackSim::SECRET_KEY
        ))
    }

    /// An ID that does not exist is a bad parameter in this cloud.
    fn proofs_of_absence(&self, provider_id: &str) -> usize {
        let id = provider_id.trim_start_matches("external-cloudstack://");
        let told = self.sim.journal().filter(|entry| {
            entry.operation == Operation::ListVirtualMachines.name()
                && entry
                    .query
                    .iter()
                    .any(|(name, value)| name == "id" && value == id)
                && entry.status() == Some(431)
        });
        told.len()
    }

    fn things(&self) -> Vec<Thing> {
        let (rules, firewall) = (self.sim.rules(), self.sim.firewall_rules());
        let drawn = self.sim.addresses().into_iter().map(|address| {
            let balancing = rules.iter().filter(|it| it.address == address.id);
            let balancing = balancing.map(|rule| {
                let members = self.sim.member_names(&rule.id).into_iter();
                Thing::new("rule", &rule.name)
                    .state(rule.state.name(), tone(rule.state))
                    .fact(format!("port {} to {}", rule.public_port, rule.private_port))
                    .parts(members.map(|name| Thing::new("member", name)))
            });
            let open = firewall.iter().filter(|it| it.address == address.id);
            let open = open.map(|rule| {
                let port = rule
                    .ports
                    .map_or_else(String::new, |(first, _)| format!(" {first}"));
                Thing::new("firewall rule", format!("{}{port}", rule.protocol))
                    .state(rule.state.name(), tone(rule.state))
                    .facts(rule.cidrs.iter().map(|cidr| format!("from {cidr}")))
            });
            Thing::new("public IP address", address.address.to_string())
                .parts(balancing)
                .parts(open)
        });
        drawn.collect()
    }

    fn balancers(&self) -> usize {
        self.sim.addresses().len()
    }

    fn targets(&self) -> Vec<IpAddr> {
        let rules = self.sim.rules();
        let members: BTreeSet<String> = rules
            .iter()
            .flat_map(|rule| self.sim.member_names(&rule.id))
            .collect();
        let instances = self.instances().into_iter();
        let behind = instances.filter(|it| members.contains(&it.name));
        behind.map(|it| it.address()).collect()
    }

    fn wanted(&self) -> Vec<(Transport, SocketAddr)> {
        let held = self.sim.addresses();
        let rules = self.sim.rules().into_iter();
        rules
            .filter_map(|rule| {
                let address = held.iter().find(|it| it.id == rule.address)?.address;
                let transport = match rule.protocol.as_deref() {
                    Some("udp") => Transport::Udp,
                    _ => Transport::Tcp,
                };
                Some((transport, SocketAddr::new(address, rule.public_port)))
            })
            .collect()
    }

    /// The Service's address is the only one that anybody takes here.
    fn complaints(&self) -> Vec<String> {
        let mut complaints = self.sim.check_invariants();
        let left = self.sim.addresses().into_iter();
        complaints.extend(left.map(|it| format!("{} is still held", it.address)));
        complaints
    }

    fn own_hints(&self, instance: &str) -> Vec<Hint> {
        let path = self
            .sim
            .vm_named(instance)
            .map(|it| format!("virtual-machines/{}", it.id));
        let look = "See the public IP address and the rules on it";
        hints::by_hand(
            &self.url(),
            look,
            instance,
            "",
            path,
            ["state", "Stopped", "Running"],
        )
    }
}

/// What a command does, and what tells one such change from another.
#[rustfmt::skip]
const COMMANDS: &[(Operation, &str, &[&str])] = &[
    (Operation::AssociateIpAddress, "acquire public IP address", &["ipaddress"]),
    (Operation::DisassociateIpAddress, "give public IP address back", &["id"]),
    (Operation::CreateLoadBalancerRule, "create load balancer rule", &["name"]),
    (Operation::UpdateLoadBalancerRule, "change load balancer rule", &["id"]),
    (Operation::DeleteLoadBalancerRule, "delete load balancer rule", &["id"]),
    (Operation::AssignToLoadBalancerRule, "add members to load balancer rule", &["id"]),
    (Operation::RemoveFromLoadBalancerRule, "take members out of load balancer rule", &["id"]),
    (Operation::CreateFirewallRule, "open firewall", &["protocol", "startport", "cidrlist"]),
    (Operation::DeleteFirewallRule, "close firewall", &["id"]),
];

fn describe(change: &Entry) -> String {
    let known = COMMANDS
        .iter()
        .find(|(operation, ..)| operation.name() == change.operation);
    let Some((_, what, fields)) = known else {
        return change.operation.clone();
    };
    let value = |field: &&str| {
        let body = change.body.as_ref()?;
        let text = body.get(*field).and_then(Value::as_str)?;
        Some(match *field {
            "id" => short(text),
            _ => text.to_owned(),
        })
    };
    let details: Vec<String> = fields.iter().filter_map(value).collect();
    worded(what, &details.join(" "))
}

#[cfg(test)]
mod tests {
    use http::Method;
    use serde_json::json;

    use super::super::tests::entry;
    use super::*;

    #[test]
    fn changes_are_told_in_the_words_of_the_cloud() {
        for (operation, body, text) in [
            (
                "createLoadBalancerRule",
                json!({ "name": "ab-tcp-8080", "publicport": "8080" }),
                "create load balancer rule (ab-tcp-8080)",
            ),
            (
                "assignToLoadBalancerRule",
                json!({ "id": "0123456789ab" }),
                "add members to load balancer rule (01234567)",
            ),
            (
                "createFirewallRule",
                json!({ "protocol": "tcp", "startport": "8080", "cidrlist": "0.0.0.0/0" }),
                "open firewall (tcp 8080 0.0.0.0/0)",
            ),
            (
                "associateIpAddress",
                json!({ "networkid": "n" }),
                "acquire public IP address",
            ),
            ("createTags", json!({}), "createTags"),
        ] {
            let entry = Entry {
                operation: operation.to_owned(),
                ..entry(Method::POST, "/client/api", Some(body))
            };
            assert_eq!(describe(&entry), text);
        }
    }
}
