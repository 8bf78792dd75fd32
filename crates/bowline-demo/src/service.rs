//! A Service's ports, for the stand-ins that carry its traffic.

use bowline_cloud_kit::dataplane::Transport;
use serde_json::Value;

/// A port of a Service that every node opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) transport: Transport,
    /// What clients use.
    pub(crate) port: u16,
    /// What nodes open for it.
    pub(crate) node_port: u16,
}

/// The ports that have a node port and a transport that can be played here, which SCTP is not.
pub(crate) fn ports(service: &Value) -> Vec<Port> {
    list(&service["spec"]["ports"])
        .filter_map(|port| {
            Some(Port {
                transport: match port["protocol"].as_str() {
                    Some("UDP") => Transport::Udp,
                    Some("SCTP") => return None,
                    _ => Transport::Tcp,
                },
                port: number(&port["port"])?,
                node_port: number(&port["nodePort"])?,
            })
        })
        .collect()
}

/// The items of a list; none where there is none.
pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A port number; `None` where there is none, or zero in its place.
pub(crate) fn number(value: &Value) -> Option<u16> {
    let number = value.as_u64().and_then(|number| u16::try_from(number).ok())?;
    (number != 0).then_some(number)
}
