//! What must hold in the end, worked out from the objects and the simulator alone, without the code under test.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{AUTOSCALER, EXCLUDED, World};
use crate::cloud::under_test::{Ability, Balancer, CloudUnderTest};

impl<C: CloudUnderTest> World<C> {
    /// Whether the cloud can do that.
    #[must_use]
    pub fn can(&self, ability: Ability) -> bool {
        C::ABILITIES.contains(&ability)
    }

    /// What the balancers are not that the Services ask for, in words; empty if all is well.
    #[must_use]
    pub fn unserved(&self) -> Vec<String> {
        let mut found: BTreeMap<String, Vec<Balancer>> = BTreeMap::new();
        for balancer in self.sim.balancers() {
            found.entry(balancer.service.clone()).or_default().push(balancer);
        }
        let mut wrong = Vec::new();
        for service in self.api.objects("Service") {
            if service["spec"]["type"] != "LoadBalancer" || !service["spec"]["loadBalancerClass"].is_null() {
                continue;
            }
            let name = text(&service["metadata"]["name"]);
            let mut balancers = found.remove(&C::mark(&service)).unwrap_or_default();
            let (Some(balancer), true) = (balancers.pop(), balancers.is_empty()) else {
                wrong.push(format!("{name} has not exactly one balancer: {balancers:?}"));
                continue;
            };
            let shown = self.addresses(&name);
            if shown != balancer.addresses || shown.is_empty() {
                wrong.push(format!("{name} shows {shown:?}, not {:?}", balancer.addresses));
            }
            let wanted = self.backends(&service);
            if self.can(Ability::BalancedNodes) && !self.is_behind(&balancer.ports, &wanted) {
                wrong.push(format!("{name} has {:?} instead of {wanted:?}", balancer.ports));
            }
        }
        wrong.extend(found.keys().map(|mark| format!("a balancer of nobody: {mark}")));
        wrong
    }

    /// Whether that is behind the ports which is wanted.
    fn is_behind(&self, found: &Backends, wanted: &Backends) -> bool {
        let is_empty = wanted.values().all(BTreeSet::is_empty);
        if is_empty && !self.can(Ability::EmptyBalancers) {
            return found.keys().eq(wanted.keys());
        }
        found == wanted
    }

    /// What is to be behind each port of a Service: every Node that is balanced over and has an instance.
    fn backends(&self, service: &Value) -> Backends {
        let instances = self.sim.instances();
        let mut nodes = self.api.objects("Node");
        nodes.retain(|node| {
            let taints = node["spec"]["taints"].to_string();
            let excluded = node["metadata"]["labels"][EXCLUDED].as_str();
            matches!(excluded, None | Some("false"))
                && node["metadata"]["deletionTimestamp"].is_null()
                && !taints.contains(AUTOSCALER)
                && instances.contains_key(&text(&node["metadata"]["name"]))
                && (!self.can(Ability::ReadyNodesOnly) || is_ready(node))
        });
        let ports = service["spec"]["ports"].as_array().cloned().unwrap_or_default();
        ports
            .iter()
            .map(|port| {
                let behind = nodes
                    .iter()
                    .map(|node| format!("{}:{}", text(&node["metadata"]["name"]), port["nodePort"]));
                (
                    format!("{}/{}", text(&port["protocol"]), port["port"]),
                    behind.collect(),
                )
            })
            .collect()
    }

    /// What the Nodes do not show of their instances, Nodes without an instance, and instances without a Node.
    #[must_use]
    pub fn unlike(&self) -> Vec<String> {
        let instances = self.sim.instances();
        let mut wrong = Vec::new();
        for name in instances.keys() {
            match self.node(name) {
                Some(_) => wrong.extend(self.unlike_node(name)),
                None => wrong.push(format!("{name} has no Node")),
            }
        }
        for node in self.api.objects("Node") {
            let name = text(&node["metadata"]["name"]);
            // Nothing can prove that the instance of a Node without provider ID is gone.
            if !instances.contains_key(&name) && node["spec"]["providerID"].is_string() {
                wrong.push(format!("{name} has no instance"));
            }
        }
        wrong
    }

    /// What a Node does not show of its instance.
    ///
    /// # Panics
    ///
    /// Where there is no such instance or Node.
    #[must_use]
    pub fn unlike_node(&self, name: &str) -> Vec<String> {
        let instance = &self.sim.instances()[name];
        let node = self.node(name).unwrap();
        let mut wrong = Vec::new();
        let mut same = |what: &str, found: &Value, wanted: Value| {
            if *found != wanted {
                wrong.push(format!("{name}: {what} is {found}, not {wanted}"));
            }
        };
        same(
            "its provider ID",
            &node["spec"]["providerID"],
            json!(instance.provider_id),
        );
        for (keys, value) in [
            (
                [
                    "node.kubernetes.io/instance-type",
                    "beta.kubernetes.io/instance-type",
                ],
                &instance.instance_type,
            ),
            (
                [
                    "topology.kubernetes.io/zone",
                    "failure-domain.beta.kubernetes.io/zone",
                ],
                &instance.zone,
            ),
            (
                [
                    "topology.kubernetes.io/region",
                    "failure-domain.beta.kubernetes.io/region",
                ],
                &instance.region,
            ),
        ] {
            let wanted = if value.is_empty() {
                Value::Null
            } else {
                json!(value)
            };
            for key in keys {
                same(key, &node["metadata"]["labels"][key], wanted.clone());
            }
        }
        let addresses: Vec<Value> = instance
            .addresses
            .iter()
            .map(|it| json!({ "type": it.kind, "address": it.address }))
            .collect();
        same(
            "the list of its addresses",
            &node["status"]["addresses"],
            json!(addresses),
        );
        wrong
    }

    /// Asserts that what the Services ask for is there, and nothing else.
    #[track_caller]
    pub fn assert_served(&self) {
        assert_eq!(self.unserved(), Vec::<String>::new());
        self.assert_sound();
    }

    /// Asserts that the cloud has no duplicate, no orphan, and never saw two writes side by side where it forbids them.
    #[track_caller]
    pub fn assert_sound(&self) {
        assert_eq!(self.sim.violations(), Vec::<String>::new());
    }

    /// Asserts that each manager made all its writes, events included, before the next one made its first.
    #[track_caller]
    pub fn assert_one_writer(&self) {
        let writers = self.writers.lock().unwrap();
        assert!(writers.is_sorted(), "{writers:?}");
        assert!(!writers.is_empty());
    }

    /// Asserts that the credentials are in nothing that was written or stored anywhere.
    #[track_caller]
    pub fn assert_hidden(&self) {
        for exchange in self.api.journal().all() {
            assert!(!format!("{exchange:?}").contains(C::SECRET), "{exchange:?}");
        }
        for entry in self.cloud.journal().entries() {
            assert!(!format!("{entry:?}").contains(C::SECRET), "{entry:?}");
        }
        for kind in bowline_kube_api::KINDS {
            for object in self.api.objects(kind.kind) {
                assert!(!object.to_string().contains(C::SECRET), "{object}");
            }
        }
    }
}

/// What is behind each port.
type Backends = BTreeMap<String, BTreeSet<String>>;

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "True")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
