//! `ValidateServiceCreate`, `ValidateServiceUpdate` and `ValidateServiceStatusUpdate` of
//! `pkg/apis/core/validation`, as far as load balancing goes.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::{
    externally_accessible, is_headless, is_load_balancer, needs_cluster_ip, needs_health_check_port,
};
use crate::field::FieldError;
use crate::names;
use crate::path::{at, list, number, text, texts};

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const FAMILIES: &[&str] = &["IPv4", "IPv6"];
const POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];
const DISTRIBUTIONS: &[&str] = &["PreferClose", "PreferSameNode", "PreferSameZone"];
const RANGES_ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
const IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// Checks the spec as a whole.
pub(super) fn spec(object: &Value, errors: &mut Vec<FieldError>) {
    let kind = text(object, "spec.type");
    if list(object, "spec.ports").is_empty() && !is_headless(object) && kind != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if is_headless(object) => {
            let detail = format!("may not be set to 'None' for {kind} services");
            errors.push(FieldError::invalid("spec.clusterIPs[0]", "None", &detail));
        }
        "ExternalName" => external_name(object, errors),
        _ => {}
    }
    ports(object, errors);
    names::labels(at(object, "spec.selector"), "spec.selector", errors);
    one_of(object, "spec.sessionAffinity", &["ClientIP", "None"], errors);
    cluster_ips(object, errors);
    for (index, ip) in texts(object, "spec.externalIPs").into_iter().enumerate() {
        if ip.parse::<IpAddr>().is_err() {
            errors.push(FieldError::invalid(format!("spec.externalIPs[{index}]"), ip, IP));
        }
    }
    one_of(object, "spec.type", TYPES, errors);
    source_ranges(object, errors);
    if at(object, "spec.allocateLoadBalancerNodePorts").is_some() && !is_load_balancer(object) {
        errors.push(FieldError::forbidden(
            "spec.allocateLoadBalancerNodePorts",
            ONLY_LOAD_BALANCER,
        ));
    }
    if at(object, "spec.loadBalancerClass").is_some() {
        let class = text(object, "spec.loadBalancerClass");
        if is_load_balancer(object) {
            let wrong = names::qualified_name(class);
            errors.extend(
                wrong
                    .iter()
                    .map(|text| FieldError::invalid("spec.loadBalancerClass", class, text)),
            );
        } else {
            errors.push(FieldError::forbidden(
                "spec.loadBalancerClass",
                ONLY_LOAD_BALANCER,
            ));
        }
    }
    traffic_policies(object, errors);
}

/// Checks what may not change from the old object to the new.
pub(super) fn change(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let settled = needs_cluster_ip(new) && needs_cluster_ip(old) && !(is_headless(new) && is_headless(old));
    if settled {
        let (now, had) = (texts(new, "spec.clusterIPs"), texts(old, "spec.clusterIPs"));
        if now.is_empty() && !had.is_empty() {
            errors.push(FieldError::invalid(
                "spec.clusterIPs[0]",
                json!(now),
                "primary clusterIP can not be unset",
            ));
        } else if now.first() != had.first() && !had.is_empty() {
            errors.push(FieldError::invalid(
                "spec.clusterIPs[0]",
                json!(now),
                "may not change once set",
            ));
        }
        let (now, had) = (texts(new, "spec.ipFamilies"), texts(old, "spec.ipFamilies"));
        if !had.is_empty() && now.first() != had.first() {
            errors.push(FieldError::invalid(
                "spec.ipFamilies[0]",
                json!(now),
                "may not change once set",
            ));
        }
    }
    if is_load_balancer(old)
        && is_load_balancer(new)
        && at(old, "spec.loadBalancerClass") != at(new, "spec.loadBalancerClass")
    {
        let class = at(new, "spec.loadBalancerClass").cloned().unwrap_or(Value::Null);
        errors.push(FieldError::invalid(
            "spec.loadBalancerClass",
            class,
            "may not change once set",
        ));
    }
    if needs_health_check_port(old)
        && needs_health_check_port(new)
        && number(old, "spec.healthCheckNodePort") != number(new, "spec.healthCheckNodePort")
    {
        errors.push(FieldError::forbidden(
            "spec.healthCheckNodePort",
            "field is immutable",
        ));
    }
}

/// Checks a status, against the spec beside it.
pub(super) fn status(object: &Value, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "status.loadBalancer.ingress";
    let ingress = list(object, FIELD);
    if !is_load_balancer(object) {
        if !ingress.is_empty() {
            errors.push(FieldError::forbidden(
                FIELD,
                "may only be used when `spec.type` is 'LoadBalancer'",
            ));
        }
        return;
    }
    for (index, ingress) in ingress.iter().enumerate() {
        let (ip, hostname) = (text(ingress, "ip"), text(ingress, "hostname"));
        if !ip.is_empty() && ip.parse::<IpAddr>().is_err() {
            errors.push(FieldError::invalid(format!("{FIELD}[{index}].ip"), ip, IP));
        }
        let field = format!("{FIELD}[{index}].ipMode");
        match (at(ingress, "ipMode"), ip.is_empty()) {
            (None, false) => errors.push(FieldError::required(field, "must be specified when `ip` is set")),
            (Some(_), true) => {
                errors.push(FieldError::forbidden(
                    field,
                    "may not be specified when `ip` is not set",
                ));
            }
            (Some(mode), false) if !["Proxy", "VIP"].contains(&mode.as_str().unwrap_or_default()) => {
                errors.push(FieldError::not_supported(field, mode.clone(), &["Proxy", "VIP"]));
            }
            _ => {}
        }
        if !hostname.is_empty() {
            let field = format!("{FIELD}[{index}].hostname");
            let wrong = names::NameRule::Subdomain.complaints(hostname);
            errors.extend(
                wrong
                    .iter()
                    .map(|text| FieldError::invalid(field.as_str(), hostname, text)),
            );
            if hostname.parse::<IpAddr>().is_ok() {
                errors.push(FieldError::invalid(
                    field,
                    hostname,
                    "must be a DNS name, not an IP address",
                ));
            }
        }
    }
}

/// Checks `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` against each other.
pub(super) fn cluster_ips(object: &Value, errors: &mut Vec<FieldError>) {
    const FIELD: &str = "spec.clusterIPs";
    if !needs_cluster_ip(object) {
        return;
    }
    let (single, all) = (text(object, "spec.clusterIP"), texts(object, FIELD));
    match (single, all.first()) {
        ("", Some(_)) => {
            errors.push(FieldError::invalid(
                FIELD,
                json!(all),
                "must be empty when `clusterIP` is not specified",
            ));
        }
        ("", None) => {}
        (_, None) => errors.push(FieldError::required(FIELD, "")),
        (single, Some(first)) if single != *first => {
            errors.push(FieldError::invalid(
                FIELD,
                json!(all),
                "first value must match `clusterIP`",
            ));
        }
        _ => {}
    }
    let mut seen = BTreeSet::new();
    for (index, family) in texts(object, "spec.ipFamilies").into_iter().enumerate() {
        let field = format!("spec.ipFamilies[{index}]");
        if !FAMILIES.contains(&family) {
            errors.push(FieldError::not_supported(field.as_str(), family, FAMILIES));
        }
        if !seen.insert(family) {
            errors.push(FieldError::duplicate(field, family, ""));
        }
    }
    let policy = text(object, "spec.ipFamilyPolicy");
    if !policy.is_empty() && !POLICIES.contains(&policy) {
        errors.push(FieldError::not_supported("spec.ipFamilyPolicy", policy, POLICIES));
    }
    for (index, ip) in all.iter().enumerate() {
        if index == 0 && *ip == "None" {
            if all.len() > 1 {
                errors.push(FieldError::invalid(
                    FIELD,
                    json!(all),
                    "'None' must be the first and only value",
                ));
            }
        } else if ip.parse::<IpAddr>().is_err() {
            errors.push(FieldError::invalid(format!("{FIELD}[{index}]"), *ip, IP));
        }
    }
}

/// Whether `text` is an address range.
pub(in crate::strategy) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else {
        return false;
    };
    let longest = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= longest)
}

fn external_name(object: &Value, errors: &mut Vec<FieldError>) {
    for field in ["spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy"] {
        if at(object, field).is_some() {
            errors.push(FieldError::forbidden(
                field,
                "may not be set for ExternalName services",
            ));
        }
    }
    let name = text(object, "spec.externalName");
    match name.strip_suffix('.').unwrap_or(name) {
        "" => errors.push(FieldError::required("spec.externalName", "")),
        cname => {
            let wrong = names::NameRule::Subdomain.complaints(cname);
            errors.extend(
                wrong
                    .iter()
                    .map(|text| FieldError::invalid("spec.externalName", cname, text)),
            );
        }
    }
}

fn ports(object: &Value, errors: &mut Vec<FieldError>) {
    let ports = list(object, "spec.ports");
    let (mut port_names, mut node_ports, mut numbers) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for (index, port) in ports.iter().enumerate() {
        let field = format!("spec.ports[{index}]");
        let (name, own, protocol) = (text(port, "name"), number(port, "port"), text(port, "protocol"));
        if !name.is_empty() {
            let wrong = names::dns_label(name);
            errors.extend(
                wrong
                    .iter()
                    .map(|text| FieldError::invalid(format!("{field}.name"), name, text)),
            );
            if !port_names.insert(name) {
                errors.push(FieldError::duplicate(format!("{field}.name"), name, ""));
            }
        } else if ports.len() > 1 {
            errors.push(FieldError::required(format!("{field}.name"), ""));
        }
        if !(1..=65_535).contains(&own) {
            errors.push(FieldError::invalid(format!("{field}.port"), own, PORT_RANGE));
        }
        if !PROTOCOLS.contains(&protocol) {
            errors.push(FieldError::not_supported(
                format!("{field}.protocol"),
                protocol,
                PROTOCOLS,
            ));
        }
        target_port(port, &format!("{field}.targetPort"), errors);
        if at(port, "appProtocol").is_some() {
            let app = text(port, "appProtocol");
            let wrong = names::qualified_name(app);
            errors.extend(
                wrong
                    .iter()
                    .map(|text| FieldError::invalid(format!("{field}.appProtocol"), app, text)),
            );
        }
    }
    for (index, port) in ports.iter().enumerate() {
        let node = number(port, "nodePort");
        let field = format!("spec.ports[{index}].nodePort");
        if node != 0 && matches!(text(object, "spec.type"), "ClusterIP") {
            errors.push(FieldError::forbidden(
                field.as_str(),
                "may not be used when `type` is 'ClusterIP'",
            ));
        }
        if node != 0 && !node_ports.insert((text(port, "protocol"), node)) {
            errors.push(FieldError::duplicate(field, node, ""));
        }
    }
    for (index, port) in ports.iter().enumerate() {
        if !numbers.insert((text(port, "protocol"), number(port, "port"))) {
            let pair = json!({"protocol": port["protocol"], "port": port["port"], "targetPort": 0});
            errors.push(FieldError::duplicate(format!("spec.ports[{index}]"), pair, ""));
        }
    }
}

fn target_port(port: &Value, field: &str, errors: &mut Vec<FieldError>) {
    match at(port, "targetPort") {
        Some(Value::String(name)) => {
            let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
            if name.len() > 15 {
                errors.push(FieldError::invalid(
                    field,
                    name.as_str(),
                    "must be no more than 15 characters",
                ));
            }
            if !name.bytes().all(allowed) {
                let detail = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
                errors.push(FieldError::invalid(field, name.as_str(), detail));
            }
            if !name.bytes().any(|c| c.is_ascii_lowercase()) {
                let detail = "must contain at least one letter (a-z)";
                errors.push(FieldError::invalid(field, name.as_str(), detail));
            }
        }
        Some(target) if !(1..=65_535).contains(&target.as_i64().unwrap_or_default()) => {
            errors.push(FieldError::invalid(field, target.clone(), PORT_RANGE));
        }
        _ => {}
    }
}

fn source_ranges(object: &Value, errors: &mut Vec<FieldError>) {
    // Upstream reports this field with a capital letter.
    const FIELD: &str = "spec.LoadBalancerSourceRanges";
    let ranges = texts(object, "spec.loadBalancerSourceRanges");
    if !ranges.is_empty() {
        if !is_load_balancer(object) {
            errors.push(FieldError::forbidden(FIELD, ONLY_LOAD_BALANCER));
        }
        for (index, range) in ranges
            .into_iter()
            .map(str::trim)
            .enumerate()
            .filter(|(_, range)| !is_cidr(range))
        {
            errors.push(FieldError::invalid(format!("{FIELD}[{index}]"), range, CIDR));
        }
        return;
    }
    let annotations = at(object, "metadata.annotations");
    let Some(text) = annotations
        .and_then(|map| map.get(RANGES_ANNOTATION))
        .and_then(Value::as_str)
    else {
        return;
    };
    let field = format!("metadata.annotations[{RANGES_ANNOTATION}]");
    if !is_load_balancer(object) {
        errors.push(FieldError::forbidden(field.as_str(), ONLY_LOAD_BALANCER));
    }
    if !text.trim().is_empty() {
        for range in text
            .trim()
            .split(',')
            .map(str::trim)
            .filter(|range| !is_cidr(range))
        {
            errors.push(FieldError::invalid(field.as_str(), range, CIDR));
        }
    }
}

fn traffic_policies(object: &Value, errors: &mut Vec<FieldError>) {
    let external = text(object, "spec.externalTrafficPolicy");
    if externally_accessible(object) {
        one_of(
            object,
            "spec.externalTrafficPolicy",
            &["Cluster", "Local"],
            errors,
        );
    } else if !external.is_empty() {
        let detail = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(
            "spec.externalTrafficPolicy",
            external,
            detail,
        ));
    }
    let health = number(object, "spec.healthCheckNodePort");
    if health != 0 && !needs_health_check_port(object) {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid("spec.healthCheckNodePort", health, detail));
    }
    if at(object, "spec.internalTrafficPolicy").is_some() {
        one_of(
            object,
            "spec.internalTrafficPolicy",
            &["Cluster", "Local"],
            errors,
        );
    }
    if at(object, "spec.trafficDistribution").is_some() {
        one_of(object, "spec.trafficDistribution", DISTRIBUTIONS, errors);
    }
}

fn one_of(object: &Value, field: &str, known: &[&str], errors: &mut Vec<FieldError>) {
    match text(object, field) {
        "" => errors.push(FieldError::required(field, "")),
        found if !known.contains(&found) => errors.push(FieldError::not_supported(field, found, known)),
        _ => {}
    }
}
