use std::sync::Arc;

use bowline_cloud_http::Url;
use bowline_cloud_provider::{LoadBalancerStep, Node, Service};
use bowline_cloudscale_client::LoadBalancer;
use bowline_plan::{Refusal, Step as _};
use serde_json::{Value, from_value, json};
use uuid::Uuid;

use super::super::members;
use super::*;
use crate::load_balancer::intent::{Identity, Intent, Membership};
use crate::load_balancer::observe::{Memory, Observed, ObservedPool};
use crate::nodes::servers;

fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

fn stub(number: u128) -> Value {
    json!({ "uuid": id(number) })
}

/// Server `n1` has the address 10.0.0.1, and so on.
fn server(number: u128) -> Value {
    let address = json!({ "address": format!("10.0.0.{number}"), "subnet": { "uuid": "s" } });
    json!({
        "uuid": id(number), "name": format!("n{number}"), "status": "running", "zone": { "slug": "rma1" },
        "flavor": { "slug": "flex-8-4" }, "interfaces": [{ "type": "private", "addresses": [address] }]
    })
}

/// The balancer 7, without a mark.
fn balancer(name: &str) -> LoadBalancer {
    let balancer = json!({
        "uuid": id(7), "name": name, "status": "running", "zone": { "slug": "rma1" },
        "flavor": { "slug": "lb-standard" }, "vip_addresses": []
    });
    from_value(balancer).unwrap()
}

/// A pool with members on servers, each reached on one port and checked on another.
fn pool(number: u128, name: &str, members: &[(u128, u16, u16)]) -> ObservedPool {
    let pool = json!({
        "uuid": id(number), "name": name, "load_balancer": stub(7), "algorithm": "source_ip", "protocol": "proxy"
    });
    let member = |(server, port, monitor_port): &(u128, u16, u16)| {
        let member = json!({
            "uuid": id(0xe0 + server), "name": format!("10.0.0.{server}:{port}"), "address": format!("10.0.0.{server}"),
            "protocol_port": port, "monitor_port": monitor_port, "subnet": { "uuid": "s" }
        });
        from_value(member).unwrap()
    };
    ObservedPool {
        members: members.iter().map(member).collect(),
        ..ObservedPool::new(from_value(pool).unwrap())
    }
}

fn backend(pool_name: &str, node_port: u16, monitor_port: u16) -> Backend {
    Backend {
        pool_name: pool_name.to_owned(),
        node_port,
        monitor_port,
    }
}

/// What comes next for the Service `u1`, served on the nodes `n1` and `n2`.
fn next(backends: &[Backend], balancer: LoadBalancer, pools: Vec<ObservedPool>) -> Vec<String> {
    let node = |name| Arc::new(Node::named(name));
    let unclear = Unclear {
        identity: Identity {
            service: "web".into(),
            uid: "u1".into(),
            annotated: None,
            is_published: true,
            name: balancer.name.clone(),
            adopts_unmarked: true,
            cluster_name: None,
            services: Arc::new(Vec::<Arc<Service>>::new()),
        },
        membership: Membership {
            selected_by: None,
            nodes: vec![node("n1"), node("n2")],
            allowed_subnets: Vec::new(),
        },
        backends: backends.to_vec(),
        monitor: None,
        tags: Arc::default(),
        refusal: Refusal::new("wrong"),
        notes: Vec::new(),
    };
    let servers = [server(1), server(2)].map(|server| from_value(server).unwrap());
    let observed = Observed {
        pools_of: Some(balancer.uuid),
        balancers: vec![balancer],
        pools,
        servers: Arc::new(servers::index(servers.into())),
        ..Observed::default()
    };
    let seen = Seen {
        observed,
        memory: Memory::default(),
    };
    let hrefs = Hrefs::new(&Url::parse("http://x").unwrap());
    let intent = Intent::Unclear(Box::new(unclear));
    match super::super::plan(&hrefs, &intent, &seen).answer {
        Answer::Refused(refusal) => vec![refusal.to_string()],
        Answer::Apply(wave) => wave.steps().iter().map(label).collect(),
        other => panic!("{other:?}"),
    }
}

fn label(step: &LoadBalancerStep<CloudStep>) -> String {
    let LoadBalancerStep::Cloud(step) = step else {
        panic!("a write to Kubernetes")
    };
    step.label().replace("00000000-0000-0000-0000-0000000000", "")
}

#[test]
fn every_pool_of_a_port_follows_and_no_pool_of_another_one() {
    let pools = || {
        vec![
            pool(0xa1, "tcp/web", &[(1, 30080, 30080)]),
            pool(0xa2, "tcp/web", &[]),
            pool(0xa3, "tcp/more", &[(9, 30081, 30081)]),
        ]
    };
    let own = balancer("k8s-service-u1");
    let ports = [backend("tcp/web", 30080, 30080), backend("tcp/new", 30082, 30082)];
    assert_eq!(
        next(&ports, own.clone(), pools()),
        [
            "create-pool-member(a1/10.0.0.2:30080)",
            "create-pool-member(a2/10.0.0.1:30080)",
            "create-pool-member(a2/10.0.0.2:30080)",
        ]
    );
    assert_eq!(next(&ports[1..], own, pools()), ["wrong"]);
    // It is asked for by its name, and nothing says that it ever was the Service's.
    assert_eq!(next(&ports, balancer("edge"), pools()), ["wrong"]);
}

#[test]
fn who_left_is_deleted_when_nobody_is_missing() {
    let members = [(1, 30080, 30080), (2, 30080, 30080), (3, 30080, 30080)];
    let pools = vec![pool(0xa1, "tcp", &members)];
    assert_eq!(
        next(&[backend("tcp", 30080, 30080)], balancer("k8s-service-u1"), pools),
        ["delete-resource(http://x/v1/load-balancers/pools/a1/members/e3)"]
    );
}

#[test]
fn members_are_probed_where_the_monitor_that_stays_finds_its_answer() {
    // What the Service says; what the member that is there has; where the one that comes is probed, if that one stays.
    for (says, there, comes) in [
        ((30080, 30080), (30080, 30080), 30080),
        ((30080, 32500), (30080, 32500), 32500),
        ((30080, 32500), (30080, 30080), 30080),
        ((30080, 30080), (30080, 32500), 32500),
    ] {
        let backend = backend("tcp", says.0, says.1);
        let there = pool(0xa1, "tcp", &[(1, there.0, there.1)]);
        let as_monitored = members::as_monitored(&backend, &there);
        assert_eq!(as_monitored.monitor_port, comes, "{says:?}");
        let steps = next(&[backend], balancer("k8s-service-u1"), vec![there]);
        assert_eq!(steps, ["create-pool-member(a1/10.0.0.2:30080)"]);
    }
    // With other ports of the same kind, all are new.
    for says in [(30090, 30090), (30090, 32600)] {
        let there = pool(
            0xa1,
            "tcp",
            &[(1, 30080, if says.0 == says.1 { 30080 } else { 32500 })],
        );
        let as_monitored = members::as_monitored(&backend("tcp", says.0, says.1), &there);
        assert_eq!((as_monitored.node_port, as_monitored.monitor_port), says);
    }
    let nobody = pool(0xa1, "tcp", &[]);
    let as_monitored = members::as_monitored(&backend("tcp", 30080, 32500), &nobody);
    assert_eq!(as_monitored.monitor_port, 32500);
}
