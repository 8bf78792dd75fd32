//! Octavia's objects.

use serde_json::{Value, json};

use super::Wire;
use crate::model::Id;
use crate::model::balancing::{
    Forwarder, Listener, LoadBalancer, Member, Monitor, Part, Persistence, Pool, Provisioning,
};
use crate::model::network::FixedIp;
use crate::options::Service;

/// The date of a version matters to nobody; the real ones are from 2016 to 2026.
const UPDATED: &str = "2024-10-01T00:00:00Z";

/// Adds what all Octavia objects have.
fn with_part(mut object: Value, part: &Part, operating: &str) -> Value {
    let meta = &part.meta;
    let time = |text: &str| Value::from(text.trim_end_matches('Z'));
    object["id"] = json!(part.id);
    object["name"] = Value::from(part.name.as_str());
    object["provisioning_status"] = Value::from(part.status.word());
    object["operating_status"] = Value::from(operating);
    object["admin_state_up"] = Value::from(part.is_up);
    object["project_id"] = Value::from(meta.project.as_str());
    object["tenant_id"] = Value::from(meta.project.as_str());
    object["tags"] = Value::from(meta.tags.clone());
    object["created_at"] = time(&meta.created_at);
    object["updated_at"] = match part.status {
        Provisioning::PendingCreate => Value::Null,
        _ => time(&meta.updated_at),
    };
    object
}

/// Adds what all but members and monitors have.
fn with_description(mut object: Value, part: &Part) -> Value {
    object["description"] = Value::from(part.meta.description.as_str());
    object
}

fn ids<'a>(parts: impl Iterator<Item = &'a Part>) -> Value {
    parts.map(|part| json!({ "id": part.id })).collect()
}

fn id(id: impl Into<Option<Id>>) -> Value {
    id.into().into_iter().map(|id| json!({ "id": id })).collect()
}

/// What a part is in while what carries the traffic works. As with a load balancer, a change that failed says nothing.
fn reported(part: &Part) -> &'static str {
    match part.is_made && part.is_up {
        true => "ONLINE",
        false => "OFFLINE",
    }
}

impl Wire<'_> {
    pub(crate) fn load_balancer_versions(&self) -> Value {
        let root = self.root(Service::LoadBalancer);
        let newest = self.state.behaviour.octavia_minor_version;
        let version = |minor| {
            json!({
                "id": format!("v2.{minor}"),
                "status": if minor == newest { "CURRENT" } else { "SUPPORTED" },
                "updated": UPDATED,
                "links": [{ "href": format!("{root}/v2"), "rel": "self" }],
            })
        };
        json!({ "versions": (0..=newest).map(version).collect::<Vec<_>>() })
    }

    pub(crate) fn load_balancer(&self, balancer: &LoadBalancer) -> Value {
        let part = &balancer.part;
        let vip = &balancer.vip;
        let listeners = self.state.listeners_of(part.id).map(|it| &it.part);
        let pools = self.state.pools_of(part.id).map(|it| &it.part);
        let additional = balancer
            .additional_vips
            .iter()
            .map(|it| json!({ "subnet_id": it.subnet, "ip_address": it.address, "port_id": vip.port }));
        let mut shown = json!({
            "vip_address": vip.fixed_ip.address,
            "vip_port_id": vip.port,
            "vip_subnet_id": vip.fixed_ip.subnet,
            "vip_network_id": vip.network,
            "vip_qos_policy_id": null,
            "vip_vnic_type": "normal",
            "vip_sg_ids": balancer.vip_groups,
            "provider": balancer.provider,
            "flavor_id": balancer.flavor,
            "availability_zone": balancer.zone,
            "listeners": ids(listeners),
            "pools": ids(pools),
        });
        if self.state.offers(26) {
            shown["additional_vips"] = additional.collect();
        }
        with_part(with_description(shown, part), part, self.operating(balancer))
    }

    /// The answer to a creation shows the parts themselves, where every later one has only their ids.
    pub(crate) fn created_load_balancer(&self, balancer: &LoadBalancer) -> Value {
        let id = balancer.part.id;
        let without = |mut object: Value, names: &[&str]| {
            if let Some(fields) = object.as_object_mut() {
                names.iter().for_each(|name| drop(fields.remove(*name)));
            }
            object
        };
        let listeners = self.state.listeners_of(id);
        let listeners = listeners.map(|it| without(self.listener(it), &["loadbalancers"]));
        let pools = self.state.pools_of(id).map(|it| {
            let mut pool = without(self.pool(it), &["loadbalancers", "healthmonitor_id"]);
            let members = self.state.members_of(it.part.id);
            pool["members"] = members.map(|it| self.member(it)).collect();
            let monitor = self.state.monitor_of(it.part.id);
            pool["healthmonitor"] = monitor.map_or(Value::Null, |it| without(self.monitor(it), &["pools"]));
            pool
        });
        let mut shown = self.load_balancer(balancer);
        shown["listeners"] = listeners.collect();
        shown["pools"] = pools.collect();
        shown
    }

    /// Says nothing about changes: one that failed leaves what carries the traffic as it was. One pool that is down makes the
    /// load balancer `ERROR`, whatever the others do (`_process_pool_status` of Octavia's `UpdateHealthDb`).
    fn operating(&self, balancer: &LoadBalancer) -> &'static str {
        if let Some(word) = self.idle(balancer) {
            return word;
        }
        let pools = self.state.pools_of(balancer.part.id);
        let states: Vec<&str> = pools.map(|it| self.pool_status(it)).collect();
        ["ERROR", "DEGRADED"]
            .into_iter()
            .find(|word| states.contains(word))
            .unwrap_or("ONLINE")
    }

    /// The state of a load balancer, and of all its parts, that carries nothing; `None` if it works.
    fn idle(&self, balancer: &LoadBalancer) -> Option<&'static str> {
        match balancer.forwarder {
            _ if !self.state.behaviour.hears_of_health => Some("OFFLINE"),
            Forwarder::Absent => Some("OFFLINE"),
            Forwarder::KnownLost => Some("ERROR"),
            Forwarder::Working | Forwarder::Lost => (!balancer.part.is_up).then_some("OFFLINE"),
        }
    }

    /// The state of a listener or a pool by itself.
    fn part_status(&self, balancer: Id, part: &Part) -> &'static str {
        let balancer = self.state.load_balancers.get(&balancer);
        balancer
            .and_then(|it| self.idle(it))
            .unwrap_or_else(|| reported(part))
    }

    /// What the probes of a pool's members found together.
    fn pool_status(&self, pool: &Pool) -> &'static str {
        let alone = self.part_status(pool.load_balancer, &pool.part);
        if alone != "ONLINE" {
            return alone;
        }
        let is_watched = self.state.monitor_of(pool.part.id).is_some();
        let members = self.state.members_of(pool.part.id).filter(|_| is_watched);
        let (mut up, mut down) = (0, 0);
        for member in members {
            match member.healthy {
                Some(true) => up += 1,
                Some(false) => down += 1,
                None => {}
            }
        }
        match (up, down) {
            (_, 0) => alone,
            (0, _) => "ERROR",
            _ => "DEGRADED",
        }
    }

    pub(crate) fn listener(&self, listener: &Listener) -> Value {
        let settings = &listener.settings;
        let headers = settings.insert_headers.iter();
        let headers = headers.map(|(name, value)| (name.clone(), Value::from(value.as_str())));
        let shown = json!({
            "protocol": listener.protocol,
            "protocol_port": listener.port,
            "default_pool_id": listener.default_pool,
            "connection_limit": settings.connection_limit,
            "insert_headers": headers.collect::<serde_json::Map<_, _>>(),
            "default_tls_container_ref": settings.tls_container,
            "sni_container_refs": settings.sni_containers,
            "timeout_client_data": settings.timeout_client_data_ms,
            "timeout_member_connect": settings.timeout_member_connect_ms,
            "timeout_member_data": settings.timeout_member_data_ms,
            "timeout_tcp_inspect": settings.timeout_tcp_inspect_ms,
            "allowed_cidrs": settings.allowed_cidrs,
            "l7policies": listener.redirects.iter().map(|it| json!({ "id": it.id })).collect::<Vec<_>>(),
            "loadbalancers": id(listener.load_balancer),
            "client_ca_tls_container_ref": null,
            "client_authentication": "NONE",
            "client_crl_container_ref": null,
            "tls_ciphers": null,
            "tls_versions": null,
            "alpn_protocols": null,
            "hsts_max_age": null,
            "hsts_include_subdomains": false,
            "hsts_preload": false,
        });
        let part = &listener.part;
        let operating = self.part_status(listener.load_balancer, part);
        with_part(with_description(shown, part), part, operating)
    }

    pub(crate) fn pool(&self, pool: &Pool) -> Value {
        let part = &pool.part;
        let listeners = self.state.listeners_of(pool.load_balancer);
        let listeners = listeners.filter(|it| it.reaches(part.id));
        let members = self.state.members_of(part.id).map(|it| &it.part);
        let monitor = self.state.monitor_of(part.id);
        let persistence = pool.persistence.as_ref().map(|it: &Persistence| json!(it));
        let mut shown = json!({
            "protocol": pool.protocol,
            "lb_algorithm": pool.algorithm,
            "session_persistence": persistence,
            "loadbalancers": id(pool.load_balancer),
            "listeners": ids(listeners.map(|it| &it.part)),
            "members": ids(members),
            "tls_container_ref": null,
            "ca_tls_container_ref": null,
            "crl_container_ref": null,
            "tls_enabled": false,
            "tls_ciphers": null,
            "tls_versions": null,
            "alpn_protocols": null,
        });
        // Octavia leaves it out where there is none.
        if let Some(monitor) = monitor {
            shown["healthmonitor_id"] = json!(monitor.part.id);
        }
        with_part(with_description(shown, part), part, self.pool_status(pool))
    }

    pub(crate) fn member(&self, member: &Member) -> Value {
        let shown = json!({
            "address": member.address,
            "protocol_port": member.port,
            "subnet_id": member.subnet,
            "weight": member.weight,
            "backup": member.is_backup,
            "monitor_address": member.monitor_address,
            "monitor_port": member.monitor_port,
            "vnic_type": "normal",
        });
        with_part(shown, &member.part, self.member_status(member))
    }

    fn member_status(&self, member: &Member) -> &'static str {
        let of = self.state.pools.get(&member.pool).map(|pool| pool.load_balancer);
        let of = of.and_then(|of| self.state.load_balancers.get(&of));
        let is_of_ovn = of.is_some_and(|of| of.provider == "ovn");
        let is_address = |it: &FixedIp| it.address == member.address;
        let has_port = || {
            self.state
                .ports
                .values()
                .any(|port| port.fixed_ips.iter().any(is_address))
        };
        match (self.state.monitor_of(member.pool), member.healthy) {
            (None, _) => "NO_MONITOR",
            (Some(_), _) if is_of_ovn && !has_port() => "OFFLINE",
            (Some(_), None) if is_of_ovn => "ONLINE",
            (Some(_), Some(true)) => "ONLINE",
            (Some(_), Some(false)) => "ERROR",
            (Some(_), None) if member.began_watched => "OFFLINE",
            (Some(_), None) => "NO_MONITOR",
        }
    }

    pub(crate) fn monitor(&self, monitor: &Monitor) -> Value {
        let http = monitor.http.as_ref();
        let version = http.and_then(|it| it.version.as_deref());
        let shown = json!({
            "type": monitor.kind,
            "delay": monitor.delay_s,
            "timeout": monitor.timeout_s,
            "max_retries": monitor.max_retries,
            "max_retries_down": monitor.max_retries_down,
            "http_method": http.map(|it| it.method.as_str()),
            "url_path": http.map(|it| it.url_path.as_str()),
            "expected_codes": http.map(|it| it.expected_codes.as_str()),
            "http_version": version.and_then(|it| it.parse::<f64>().ok()),
            "domain_name": http.and_then(|it| it.domain_name.as_deref()),
            "pools": id(monitor.pool),
        });
        with_part(shown, &monitor.part, reported(&monitor.part))
    }
}
