//! OpenStack: servers, Octavia's load balancers behind floating IPs, and routes on a router.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use bowline_cloud_kit::Entry;
use bowline_cloud_kit::dataplane::Transport;
use bowline_openstack_sim::model::balancing::{ListenerProtocol, LoadBalancer, Pool, Provisioning};
use bowline_openstack_sim::{Behaviour, OpenstackSim, ServerSpec};
use http::Method;
use serde_json::Value;

use super::served::WORK_TIME;
use super::{Cloud, Hint, INSTANCES, Served, Thing, Tone, hints, on_its_simulator, short, worded};
use crate::loopback::Block;

/// The user, the password and the project. Not a secret: they open nothing else.
const USER: &str = "demo";

/// The region, and where the servers run in it.
const REGION: &str = "RegionOne";

pub(super) struct OpenStack {
    sim: OpenstackSim,
    served: Served,
}

impl OpenStack {
    pub(super) async fn start(seed: u64) -> anyhow::Result<Self> {
        let addresses = Block::take()?;
        let behaviour = Behaviour {
            lb_create_time: WORK_TIME,
            // Each change of a Service takes some of them, one after the other.
            lb_change_time: WORK_TIME / 4,
            lb_delete_time: WORK_TIME / 4,
            ..Behaviour::default()
        };
        let sim = OpenstackSim::builder()
            .settings(Served::settings(seed))
            .behaviour(behaviour)
            .user(USER, USER)
            .project(USER)
            .regions([REGION])
            .private_range(addresses.nodes().parse()?)
            .external_range(addresses.balancers().parse()?)
            .build();
        for name in INSTANCES {
            sim.add_server(ServerSpec::new(name));
        }
        let served = Served::start(sim.service(), addresses).await?;
        Ok(Self { sim, served })
    }

    /// Where traffic for a load balancer comes in: at its floating IP, and inside the project at its own address.
    fn addresses(&self, balancer: &LoadBalancer) -> Vec<IpAddr> {
        let own = balancer.vip.fixed_ip.address;
        let floating = self.sim.floating_ips().into_iter();
        let leads_here = floating.filter(|it| {
            it.target
                .is_some_and(|to| to.port == balancer.vip.port && to.address == own)
        });
        let floating = leads_here.map(|it| it.address.address);
        floating.chain([own]).collect()
    }

    fn drawn(&self, balancer: &LoadBalancer) -> Thing {
        let tone = match balancer.part.status {
            Provisioning::Active => Tone::Good,
            Provisioning::Error => Tone::Bad,
            _ => Tone::Busy,
        };
        let pools = self.sim.pools().into_iter();
        let own = pools.filter(|pool| pool.load_balancer == balancer.part.id);
        Thing::new("load balancer", &balancer.part.name)
            .state(balancer.part.status.word(), tone)
            .fact(balancer.vip.fixed_ip.address.to_string())
            .parts(own.map(|pool| self.drawn_pool(&pool)))
    }

    fn drawn_pool(&self, pool: &Pool) -> Thing {
        let instances = self.instances();
        let id = pool.part.id;
        let members = self.sim.members().into_iter().filter(|it| it.pool == id);
        let listeners = self.sim.listeners().into_iter();
        let listeners = listeners.filter(|it| it.default_pool == Some(id));
        let listeners =
            listeners.map(|it| format!("listens at {:?} {}", it.protocol, it.port).to_lowercase());
        let monitors = self.sim.health_monitors().into_iter().filter(|it| it.pool == id);
        let monitors = monitors.map(|it| format!("probes every {} s", it.delay_s));
        Thing::new("pool", &pool.part.name)
            .facts(listeners)
            .facts(monitors)
            .parts(members.map(|it| Thing::member(&instances, it.address, it.healthy)))
    }
}

impl Cloud for OpenStack {
    on_its_simulator!();

    fn title(&self) -> &'static str {
        "OpenStack"
    }

    fn manifest(&self) -> &'static str {
        include_str!("../../../../deploy/openstack/daemonset.yaml")
    }

    /// Members are checked, which is off by default, so that a server that is stopped gets no traffic.
    fn config(&self) -> Option<String> {
        Some(format!(
            "[Global]\nauth-url = {}/identity/v3\nusername = {USER}\npassword = {USER}\ntenant-name = {USER}\n\
             domain-id = default\nregion = {REGION}\n\n[LoadBalancer]\ncreate-monitor = true\nmonitor-delay = 1s\n\
             monitor-timeout = 1s\n\n[Route]\nrouter-id = {}\n",
            self.url(),
            self.sim.home().router
        ))
    }

    /// Routes, as the former manager's manifest does without. Nobody else gives pod networks to Nodes here.
    fn flags(&self) -> Vec<String> {
        let flags = [
            "--configure-cloud-routes=true",
            "--allocate-node-cidrs=true",
            "--controllers=*,node-ipam-controller",
            "--cluster-cidr=10.244.0.0/16",
        ];
        flags.map(str::to_owned).into()
    }

    fn proofs_of_absence(&self, provider_id: &str) -> usize {
        let id = provider_id.trim_start_matches("openstack:///");
        let told = self.sim.journal().filter(|entry| {
            entry.operation == "nova.servers.get" && entry.path.ends_with(id) && entry.status() == Some(404)
        });
        told.len()
    }

    fn things(&self) -> Vec<Thing> {
        let balancers = self.sim.load_balancers();
        let floating = self.sim.floating_ips().into_iter().map(|it| {
            let to = it
                .target
                .and_then(|to| balancers.iter().find(|lb| lb.vip.port == to.port));
            let target = to.map_or_else(|| "leads nowhere".to_owned(), |lb| format!("to {}", lb.part.name));
            Thing::new("floating IP", it.address.address.to_string()).fact(target)
        });
        let balancing = balancers.iter().map(|it| self.drawn(it));
        balancing.chain(floating).collect()
    }

    fn routes(&self) -> Option<BTreeMap<String, String>> {
        let router = self.sim.router(self.sim.home().router)?;
        let instances = self.instances();
        let name = |hop: IpAddr| {
            let mut instances = instances.iter();
            let found = instances.find(|it| it.address() == hop);
            found.map_or_else(|| hop.to_string(), |it| it.name.clone())
        };
        let routes = router.routes.iter();
        Some(
            routes
                .map(|it| (it.destination.clone(), name(it.nexthop)))
                .collect(),
        )
    }

    fn balancers(&self) -> usize {
        self.sim.load_balancers().len()
    }

    fn targets(&self) -> Vec<IpAddr> {
        let members = self.sim.members().into_iter().map(|member| member.address);
        members.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn wanted(&self) -> Vec<(Transport, SocketAddr)> {
        let listeners = self.sim.listeners();
        let mut places = Vec::new();
        for balancer in self.sim.load_balancers() {
            let of_it = listeners.iter().filter(|it| it.load_balancer == balancer.part.id);
            for listener in of_it {
                let transport = match listener.protocol {
                    ListenerProtocol::Udp => Transport::Udp,
                    _ => Transport::Tcp,
                };
                let addresses = self.addresses(&balancer).into_iter();
                places.extend(addresses.map(|it| (transport, SocketAddr::new(it, listener.port))));
            }
        }
        places
    }

    /// The floating IP is paid for as well, and nobody else has one here.
    fn complaints(&self) -> Vec<String> {
        let mut complaints = self.sim.check_invariants();
        complaints.extend(self.sim.leftovers());
        complaints
    }

    fn own_hints(&self, instance: &str) -> Vec<Hint> {
        let path = self
            .sim
            .server_named(instance)
            .map(|it| format!("servers/{}", it.id));
        let look = "See the load balancer with its parts, its floating IP, and the routes";
        hints::by_hand(
            &self.url(),
            look,
            instance,
            "",
            path,
            ["status", "SHUTOFF", "ACTIVE"],
        )
    }
}

/// What is written to, by the middle word of the operation, and the field that tells one from another.
const NOUNS: &[(&str, &str, &str)] = &[
    ("loadbalancers", "load balancer", "name"),
    ("listeners", "listener", "name"),
    ("pools", "pool", "name"),
    ("members", "members", ""),
    ("healthmonitors", "health monitor", "name"),
    ("floatingips", "floating IP", ""),
    ("ports", "port", ""),
    ("security-groups", "security group", "name"),
    ("security-group-rules", "security group rule", ""),
    ("tags", "tag", ""),
];

/// `octavia.pools.create` in words.
fn describe(change: &Entry) -> String {
    let words: Vec<&str> = change.operation.split('.').collect();
    let (kind, verb) = match words[..] {
        [_, "tokens", _] => return "log in".to_owned(),
        [_, "routers", "add_extraroutes"] => return "add routes to router".to_owned(),
        [_, "routers", "remove_extraroutes"] => return "remove routes from router".to_owned(),
        [_, kind, verb] => (kind, verb),
        _ => return change.operation.clone(),
    };
    let Some((_, noun, field)) = NOUNS.iter().find(|(word, ..)| *word == kind) else {
        return change.operation.clone();
    };
    let verb = match verb {
        "update" | "replace" => "change",
        other => other,
    };
    // One object in an object of its name.
    let body = change.body.as_ref().and_then(Value::as_object);
    let object = body.and_then(|it| it.values().next());
    let named = object.and_then(|it| it.get(field)).and_then(Value::as_str);
    let detail = match (named, &change.method) {
        (Some(name), _) => name.to_owned(),
        (None, &Method::DELETE) => short(change.path.rsplit('/').next().unwrap_or_default()),
        (None, _) => match object {
            Some(Value::Object(fields)) if verb == "change" => {
                fields.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
            }
            _ => String::new(),
        },
    };
    worded(&format!("{verb} {noun}"), &detail)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::entry;
    use super::*;

    #[test]
    fn changes_are_told_in_the_words_of_the_cloud() {
        for (operation, method, body, text) in [
            (
                "octavia.loadbalancers.create",
                Method::POST,
                Some(json!({ "loadbalancer": { "name": "kube_service_a" } })),
                "create load balancer (kube_service_a)",
            ),
            (
                "octavia.members.replace",
                Method::PUT,
                Some(json!({ "members": [] })),
                "change members",
            ),
            (
                "octavia.listeners.update",
                Method::PUT,
                Some(json!({ "listener": { "connection_limit": 9 } })),
                "change listener (connection_limit)",
            ),
            (
                "octavia.pools.delete",
                Method::DELETE,
                None,
                "delete pool (01234567)",
            ),
            (
                "neutron.routers.add_extraroutes",
                Method::PUT,
                None,
                "add routes to router",
            ),
            ("keystone.tokens.create", Method::POST, None, "log in"),
            (
                "octavia.quotas.update",
                Method::PUT,
                None,
                "octavia.quotas.update",
            ),
        ] {
            let entry = Entry {
                operation: operation.to_owned(),
                ..entry(method, "/load-balancer/v2.0/lbaas/pools/0123456789ab", body)
            };
            assert_eq!(describe(&entry), text);
        }
    }
}
