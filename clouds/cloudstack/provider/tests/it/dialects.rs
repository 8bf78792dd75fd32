//! Whatever a server sends besides what matters, and in whichever form: the end is the same, and so are the writes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;

use crate::disguise::Dialect;
use crate::site::Site;
use crate::world::{MACHINES, Outcome, UID, WEB, World};

/// The life of a Service: what was written, and what the cloud looked like in between.
async fn life(world: &World) -> (Vec<String>, Vec<String>) {
    let mark = world.sim.journal().mark();
    let mut looks = Vec::new();
    let mut look = |world: &World| {
        let rules = world.sim.rules();
        let mut rules: Vec<String> = rules
            .iter()
            .map(|rule| {
                let (name, to, cidrs) = (&rule.name, rule.private_port, rule.cidrs.as_deref());
                let members = world.sim.member_names(&rule.id).len();
                format!("{name} {to} {} {cidrs:?} {members}", rule.algorithm)
            })
            .collect();
        rules.extend(world.openings());
        rules.extend(world.acl_items());
        rules.sort();
        looks.push(rules.join("; "));
    };
    world.add_web();
    world.run(WEB).await.settled();
    look(world);
    assert!(world.run(WEB).await.settled().waves.is_empty());
    world.annotate(WEB, "proxy-protocol", Some("true"));
    world.annotate(WEB, "source-cidrs", Some("10.9.0.0/16,192.0.2.0/24"));
    world.spec(WEB, |spec| {
        spec["sessionAffinity"] = json!("ClientIP");
        spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24", "198.51.100.0/24"]);
        spec["ports"][1]["nodePort"] = json!(32001);
    });
    world.remove_node("pool-a-8");
    world.run(WEB).await.settled();
    look(world);
    assert!(world.run(WEB).await.settled().waves.is_empty());
    world.spec(WEB, |spec| {
        spec["loadBalancerIP"] = json!("203.0.113.77");
        spec["ports"].as_array_mut().unwrap().pop();
    });
    assert_eq!(world.run(WEB).await.published(), ["203.0.113.77"]);
    look(world);
    assert!(world.run(WEB).await.settled().waves.is_empty());
    world.delete(WEB);
    world.run(WEB).await.settled();
    world.check_nothing_left("deleted");
    (world.sim.calls_since(mark), looks)
}

#[tokio::test(start_paused = true)]
async fn what_a_server_leaves_out_or_adds_makes_no_difference() {
    for is_vpc in [false, true] {
        let plain = life(&World::of(Site::new(), is_vpc).await).await;
        for dialect in [Dialect::Bare, Dialect::Texts, Dialect::Wordy] {
            let world = World::of(Site::new().disguised(dialect), is_vpc).await;
            let told = life(&world).await;
            assert_eq!(told.1, plain.1, "{dialect:?}");
            assert_eq!(told.0, plain.0, "{dialect:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_count_that_no_list_comes_to_holds_nothing_up() {
    let plain = life(&World::of(Site::new(), false).await).await;
    let world = World::of(Site::new().disguised(Dialect::Boastful), false).await;
    assert_eq!(life(&world).await.1, plain.1);
}

#[tokio::test(start_paused = true)]
async fn rules_that_tell_no_network_leave_nothing_open() {
    for is_vpc in [false, true] {
        let plain = life(&World::of(Site::new(), is_vpc).await).await;
        let world = World::of(Site::new().disguised(Dialect::Networkless), is_vpc).await;
        assert_eq!(life(&world).await.1, plain.1, "VPC {is_vpc}");
    }
}

#[tokio::test(start_paused = true)]
async fn lists_that_are_behind_do_no_harm() {
    for seconds in [1, 4] {
        for is_vpc in [false, true] {
            let late = Dialect::Late(Duration::from_secs(seconds));
            let world = World::of(Site::new().disguised(late), is_vpc).await;
            world.add_web();
            for change in 0..5 {
                match change {
                    1 => world.spec(WEB, |spec| spec["ports"][0]["nodePort"] = json!(32000)),
                    2 => world.spec(WEB, |spec| {
                        spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"]);
                    }),
                    3 => world.annotate(WEB, "proxy-protocol", Some("true")),
                    4 => world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77")),
                    _ => {}
                }
                let mut tries = 0;
                while !matches!(world.run(WEB).await.outcome, Outcome::Settled(_)) {
                    tries += 1;
                    assert!(tries < 4, "change {change}: {:#?}", world.run(WEB).await);
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
                tokio::time::sleep(Duration::from_secs(5)).await;
                world.run(WEB).await.settled();
                if !is_vpc {
                    world.check("settled"); // an ACL list may say a thing twice, and nobody minds
                }
                assert_eq!((world.sim.addresses().len(), world.rules().len()), (1, 2));
            }
            assert_eq!(world.members("tcp-proxy-443"), MACHINES);
            world.delete(WEB);
            for _ in 0..4 {
                if matches!(world.run(WEB).await.outcome, Outcome::Settled(_)) {
                    break;
                }
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            world.check_nothing_left("deleted");
        }
    }
}

/// Its ID is the same for whoever acquires it next.
#[tokio::test(start_paused = true)]
async fn an_address_is_released_once_however_long_lists_show_it() {
    for seconds in [3, 5, 9] {
        for (is_vpc, requested) in [(false, None), (true, None), (false, Some("203.0.113.77"))] {
            let what = format!("{seconds} s, VPC {is_vpc}, {requested:?}");
            let late = Dialect::Late(Duration::from_secs(seconds));
            let world = World::of(Site::new().disguised(late), is_vpc).await;
            world.add(WEB, UID, &[("TCP", 80, 31080)]);
            world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(requested));
            settle(&world, WEB).await;
            tokio::time::sleep(Duration::from_secs(20)).await;
            let (other, uid) = ("shop/other", "8c9e6679-7425-40de-944b-e07fc1f90ae7");
            world.delete(WEB);
            let creation = async {
                tokio::time::sleep(Duration::from_millis(800)).await;
                world.add(other, uid, &[("TCP", 80, 31081)]);
                world.spec(other, |spec| spec["loadBalancerIP"] = json!(requested));
                settle(&world, other).await;
            };
            tokio::join!(settle(&world, WEB), creation);
            tokio::time::sleep(Duration::from_secs(20)).await;
            settle(&world, other).await;
            let calls = |command| world.sim.journal().count_operation(command);
            let counts = [
                "associateIpAddress",
                "disassociateIpAddress",
                "createLoadBalancerRule",
            ]
            .map(calls);
            assert_eq!(counts, [2, 1, 2], "{what}");
            assert_eq!(
                (
                    world.sim.rules()[0].members.len(),
                    world.openings().len() + world.acl_items().len()
                ),
                (3, 1),
                "{what}"
            );
            world.check(&what);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_a_service_moved_to_is_neither_asked_for_twice_nor_lost_while_lists_are_late() {
    for (seconds, is_vpc) in [(5, false), (9, false), (9, true)] {
        let what = format!("{seconds} s, VPC {is_vpc}");
        let late = Dialect::Late(Duration::from_secs(seconds));
        let world = World::of(Site::new().disguised(late), is_vpc).await;
        world.add(WEB, UID, &[("TCP", 80, 31080)]);
        settle(&world, WEB).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
        settle(&world, WEB).await;
        let calls = |command| world.sim.journal().count_operation(command);
        assert_eq!(
            ["associateIpAddress", "disassociateIpAddress"].map(calls),
            [2, 1],
            "{what}"
        );
        tokio::time::sleep(Duration::from_secs(20)).await;
        settle(&world, WEB).await;
        assert_eq!(
            world.annotation(WEB, "ip-associated-by-controller").as_deref(),
            Some("true"),
            "{what}"
        );
        world.delete(WEB);
        settle(&world, WEB).await;
        world.check_nothing_left(&what);
    }
}

/// Runs until it settles.
async fn settle(world: &World, key: &str) {
    for _ in 0..4 {
        if matches!(world.run(key).await.outcome, Outcome::Settled(_)) {
            return;
        }
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    panic!("{:#?}", world.run(key).await);
}

/// What the API's description lists for each command; `projectid`, `listall`, `page` and `pagesize` go with every list.
fn documented() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    [
        (
            "listVirtualMachines",
            &["id", "ids", "name", "networkid", "state", "details"][..],
        ),
        ("listNetworks", &["id"]),
        (
            "listPublicIpAddresses",
            &["id", "ipaddress", "allocatedonly", "state", "zoneid"],
        ),
        (
            "associateIpAddress",
            &["networkid", "vpcid", "ipaddress", "projectid"],
        ),
        ("disassociateIpAddress", &["id"]),
        (
            "listLoadBalancerRules",
            &["keyword", "publicipid", "id", "name", "networkid"],
        ),
        (
            "createLoadBalancerRule",
            &[
                "algorithm",
                "name",
                "privateport",
                "publicport",
                "networkid",
                "publicipid",
                "protocol",
                "openfirewall",
                "cidrlist",
            ],
        ),
        (
            "updateLoadBalancerRule",
            &["id", "algorithm", "protocol", "cidrlist", "name"],
        ),
        ("deleteLoadBalancerRule", &["id"]),
        ("assignToLoadBalancerRule", &["id", "virtualmachineids"]),
        ("removeFromLoadBalancerRule", &["id", "virtualmachineids"]),
        ("listLoadBalancerRuleInstances", &["id"]),
        ("listFirewallRules", &["ipaddressid"]),
        (
            "createFirewallRule",
            &["ipaddressid", "protocol", "cidrlist", "startport", "endport"],
        ),
        ("deleteFirewallRule", &["id"]),
        ("listPortForwardingRules", &["ipaddressid"]),
        ("listNetworkACLLists", &["id"]),
        ("listNetworkACLs", &["aclid", "networkid"]),
        (
            "createNetworkACL",
            &[
                "protocol",
                "aclid",
                "action",
                "cidrlist",
                "startport",
                "endport",
                "networkid",
                "traffictype",
            ],
        ),
        ("deleteNetworkACL", &["id"]),
        ("queryAsyncJobResult", &["jobid"]),
        ("listManagementServersMetrics", &[]),
        ("listCapabilities", &[]),
    ]
    .into_iter()
    .map(|(command, parameters)| (command, parameters.iter().copied().collect()))
    .collect()
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_that_the_api_does_not_describe() {
    let known = documented();
    for is_vpc in [false, true] {
        let world = World::of(Site::new(), is_vpc).await;
        life(&world).await;
        for entry in world.sim.journal().entries() {
            let body = entry.body.as_ref().and_then(serde_json::Value::as_object);
            let names = entry.query.iter().map(|(name, _)| name.as_str());
            let names: BTreeSet<&str> = names
                .chain(body.into_iter().flat_map(|body| body.keys().map(String::as_str)))
                .collect();
            let always = [
                "apiKey",
                "command",
                "response",
                "signatureversion",
                "expires",
                "signature",
            ];
            let of_lists = ["listall", "projectid", "page", "pagesize"];
            let command = entry.operation.as_str();
            assert!(names.contains("command"), "{command}: {names:?}");
            let undocumented: Vec<&str> = names
                .into_iter()
                .filter(|name| !always.contains(name) && !known[command].contains(name))
                .filter(|name| !(command.starts_with("list") && of_lists.contains(name)))
                .collect();
            assert_eq!(undocumented, Vec::<&str>::new(), "{command}");
        }
    }
}
