//! The end state without ids, times and addresses that were chosen automatically, and what a clean project does not have.

use bowline_cloud_kit::Inspect;
use bowline_cloud_kit::snapshot::{repeated, sorted};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::model::{HealthMonitor, HttpProbe, Listener, LoadBalancer, Member, Pool, Target};
use crate::state::State;

impl Inspect for State {
    /// Load balancers with all their parts, and floating IPs with the name of what they point at.
    fn snapshot(&self) -> Value {
        let cidr = |id: &Uuid| self.subnets.get(id).map(|it| it.cidr.to_string());
        let member = |it: &Member| {
            json!({
                "name": it.name, "address": it.address, "protocol_port": it.protocol_port,
                "monitor_port": it.monitor_port.filter(|&port| port != it.protocol_port),
                "subnet": cidr(&it.subnet), "enabled": it.enabled,
            })
        };
        let listeners =
            |fits: &dyn Fn(&&Listener) -> bool| sorted(self.listeners.values().filter(fits).map(listener));
        let pool = |pool: &Pool| {
            let monitors = self.monitors.values().filter(|it| it.pool == pool.uuid);
            json!({
                "name": pool.name, "algorithm": pool.algorithm, "protocol": pool.protocol,
                "members": sorted(self.members_of(pool.uuid).map(member)),
                "listeners": listeners(&|it| it.pool == Some(pool.uuid)),
                "monitors": sorted(monitors.map(monitor)),
            })
        };
        let balancer = |it: &LoadBalancer| {
            json!({
                "name": it.name, "zone": it.zone, "flavor": it.flavor, "tags": it.tags,
                "vip_subnets": it.vips.iter().map(|vip| cidr(&vip.subnet)).collect::<Vec<_>>(),
                "pools": sorted(self.pools_of(it.uuid).map(pool)),
                "loose_listeners": listeners(&|found| found.load_balancer == it.uuid && found.pool.is_none()),
            })
        };
        let target = |target: Target| match target {
            Target::Server(id) => format!("server {}", self.servers.get(&id).map_or("?", |it| &it.name)),
            Target::LoadBalancer(id) => {
                format!(
                    "load_balancer {}",
                    self.load_balancers.get(&id).map_or("?", |it| &it.name)
                )
            }
        };
        let floating = self.floating_ips.values();
        let floating = floating.map(|it| (it.network.to_string(), json!(it.target.map(target))));
        json!({
            "load_balancers": sorted(self.load_balancers.values().map(balancer)),
            "floating_ips": floating.collect::<serde_json::Map<_, _>>(),
        })
    }

    /// Duplicates and parts without their whole.
    fn violations(&self) -> Vec<String> {
        let balancers = || self.load_balancers.values();
        let mut found = repeated("load balancer", balancers().map(|it| it.name.clone()));
        for balancer in balancers() {
            let name = &balancer.name;
            let pools = || self.pools_of(balancer.uuid);
            found.extend(repeated(
                &format!("pool of {name}"),
                pools().map(|it| it.name.clone()),
            ));
            let listeners = || {
                self.listeners
                    .values()
                    .filter(|it| it.load_balancer == balancer.uuid)
            };
            let ports =
                listeners().map(|it| format!("{:?}/{}", it.protocol, it.protocol_port).to_lowercase());
            found.extend(repeated(&format!("listener of {name}"), ports));
            let loose = listeners().filter(|it| it.pool.is_none());
            found.extend(loose.map(|it| format!("listener {} of {name} has no pool", it.name)));
            for pool in pools() {
                let part = format!("{name}/{}", pool.name);
                let targets = self.members_of(pool.uuid);
                let targets = targets.map(|it| format!("{}:{}", it.address, it.protocol_port));
                found.extend(repeated(&format!("member of {part}"), targets));
                let monitors = self.monitors.values().filter(|it| it.pool == pool.uuid).count();
                if monitors > 1 {
                    found.push(format!("{monitors} monitors for {part}"));
                }
            }
        }
        orphans(self, &mut found);
        found
    }
}

fn listener(it: &Listener) -> Value {
    json!({
        "name": it.name, "protocol": it.protocol, "protocol_port": it.protocol_port,
        "allowed_cidrs": it.allowed_cidrs,
        "timeouts_ms": [it.timeout_client_data_ms, it.timeout_member_connect_ms, it.timeout_member_data_ms],
    })
}

fn monitor(it: &HealthMonitor) -> Value {
    json!({
        "kind": it.kind, "delay_and_timeout_s": [it.delay_s, it.timeout_s],
        "thresholds": [it.up_threshold, it.down_threshold], "http": it.http.as_ref().map(http),
    })
}

fn http(probe: &HttpProbe) -> String {
    let host = probe.host.as_deref().unwrap_or("-");
    let codes = probe.expected_codes.join(",");
    format!(
        "{} {} HTTP/{} host {host} expects {codes}",
        probe.method, probe.url_path, probe.version
    )
}

fn orphans(state: &State, found: &mut Vec<String>) {
    let balancer = |uuid: &Uuid| state.load_balancers.contains_key(uuid);
    let pool = |uuid: &Uuid| state.pools.contains_key(uuid);
    for it in state.pools.values().filter(|it| !balancer(&it.load_balancer)) {
        found.push(format!("pool {} has no load balancer", it.name));
    }
    for it in state.members.values().filter(|it| !pool(&it.pool)) {
        found.push(format!("member {} has no pool", it.name));
    }
    for it in state.listeners.values().filter(|it| !balancer(&it.load_balancer)) {
        found.push(format!("listener {} has no load balancer", it.name));
    }
    for it in state.monitors.values().filter(|it| !pool(&it.pool)) {
        found.push(format!("monitor {} has no pool", it.uuid));
    }
    for it in state.floating_ips.values() {
        let dangling = match it.target {
            Some(Target::Server(uuid)) => !state.servers.contains_key(&uuid),
            Some(Target::LoadBalancer(uuid)) => !balancer(&uuid),
            None => false,
        };
        if dangling {
            found.push(format!("floating IP {} has no target", it.network));
        }
    }
}
