//! What is read from answers.

use bowline_cloudscale_client::{
    FloatingIpType, InterfaceType, LoadBalancerStatus, Monitor, MonitorStatus, MonitorType, PoolProtocol,
    Server, ServerId, ServerStatus,
};

use crate::answers::{Answer, Api, BALANCER, FLOATING_IP, LISTENER, MEMBER, MONITOR, POOL, SERVER, list};

#[tokio::test(start_paused = true)]
async fn a_server_keeps_the_order_of_its_interfaces_and_addresses() {
    let api = Api::new([Answer::ok(&list(SERVER))]);
    let server = api.client().servers().await.unwrap().remove(0);
    assert_eq!(server.uuid.to_string(), "11111111-aaaa-4aaa-8aaa-000000000001");
    assert_eq!(
        (server.name.as_str(), server.status),
        ("worker-1", ServerStatus::Running)
    );
    assert_eq!((&*server.zone.slug, &*server.flavor.slug), ("lpg1", "flex-4-2"));
    let interfaces: Vec<_> = server
        .interfaces
        .iter()
        .map(|interface| {
            let addresses: Vec<_> = interface
                .addresses
                .iter()
                .map(|found| found.address.as_str())
                .collect();
            (interface.kind.clone(), addresses)
        })
        .collect();
    assert_eq!(
        interfaces,
        [
            (InterfaceType::Public, vec!["192.0.2.17", "2001:db8:1::17"]),
            (InterfaceType::Private, vec!["10.9.0.17"]),
            (InterfaceType::Private, vec![]),
        ]
    );
    let subnet = server.interfaces[1].addresses[0].subnet.as_ref().unwrap();
    assert_eq!(&*subnet.uuid, "22222222-aaaa-4aaa-8aaa-000000000003");
}

#[tokio::test(start_paused = true)]
async fn every_part_of_a_balancer_is_read() {
    let api = Api::new(
        [BALANCER, POOL, MEMBER, LISTENER, MONITOR, FLOATING_IP].map(|object| Answer::ok(&list(object))),
    );
    let client = api.client();
    let balancer = client.load_balancers().await.unwrap().remove(0);
    assert_eq!(balancer.status, LoadBalancerStatus::Changing);
    assert_eq!(balancer.vip_addresses[1].address, "2001:db8:1::80");
    assert_eq!(
        balancer.tags.text("k8s-service-uid"),
        Some("77777777-aaaa-4aaa-8aaa-000000000001")
    );
    let pool = client.pools().await.unwrap().remove(0);
    assert_eq!(pool.load_balancer.uuid, balancer.uuid);
    assert_eq!(pool.protocol, PoolProtocol::ProxyV2);
    let member = client.members(pool.uuid).await.unwrap().remove(0);
    assert_eq!((member.protocol_port, member.monitor_port), (30081, None));
    assert_eq!(member.monitor_status, Some(MonitorStatus::NoMonitor));
    let listener = client.listeners().await.unwrap().remove(0);
    assert_eq!(listener.pool, None);
    assert_eq!(listener.allowed_cidrs, ["198.51.100.0/24", "192.0.2.0/25"]);
    assert_eq!(listener.timeout_client_data_ms, Some(0));
    let monitor = client.monitors().await.unwrap().remove(0);
    assert_eq!(monitor.kind, MonitorType::Https);
    assert_eq!(monitor.http.unwrap().expected_codes, ["200-204"]);
    let floating_ip = client.floating_ips().await.unwrap().remove(0);
    assert_eq!(floating_ip.network, "203.0.113.5/32");
    assert_eq!(floating_ip.kind, Some(FloatingIpType::Global));
    assert!(floating_ip.load_balancer.is_none() && floating_ip.region.is_none());
}

#[test]
fn unknown_words_are_kept_and_only_used_fields_are_required() {
    let server: Server = serde_json::from_str(
        r#"{"uuid": "11111111AAAA4AAA8AAA000000000001", "name": "n", "status": "hibernating",
            "zone": {"slug": "z"}, "flavor": {"slug": "f"}, "interfaces": null, "tags": null}"#,
    )
    .unwrap();
    assert_eq!(server.status, ServerStatus::Other("hibernating".to_owned()));
    assert_eq!(server.status.as_str(), "hibernating");
    // Any spelling of an id is the same id.
    assert_eq!(
        server.uuid,
        "urn:uuid:11111111-aaaa-4aaa-8aaa-000000000001"
            .parse::<ServerId>()
            .unwrap()
    );
    let monitor: Monitor = serde_json::from_str(
        r#"{"uuid": "88888888-aaaa-4aaa-8aaa-000000000001", "pool": {"uuid": "44444444-aaaa-4aaa-8aaa-000000000001"},
            "delay_s": 2, "timeout_s": 1, "up_threshold": 2, "down_threshold": 3, "type": "tcp", "http": null}"#,
    )
    .unwrap();
    assert_eq!(monitor.http, None);
}
