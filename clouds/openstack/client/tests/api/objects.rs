use bowline_openstack_client::{
    AddressKind, Class, Direction, EtherType, PortStatus, SecurityGroupRule, ServerStatus,
};

use crate::cloud::{Answer, client, neutron, octavia, refusal};

#[tokio::test(start_paused = true)]
async fn recorded_servers_and_flavors_are_read() {
    let (client, _) = client([
        Answer::ok(include_str!("recorded/server.json")),
        Answer::ok(include_str!("recorded/flavor.json")),
    ]);
    let server = client.server("0515d69e").await.unwrap().unwrap();
    assert_eq!(
        (server.name.as_str(), &server.status),
        ("node-1", &ServerStatus::Active)
    );
    assert_eq!(server.availability_zone, "nova");
    let addresses = server.addresses.get("private").unwrap();
    assert_eq!(addresses[1].addr, "10.0.0.248");
    assert_eq!(addresses[1].kind, Some(AddressKind::Fixed));
    let flavor = client.flavor("fa7b4d67").await.unwrap().unwrap();
    assert_eq!(server.flavor.id, Some(flavor.id));
    assert!(!flavor.name.is_empty());
}

#[tokio::test(start_paused = true)]
async fn recorded_objects_of_neutron_are_read() {
    let (client, _) = neutron(
        [
            include_str!("recorded/ports.json"),
            include_str!("recorded/router.json"),
            include_str!("recorded/networks.json"),
            include_str!("recorded/subnets.json"),
            include_str!("recorded/floating-ips.json"),
            include_str!("recorded/security-groups.json"),
        ]
        .map(Answer::ok),
    );
    let ports = client.ports(&Default::default()).await.unwrap();
    assert_eq!(ports[0].status, PortStatus::Active);
    assert_eq!(ports[0].port_security_enabled, Some(true));
    assert!(ports[0].revision_number.is_some() && ports[0].fixed_ips.len() == 2);
    let router = client.router(&"r".into()).await.unwrap().unwrap();
    assert_eq!(router.routes[0].nexthop, "10.0.0.248");
    let networks = client.networks().await.unwrap();
    assert_eq!(networks.iter().filter(|network| network.is_external).count(), 1);
    let subnets = client.subnets().await.unwrap();
    assert!(
        subnets
            .iter()
            .all(|subnet| subnet.ip_version == 4 || subnet.ip_version == 6)
    );
    let floating_ips = client.floating_ips().await.unwrap();
    assert_eq!(floating_ips[0].floating_ip_address, "198.51.100.11");
    let groups = client.security_groups().await.unwrap();
    assert_eq!(groups[0].name, "lb-sg-uid-default-web");
    // Every new group lets everything out.
    let families: Vec<_> = groups[0]
        .rules
        .iter()
        .map(|rule| rule.ethertype.clone())
        .collect();
    assert_eq!(families, [Some(EtherType::Ipv6), Some(EtherType::Ipv4)]);
    let is_open = |rule: &SecurityGroupRule| rule.direction == Direction::Egress && rule.protocol.is_none();
    assert!(groups[0].rules.iter().all(is_open));
}

#[tokio::test(start_paused = true)]
async fn octavias_versions_come_in_its_own_order() {
    let recorded = include_str!("recorded/octavia-versions.json");
    // What stands before it may answer as the other services do.
    for answer in [Answer::ok(recorded), refusal(300, recorded)] {
        let (client, api) = octavia([answer]);
        let versions = client.load_balancer_versions().await.unwrap();
        assert_eq!(versions.len(), 31);
        assert_eq!(versions.last().unwrap().id, "v2.30");
        assert_eq!(crate::cloud::lines(&api, 2), ["GET http://127.0.0.1:19876/"]);
    }
    let (client, _) = octavia([refusal(300, "elsewhere")]);
    client.load_balancer_versions().await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn what_is_null_or_missing_is_empty_and_unknown_words_are_kept() {
    let (client, _) = octavia([
        Answer::ok(
            r#"{"listeners": [{"id": "l", "protocol": "PROMETHEUS", "protocol_port": 80, "allowed_cidrs": null,
                "insert_headers": null, "tags": null}]}"#,
        ),
        Answer::ok(
            r#"{"loadbalancer": {"id": "b", "provisioning_status": "THINKING", "additional_vips": null}}"#,
        ),
    ]);
    let listeners = client.listeners().await.unwrap();
    assert_eq!(listeners[0].protocol.as_str(), "PROMETHEUS");
    assert!(listeners[0].allowed_cidrs.is_empty() && listeners[0].insert_headers.is_empty());
    let balancer = client.load_balancer(&"b".into()).await.unwrap().unwrap();
    assert_eq!(balancer.provisioning_status.as_str(), "THINKING");
    assert_eq!(balancer.vip_port_id, None);
}

/// One such object must not hide all others of its list.
#[tokio::test(start_paused = true)]
async fn null_is_an_empty_list_wherever_a_list_may_stand() {
    let (client, _) = neutron(
        [
            r#"{"router": {"id": "r", "routes": null}}"#,
            r#"{"security_groups": [{"id": "g", "security_group_rules": null}]}"#,
            r#"{"ports": [{"id": "p", "tags": null, "fixed_ips": null, "allowed_address_pairs": null,
                "security_groups": null, "trunk_details": {"sub_ports": null}}]}"#,
            r#"{"networks": [{"id": "n", "subnets": null}]}"#,
        ]
        .map(Answer::ok),
    );
    assert!(
        client
            .router(&"r".into())
            .await
            .unwrap()
            .unwrap()
            .routes
            .is_empty()
    );
    assert!(client.security_groups().await.unwrap()[0].rules.is_empty());
    let ports = client.ports(&Default::default()).await.unwrap();
    assert_eq!((ports[0].network_id.clone(), ports[0].tags.len()), (None, 0));
    assert!(client.networks().await.unwrap()[0].subnets.is_empty());
    let (client, _) = crate::cloud::client([Answer::ok(
        r#"{"servers": [{"id": "a"}, {"id": "b", "addresses": null, "metadata": null},
            {"id": "c", "addresses": {"private": null}}]}"#,
    )]);
    let servers = client.servers().await.unwrap();
    assert!(
        servers
            .iter()
            .all(|server| server.addresses.iter().all(|(_, all)| all.is_empty()))
    );
}

/// All that is not listed would be created.
#[tokio::test(start_paused = true)]
async fn a_router_without_routes_and_a_group_without_rules_are_no_answers() {
    let (client, _) = neutron([Answer::ok(r#"{"router": {"id": "r"}}"#)]);
    let error = client.router(&"r".into()).await.unwrap_err();
    assert_eq!(error.class, Class::Unusable);
    let (client, _) = neutron([Answer::ok(r#"{"security_groups": [{"id": "g", "name": "n"}]}"#)]);
    assert!(client.security_groups().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_nothing_is_written_on_is_told_without_a_description() {
    let (client, _) = octavia([Answer::ok(
        r#"{"pools": [{"id": "a", "protocol": "TCP", "description": "what it is for"},
            {"id": "b", "protocol": "TCP", "description": null}, {"id": "c", "protocol": "TCP"}]}"#,
    )]);
    let pools = client.pools().await.unwrap();
    let descriptions: Vec<_> = pools.iter().map(|pool| pool.description.as_str()).collect();
    assert_eq!(descriptions, ["what it is for", "", ""]);
}
