use bowline_openstack_client::{
    AddressPair, ListenerAttributes, ListenerProtocol, ListenerUpdate, LoadBalancerUpdate, MemberSettings,
    MemberUpdate, MonitorType, NewFloatingIp, NewListener, NewLoadBalancer, NewMember, NewMonitor,
    NewMonitorHttp, NewPool, PoolProtocol, PoolUpdate, PortUpdate, RouterRoute,
};

use crate::cloud::{Answer, lines, neutron, octavia};

fn route() -> RouterRoute {
    RouterRoute {
        destination: "10.244.1.0/24".to_owned(),
        nexthop: "10.0.0.11".to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_written_to_neutron() {
    let port = || Answer::ok(r#"{"port": {"id": "p", "network_id": "n"}}"#);
    let router = || Answer::ok(r#"{"router": {"id": "r", "routes": []}}"#);
    let floating = || {
        Answer::Body(
            201,
            r#"{"floatingip": {"id": "f", "floating_ip_address": "a", "floating_network_id": "x"}}"#
                .to_owned(),
        )
    };
    let (client, api) = neutron([
        port(),
        port(),
        router(),
        router(),
        floating(),
        floating(),
        floating(),
    ]);
    let groups = PortUpdate {
        security_groups: Some(vec!["g".into()]),
        ..PortUpdate::default()
    };
    client.update_port(&"p".into(), &groups, Some(7)).await.unwrap();
    let revision = api.take_seen().pop().unwrap().headers["if-match"].clone();
    assert_eq!(revision, "revision_number=7");
    let pairs = PortUpdate {
        allowed_address_pairs: Some(vec![AddressPair {
            ip_address: "10.244.1.0/24".to_owned(),
            mac_address: None,
        }]),
        ..PortUpdate::default()
    };
    client.update_port(&"p".into(), &pairs, None).await.unwrap();
    client.add_routes(&"r".into(), &[route()]).await.unwrap();
    client.replace_routes(&"r".into(), &[], None).await.unwrap();
    let new = NewFloatingIp {
        floating_network_id: "x".into(),
        port_id: Some("p".into()),
        fixed_ip_address: Some("10.0.0.5".to_owned()),
        subnet_id: None,
        floating_ip_address: None,
        description: "d".to_owned(),
    };
    client.create_floating_ip(&new).await.unwrap();
    client
        .attach_floating_ip(&"f".into(), Some(&"p".into()), Some("10.0.0.5"), None)
        .await
        .unwrap();
    client
        .attach_floating_ip(&"f".into(), None, None, None)
        .await
        .unwrap();
    assert_eq!(
        lines(&api, 0),
        [
            r#"PUT http://127.0.0.1:19696/v2.0/ports/p {"port":{"allowed_address_pairs":[{"ip_address":"10.244.1.0/24"}]}}"#,
            r#"PUT http://127.0.0.1:19696/v2.0/routers/r/add_extraroutes {"router":{"routes":[{"destination":"10.244.1.0/24","nexthop":"10.0.0.11"}]}}"#,
            r#"PUT http://127.0.0.1:19696/v2.0/routers/r {"router":{"routes":[]}}"#,
            r#"POST http://127.0.0.1:19696/v2.0/floatingips {"floatingip":{"floating_network_id":"x","port_id":"p","fixed_ip_address":"10.0.0.5","description":"d"}}"#,
            r#"PUT http://127.0.0.1:19696/v2.0/floatingips/f {"floatingip":{"port_id":"p","fixed_ip_address":"10.0.0.5"}}"#,
            r#"PUT http://127.0.0.1:19696/v2.0/floatingips/f {"floatingip":{"port_id":null}}"#,
        ]
    );
}

fn new_listener() -> NewListener {
    let monitor = NewMonitor {
        pool_id: None,
        name: "monitor".to_owned(),
        kind: MonitorType::Http,
        delay: 5,
        timeout: 3,
        max_retries: 1,
        max_retries_down: 3,
        http: Some(NewMonitorHttp {
            url_path: "/healthz".to_owned(),
            http_method: "GET".to_owned(),
            expected_codes: "200".to_owned(),
        }),
    };
    let member = NewMember {
        name: "node-1".to_owned(),
        address: "10.0.0.11".to_owned(),
        protocol_port: 30080,
        subnet_id: Some("s".into()),
        monitor_port: None,
        settings: MemberSettings::default(),
    };
    let pool = NewPool {
        loadbalancer_id: None,
        listener_id: None,
        name: "pool".to_owned(),
        description: "what it is for".to_owned(),
        tags: None,
        protocol: PoolProtocol::Tcp,
        lb_algorithm: "ROUND_ROBIN".to_owned(),
        session_persistence: None,
        members: vec![member],
        healthmonitor: Some(monitor),
    };
    NewListener {
        loadbalancer_id: None,
        name: "listener".to_owned(),
        protocol: ListenerProtocol::Tcp,
        protocol_port: 80,
        attributes: ListenerAttributes {
            connection_limit: Some(-1),
            ..ListenerAttributes::default()
        },
        default_pool_id: None,
        default_pool: Some(pool),
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_written_to_octavia() {
    let balancer = || Answer::Body(201, r#"{"loadbalancer": {"id": "b"}}"#.to_owned());
    let (client, api) = octavia([
        balancer(),
        balancer(),
        Answer::ok(r#"{"listener": {"id": "l", "protocol": "TCP", "protocol_port": 80}}"#),
        Answer::ok(r#"{"pool": {"id": "p", "protocol": "TCP"}}"#),
        Answer::Body(202, String::new()),
        Answer::ok(r#"{"member": {"id": "m", "address": "10.0.0.11", "protocol_port": 30080}}"#),
        Answer::Body(204, String::new()),
    ]);
    let new = NewLoadBalancer {
        name: "lb".to_owned(),
        description: "d".to_owned(),
        provider: "amphora".to_owned(),
        tags: Some(vec!["lb".to_owned()]),
        vip_subnet_id: Some("s".into()),
        listeners: vec![new_listener()],
        ..NewLoadBalancer::default()
    };
    client.create_load_balancer(&new).await.unwrap();
    let tags = LoadBalancerUpdate {
        tags: Some(Vec::new()),
        ..LoadBalancerUpdate::default()
    };
    client.update_load_balancer(&"b".into(), &tags).await.unwrap();
    let ranges = ListenerUpdate {
        attributes: ListenerAttributes {
            allowed_cidrs: Some(vec!["192.0.2.0/24".to_owned()]),
            ..ListenerAttributes::default()
        },
        ..ListenerUpdate::default()
    };
    client.update_listener(&"l".into(), &ranges).await.unwrap();
    let without_persistence = PoolUpdate {
        session_persistence: Some(None),
        ..PoolUpdate::default()
    };
    client
        .update_pool(&"p".into(), &without_persistence)
        .await
        .unwrap();
    client.replace_members(&"p".into(), &[]).await.unwrap();
    let without_monitor_port = MemberUpdate {
        name: "node-1".to_owned(),
        monitor_port: None,
    };
    let (pool, member) = ("p".into(), "m".into());
    client
        .update_member(&pool, &member, &without_monitor_port)
        .await
        .unwrap();
    client.delete_load_balancer(&"b".into(), true).await.unwrap();
    const BASE: &str = "http://127.0.0.1:19876/v2.0/lbaas";
    let tree = r#"{"loadbalancer":{"name":"lb","description":"d","provider":"amphora","tags":["lb"],"vip_subnet_id":"s","listeners":[{"name":"listener","protocol":"TCP","protocol_port":80,"connection_limit":-1,"default_pool":{"name":"pool","description":"what it is for","protocol":"TCP","lb_algorithm":"ROUND_ROBIN","members":[{"name":"node-1","address":"10.0.0.11","protocol_port":30080,"subnet_id":"s"}],"healthmonitor":{"name":"monitor","type":"HTTP","delay":5,"timeout":3,"max_retries":1,"max_retries_down":3,"url_path":"/healthz","http_method":"GET","expected_codes":"200"}}}]}}"#;
    assert_eq!(
        lines(&api, 2),
        [
            format!("POST {BASE}/loadbalancers {tree}"),
            format!(r#"PUT {BASE}/loadbalancers/b {{"loadbalancer":{{"tags":[]}}}}"#),
            format!(r#"PUT {BASE}/listeners/l {{"listener":{{"allowed_cidrs":["192.0.2.0/24"]}}}}"#),
            format!(r#"PUT {BASE}/pools/p {{"pool":{{"session_persistence":null}}}}"#),
            format!(r#"PUT {BASE}/pools/p/members {{"members":[]}}"#),
            format!(r#"PUT {BASE}/pools/p/members/m {{"member":{{"name":"node-1","monitor_port":null}}}}"#),
            format!("DELETE {BASE}/loadbalancers/b?cascade=true"),
        ]
    );
}
