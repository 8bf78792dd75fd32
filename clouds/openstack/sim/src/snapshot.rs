//! The end state without ids, times and addresses that were chosen automatically.

use std::collections::BTreeMap;

use bowline_cloud_kit::Inspect;
use bowline_cloud_kit::snapshot::sorted;
use serde_json::{Value, json};

use crate::model::Id;
use crate::model::balancing::{Listener, LoadBalancer, Member, Monitor, Pool};
use crate::model::network::{FloatingIp, RuleContent, SecurityGroup};
use crate::state::State;

mod violations;

impl Inspect for State {
    fn snapshot(&self) -> Value {
        View { state: self }.all()
    }

    fn violations(&self) -> Vec<String> {
        violations::violations(self)
    }
}

/// A rule in words.
fn rule(content: &RuleContent) -> String {
    let ports = match (content.port_min, content.port_max) {
        (Some(min), Some(max)) => format!("{min}-{max}"),
        _ => "any port".to_owned(),
    };
    let protocol = content.protocol.as_deref().unwrap_or("any protocol");
    let remote = content.remote_prefix.as_deref().unwrap_or("anywhere");
    format!(
        "{} {} {protocol} {ports} {remote}",
        content.direction, content.ethertype
    )
}

/// Names in the place of ids.
struct View<'a> {
    state: &'a State,
}

impl View<'_> {
    fn subnet(&self, id: Id) -> String {
        let subnet = self.state.subnets.get(&id);
        subnet.map_or_else(|| "?".to_owned(), |it| it.name.clone())
    }

    /// What a port belongs to.
    fn port(&self, id: Id) -> String {
        let mut balancers = self.state.load_balancers.values();
        match (balancers.find(|it| it.vip.port == id), self.state.ports.get(&id)) {
            (Some(balancer), _) => format!("load balancer {}", balancer.part.name),
            (None, Some(port)) => format!("server {}", self.device(&port.device)),
            (None, None) => "?".to_owned(),
        }
    }

    fn device(&self, device: &str) -> String {
        let server = Id::parse_str(device)
            .ok()
            .and_then(|id| self.state.servers.get(&id));
        server.map_or_else(|| "?".to_owned(), |it| it.name.clone())
    }

    fn servers_with(&self, group: Id) -> impl Iterator<Item = String> {
        let ports = self.state.ports.values();
        let ports = ports.filter(move |it| it.groups.contains(&group));
        ports.map(|it| self.device(&it.device))
    }

    /// What a cloud holds for a cluster. The security group that every project has is left out.
    fn all(&self) -> Value {
        let state = self.state;
        let routes = state.routers.values().map(|router| {
            let routes = router.routes.iter();
            let routes = routes.map(|it| format!("{} via {}", it.destination, it.nexthop));
            (router.name.clone(), sorted(routes))
        });
        let mut pairs: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for port in state.ports.values().filter(|it| !it.address_pairs.is_empty()) {
            let of_server = pairs.entry(self.device(&port.device)).or_default();
            of_server.extend(port.address_pairs.iter().map(|it| it.address.as_str()));
            of_server.sort_unstable();
        }
        let groups = state.groups.values().filter(|it| it.name != "default");
        let group = |it: &SecurityGroup| {
            json!({
                "name": it.name, "description": it.meta.description,
                "rules": sorted(state.rules_of(it.id).map(|it| rule(&it.content))),
                "servers": sorted(self.servers_with(it.id)),
            })
        };
        let floating = |it: &FloatingIp| {
            json!({
                "description": it.meta.description, "subnet": self.subnet(it.address.subnet),
                "target": it.target.map(|to| self.port(to.port)),
            })
        };
        json!({
            "load_balancers": sorted(state.load_balancers.values().map(|it| self.load_balancer(it))),
            "floating_ips": sorted(state.floating_ips.values().map(floating)),
            "security_groups": sorted(groups.map(group)),
            "routes": routes.collect::<serde_json::Map<_, _>>(), "address_pairs": pairs,
        })
    }

    fn load_balancer(&self, balancer: &LoadBalancer) -> Value {
        let (id, part) = (balancer.part.id, &balancer.part);
        let vips = std::iter::once(&balancer.vip.fixed_ip).chain(&balancer.additional_vips);
        let is_used = |pool: &&Pool| {
            let mut listeners = self.state.listeners_of(id);
            listeners.any(|it| it.default_pool == Some(pool.part.id))
        };
        let mut listeners: Vec<&Listener> = self.state.listeners_of(id).collect();
        listeners.sort_by_cached_key(|it| (json!(it.protocol).to_string(), it.port, it.part.name.clone()));
        let loose = self.state.pools_of(id).filter(|it| !is_used(it));
        json!({
            "name": part.name, "description": part.meta.description, "provider": balancer.provider,
            "vip_subnets": vips.map(|it| self.subnet(it.subnet)).collect::<Vec<_>>(), "tags": part.meta.tags,
            "listeners": listeners.into_iter().map(|it| self.listener(it)).collect::<Vec<_>>(),
            "loose_pools": sorted(loose.map(|it| self.pool(it))),
        })
    }

    fn listener(&self, listener: &Listener) -> Value {
        let settings = &listener.settings;
        let pool = listener.default_pool.and_then(|id| self.state.pools.get(&id));
        json!({
            "protocol": listener.protocol, "port": listener.port, "name": listener.part.name,
            "tags": listener.part.meta.tags,
            "allowed_cidrs": sorted(settings.allowed_cidrs.iter().flatten()),
            "insert_headers": settings.insert_headers, "tls_container": settings.tls_container,
            "connection_limit": settings.connection_limit,
            "timeouts_ms": [
                settings.timeout_client_data_ms, settings.timeout_member_connect_ms,
                settings.timeout_member_data_ms, settings.timeout_tcp_inspect_ms,
            ],
            "pool": pool.map(|it| self.pool(it)),
        })
    }

    fn pool(&self, pool: &Pool) -> Value {
        let id = pool.part.id;
        json!({
            "name": pool.part.name, "protocol": pool.protocol, "algorithm": pool.algorithm,
            "persistence": pool.persistence.as_ref().map(|it| &it.kind),
            "members": sorted(self.state.members_of(id).map(|it| self.member(it))),
            "monitor": self.state.monitor_of(id).map(monitor),
        })
    }

    fn member(&self, it: &Member) -> Value {
        json!({
            "name": it.part.name, "address": it.address, "port": it.port, "monitor_port": it.monitor_port,
            "subnet": it.subnet.map(|it| self.subnet(it)), "weight": it.weight,
        })
    }
}

fn monitor(it: &Monitor) -> Value {
    let http = it.http.as_ref();
    json!({
        "name": it.part.name, "kind": it.kind, "delay_and_timeout_s": [it.delay_s, it.timeout_s],
        "retries": [it.max_retries, it.max_retries_down],
        "http": http.map(|it| format!("{} {} expects {}", it.method, it.url_path, it.expected_codes)),
    })
}
