//! A stand-in for kube-proxy: on every node that runs, each node port of every Service is open.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

use bowline_cloud_kit::dataplane::Transport;
use serde_json::Value;
use tokio::sync::watch;

use crate::api::{Api, Change, follow};
use crate::cloud::{Cloud, Instance};
use crate::narrative::Narrator;
use crate::service;
use crate::workload::{self, Answer, Responder};

/// Something that is to be open on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Opening {
    answer: Answer,
    port: u16,
}

/// Plays kube-proxy. Never returns; drop it to stop, which closes everything.
pub(crate) async fn run(
    api: Api,
    cloud: Arc<dyn Cloud>,
    instances: watch::Receiver<Vec<Instance>>,
    narrator: Narrator,
) {
    let sender = watch::Sender::new(BTreeSet::new());
    let wanted = sender.subscribe();
    let mut services = BTreeMap::new();
    let watching = follow(api, "/api/v1/services", |change: Change<'_>| {
        change.keep(&mut services, |service| Some(openings(service)));
        sender.send_replace(services.values().flatten().copied().collect());
    });
    tokio::select! {
        biased;
        () = open(wanted, instances, &*cloud, &narrator) => {}
        () = watching => {}
    }
}

/// What a Service wants to be open on every node.
fn openings(service: &Value) -> Vec<Opening> {
    let spec = &service["spec"];
    if !matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
        return Vec::new();
    }
    let ports = service::ports(service).into_iter().map(|port| Opening {
        answer: match port.transport {
            Transport::Tcp => Answer::Greeting,
            Transport::Udp => Answer::Echo,
        },
        port: port.node_port,
    });
    let health = service::number(&spec["healthCheckNodePort"]).map(|port| Opening {
        answer: Answer::Health,
        port,
    });
    ports.chain(health).collect()
}

/// Keeps the openings of all running instances as they should be.
async fn open(
    mut wanted: watch::Receiver<BTreeSet<Opening>>,
    mut instances: watch::Receiver<Vec<Instance>>,
    cloud: &dyn Cloud,
    narrator: &Narrator,
) {
    let mut open: BTreeMap<(String, SocketAddr, Answer), Responder> = BTreeMap::new();
    loop {
        let openings = wanted.borrow_and_update().clone();
        let running: Vec<Instance> = instances
            .borrow_and_update()
            .iter()
            .filter(|instance| instance.is_on)
            .cloned()
            .collect();
        let places: BTreeSet<_> = running
            .iter()
            .flat_map(|instance| {
                openings.iter().map(|opening| {
                    let address = SocketAddr::new(instance.address(), opening.port);
                    (instance.name.clone(), address, opening.answer)
                })
            })
            .collect();
        open.retain(|place, _| places.contains(place));
        for place in places {
            if open.contains_key(&place) {
                continue;
            }
            let (node, address, answer) = &place;
            match workload::start(node, *answer, *address).await {
                Ok(responder) => {
                    if responder.address != *address {
                        let transport = match answer {
                            Answer::Echo => Transport::Udp,
                            Answer::Greeting | Answer::Health => Transport::Tcp,
                        };
                        cloud.move_target(transport, *address, responder.address);
                        narrator.tell(format!(
                            "node    {address} ({answer}) of {node} is at {} on this machine",
                            responder.address
                        ));
                    }
                    open.insert(place, responder);
                }
                Err(error) => narrator.tell(format!("node    {node} cannot listen at {address}: {error}")),
            }
        }
        tokio::select! {
            biased;
            changed = wanted.changed() => if changed.is_err() { return },
            changed = instances.changed() => if changed.is_err() { return },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn node_ports_and_the_health_check_port_are_open() {
        let mut service = json!({ "spec": {
            "type": "LoadBalancer",
            "healthCheckNodePort": 31000,
            "ports": [
                { "port": 8080, "protocol": "TCP", "nodePort": 30080 },
                { "port": 5353, "protocol": "UDP", "nodePort": 30053 },
                { "port": 99, "protocol": "TCP" },
            ],
        }});
        let opening = |answer, port| Opening { answer, port };
        assert_eq!(
            openings(&service),
            [
                opening(Answer::Greeting, 30080),
                opening(Answer::Echo, 30053),
                opening(Answer::Health, 31000)
            ]
        );
        service["spec"]["type"] = json!("ClusterIP");
        assert_eq!(openings(&service), []);
    }
}
