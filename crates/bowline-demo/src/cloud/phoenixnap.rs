//! phoenixNAP Bare Metal Cloud: servers, and IP blocks in place of load balancers.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use bowline_cloud_kit::Entry;
use bowline_cloud_kit::dataplane::Transport;
use bowline_phoenixnap_sim::model::BlockStatus;
use bowline_phoenixnap_sim::{
    self as sim, AnnouncedPort, Behaviour, NetworkSpec, Operation, PhoenixnapSim, Scope, ServerSpec,
};
use http::Method;
use serde_json::{Value, json};

use super::served::WORK_TIME;
use super::{
    Announcement, Announcer, Cloud, Hint, INSTANCES, Served, Thing, Tone, Words, hints, on_its_simulator,
    short,
};
use crate::loopback::Block;

/// The credentials that the simulator accepts. Not a secret: they open nothing else.
const CLIENT: &str = "demo";

/// Where the servers and the network are, and where blocks are bought.
const LOCATION: &str = "NLD";

pub(super) struct PhoenixNap {
    sim: PhoenixnapSim,
    served: Served,
    /// The ID of the public network.
    network: String,
}

impl PhoenixNap {
    pub(super) async fn start(seed: u64) -> anyhow::Result<Self> {
        let addresses = Block::take()?;
        let behaviour = Behaviour {
            attach_time: WORK_TIME,
            detach_time: WORK_TIME,
            ..Behaviour::default()
        };
        let sim = PhoenixnapSim::builder()
            .settings(Served::settings(seed))
            .credentials(CLIENT, CLIENT, Scope::ALL)
            .behaviour(behaviour)
            .private_range(addresses.nodes().parse()?)
            .pool(LOCATION, [addresses.balancers().parse()?])
            .build();
        let network = sim.add_network(NetworkSpec::located(LOCATION, "demo-vips"));
        for name in INSTANCES {
            sim.add_server(ServerSpec {
                location: Some(LOCATION.to_owned()),
                ..ServerSpec::on(&network, name)
            });
        }
        let served = Served::start(sim.service(), addresses).await?;
        Ok(Self { sim, served, network })
    }
}

impl Announcer for PhoenixNap {
    fn announce(&self, announcements: Vec<Announcement>) {
        let announcements = announcements.into_iter().map(|it| sim::Announcement {
            address: it.address,
            node: it.instance,
            ports: it
                .ports
                .iter()
                .map(|port| AnnouncedPort {
                    transport: port.transport,
                    port: port.port,
                    node_port: port.node_port,
                })
                .collect(),
        });
        self.sim.announce(announcements);
    }
}

impl Cloud for PhoenixNap {
    on_its_simulator!();

    fn title(&self) -> &'static str {
        "phoenixNAP Bare Metal Cloud"
    }

    fn manifest(&self) -> &'static str {
        include_str!("../../../../deploy/phoenixnap/deployment.yaml")
    }

    fn config(&self) -> Option<String> {
        let url = self.url();
        let config = json!({
            "clientID": CLIENT,
            "clientSecret": CLIENT,
            "location": LOCATION,
            "loadbalancer": format!("kube-vip://{}", self.network),
            "base-url": url,
            "token-url": format!("{url}{}", PhoenixnapSim::TOKEN_PATH),
        });
        Some(config.to_string())
    }

    /// A server that does not exist is a forbidden one in this cloud; that the list lacks it as well makes it proof.
    fn proofs_of_absence(&self, provider_id: &str) -> usize {
        let id = provider_id.trim_start_matches("phoenixnap://");
        let path = format!("/bmc/v1/servers/{id}");
        let told = self.sim.journal().filter(|entry| {
            entry.method == Method::GET && entry.path == path && matches!(entry.status(), Some(403 | 404))
        });
        told.len()
    }

    fn things(&self) -> Vec<Thing> {
        let announcements = self.sim.announcements();
        let drawn = self.sim.blocks().into_iter().map(|block| {
            let tone = match block.status {
                BlockStatus::Assigned => Tone::Good,
                BlockStatus::ErrorAssigning | BlockStatus::ErrorUnassigning => Tone::Bad,
                _ => Tone::Busy,
            };
            let of_it = announcements.iter().filter(|it| block.cidr.contains(&it.address));
            let of_it = of_it.map(|it| {
                let ports = it.ports.iter();
                let ports = ports.map(|port| format!("port {} to {}", port.port, port.node_port));
                Thing::new("address", it.address.to_string())
                    .fact(format!("announced by {}", it.node))
                    .facts(ports)
            });
            let tags = block.tags.iter().map(|tag| match &tag.value {
                Some(value) => format!("{}={value}", tag.name),
                None => tag.name.clone(),
            });
            Thing::new("IP block", block.cidr.to_string())
                .state(block.status.words(), tone)
                .facts(tags)
                .parts(of_it)
        });
        drawn.collect()
    }

    fn words(&self) -> Words {
        Words {
            made: "an IP block",
            front: "address",
            released: "its IP block is marked for deletion",
            gone: "the IP block is taken off its network and given back",
        }
    }

    fn announcer(&self) -> Option<&dyn Announcer> {
        Some(self)
    }

    /// Each block is paid for as long as it is held, used or not.
    fn bill(&self) -> Option<String> {
        Some(format!("IP blocks held: {}", self.balancers()))
    }

    fn balancers(&self) -> usize {
        self.sim.blocks().len()
    }

    fn targets(&self) -> Vec<IpAddr> {
        let announcements = self.sim.announcements().into_iter();
        let carried = announcements.filter(|it| {
            let mut ports = it.ports.iter();
            ports.any(|port| self.sim.bound_to(port.transport, it.address, port.port).is_some())
        });
        let names: BTreeSet<String> = carried.map(|it| it.node).collect();
        let instances = self.instances().into_iter();
        let behind = instances.filter(|it| names.contains(&it.name));
        behind.map(|it| it.address()).collect()
    }

    fn wanted(&self) -> Vec<(Transport, SocketAddr)> {
        let announcements = self.sim.announcements();
        let places = announcements.iter().flat_map(|it| {
            let ports = it.ports.iter();
            ports.map(move |port| (port.transport, SocketAddr::new(it.address, port.port)))
        });
        places.collect()
    }

    fn own_hints(&self, instance: &str) -> Vec<Hint> {
        let path = self
            .sim
            .server_named(instance)
            .map(|it| format!("servers/{}", it.id));
        let look = "See what is paid for: IP blocks and their tags";
        hints::by_hand(
            &self.url(),
            look,
            instance,
            ", and the address moves",
            path,
            ["status", "powered-off", "powered-on"],
        )
    }
}

fn describe(change: &Entry) -> String {
    let body = |field: &str| change.body.as_ref().map_or(&Value::Null, |body| &body[field]);
    let text = |field: &str| body(field).as_str().unwrap_or("?").to_owned();
    let segment = |from_the_end| short(change.path.rsplit('/').nth(from_the_end).unwrap_or_default());
    let is = |operation: Operation| change.operation == operation.name();
    if is(Operation::CreateTag) {
        format!("create tag name ({})", text("name"))
    } else if is(Operation::CreateBlock) {
        format!("buy IP block ({} in {})", text("cidrBlockSize"), text("location"))
    } else if is(Operation::AttachBlock) {
        format!("attach IP block ({})", short(&text("id")))
    } else if is(Operation::TagBlock) {
        let tags = change.body.as_ref().and_then(Value::as_array);
        let is_marked = tags.is_some_and(|tags| tags.iter().any(|tag| tag["name"] == "delete"));
        let what = if is_marked {
            "mark IP block for deletion"
        } else {
            "tag IP block"
        };
        format!("{what} ({})", segment(1))
    } else if is(Operation::DetachBlock) {
        format!("take IP block off its network ({})", segment(0))
    } else if is(Operation::DeleteBlock) {
        format!("give IP block back ({})", segment(0))
    } else {
        format!("{} {}", change.method, change.path)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::entry;
    use super::*;

    #[test]
    fn changes_are_told_in_the_words_of_the_cloud() {
        let block = "/ips/v1/ip-blocks/0123456789ab";
        let attached = "/networks/v1/public-networks/n1/ip-blocks";
        for (operation, method, path, body, text) in [
            (
                Operation::CreateTag,
                Method::POST,
                "/tag-manager/v1/tags".to_owned(),
                Some(json!({ "name": "usage" })),
                "create tag name (usage)",
            ),
            (
                Operation::CreateBlock,
                Method::POST,
                "/ips/v1/ip-blocks".to_owned(),
                Some(json!({ "location": "NLD", "cidrBlockSize": "/29" })),
                "buy IP block (/29 in NLD)",
            ),
            (
                Operation::AttachBlock,
                Method::POST,
                attached.to_owned(),
                Some(json!({ "id": "0123456789ab" })),
                "attach IP block (01234567)",
            ),
            (
                Operation::TagBlock,
                Method::PUT,
                format!("{block}/tags"),
                Some(json!([{ "name": "delete", "value": "true" }])),
                "mark IP block for deletion (01234567)",
            ),
            (
                Operation::DetachBlock,
                Method::DELETE,
                format!("{attached}/0123456789ab"),
                None,
                "take IP block off its network (01234567)",
            ),
            (
                Operation::DeleteBlock,
                Method::DELETE,
                block.to_owned(),
                None,
                "give IP block back (01234567)",
            ),
        ] {
            let entry = Entry {
                operation: operation.name().to_owned(),
                ..entry(method, &path, body)
            };
            assert_eq!(describe(&entry), text);
        }
    }
}
