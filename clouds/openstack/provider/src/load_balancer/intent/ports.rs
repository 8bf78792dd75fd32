//! The ports of a Service, and what they cannot be together with its annotations.

use std::collections::BTreeSet;

use bowline_cloud_provider::k8s::ServiceSpec;

use super::settings::{Place, Setting};
use super::{Port, Protocol};
use crate::load_balancer::annotations as keys;

/// Reads the ports.
pub(super) fn read(spec: &ServiceSpec, problems: &mut Vec<String>) -> Vec<Port> {
    let listed = spec.ports.as_deref().unwrap_or_default();
    if listed.is_empty() {
        problems.push("no service ports provided".to_owned());
    }
    let number = |port: i32| u16::try_from(port).ok().filter(|port| *port != 0);
    let mut ports = Vec::new();
    for port in listed {
        let protocol = match port.protocol.as_deref().unwrap_or("TCP") {
            "TCP" => Some(Protocol::Tcp),
            "UDP" => Some(Protocol::Udp),
            "SCTP" => Some(Protocol::Sctp),
            _ => None,
        };
        match (protocol, number(port.port)) {
            (Some(protocol), Some(number_of_port)) => ports.push(Port {
                protocol,
                port: number_of_port,
                node_port: port.node_port.and_then(number),
            }),
            _ => problems.push(format!(
                "port {} with protocol {} cannot be balanced",
                port.port,
                port.protocol.as_deref().unwrap_or_default()
            )),
        }
    }
    ports
}

/// Why the ports cannot all be HTTP: as HTTP, TCP and UDP of one number would be the same listener, and each would take it
/// from the other.
pub(super) fn shared_listener(ports: &[Port]) -> Option<String> {
    let mut numbers = BTreeSet::new();
    let twin = ports.iter().find(|port| !numbers.insert(port.port))?;
    Some(format!(
        "port {} stands for more than one protocol, which cannot be with {}: both would be one HTTP listener",
        twin.port,
        keys::X_FORWARDED_FOR.key
    ))
}

/// Why TLS cannot end at the load balancer for all ports: every listener would be one that ends TLS, which goes over TCP.
pub(super) fn without_tls(ports: &[Port], tls: &Setting) -> Option<String> {
    let port = ports.iter().find(|port| port.protocol != Protocol::Tcp)?;
    let key = keys::TLS.key;
    let origin = &tls.origin;
    let remedy = match tls.place {
        Place::Annotation => "take the annotation off".to_owned(),
        _ => format!("set {key}: \"\" on this one"),
    };
    let protocol = match port.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
        Protocol::Sctp => "SCTP",
    };
    Some(format!(
        "port {}/{protocol} cannot be balanced with {origin}: TLS can end at the load balancer for TCP ports only; give the other ports a Service of their own, or {remedy}",
        port.port
    ))
}
