//! What the Service's status shows.

use bowline_cloud_provider::{Ingress, IngressPort, IpMode, LoadBalancerStatus, Service};

use crate::load_balancer::blocks::Address;

/// One entry for the address. If the present status has one already, it stays as it is: its ports are kube-vip's, which
/// takes an address off and on again when they change.
pub(crate) fn status(service: &Service, address: Address) -> LoadBalancerStatus {
    let status = service.status.as_ref();
    let balancer = status.and_then(|status| status.load_balancer.as_ref());
    let mut present = balancer.iter().flat_map(|it| it.ingress.iter().flatten());
    let entry = present.find(|entry| {
        let ip = entry.ip.as_deref().and_then(|text| text.parse::<Address>().ok());
        ip == Some(address)
    });
    let mut ingress = Ingress::address(address.to_string(), None);
    if let Some(entry) = entry {
        ingress.ip.clone_from(&entry.ip);
        ingress.hostname.clone_from(&entry.hostname);
        ingress.ip_mode = match entry.ip_mode.as_deref() {
            Some("Proxy") => Some(IpMode::Proxy),
            Some("VIP") => Some(IpMode::Vip),
            _ => None,
        };
        ingress
            .ports
            .extend(entry.ports.iter().flatten().filter_map(|port| {
                Some(IngressPort {
                    port: u16::try_from(port.port).ok()?,
                    protocol: port.protocol.clone(),
                    error: port.error.clone(),
                })
            }));
    }
    LoadBalancerStatus {
        ingress: vec![ingress],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(ingress: serde_json::Value) -> Service {
        serde_json::from_value(serde_json::json!({ "status": { "loadBalancer": { "ingress": ingress } } }))
            .unwrap()
    }

    #[test]
    fn an_entry_with_the_address_stays_as_it_is() {
        let entry = serde_json::json!([
            { "ip": "198.51.100.10", "ipMode": "VIP", "ports": [{ "port": 443, "protocol": "TCP" }] }
        ]);
        let shown = status(&service(entry), "198.51.100.10".parse().unwrap());
        assert_eq!(shown.ingress[0].ports[0].port, 443);
        assert_eq!(shown.ingress[0].ip_mode, Some(IpMode::Vip));
    }

    #[test]
    fn an_empty_or_other_entry_is_replaced() {
        for ingress in [
            serde_json::json!([{}]),
            serde_json::json!([{ "ip": "192.0.2.1" }]),
        ] {
            let shown = status(&service(ingress), "198.51.100.10".parse().unwrap());
            assert_eq!(shown.ingress.len(), 1);
            assert_eq!(shown.ingress[0].ip.as_deref(), Some("198.51.100.10"));
        }
    }
}
