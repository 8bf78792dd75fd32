use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::load_balancer::memory::Memory;
use crate::load_balancer::observed::Observed;

fn floating_ip(address: &str, fixed: Value) -> FloatingIp {
    serde_json::from_value(json!({
        "id": address, "floating_ip_address": address, "floating_network_id": "ext", "port_id": "vip",
        "fixed_ip_address": fixed,
    }))
    .unwrap()
}

fn balancer(vip: &str) -> LoadBalancer {
    serde_json::from_value(json!({ "id": "lb", "vip_address": vip, "vip_port_id": "vip" })).unwrap()
}

#[test]
fn of_two_floating_ips_on_the_port_the_one_of_the_load_balancers_address_counts() {
    let observed = Observed {
        floating_ips: Some(Arc::new(vec![
            floating_ip("203.0.113.1", json!("10.0.0.9")),
            floating_ip("203.0.113.2", json!("10.0.0.5")),
        ])),
        ..Observed::default()
    };
    let memory = Memory::default();
    let view = View::new(&observed, &memory);
    let found = |vip| current(&view, &balancer(vip)).map(|found| found.floating_ip_address.clone());
    assert_eq!(found("10.0.0.5").as_deref(), Some("203.0.113.2"));
    assert_eq!(found("10.0.0.9").as_deref(), Some("203.0.113.1"));
    assert_eq!(found("10.0.0.7"), None);
}

#[test]
fn a_floating_ip_that_does_not_say_which_address_it_leads_to_counts() {
    let observed = Observed {
        floating_ips: Some(Arc::new(vec![floating_ip("203.0.113.1", Value::Null)])),
        ..Observed::default()
    };
    let memory = Memory::default();
    assert!(current(&View::new(&observed, &memory), &balancer("10.0.0.5")).is_some());
}
