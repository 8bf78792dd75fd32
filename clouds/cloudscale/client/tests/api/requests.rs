//! What is sent: one snapshot of every call.

use std::sync::Arc;

use std::fmt::Write;

use bowline_cloudscale_client::{
    Deleted, HttpChange, ListenerChange, ListenerProtocol, LoadBalancerId, MemberId, MonitorChange,
    MonitorHttp, MonitorId, MonitorType, NewListener, NewLoadBalancer, NewMember, NewMonitor, NewPool,
    NewVipAddress, PoolAlgorithm, PoolId, PoolProtocol, ServerId, Tags,
};

use crate::answers::{Answer, Api, BALANCER, LISTENER, MEMBER, MONITOR, POOL, SERVER, TOKEN};

/// Ids of each kind that tell their kind.
fn id<T: std::str::FromStr<Err: std::fmt::Debug>>(kind: char) -> T {
    #[expect(clippy::unwrap_used, reason = "what helps a test may fail it")]
    "00000000-aaaa-4aaa-8aaa-000000000001"
        .replace("00000000-", &format!("{}-", kind.to_string().repeat(8)))
        .parse()
        .unwrap()
}

fn created(object: &str) -> Answer {
    Answer::Body(201, object.to_owned())
}

fn done() -> Answer {
    Answer::Body(204, String::new())
}

/// Method, URL and body of each request, and whether the headers are right.
fn shown(api: &Api) -> String {
    let mut text = String::new();
    for seen in api.take_seen() {
        assert_eq!(seen.headers["authorization"], format!("Bearer {TOKEN}"));
        assert_eq!(seen.headers["accept"], "application/json");
        assert_eq!(seen.headers.contains_key("content-type"), !seen.body.is_empty());
        assert!(
            seen.headers
                .get("content-type")
                .is_none_or(|found| found == "application/json")
        );
        let _ = writeln!(text, "{}", format!("{} {}", seen.line, seen.body).trim_end());
    }
    text
}

fn new_balancer() -> NewLoadBalancer {
    NewLoadBalancer {
        name: "shop".to_owned(),
        flavor: "lb-standard".to_owned(),
        vip_addresses: vec![],
        zone: None,
        tags: Arc::default(),
    }
}

fn new_listener() -> NewListener {
    NewListener {
        name: "tcp/81".to_owned(),
        pool: id('4'),
        protocol: ListenerProtocol::Tcp,
        protocol_port: 81,
        allowed_cidrs: vec![],
        timeout_client_data_ms: 0,
        timeout_member_connect_ms: 5000,
        timeout_member_data_ms: 50000,
        tags: Arc::default(),
    }
}

fn new_monitor(http: MonitorHttp) -> NewMonitor {
    NewMonitor {
        pool: id('4'),
        delay_s: 0,
        timeout_s: 1,
        up_threshold: 2,
        down_threshold: 3,
        kind: MonitorType::Http,
        http,
        tags: Arc::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn every_read_has_its_path() {
    let lists = (0..6).map(|_| Answer::ok("[]"));
    let api = Api::new(
        [Answer::ok(SERVER), Answer::ok(BALANCER)]
            .into_iter()
            .chain(lists)
            .chain([Answer::ok("[]")]),
    );
    let client = api.client();
    client.server(id::<ServerId>('1')).await.unwrap();
    client.load_balancer(id::<LoadBalancerId>('3')).await.unwrap();
    client.servers().await.unwrap();
    client.load_balancers().await.unwrap();
    client.pools().await.unwrap();
    client.members(id::<PoolId>('4')).await.unwrap();
    client.listeners().await.unwrap();
    client.monitors().await.unwrap();
    client.floating_ips().await.unwrap();
    insta::assert_snapshot!(shown(&api));
}

#[tokio::test(start_paused = true)]
async fn every_create_has_its_body() {
    let api = Api::new(
        [
            BALANCER, BALANCER, POOL, MEMBER, LISTENER, LISTENER, MONITOR, MONITOR,
        ]
        .map(created),
    );
    let client = api.client();
    client.create_load_balancer(&new_balancer()).await.unwrap();
    let balancer = NewLoadBalancer {
        vip_addresses: vec![
            NewVipAddress {
                address: Some("10.9.0.80".to_owned()),
                subnet: Some("a-subnet".to_owned()),
            },
            NewVipAddress {
                address: None,
                subnet: Some("b-subnet".to_owned()),
            },
        ],
        zone: Some("lpg1".to_owned()),
        tags: Arc::new(Tags::from([("k8s-service-uid".to_owned(), "an-uid".to_owned())])),
        ..new_balancer()
    };
    client.create_load_balancer(&balancer).await.unwrap();
    let pool = NewPool {
        name: "tcp/web".to_owned(),
        load_balancer: id('3'),
        algorithm: PoolAlgorithm::RoundRobin,
        protocol: PoolProtocol::Tcp,
        tags: Arc::default(),
    };
    client.create_pool(&pool).await.unwrap();
    let member = NewMember {
        name: "10.9.0.17:30081".to_owned(),
        protocol_port: 30081,
        monitor_port: 30081,
        address: "10.9.0.17".to_owned(),
        subnet: "a-subnet".to_owned(),
        tags: Arc::default(),
    };
    client.create_member(id('4'), &member).await.unwrap();
    client.create_listener(&new_listener()).await.unwrap();
    let listener = NewListener {
        allowed_cidrs: vec!["192.0.2.0/24".to_owned()],
        ..new_listener()
    };
    client.create_listener(&listener).await.unwrap();
    client
        .create_monitor(&new_monitor(MonitorHttp::default()))
        .await
        .unwrap();
    let http = MonitorHttp {
        expected_codes: vec!["200".to_owned(), "202".to_owned()],
        method: Some("HEAD".to_owned()),
        url_path: Some("/ready".to_owned()),
        version: Some("1.1".to_owned()),
        host: Some("shop.example".to_owned()),
    };
    client.create_monitor(&new_monitor(http)).await.unwrap();
    insta::assert_snapshot!(shown(&api));
}

#[tokio::test(start_paused = true)]
async fn every_change_has_one_attribute_and_zero_is_sent() {
    let api = Api::new((0..15).map(|_| done()));
    let client = api.client();
    client.rename_load_balancer(id('3'), "shop \"2\"").await.unwrap();
    for change in [
        ListenerChange::AllowedCidrs(vec![]),
        ListenerChange::AllowedCidrs(vec!["192.0.2.0/24".to_owned()]),
        ListenerChange::TimeoutClientDataMs(0),
        ListenerChange::TimeoutMemberConnectMs(1),
        ListenerChange::TimeoutMemberDataMs(2),
    ] {
        client.update_listener(id('6'), &change).await.unwrap();
    }
    for change in [
        MonitorChange::DelayS(0),
        MonitorChange::TimeoutS(1),
        MonitorChange::UpThreshold(2),
        MonitorChange::DownThreshold(3),
        MonitorChange::Http(HttpChange::Method("PUT".to_owned())),
        MonitorChange::Http(HttpChange::UrlPath("/live".to_owned())),
        MonitorChange::Http(HttpChange::Host(None)),
        MonitorChange::Http(HttpChange::Host(Some("shop.example".to_owned()))),
        MonitorChange::Http(HttpChange::ExpectedCodes(vec!["200-204".to_owned()])),
    ] {
        client
            .update_monitor(id::<MonitorId>('8'), &change)
            .await
            .unwrap();
    }
    insta::assert_snapshot!(shown(&api));
}

#[tokio::test(start_paused = true)]
async fn deletions_and_floating_ips_go_by_id_and_address() {
    let api = Api::new((0..7).map(|_| done()));
    let client = api.client();
    let outcomes = [
        client.delete_load_balancer(id('3')).await.unwrap(),
        client.delete_pool(id('4')).await.unwrap(),
        client.delete_member(id('4'), id::<MemberId>('5')).await.unwrap(),
        client.delete_listener(id('6')).await.unwrap(),
        client.delete_monitor(id('8')).await.unwrap(),
    ];
    assert_eq!(outcomes, [Deleted::Accepted; 5]);
    for address in ["203.0.113.5", "2001:DB8:0::5"] {
        client
            .assign_floating_ip(address.parse().unwrap(), id('3'))
            .await
            .unwrap();
    }
    insta::assert_snapshot!(shown(&api));
}

#[tokio::test(start_paused = true)]
async fn an_objects_href_is_never_followed() {
    let api = Api::new([Answer::ok(BALANCER), done()]);
    let client = api.client_with("https://proxy.example/cloudscale/", |_| {});
    let balancer = client.load_balancer(id('3')).await.unwrap();
    client.delete_load_balancer(balancer.uuid).await.unwrap();
    let lines: Vec<_> = api.take_seen().into_iter().map(|seen| seen.line).collect();
    let url = "https://proxy.example/cloudscale/v1/load-balancers/33333333-aaaa-4aaa-8aaa-000000000001";
    assert_eq!(lines, [format!("GET {url}"), format!("DELETE {url}")]);
}

#[tokio::test(start_paused = true)]
async fn the_base_url_is_resolved_as_the_go_manager_does() {
    for (base, expected) in [
        ("https://h", "GET https://h/v1/servers"),
        ("https://h/", "GET https://h/v1/servers"),
        ("https://h/v1", "GET https://h/v1/servers"),
        ("https://h/v1/", "GET https://h/v1/v1/servers"),
        ("http://h:8080/a/b", "GET http://h:8080/a/v1/servers"),
    ] {
        let api = Api::new([Answer::ok("[]")]);
        api.client_with(base, |_| {}).servers().await.unwrap();
        assert_eq!(api.take_seen()[0].line, expected, "{base}");
    }
}
