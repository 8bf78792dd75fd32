//! What Octavia's driver for OVN does not do.

use std::time::Duration;

use bowline_openstack_sim::{OpenstackSim, Provisioning};
use serde_json::{Value, json};

use crate::support::{Caller, LB};

/// A load balancer of one listener and one pool, each with one more field.
fn body(sim: &OpenstackSim, listener: &Value, pool: &Value) -> Value {
    let with = |mut base: Value, more: &Value| {
        for (name, value) in more.as_object().unwrap() {
            base[name] = value.clone();
        }
        base
    };
    let pool = with(
        json!({ "name": "pool", "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT" }),
        pool,
    );
    let listener = with(
        json!({ "protocol": "TCP", "protocol_port": 80, "default_pool": pool }),
        listener,
    );
    json!({ "loadbalancer": { "vip_subnet_id": sim.home().subnet, "provider": "ovn", "listeners": [listener] } })
}

#[tokio::test(start_paused = true)]
async fn driver_refuses_what_it_does_not_do() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let none = json!({});
    let path = format!("{LB}/loadbalancers");
    let members = |member: Value| json!({ "members": [member] });
    let probed = members(json!({ "address": "10.0.0.11", "protocol_port": 1, "monitor_port": 31000 }));
    let mixed = members(json!({ "address": "fd00::1", "protocol_port": 1 }));
    let monitor = json!({ "healthmonitor": { "type": "HTTP", "delay": 5, "timeout": 5, "max_retries": 1 } });
    let sticky = json!({ "session_persistence": { "type": "HTTP_COOKIE" } });
    for (listener, pool, why) in [
        (
            none.clone(),
            json!({ "lb_algorithm": "ROUND_ROBIN" }),
            "OVN provider does not support ROUND_ROBIN algorithm",
        ),
        (
            json!({ "protocol": "HTTP" }),
            none.clone(),
            "OVN provider does not support HTTP protocol",
        ),
        (
            none.clone(),
            json!({ "protocol": "PROXYV2" }),
            "OVN provider does not support PROXYV2 protocol",
        ),
        (
            json!({ "allowed_cidrs": ["192.0.2.0/24"] }),
            none.clone(),
            "OVN provider does not support allowed_cidrs option",
        ),
        (
            none.clone(),
            sticky,
            "OVN provider does not support HTTP_COOKIE session persistence. Only SOURCE_IP type is supported.",
        ),
        (
            none.clone(),
            probed,
            "OVN Load Balancer does not support different member monitor address or port.",
        ),
        (
            none.clone(),
            monitor,
            "OVN provider does not support HTTP health monitor type. Supported types: UDP-CONNECT, TCP",
        ),
        (
            none.clone(),
            mixed,
            "OVN provider does not support mixing IPv4/IPv6 configuration within the same Load Balancer.",
        ),
    ] {
        let (status, refused) = caller.post(&path, body(&sim, &listener, &pool)).await;
        let text = format!("Provider 'ovn' does not support a requested option: {why}");
        assert_eq!((status, &refused["faultstring"]), (501, &json!(text)));
    }
    assert!(sim.load_balancers().is_empty());
    let (status, made) = caller.post(&path, body(&sim, &none, &none)).await;
    assert_eq!((status, &made["loadbalancer"]["provider"]), (201, &json!("ovn")));
    let pool = format!("{LB}/pools/{}", sim.pools()[0].part.id);
    let (status, _) = caller
        .put(&pool, json!({ "pool": { "lb_algorithm": "SOURCE_IP" } }))
        .await;
    assert_eq!(status, 501);
    assert_eq!(caller.put(&pool, json!({ "pool": { "name": "p" } })).await.0, 200);
    // Members that come with a load balancer are taken for its subnet's.
    let far = json!({ "address": "192.0.2.1", "protocol_port": 1 });
    let members = format!("{pool}/members");
    for (refused, what) in [
        (caller.post(&members, json!({ "member": far })).await, "creation"),
        (
            caller.put(&members, json!({ "members": [far] })).await,
            "batch update",
        ),
    ] {
        let text = format!(
            "Provider 'ovn' does not support a requested option: Subnet is required, or Loadbalancer associated with Pool \
             must have a subnet, for Member {what} with OVN Provider Driver if it is not the same as LB VIP subnet"
        );
        assert_eq!((refused.0, &refused.1["faultstring"]), (501, &json!(text)));
    }
}

#[tokio::test(start_paused = true)]
async fn load_balancer_is_active_before_its_parts() {
    let sim = OpenstackSim::builder().build();
    sim.set_behaviour(|it| {
        it.lb_create_time = Duration::from_secs(1);
        it.lb_change_time = Duration::from_secs(1);
    });
    let caller = Caller::new(&sim).await;
    let path = format!("{LB}/loadbalancers");
    caller.post(&path, body(&sim, &json!({}), &json!({}))).await;
    let states = || {
        let balancer = sim.load_balancers()[0].part.status;
        (
            balancer,
            sim.listeners()[0].part.status,
            sim.pools()[0].part.status,
        )
    };
    let (new, made) = (Provisioning::PendingCreate, Provisioning::Active);
    for expected in [(new, new, new), (made, new, new), (made, made, made)] {
        assert_eq!(states(), expected);
        tokio::time::advance(Duration::from_secs(1)).await;
    }
}

/// A load balancer of two pools with a member each.
async fn two_pools(sim: &OpenstackSim, caller: &Caller) -> [String; 2] {
    let member = json!({ "address": "10.0.0.11", "protocol_port": 30080 });
    let pool = |name| json!({ "name": name, "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT", "members": [member] });
    let balancer = json!({ "loadbalancer": {
        "vip_subnet_id": sim.home().subnet, "provider": "ovn", "pools": [pool("a"), pool("b")],
    } });
    let (status, made) = caller.post(&format!("{LB}/loadbalancers"), balancer).await;
    assert_eq!(status, 201, "{made}");
    for _ in 0..2 {
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(sim.load_balancers()[0].part.status, Provisioning::Active);
    }
    let pools = sim.pools();
    [&pools[0], &pools[1]].map(|pool| format!("{LB}/pools/{}", pool.part.id))
}

#[tokio::test(start_paused = true)]
async fn session_persistence_is_one_for_all_pools_and_breaks_the_pool_that_is_changed_alone() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let [a, b] = two_pools(&sim, &caller).await;
    let sticky = || sim.load_balancers()[0].sticky.len();
    let by_address = json!({ "type": "SOURCE_IP" });
    let alone = json!({ "pool": { "session_persistence": by_address } });
    assert_eq!(caller.put(&a, alone).await.0, 200);
    let states = || {
        sim.pools()
            .iter()
            .map(|pool| pool.part.status)
            .collect::<Vec<_>>()
    };
    assert_eq!(states(), [Provisioning::Error, Provisioning::Active]);
    assert_eq!(
        (sim.load_balancers()[0].part.status, sticky()),
        (Provisioning::Active, 1)
    );
    let both = json!({ "pool": { "session_persistence": by_address, "admin_state_up": true } });
    assert_eq!(caller.put(&a, both).await.0, 200);
    assert_eq!(states(), [Provisioning::Active; 2]);
    let none = json!({ "pool": { "session_persistence": null, "admin_state_up": true } });
    assert_eq!(caller.put(&a, none).await.0, 200);
    assert_eq!((sim.pools()[0].persistence.is_none(), sticky()), (true, 1));
    assert_eq!(caller.delete(&b).await.0, 204);
    assert_eq!(sticky(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_goes_is_active_between_two_requests() {
    let sim = OpenstackSim::builder().build();
    sim.set_behaviour(|it| it.lb_change_time = Duration::from_secs(1));
    let caller = Caller::new(&sim).await;
    let [a, b] = two_pools(&sim, &caller).await;
    let states = || {
        let members = sim.members().into_iter().map(|it| it.part.status);
        let pools = sim.pools().into_iter().map(|it| it.part.status);
        (
            sim.load_balancers()[0].part.status,
            pools.collect::<Vec<_>>(),
            members.collect::<Vec<_>>(),
        )
    };
    let (on, goes) = (Provisioning::Active, Provisioning::PendingDelete);
    let other = json!({ "members": [{ "address": "10.0.0.12", "protocol_port": 30080 }] });
    assert_eq!(caller.put(&format!("{a}/members"), other).await.0, 202);
    assert_eq!(states().2[0], goes);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(states(), (on, vec![on; 2], vec![on; 3]));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(states(), (on, vec![on; 2], vec![on; 2]));
    assert_eq!(caller.delete(&b).await.0, 204);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(states(), (on, vec![on; 2], vec![on; 2]));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(states(), (on, vec![on], vec![on]));
}
