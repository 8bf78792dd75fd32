//! Whether the status that is to be published is the one that is already there.

use bowline_cloud_provider::k8s::LoadBalancerIngress;
use bowline_cloud_provider::{Ingress, IpMode, LoadBalancerStatus, Service};

/// Whether the Service already shows this status.
///
/// The API server stores `ipMode: VIP` for an address that comes without a mode (Kubernetes 1.29 and later), so both
/// sides are compared as they would be stored.
pub(super) fn is_published(service: &Service, status: &LoadBalancerStatus) -> bool {
    shows(service, status, is_same)
}

/// Whether the Service shows this status, or more than that of the same entries: what is not published may be somebody else's, as
/// kube-vip completes the ports of an address.
pub(super) fn is_shown(service: &Service, status: &LoadBalancerStatus) -> bool {
    shows(service, status, |present, wanted| {
        let mut present = present.clone();
        present.ports.take_if(|_| wanted.ports.is_empty());
        is_same(&present, wanted)
    })
}

fn shows(
    service: &Service,
    status: &LoadBalancerStatus,
    is_same: impl Fn(&LoadBalancerIngress, &Ingress) -> bool,
) -> bool {
    let present = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref())
        .and_then(|balancer| balancer.ingress.as_deref())
        .unwrap_or_default();
    present.len() == status.ingress.len() && present.iter().zip(&status.ingress).all(|(a, b)| is_same(a, b))
}

fn is_same(present: &LoadBalancerIngress, wanted: &Ingress) -> bool {
    let text = |field: &Option<String>| field.clone().filter(|text| !text.is_empty());
    let stored_mode = |has_ip: bool, mode: Option<&str>| {
        if has_ip {
            mode.unwrap_or(IpMode::Vip.as_str()).to_owned()
        } else {
            mode.unwrap_or_default().to_owned()
        }
    };
    text(&present.ip) == text(&wanted.ip)
        && text(&present.hostname) == text(&wanted.hostname)
        && stored_mode(present.ip.is_some(), present.ip_mode.as_deref())
            == stored_mode(wanted.ip.is_some(), wanted.ip_mode.map(IpMode::as_str))
        && present
            .ports
            .as_deref()
            .unwrap_or_default()
            .iter()
            .map(|p| (p.port, p.protocol.as_str(), p.error.as_deref()))
            .eq(wanted
                .ports
                .iter()
                .map(|p| (i32::from(p.port), p.protocol.as_str(), p.error.as_deref())))
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::IngressPort;
    use serde_json::json;

    use super::*;

    fn service(ingress: serde_json::Value) -> Service {
        serde_json::from_value(json!({ "status": { "loadBalancer": { "ingress": ingress } } })).unwrap()
    }

    fn status(ip_mode: Option<IpMode>, ports: Vec<IngressPort>) -> LoadBalancerStatus {
        let ip = Some("192.0.2.7".to_owned());
        LoadBalancerStatus {
            ingress: vec![Ingress {
                ip,
                hostname: None,
                ip_mode,
                ports,
            }],
        }
    }

    #[test]
    fn an_address_without_mode_equals_the_stored_default() {
        let present = service(json!([{ "ip": "192.0.2.7", "ipMode": "VIP" }]));
        assert!(is_published(&present, &status(None, vec![])));
        assert!(is_published(
            &service(json!([{ "ip": "192.0.2.7" }])),
            &status(Some(IpMode::Vip), vec![])
        ));
        assert!(!is_published(&present, &status(Some(IpMode::Proxy), vec![])));
    }

    #[test]
    fn ports_and_order_count() {
        let port = IngressPort {
            port: 80,
            protocol: "TCP".into(),
            error: None,
        };
        let present = service(json!([{ "ip": "192.0.2.7", "ports": [{ "port": 80, "protocol": "TCP" }] }]));
        assert!(is_published(&present, &status(None, vec![port])));
        assert!(!is_published(&present, &status(None, vec![])));
    }

    #[test]
    fn ports_that_somebody_else_adds_to_an_address_change_nothing_of_what_is_shown() {
        let completed = service(json!([{ "ip": "192.0.2.7", "ports": [{ "port": 80, "protocol": "TCP" }] }]));
        assert!(is_shown(&completed, &status(None, vec![])));
        assert!(!is_shown(&service(json!([])), &status(None, vec![])));
        assert!(!is_shown(
            &service(json!([{ "ip": "192.0.2.9" }])),
            &status(None, vec![])
        ));
    }

    #[test]
    fn no_status_is_an_empty_status() {
        assert!(is_published(&Service::default(), &LoadBalancerStatus::empty()));
    }
}
