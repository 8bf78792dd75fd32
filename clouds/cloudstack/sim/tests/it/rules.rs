//! Load balancer rules.

use bowline_cloudstack_sim::model::LoadBalancerRule;
use bowline_cloudstack_sim::{
    Behaviour, CloudstackSim, NetworkSpec, ProtocolUpdates, RuleSpec, RuleState, VmSpec,
};
use serde_json::json;

use crate::support::{Caller, cloud, each, text};

#[tokio::test(start_paused = true)]
async fn new_rule_is_told_in_full() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    let network = sim.network();
    let more = [
        ("networkid", network.as_str()),
        ("protocol", "tcp-proxy"),
        ("cidrlist", "10.9.0.0/16,2001:db8::/32,192.0.2.1"),
        ("description", "of somebody"),
    ];
    let made = caller
        .try_rule(&address, "a1-tcp-proxy-443", 443, &more)
        .await
        .unwrap();
    let rule = &made["loadbalancer"];
    let expected = json!({
        "id": rule["id"], "name": "a1-tcp-proxy-443", "description": "of somebody", "algorithm": "roundrobin",
        "protocol": "tcp-proxy", "publicipid": address, "publicip": "203.0.113.11", "publicport": "443",
        "privateport": "30443", "networkid": network, "cidrlist": "10.9.0.0/16 2001:db8::/32 192.0.2.1",
        "state": "Add", "account": "team", "domainid": rule["domainid"], "domain": "ROOT",
        "zoneid": sim.zone(), "zonename": "Zurich-1", "tags": [],
    });
    assert_eq!(rule, &expected);
    let listed = caller
        .get(
            "listLoadBalancerRules",
            &[("keyword", "A1-TCP"), ("listall", "true")],
        )
        .await;
    assert_eq!(listed["loadbalancerrule"][0], expected);
    assert!(sim.firewall_rules().is_empty());
    let found = caller.get("listPublicIpAddresses", &[("id", &address)]).await;
    assert_eq!(found["publicipaddress"][0]["hasrules"], true);
}

#[tokio::test(start_paused = true)]
async fn keyword_finds_names_and_descriptions_and_name_is_whole() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    caller.rule(&address, "abc-tcp-80", 80).await;
    caller.rule(&address, "abc-tcp-8080", 8080).await;
    sim.add_rule(RuleSpec {
        description: Some("like ABC".into()),
        ..RuleSpec::new("theirs", &address, 81, 30081)
    });
    let found = async |parameters: &[(&str, &str)]| {
        let found = caller.get("listLoadBalancerRules", parameters).await;
        each(&found, "loadbalancerrule", "name")
    };
    assert_eq!(
        found(&[("keyword", "abc")]).await,
        ["abc-tcp-80", "abc-tcp-8080", "theirs"]
    );
    assert_eq!(found(&[("name", "abc-tcp-80")]).await, ["abc-tcp-80"]);
    assert_eq!(found(&[("publicipid", &address)]).await.len(), 3);
    let network = sim.network();
    assert_eq!(found(&[("networkid", &network)]).await.len(), 3);
    assert_eq!(
        caller
            .refusal("listLoadBalancerRules", &[("publicipid", "7f")])
            .await
            .0,
        431
    );
}

#[tokio::test(start_paused = true)]
async fn wrong_rules_are_refused_at_once() {
    let (sim, vms) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    let other = sim.add_network(NetworkSpec::new("other"));
    let wrong: [(&[(&str, &str)], &str); 11] = [
        (&[("privateport", "0")], "privatePort is an invalid value: 0"),
        (
            &[("privateport", "65536")],
            "privatePort is an invalid value: 65536",
        ),
        (&[("publicport", "-1")], "publicPort is an invalid value: -1"),
        (
            &[("publicport", "https")],
            "Invalid parameter publicport value=https",
        ),
        (&[("algorithm", "random")], "Invalid algorithm: random"),
        (&[("protocol", "SCTP")], "Invalid protocol: SCTP"),
        (&[("cidrlist", "10.9.0.0/33")], "CIDR [10.9.0.0/33] is invalid."),
        (&[("name", "")], "due to missing parameter name"),
        (&[("publicport", "")], "due to missing parameter publicport"),
        (&[("publicipid", "7f")], "Invalid parameter publicipid value=7f"),
        (&[("networkid", &other)], "is not associated with network"),
    ];
    for (more, fragment) in wrong {
        let refused = caller.try_rule(&address, "a", 80, more).await.unwrap_err();
        assert!(refused.0 == 431 && refused.1.contains(fragment), "{refused:?}");
    }
    sim.set_static_nat(&address, Some(&vms[0]));
    assert_eq!(caller.try_rule(&address, "a", 80, &[]).await.unwrap_err().0, 431);
    sim.set_static_nat(&address, None);
    sim.edit_network(&sim.network(), |it| it.services.retain(|name| name != "Lb"));
    let refused = caller.try_rule(&address, "a", 80, &[]).await.unwrap_err();
    assert!(
        refused.1.starts_with("LB service is not supported in network"),
        "{refused:?}"
    );
    assert!(
        sim.rules().is_empty() && sim.jobs().len() == 1,
        "no job was begun"
    );
}

#[tokio::test(start_paused = true)]
async fn port_of_the_routers_own_dns_is_refused() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let found = caller
        .get("listPublicIpAddresses", &[("issourcenat", "true")])
        .await;
    let router = text(&found["publicipaddress"][0]["id"]);
    assert_eq!(caller.try_rule(&router, "dns", 53, &[]).await.unwrap_err().0, 431);
    caller.rule(&router, "web", 80).await;
    let address = caller.associate().await;
    caller.rule(&address, "dns", 53).await;
}

#[tokio::test(start_paused = true)]
async fn port_is_held_once_whatever_the_protocol() {
    let (sim, vms) = cloud();
    sim.set_behaviour(Behaviour::carry_everything);
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    caller.rule(&address, "a", 443).await;
    let number = sim.rules()[0].number;
    for protocol in ["tcp", "udp", "tcp-proxy"] {
        let refused = caller
            .try_rule(&address, "b", 443, &[("protocol", protocol)])
            .await
            .unwrap_err();
        let text = format!("The range specified, 443-443, conflicts with rule {number} which has 443-443");
        assert_eq!(refused, (537, text));
    }
    sim.add_port_forwarding(&address, 22, &vms[0]);
    assert_eq!(caller.try_rule(&address, "c", 22, &[]).await.unwrap_err().0, 537);
    let elsewhere = caller.associate().await;
    caller.rule(&elsewhere, "a", 443).await;
    assert_eq!(
        sim.check_invariants().len(),
        1,
        "names need not be unique, which the handle tells"
    );
    sim.set_behaviour(|it| it.protocols_conflict = false);
    let udp = [("protocol", "udp")];
    assert!(caller.try_rule(&address, "d", 443, &udp).await.is_ok());
    assert_eq!(
        caller.try_rule(&address, "e", 443, &udp).await.unwrap_err().0,
        537
    );
    assert_eq!(
        caller
            .try_rule(&address, "e", 443, &[("protocol", "tcp-proxy")])
            .await
            .unwrap_err()
            .0,
        537
    );
}

#[tokio::test(start_paused = true)]
async fn lists_of_clients_depend_on_the_version() {
    let sim = CloudstackSim::builder().version("4.17.2.0").build();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    let restricted = [("cidrlist", "10.9.0.0/16,192.0.2.0/24")];
    let refused = caller.try_rule(&address, "a", 80, &restricted).await.unwrap_err();
    assert!(
        refused.0 == 431 && refused.1.starts_with("Parameter cidrList is deprecated"),
        "{refused:?}"
    );
    assert_eq!(
        caller
            .try_rule(&address, "a", 80, &[("cidrlist", "")])
            .await
            .unwrap_err()
            .0,
        431
    );
    let made = caller.try_rule(&address, "a", 80, &[]).await.unwrap();
    assert_eq!(made["loadbalancer"].get("cidrlist"), None);

    sim.set_behaviour(|it| it.version = "4.18.0.0".to_owned());
    let made = caller.try_rule(&address, "b", 81, &restricted).await.unwrap();
    assert_eq!(made["loadbalancer"]["cidrlist"], "10.9.0.0/16 192.0.2.0/24");
    let empty = caller
        .try_rule(&address, "c", 82, &[("cidrlist", "")])
        .await
        .unwrap();
    assert_eq!(empty["loadbalancer"]["cidrlist"], "");
    let id = text(&made["loadbalancer"]["id"]);
    let change = [
        ("id", id.as_str()),
        ("algorithm", "source"),
        ("cidrlist", "198.51.100.0/24,10.0.0.0/8"),
    ];
    let same = caller.run("updateLoadBalancerRule", &change).await.unwrap();
    assert_eq!(
        same["loadbalancer"]["cidrlist"], "10.9.0.0/16 192.0.2.0/24",
        "ignored"
    );
    assert_eq!(same["loadbalancer"]["algorithm"], "source");

    sim.set_behaviour(|it| it.version = "4.22.0.0-SNAPSHOT".to_owned());
    let changed = caller.run("updateLoadBalancerRule", &change).await.unwrap();
    assert_eq!(changed["loadbalancer"]["cidrlist"], "198.51.100.0/24,10.0.0.0/8");
    let opened = caller
        .run("updateLoadBalancerRule", &[("id", &id), ("cidrlist", "")])
        .await
        .unwrap();
    assert_eq!(opened["loadbalancer"]["cidrlist"], "");
}

#[tokio::test(start_paused = true)]
async fn rule_is_renamed_and_changed_in_place() {
    let (sim, vms) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    let id = caller.rule(&address, "a-tcp-443", 443).await;
    sim.add_member(&id, &vms[0]);
    let change = [
        ("id", id.as_str()),
        ("name", "a-tcp-proxy-443"),
        ("protocol", "tcp-proxy"),
        ("description", "x"),
    ];
    let changed = caller.run("updateLoadBalancerRule", &change).await.unwrap();
    let rule = &changed["loadbalancer"];
    assert_eq!(
        (&rule["id"], &rule["name"]),
        (&json!(id), &json!("a-tcp-proxy-443"))
    );
    assert_eq!(
        (&rule["protocol"], &rule["algorithm"]),
        (&json!("tcp-proxy"), &json!("roundrobin"))
    );
    assert_eq!(sim.rules()[0].members, [vms[0].clone()]);
    for (parameter, value) in [("algorithm", "x"), ("protocol", "sctp")] {
        let change = [("id", id.as_str()), (parameter, value)];
        assert_eq!(caller.refusal("updateLoadBalancerRule", &change).await.0, 431);
    }
    assert_eq!(
        caller.refusal("updateLoadBalancerRule", &[("id", "7f")]).await.0,
        431
    );
    assert_eq!(
        caller.refusal("deleteLoadBalancerRule", &[("id", "7f")]).await.0,
        431
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_takes_networks_of_ipv4_only() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    let id = caller.rule(&address, "a", 443).await;
    for list in ["x", "10.0.0.1", "2001:db8::/32", "0.0.0.0/0,::/0"] {
        let change = [("id", id.as_str()), ("cidrlist", list)];
        let refused = caller.run("updateLoadBalancerRule", &change).await.unwrap_err();
        assert_eq!(refused, (431, format!("Invalid CIDR list: {list}")));
        let new = [("cidrlist", list)];
        let port = u16::try_from(list.len()).unwrap();
        let made = caller.try_rule(&address, list, port, &new).await;
        assert_eq!(made.is_ok(), list != "x", "{list}");
    }
    assert_eq!(sim.rule_named("a").unwrap().cidrs, None);
}

#[tokio::test(start_paused = true)]
async fn a_protocol_that_is_updated_reaches_the_router_only_where_the_server_is_so_kind() {
    for (updates, stored, in_force, later) in [
        (ProtocolUpdates::Stored, "tcp-proxy", "tcp", "tcp-proxy"),
        (ProtocolUpdates::Ignored, "tcp", "tcp", "tcp"),
        (ProtocolUpdates::Applied, "tcp-proxy", "tcp-proxy", "tcp-proxy"),
    ] {
        let (sim, vms) = cloud();
        sim.set_behaviour(|it| it.protocol_updates = updates);
        let caller = Caller::new(&sim);
        let address = caller.associate().await;
        let id = caller.rule(&address, "a", 443).await;
        sim.add_member(&id, &vms[0]);
        let change = [
            ("id", id.as_str()),
            ("algorithm", "roundrobin"),
            ("protocol", "tcp-proxy"),
        ];
        caller.run("updateLoadBalancerRule", &change).await.unwrap();
        let protocols = || {
            let of = |rule: LoadBalancerRule| rule.protocol.unwrap_or("tcp".to_owned());
            (
                of(sim.rule_named("a").unwrap()),
                of(sim.carried_rule(&id).unwrap()),
            )
        };
        assert_eq!(
            protocols(),
            (stored.to_owned(), in_force.to_owned()),
            "{updates:?}"
        );
        assert_eq!(sim.check_invariants().is_empty(), stored == in_force);
        // Whatever the router is told next tells it everything.
        sim.add_member(&id, &vms[1]);
        assert_eq!(protocols(), (stored.to_owned(), later.to_owned()), "{updates:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_virtual_router_carries_no_udp_and_keeps_its_statistics_port() {
    let (sim, _) = cloud();
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    let refused = (431, "LB service provider cannot support this rule".to_owned());
    caller.rule(&address, "a", 53).await;
    for (port, protocol) in [(53, "udp"), (4500, "UDP"), (8081, "tcp")] {
        let answer = caller
            .try_rule(&address, "b", port, &[("protocol", protocol)])
            .await;
        assert_eq!(answer.unwrap_err(), refused, "{protocol} {port}");
    }
    sim.set_behaviour(Behaviour::carry_everything);
    for (port, protocol) in [(4500, "udp"), (8081, "tcp")] {
        caller
            .try_rule(&address, "b", port, &[("protocol", protocol)])
            .await
            .unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn firewall_is_opened_for_a_rule_that_does_not_forbid_it() {
    let (sim, _) = cloud();
    sim.set_behaviour(Behaviour::carry_everything);
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    caller
        .try_rule(
            &address,
            "a",
            80,
            &[("openfirewall", "true"), ("protocol", "udp")],
        )
        .await
        .unwrap();
    let opened = &sim.firewall_rules()[0];
    assert_eq!((opened.protocol.as_str(), opened.ports), ("udp", Some((80, 80))));
    let rule = sim.rules()[0].id.clone();
    caller
        .run("deleteLoadBalancerRule", &[("id", &rule)])
        .await
        .unwrap();
    assert_eq!(
        sim.firewall_rules().len(),
        1,
        "the firewall rule outlives the rule"
    );
}

#[tokio::test(start_paused = true)]
async fn old_rules_lack_what_they_were_made_without() {
    let behaviour = Behaviour::default();
    let sim = CloudstackSim::builder().behaviour(behaviour).build();
    let vm = sim.add_vm(VmSpec::new("w"));
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    let mut spec = RuleSpec {
        members: vec![vm.to_owned()],
        ..RuleSpec::new("a-80", &address, 80, 30080)
    };
    spec.protocol = None;
    let id = sim.add_rule(spec);
    let found = caller.get("listLoadBalancerRules", &[("id", &id)]).await;
    let rule = &found["loadbalancerrule"][0];
    assert_eq!((rule.get("protocol"), rule.get("cidrlist")), (None, None));
    assert_eq!(rule["state"], "Active");
    assert_eq!(sim.rule_named("a-80").unwrap().state, RuleState::Active);
    assert_eq!(sim.member_names(&id), ["w"]);
    assert!(sim.remove_rule(&id) && !sim.remove_rule(&id));
}

#[tokio::test(start_paused = true)]
async fn a_protocol_is_listed_as_it_was_sent() {
    let (sim, _) = cloud();
    sim.set_behaviour(Behaviour::carry_everything);
    let caller = Caller::new(&sim);
    let address = caller.associate().await;
    for (port, sent) in [(80, None), (443, Some("TCP")), (53, Some("UDP"))] {
        let more: Vec<(&str, &str)> = sent.map(|word| ("protocol", word)).into_iter().collect();
        let made = caller.try_rule(&address, "a", port, &more).await.unwrap();
        assert_eq!(made["loadbalancer"]["protocol"].as_str(), sent);
    }
    assert!(
        caller
            .try_rule(&address, "b", 443, &[("protocol", "tcp")])
            .await
            .is_err()
    );
}
