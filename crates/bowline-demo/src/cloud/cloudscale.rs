//! cloudscale.ch.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use bowline_cloud_kit::Entry;
use bowline_cloud_kit::dataplane::Transport;
use bowline_cloudscale_sim::model::{ListenerProtocol, LoadBalancer, Pool, Target};
use bowline_cloudscale_sim::{Access, Behaviour, CloudscaleSim, ServerSpec};
use http::Method;
use serde_json::Value;
use tokio::time::Instant;

use super::hints::{self, Commands};
use super::served::WORK_TIME;
use super::{Cloud, Hint, INSTANCES, Served, Thing, Tone, on_its_simulator, short, worded};
use crate::loopback::Block;

/// The token that the simulator accepts. Not a secret: it opens nothing else.
const TOKEN: &str = "demo";

pub(super) struct Cloudscale {
    sim: CloudscaleSim,
    served: Served,
}

impl Cloudscale {
    pub(super) async fn start(seed: u64) -> anyhow::Result<Self> {
        let addresses = Block::take()?;
        let behaviour = Behaviour {
            lb_create_time: WORK_TIME,
            ..Behaviour::default()
        };
        let sim = CloudscaleSim::builder()
            .settings(Served::settings(seed))
            .token(TOKEN, Access::ReadWrite)
            .behaviour(behaviour)
            .private_range(addresses.nodes().parse()?)
            .vip_range(addresses.balancers().parse()?)
            .build();
        for name in INSTANCES {
            sim.add_server(ServerSpec::new(name));
        }
        let served = Served::start(sim.service(), addresses).await?;
        Ok(Self { sim, served })
    }

    fn drawn(&self, balancer: &LoadBalancer) -> Thing {
        let is_ahead = |time: Option<Instant>| time.is_some_and(|time| time > Instant::now());
        let (state, tone) = match &balancer.status {
            Some(status) => (status.as_str(), Tone::Plain),
            None if is_ahead(balancer.deleted_at) => ("being deleted", Tone::Busy),
            None if is_ahead(balancer.creating_until) => ("being created", Tone::Busy),
            None if is_ahead(balancer.changing_until) => ("changing", Tone::Busy),
            None => ("running", Tone::Good),
        };
        let addresses = balancer.vips.iter().map(|vip| vip.address.to_string());
        let pools = self.sim.pools().into_iter();
        let own = pools.filter(|pool| pool.load_balancer == balancer.uuid);
        Thing::new("load balancer", &balancer.name)
            .state(state, tone)
            .facts(addresses)
            .parts(own.map(|pool| self.drawn_pool(&pool)))
    }

    fn drawn_pool(&self, pool: &Pool) -> Thing {
        let instances = self.instances();
        let members = self.sim.members_of(pool.uuid).into_iter();
        let listeners = self.sim.listeners().into_iter();
        let listeners = listeners.filter(|it| it.pool == Some(pool.uuid));
        let listeners =
            listeners.map(|it| format!("listens at {:?} {}", it.protocol, it.protocol_port).to_lowercase());
        let monitors = self.sim.health_monitors().into_iter();
        let monitors = monitors.filter(|it| it.pool == pool.uuid);
        let monitors = monitors.map(|it| format!("probes every {} s", it.delay_s));
        Thing::new("pool", &pool.name)
            .facts(listeners)
            .facts(monitors)
            .parts(members.map(|it| Thing::member(&instances, it.address, it.healthy)))
    }
}

impl Cloud for Cloudscale {
    on_its_simulator!();

    fn title(&self) -> &'static str {
        "cloudscale.ch"
    }

    fn manifest(&self) -> &'static str {
        include_str!("../../../../deploy/cloudscale/config.yml")
    }

    fn environment(&self) -> Vec<(String, String)> {
        vec![
            ("CLOUDSCALE_API_URL".to_owned(), format!("{}/", self.url())),
            ("CLOUDSCALE_ACCESS_TOKEN".to_owned(), TOKEN.to_owned()),
        ]
    }

    fn proofs_of_absence(&self, provider_id: &str) -> usize {
        let uuid = provider_id.trim_start_matches("cloudscale://");
        let path = format!("/v1/servers/{uuid}");
        let told = self
            .sim
            .journal()
            .filter(|entry| entry.method == Method::GET && entry.path == path && entry.status() == Some(404));
        told.len()
    }

    fn things(&self) -> Vec<Thing> {
        let balancers = self.sim.load_balancers();
        let floating = self.sim.floating_ips().into_iter().map(|it| {
            let target = it.target.and_then(|target| match target {
                Target::LoadBalancer(uuid) => balancers
                    .iter()
                    .find(|it| it.uuid == uuid)
                    .map(|it| it.name.clone()),
                Target::Server(uuid) => self.sim.server(uuid).map(|it| it.name),
            });
            let target = target.map_or_else(|| "unassigned".to_owned(), |name| format!("to {name}"));
            Thing::new("floating IP", it.network.to_string()).fact(target)
        });
        let balancing = balancers.iter().map(|it| self.drawn(it));
        balancing.chain(floating).collect()
    }

    fn balancers(&self) -> usize {
        self.sim.load_balancers().len()
    }

    fn targets(&self) -> Vec<IpAddr> {
        let members = self.sim.members().into_iter().map(|member| member.address);
        members.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn wanted(&self) -> Vec<(Transport, SocketAddr)> {
        let parts = self.sim.listeners();
        let balancers = self.sim.load_balancers();
        let places = parts.iter().flat_map(|part| {
            let balancer = balancers
                .iter()
                .find(|balancer| balancer.uuid == part.load_balancer);
            let transport = match part.protocol {
                ListenerProtocol::Tcp => Transport::Tcp,
                ListenerProtocol::Udp => Transport::Udp,
            };
            let vips = balancer
                .map(|balancer| balancer.vips.as_slice())
                .unwrap_or_default();
            vips.iter()
                .map(move |vip| (transport, SocketAddr::new(vip.address, part.protocol_port)))
        });
        places.collect()
    }

    fn own_hints(&self, instance: &str) -> Vec<Hint> {
        let Some(server) = self.sim.server_named(instance) else {
            return Vec::new();
        };
        let path = format!("{}/v1/servers/{}", self.url(), server.uuid);
        let call = |method: &str, word: &str| {
            format!("curl -X {method} -H 'Authorization: Bearer {TOKEN}' {path}{word}")
        };
        let commands = Commands {
            stop: call("POST", "/stop"),
            start: call("POST", "/start"),
            delete: call("DELETE", ""),
        };
        hints::of_instance(instance, "", commands).into()
    }
}

/// The parts of a balancer by the first word of their path (cloudscale API, load balancers).
const NOUNS: &[(&str, &str)] = &[
    ("load-balancers", "load balancer"),
    ("pools", "pool"),
    ("members", "member"),
    ("listeners", "listener"),
    ("health-monitors", "health monitor"),
    ("servers", "server"),
    ("floating-ips", "floating IP"),
];

fn describe(change: &Entry) -> String {
    let mut words = change.path.split('/').filter(|word| !word.is_empty());
    let noun = words
        .clone()
        .filter_map(|word| NOUNS.iter().find(|(path, _)| *path == word))
        .next_back()
        .or_else(|| NOUNS.iter().find(|(path, _)| change.path.contains(path)))
        .map_or(change.path.as_str(), |(_, noun)| noun);
    let last = words.next_back().unwrap_or_default();
    let verb = match change.method {
        Method::POST if matches!(last, "stop" | "start" | "reboot") => last,
        Method::POST => "create",
        Method::DELETE => "delete",
        _ => "change",
    };
    let details = match &change.body {
        Some(Value::Object(body)) if change.method == Method::PATCH => {
            body.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
        }
        Some(Value::Object(body)) => detail(body),
        _ if change.method == Method::DELETE => short(last),
        _ => String::new(),
    };
    worded(&format!("{verb} {noun}"), &details)
}

/// What tells one from another: its name, else its type.
fn detail(body: &serde_json::Map<String, Value>) -> String {
    let text = |field: &str| body.get(field).and_then(Value::as_str);
    text("name").or(text("type")).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::entry;
    use super::*;

    #[test]
    fn changes_are_told_in_the_words_of_the_cloud() {
        let member = json!({"name": "127.10.0.2:30080", "address": "127.10.0.2", "protocol_port": 30080});
        for (entry, text) in [
            (
                entry(
                    Method::POST,
                    "/v1/load-balancers/pools/6d1b/members",
                    Some(member),
                ),
                "create member (127.10.0.2:30080)",
            ),
            (
                entry(Method::DELETE, "/v1/load-balancers/0123456789ab", None),
                "delete load balancer (01234567)",
            ),
            (entry(Method::POST, "/v1/servers/0123/stop", None), "stop server"),
            (
                entry(
                    Method::PATCH,
                    "/v1/load-balancers/listeners/0123",
                    Some(json!({"pool": {}})),
                ),
                "change listener (pool)",
            ),
        ] {
            assert_eq!(describe(&entry), text);
        }
    }
}
