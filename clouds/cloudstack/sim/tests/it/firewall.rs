//! Firewall rules.

use bowline_cloudstack_sim::{AddressState, FirewallSpec};
use serde_json::{Value, json};

use crate::support::{Caller, End, cloud, text};

async fn open(caller: &Caller, address: &str, more: &[(&str, &str)]) -> End {
    let mut parameters = vec![
        ("ipaddressid", address),
        ("protocol", "tcp"),
        ("startport", "443"),
    ];
    parameters.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
    parameters.extend(more);
    caller.run("createFirewallRule", &parameters).await
}

async fn list(caller: &Caller, address: &str) -> Value {
    caller
        .get(
            "listFirewallRules",
            &[("ipaddressid", address), ("listall", "true")],
        )
        .await
}

#[tokio::test(start_paused = true)]
async fn rule_is_made_told_and_deleted() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    assert_eq!(list(&caller, &address).await, json!({}));
    let made = open(&caller, &address, &[("cidrlist", "192.0.2.0/24,198.51.100.0/24")])
        .await
        .unwrap();
    let rule = &made["firewallrule"];
    let expected = json!({
        "id": rule["id"], "protocol": "tcp", "startport": 443, "endport": 443, "ipaddressid": address,
        "ipaddress": "203.0.113.11", "networkid": sim.network(), "cidrlist": "192.0.2.0/24,198.51.100.0/24",
        "state": "Active", "traffictype": "Ingress", "tags": [],
    });
    assert_eq!(rule, &expected);
    assert_eq!(list(&caller, &address).await["firewallrule"], json!([expected]));
    let icmp = open(&caller, &address, &[("protocol", "icmp"), ("startport", "")])
        .await
        .unwrap();
    assert_eq!(icmp["firewallrule"]["icmptype"], -1);
    assert_eq!(icmp["firewallrule"].get("startport"), None);
    let id = text(&rule["id"]);
    caller.run("deleteFirewallRule", &[("id", &id)]).await.unwrap();
    assert_eq!(caller.refusal("deleteFirewallRule", &[("id", &id)]).await.0, 431);
    assert_eq!(list(&caller, &address).await["count"], 1);
}

#[tokio::test(start_paused = true)]
async fn rules_meet_only_with_a_source_in_common() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    open(
        &caller,
        &address,
        &[("cidrlist", "192.0.2.0/24,10.0.0.0/8"), ("endport", "445")],
    )
    .await
    .unwrap();
    let number = sim.firewall_rules()[0].number;
    let refused = open(
        &caller,
        &address,
        &[("startport", "444"), ("cidrlist", "10.0.0.0/8")],
    )
    .await;
    let text = format!("The range specified, 444-444, conflicts with rule {number} which has 443-445");
    assert_eq!(refused, Err((537, text)));
    open(&caller, &address, &[("cidrlist", "198.51.100.0/24")])
        .await
        .unwrap();
    open(
        &caller,
        &address,
        &[("cidrlist", "10.0.0.0/8"), ("protocol", "udp")],
    )
    .await
    .unwrap();
    open(
        &caller,
        &address,
        &[("cidrlist", "10.0.0.0/8"), ("startport", "446")],
    )
    .await
    .unwrap();
    // What has no ports meets only what has none.
    let all = [("startport", ""), ("cidrlist", "10.0.0.0/8")];
    open(&caller, &address, &all).await.unwrap();
    assert_eq!(open(&caller, &address, &all).await.unwrap_err().0, 537);
    let elsewhere = caller.associate().await;
    open(&caller, &elsewhere, &[("cidrlist", "10.0.0.0/8")])
        .await
        .unwrap();
    caller.rule(&address, "a", 443).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_may_take_networks_of_ipv6() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    let ipv6 = [("cidrlist", "10.0.0.0/8,2001:db8::/32")];
    assert_eq!(open(&caller, &address, &ipv6).await.unwrap_err().0, 431);
    sim.set_behaviour(|behaviour| behaviour.firewall_takes_ipv6 = true);
    open(&caller, &address, &ipv6).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn wrong_rules_are_refused_at_once() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    for more in [
        [("protocol", "tcp-proxy"), ("endport", "443")],
        [("protocol", ""), ("endport", "443")],
        [("cidrlist", "x"), ("endport", "443")],
        [("cidrlist", "2001:db8::/32"), ("endport", "443")],
        [("startport", "70000"), ("endport", "70000")],
        [("startport", "10"), ("endport", "9")],
        [("ipaddressid", "7f"), ("endport", "443")],
    ] {
        let refused = open(&caller, &address, &more).await.unwrap_err();
        assert_eq!(refused.0, 431, "{more:?}: {}", refused.1);
    }
    sim.edit_network(&sim.network(), |it| it.services.retain(|name| name != "Firewall"));
    assert_eq!(open(&caller, &address, &[]).await.unwrap_err().0, 431);
    assert!(sim.firewall_rules().is_empty());
    let id = sim.add_firewall_rule(FirewallSpec {
        ports: Some((1, 2)),
        ..FirewallSpec::new(&address, "tcp", 443).cidrs(["10.0.0.0/8"])
    });
    assert!(sim.remove_firewall_rule(&id) && !sim.remove_firewall_rule(&id));
}

#[tokio::test(start_paused = true)]
async fn the_rules_of_an_address_on_its_way_are_not_listed() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    for state in [AddressState::Allocating, AddressState::Releasing] {
        sim.edit_address(&address, |it| it.state = state);
        let listed = [("ipaddressid", address.as_str()), ("listall", "true")];
        let (code, text) = caller.refusal("listFirewallRules", &listed).await;
        assert_eq!(code, 431, "{state:?}");
        assert!(text.ends_with("not ready for firewall rules yet"), "{text}");
    }
}
