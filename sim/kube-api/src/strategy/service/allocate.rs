//! Cluster IPs and node ports (`pkg/registry/core/service/storage/alloc.go`), for a single-stack IPv4 cluster.
//!
//! What is in use is read off the stored Services, so a Service that is gone has released everything.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use rand::RngExt;
use serde_json::{Value, json};

use super::{
    SERVICE, allocates_node_ports, has_node_ports, is_headless, needs_cluster_ip, needs_health_check_port,
    validate,
};
use crate::field::FieldError;
use crate::path::{at, list, list_mut, number, remove, set, text, texts};
use crate::status::Status;
use crate::store::key_of;
use crate::strategy::Context;

/// Service range of the cluster, a /16.
const RANGE: [u8; 2] = [10, 96];

/// Node port range of the cluster.
const NODE_PORTS: std::ops::RangeInclusive<i64> = 30_000..=32_767;

/// The lower part of the node ports is given out only on request (`calculateReservedRange`).
const DYNAMIC_NODE_PORTS: std::ops::RangeInclusive<i64> = 30_086..=32_767;

/// Allocates for a new Service.
pub(super) fn on_create(object: &mut Value, cx: &mut Context<'_>) -> Result<(), Status> {
    if !text(object, "spec.clusterIP").is_empty() && texts(object, "spec.clusterIPs").is_empty() {
        let single = vec![text(object, "spec.clusterIP").to_owned()];
        set(object, "spec.clusterIPs", single);
    }
    ip_families(object, None)?;
    cluster_ip(object, cx)?;
    let mut ports = Ports::in_use(object, cx);
    if has_node_ports(object) {
        new_node_ports(object, &mut ports, cx)?;
    }
    if needs_health_check_port(object) {
        health_check_port(object, &mut ports, cx)?;
    }
    Ok(())
}

/// Carries over what the client left out, and allocates what became necessary.
pub(super) fn on_update(new: &mut Value, old: &Value, cx: &mut Context<'_>) -> Result<(), Status> {
    carry_over(new, old);
    follow_cluster_ip(new, old);
    ip_families(new, Some(old))?;
    if !needs_cluster_ip(old) && needs_cluster_ip(new) {
        cluster_ip(new, cx)?;
    }
    let mut ports = Ports::in_use(new, cx);
    if has_node_ports(new) {
        updated_node_ports(new, old, &mut ports, cx)?;
    }
    if needs_health_check_port(new) && !needs_health_check_port(old) {
        health_check_port(new, &mut ports, cx)?;
    }
    Ok(())
}

/// `patchAllocatedValues`: a client that sends its own manifest again keeps what was allocated.
fn carry_over(new: &mut Value, old: &Value) {
    if needs_cluster_ip(old) && needs_cluster_ip(new) {
        for field in ["spec.clusterIP", "spec.clusterIPs"] {
            if at(new, field).is_none()
                && let Some(value) = at(old, field)
            {
                set(new, field, value.clone());
            }
        }
    }
    if allocates_node_ports(old) && allocates_node_ports(new) {
        let used = |object: &Value| -> BTreeSet<i64> {
            list(object, "spec.ports")
                .iter()
                .map(|port| number(port, "nodePort"))
                .filter(|node| *node != 0)
                .collect()
        };
        let kept: BTreeSet<i64> = used(old).intersection(&used(new)).copied().collect();
        let by_name: BTreeMap<&str, i64> = list(old, "spec.ports")
            .iter()
            .map(|port| (text(port, "name"), number(port, "nodePort")))
            .collect();
        for port in list_mut(new, "spec.ports").into_iter().flatten() {
            if number(port, "nodePort") == 0
                && let Some(node) = by_name.get(text(port, "name")).copied()
                && node != 0
                && !kept.contains(&node)
            {
                set(port, "nodePort", node);
            }
        }
    }
    if needs_health_check_port(old)
        && needs_health_check_port(new)
        && number(new, "spec.healthCheckNodePort") == 0
        && let Some(value) = at(old, "spec.healthCheckNodePort")
    {
        set(new, "spec.healthCheckNodePort", value.clone());
    }
}

/// `normalizeClusterIPs`: keeps the single field and the list in step for clients that know only one of them.
fn follow_cluster_ip(new: &mut Value, old: &Value) {
    let same_list = at(new, "spec.clusterIPs") == at(old, "spec.clusterIPs");
    if text(new, "spec.clusterIP") == text(old, "spec.clusterIP") || !same_list {
        return;
    }
    let single = text(new, "spec.clusterIP").to_owned();
    if single.is_empty() {
        remove(new, "spec.clusterIPs");
    } else {
        set(new, "spec.clusterIPs", vec![single]);
    }
}

fn ip_families(object: &mut Value, old: Option<&Value>) -> Result<(), Status> {
    if !needs_cluster_ip(object) {
        return Ok(());
    }
    let selectorless_headless = is_headless(object) && at(object, "spec.selector").is_none();
    if at(object, "spec.ipFamilyPolicy").is_none() {
        let inherited = old.and_then(|old| at(old, "spec.ipFamilyPolicy")).cloned();
        let default = if selectorless_headless {
            "RequireDualStack"
        } else {
            "SingleStack"
        };
        set(
            object,
            "spec.ipFamilyPolicy",
            inherited.unwrap_or_else(|| default.into()),
        );
    }
    let name = text(object, "metadata.name").to_owned();
    let mut errors = Vec::new();
    validate::cluster_ips(object, &mut errors);
    Status::check(&SERVICE, &name, &errors)?;

    let policy = text(object, "spec.ipFamilyPolicy").to_owned();
    let mut families: Vec<String> = texts(object, "spec.ipFamilies")
        .into_iter()
        .map(str::to_owned)
        .collect();
    if selectorless_headless {
        if families.is_empty() {
            families.push("IPv4".to_owned());
        }
        if families.len() == 1 && policy != "SingleStack" {
            families.push(if families[0] == "IPv4" { "IPv6" } else { "IPv4" }.to_owned());
        }
        set(object, "spec.ipFamilies", families);
        return Ok(());
    }
    if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid("spec.ipFamilyPolicy", policy, detail));
    }
    for (index, family) in families
        .iter()
        .enumerate()
        .filter(|(_, family)| *family != "IPv4")
    {
        let field = format!("spec.ipFamilies[{index}]");
        errors.push(FieldError::invalid(
            field,
            family.as_str(),
            "not configured on this cluster",
        ));
    }
    Status::check(&SERVICE, &name, &errors)?;
    if families.is_empty() {
        set(object, "spec.ipFamilies", json!(["IPv4"]));
    }
    Ok(())
}

fn cluster_ip(object: &mut Value, cx: &mut Context<'_>) -> Result<(), Status> {
    if !needs_cluster_ip(object) || is_headless(object) {
        return Ok(());
    }
    let used = addresses_in_use(object, cx);
    let asked = texts(object, "spec.clusterIPs")
        .first()
        .copied()
        .unwrap_or_default()
        .to_owned();
    if asked.is_empty() {
        let address = loop {
            // As upstream: the lower band of the range is left for addresses that somebody asks for.
            let candidate = Ipv4Addr::new(
                RANGE[0],
                RANGE[1],
                cx.random.random_range(1..=255),
                cx.random.random_range(0..=254),
            );
            if !used.contains(&candidate.to_string()) {
                break candidate.to_string();
            }
        };
        set(object, "spec.clusterIP", address.as_str());
        set(object, "spec.clusterIPs", vec![address]);
        return Ok(());
    }
    let in_range = asked
        .parse::<Ipv4Addr>()
        .is_ok_and(|ip| ip.octets()[..2] == RANGE);
    let problem = if !in_range {
        "the provided network does not match the current range".to_owned()
    } else if used.contains(&asked) {
        "provided IP is already allocated".to_owned()
    } else {
        return Ok(());
    };
    let detail = format!("failed to allocate IP {asked}: {problem}");
    let error = FieldError::invalid("spec.clusterIPs", vec![asked], &detail);
    Status::check(&SERVICE, text(object, "metadata.name"), &[error])
}

fn addresses_in_use(object: &Value, cx: &Context<'_>) -> BTreeSet<String> {
    let own = key_of(object);
    let others = cx.store.all(&SERVICE).filter(|(key, _)| **key != own);
    others
        .flat_map(|(_, other)| texts(other, "spec.clusterIPs").into_iter().map(str::to_owned))
        .collect()
}

/// Node ports of all other Services, and those taken in this operation.
struct Ports(BTreeSet<i64>);

impl Ports {
    fn in_use(object: &Value, cx: &Context<'_>) -> Self {
        let own = key_of(object);
        let others = cx.store.all(&SERVICE).filter(|(key, _)| **key != own);
        Self(others.flat_map(|(_, other)| node_ports_of(other)).collect())
    }

    fn take(&mut self, port: i64) -> Result<(), String> {
        if !NODE_PORTS.contains(&port) {
            let (first, last) = (NODE_PORTS.start(), NODE_PORTS.end());
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {first}-{last}"
            ));
        }
        if self.0.insert(port) {
            Ok(())
        } else {
            Err("provided port is already allocated".to_owned())
        }
    }

    fn next(&mut self, cx: &mut Context<'_>) -> Result<i64, Status> {
        let start = cx.random.random_range(DYNAMIC_NODE_PORTS);
        let candidates = (start..=*NODE_PORTS.end()).chain(*NODE_PORTS.start()..start);
        for port in candidates {
            if self.0.insert(port) {
                return Ok(port);
            }
        }
        Err(Status::internal("failed to allocate a nodePort: range is full"))
    }
}

fn node_ports_of(object: &Value) -> Vec<i64> {
    let ports = list(object, "spec.ports")
        .iter()
        .map(|port| number(port, "nodePort"));
    ports
        .chain([number(object, "spec.healthCheckNodePort")])
        .filter(|port| *port != 0)
        .collect()
}

/// `initNodePorts`: ports with the same number (TCP and UDP) share one node port.
fn new_node_ports(object: &mut Value, ports: &mut Ports, cx: &mut Context<'_>) -> Result<(), Status> {
    let name = text(object, "metadata.name").to_owned();
    let allocate = allocates_node_ports(object);
    let requested: BTreeMap<i64, i64> = list(object, "spec.ports")
        .iter()
        .rev()
        .map(|port| (number(port, "port"), number(port, "nodePort")))
        .filter(|(_, node)| *node != 0)
        .collect();
    let mut shared: BTreeMap<i64, i64> = BTreeMap::new();
    for (index, port) in list_mut(object, "spec.ports").into_iter().flatten().enumerate() {
        let (own, given) = (number(port, "port"), number(port, "nodePort"));
        if given == 0 && !allocate {
            continue;
        }
        match shared.get(&own).copied() {
            None => {
                let node = match requested.get(&own).copied() {
                    Some(asked) => take(ports, asked, index, &name).map(|()| asked)?,
                    None => ports.next(cx)?,
                };
                set(port, "nodePort", node);
                shared.insert(own, node);
            }
            Some(node) if given == 0 => set(port, "nodePort", node),
            Some(node) if given != node => take(ports, given, index, &name)?,
            Some(_) => {}
        }
    }
    Ok(())
}

/// `updateNodePorts`: ports that the Service had are its own; others are asked for or allocated.
fn updated_node_ports(
    new: &mut Value,
    old: &Value,
    ports: &mut Ports,
    cx: &mut Context<'_>,
) -> Result<(), Status> {
    let name = text(new, "metadata.name").to_owned();
    let allocate = allocates_node_ports(new);
    let had = node_ports_of(old);
    ports.0.extend(&had);
    let mut taken = BTreeSet::new();
    for (index, port) in list_mut(new, "spec.ports").into_iter().flatten().enumerate() {
        match number(port, "nodePort") {
            0 if allocate => set(port, "nodePort", ports.next(cx)?),
            0 => {}
            node if had.contains(&node) || taken.contains(&node) => {}
            node => {
                take(ports, node, index, &name)?;
                taken.insert(node);
            }
        }
    }
    Ok(())
}

fn take(ports: &mut Ports, node: i64, index: usize, name: &str) -> Result<(), Status> {
    ports.take(node).map_err(|problem| {
        let error = FieldError::invalid(format!("spec.ports[{index}].nodePort"), node, &problem);
        Status::invalid("", "Service", name, &[error])
    })
}

fn health_check_port(object: &mut Value, ports: &mut Ports, cx: &mut Context<'_>) -> Result<(), Status> {
    match number(object, "spec.healthCheckNodePort") {
        0 => set(object, "spec.healthCheckNodePort", ports.next(cx)?),
        asked => ports.take(asked).map_err(|problem| {
            Status::internal(&format!(
                "failed to allocate requested HealthCheck NodePort {asked}: {problem}"
            ))
        })?,
    }
    Ok(())
}
