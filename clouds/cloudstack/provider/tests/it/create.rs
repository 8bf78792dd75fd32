//! Making a balancer.

use std::time::Duration;

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::Canned;
use bowline_cloudstack_sim::{AddressSpec, JobFault, NetworkSpec, NicSpec, VmSpec};
use serde_json::json;

use crate::site::Site;
use crate::world::{MACHINES, NAME, Outcome, WEB, World};

#[tokio::test(start_paused = true)]
async fn a_balancer_has_one_address_and_a_rule_with_all_members_for_each_port() {
    let world = World::with_service().await;
    let run = world.run(WEB).await.settled();
    let address = world.address();
    assert_eq!(run.published(), [address.address.to_string()]);
    assert_eq!(address.network, Some(world.sim.network()));
    assert_eq!(world.rules(), ["tcp-443", "udp-4500"]);
    for (rule, private) in [("tcp-443", 31443), ("udp-4500", 31500)] {
        assert_eq!(world.members(rule), MACHINES);
        let rule = world.rule(rule);
        assert_eq!(
            (rule.algorithm.as_str(), rule.private_port),
            ("roundrobin", private)
        );
        assert_eq!(rule.cidrs.as_deref(), Some("0.0.0.0/0"));
    }
    assert_eq!(world.openings(), ["tcp 443 0.0.0.0/0", "udp 4500 0.0.0.0/0"]);
    assert_eq!(world.annotation(WEB, "ip-ids"), Some(address.id));
    world.check("created");
}

#[tokio::test(start_paused = true)]
async fn a_network_that_offered_no_load_balancing_is_looked_up_again() {
    let world = World::with_service().await;
    let network = world.sim.network();
    let offer = |services: [&str; 2]| {
        world.sim.edit_network(&network, |network| {
            network.services = services.map(str::to_owned).into()
        });
    };
    offer(["Firewall", "SourceNat"]);
    let run = world.run(WEB).await;
    assert!(
        run.complaint().contains("offers no load balancing"),
        "{}",
        run.complaint()
    );
    offer(["Firewall", "Lb"]);
    world.run(WEB).await.settled();
    assert_eq!(world.rules(), ["tcp-443", "udp-4500"]);
}

#[tokio::test(start_paused = true)]
async fn ensuring_again_changes_nothing() {
    let mut world = World::with_service().await;
    world.run(WEB).await.settled();
    for restarts in [false, true] {
        if restarts {
            world.restart().await;
        }
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert_eq!(writes, Vec::<String>::new());
        assert!(run.settled().waves.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_vpc_gets_an_address_of_its_own_and_items_in_its_acl_list() {
    let world = World::vpc("tier-acl").await;
    world.add_web();
    world.annotate(WEB, "proxy-protocol", Some("true"));
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    run.settled();
    let address = world.address();
    assert!(address.vpc.is_some());
    assert_eq!(
        world.acl_items(),
        ["tier-acl tcp 443 0.0.0.0/0", "tier-acl udp 4500 0.0.0.0/0"]
    );
    assert!(!writes.iter().any(|call| call.contains("Firewall")), "{writes:?}");
    assert_eq!(world.members("tcp-proxy-443"), MACHINES);
    assert!(world.run(WEB).await.settled().waves.is_empty());
    world.delete(WEB);
    world.run(WEB).await.settled();
    world.check_nothing_left("deleted");
}

#[tokio::test(start_paused = true)]
async fn built_in_acl_lists_are_left_alone() {
    for (list, is_warned) in [("default_allow", false), ("default_deny", true)] {
        let world = World::vpc(list).await;
        world.add_web();
        let run = world.run(WEB).await.settled();
        assert_eq!(run.has_note("NetworkACLDeniesAll"), is_warned, "{list}");
        assert_eq!(world.acl_items(), Vec::<String>::new());
        world.delete(WEB);
        world.run(WEB).await.settled();
        world.check_nothing_left(list);
    }
}

#[tokio::test(start_paused = true)]
async fn the_host_name_takes_the_place_of_the_address_in_the_status() {
    let world = World::with_service().await;
    world.annotate(WEB, "hostname", Some("edge.example.org"));
    assert_eq!(world.run(WEB).await.published(), ["edge.example.org"]);
    world.annotate(WEB, "hostname", None);
    let run = world.run(WEB).await;
    assert_eq!(run.published(), [world.address().address.to_string()]);
    assert!(run.waves.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_host_name_that_no_status_takes_holds_up_nothing_else() {
    let world = World::with_service().await;
    world.annotate(WEB, "hostname", Some("WWW.example.org"));
    let run = world.run(WEB).await;
    let complaint = "hostname is `WWW.example.org`, which the API server takes in no status";
    assert!(run.complaint().contains(complaint), "{run:#?}");
    let near = world.sim.add_vm(VmSpec::new("pool-a-9"));
    world.add_node("pool-a-9", Some(&near));
    world.run(WEB).await;
    assert!(world.members("tcp-443").contains(&"pool-a-9".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_told_before_anything_is_made() {
    type Change = fn(&World);
    let cases: [(&str, Change); 8] = [
        ("invalid CIDR 010.0.0.0/8 in annotation", |world| {
            world.annotate(WEB, "source-cidrs", Some("192.0.2.0/24, 010.0.0.0/8"))
        }),
        ("invalid CIDR 192.0.02.0/24 in spec", |world| {
            world.spec(WEB, |spec| {
                spec["loadBalancerSourceRanges"] = json!(["192.0.02.0/24"])
            });
        }),
        ("has no NIC with a network on nodes: bare", |world| {
            for name in MACHINES {
                world.remove_node(name);
            }
            let bare = world.sim.add_vm(VmSpec::with_nics("bare", []));
            world.add_node("bare", Some(&bare));
        }),
        ("invalid CIDR 10.9.0.0/33", |world| {
            world.annotate(WEB, "source-cidrs", Some("10.9.0.0/33"))
        }),
        ("unsupported load balancer protocol: SCTP", |world| {
            world.spec(WEB, |spec| spec["ports"][1]["protocol"] = json!("SCTP"));
        }),
        ("different networks", |world| {
            let other = world.sim.add_network(NetworkSpec::new("other"));
            let stray = world
                .sim
                .add_vm(VmSpec::with_nics("stray", [NicSpec::on(&other)]));
            world.add_node("stray", Some(&stray));
        }),
        ("none of the hosts matched", |world| {
            for name in MACHINES {
                world.remove_node(name);
            }
            world.add_node("elsewhere", None);
        }),
        ("could not find IP address 198.51.100.99", |world| {
            world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("198.51.100.99"));
        }),
    ];
    for (text, change) in cases {
        let world = World::with_service().await;
        change(&world);
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert!(run.complaint().contains(text), "{text}: {}", run.complaint());
        assert_eq!(
            (writes, world.annotation(WEB, "ip-ids")),
            (Vec::new(), None),
            "{text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_without_a_nic_keeps_nobody_else_out() {
    for is_new in [false, true] {
        let world = World::with_service().await;
        let bare = world.sim.add_vm(VmSpec::with_nics("bare", []));
        if !is_new {
            world.run(WEB).await.settled();
        }
        world.add_node("bare", Some(&bare));
        let run = world.run(WEB).await.settled();
        assert!(run.has_note("NodesLeftOut"), "{:#?}", run.notes);
        assert_eq!(world.members("tcp-443"), MACHINES);
        world.remove_node("pool-a-8");
        world.run(WEB).await.settled();
        assert_eq!(world.members("tcp-443"), ["cp-a", "pool-a-7"]);
        // There is nothing better than the members that it has.
        world.remove_node("cp-a");
        world.remove_node("pool-a-7");
        world.run(WEB).await.settled();
        assert_eq!(world.members("tcp-443"), ["cp-a", "pool-a-7"]);
    }
}

#[tokio::test(start_paused = true)]
async fn two_nodes_of_one_machine_are_one_member_and_are_named() {
    for is_new in [false, true] {
        let world = World::with_service().await;
        if !is_new {
            world.run(WEB).await.settled();
        }
        let id = world.sim.vm_named("pool-a-8").unwrap().id;
        world.add_node("renamed", Some(&id));
        let run = world.run(WEB).await.settled();
        let mut notes = run.notes.iter();
        let note = notes.find(|note| note.reason == "NodesShareInstance").unwrap();
        assert!(
            note.text.contains("pool-a-8") && note.text.contains("renamed"),
            "{}",
            note.text
        );
        assert_eq!(world.members("tcp-443"), MACHINES);
        assert!(world.run(WEB).await.settled().waves.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_requested_address_of_another_tier_is_refused_by_its_own_name() {
    for conflicts in [false, true] {
        let world = World::vpc("tier-acl").await;
        world
            .sim
            .set_behaviour(|behaviour| behaviour.other_tiers_conflict = conflicts);
        let (vpc, list) = (
            world.sim.vpcs().remove(0).id,
            world.sim.acl_list("tier-acl").unwrap(),
        );
        let other = world.sim.add_network(NetworkSpec::tier("other", &vpc, list));
        let theirs = world.sim.take_address(AddressSpec {
            network: Some(other.clone()),
            vpc: Some(vpc),
            ..AddressSpec::at("203.0.113.77".parse().unwrap())
        });
        world.add_web();
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        let complaint = run.complaint();
        assert!(
            complaint.contains("203.0.113.77") && complaint.contains("tier"),
            "{complaint}"
        );
        assert_eq!(writes, Vec::<String>::new(), "{theirs}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_network_without_load_balancing_is_named() {
    let site = Site::new();
    let network = site.sim.add_network(NetworkSpec {
        services: Some(vec!["Dhcp".into(), "Dns".into()]),
        ..NetworkSpec::new("flat")
    });
    site.sim
        .add_vm(VmSpec::with_nics("cp-a", [NicSpec::on(&network)]));
    let world = World::around(site).await;
    world.add_web();
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert!(run.complaint().contains("network flat"), "{}", run.complaint());
    assert_eq!(writes, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn old_servers_are_not_told_that_everybody_may_connect() {
    let world = World::built(|builder| builder.version("4.17.2.0"), "").await;
    world.add_web();
    world.run(WEB).await.settled();
    assert_eq!(world.rule("tcp-443").cidrs, None);
    assert!(world.run(WEB).await.settled().waves.is_empty());
    world.annotate(WEB, "source-cidrs", Some("10.0.0.0/8"));
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert!(run.complaint().contains("4.18"), "{}", run.complaint());
    assert_eq!(writes, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_version_is_not_told_is_taken_for_an_old_one() {
    let forbid = |behaviour: &mut bowline_cloudstack_sim::Behaviour| {
        behaviour.forbidden_to_users.insert("listCapabilities".to_owned());
    };
    let site = Site::new();
    site.sim.set_behaviour(forbid);
    for name in MACHINES {
        site.sim.add_vm(VmSpec::new(name));
    }
    let world = World::around(site).await;
    world.add_web();
    world.run(WEB).await.settled();
    // It may take a list all the same.
    world.annotate(WEB, "source-cidrs", Some("10.0.0.0/8"));
    world.run(WEB).await.settled();
    assert_eq!(world.rule("tcp-443").cidrs.as_deref(), Some("10.0.0.0/8"));
    assert!(world.run(WEB).await.settled().waves.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_failure_gives_the_address_back_and_the_next_try_succeeds() {
    type Strike = fn(&World);
    let faults: [(&str, Strike); 2] = [
        ("answer", |world| {
            world.sim.faults().add(Fault::operation("createLoadBalancerRule").nth(2).answer(
                Canned::json(
                    530,
                    r#"{"createloadbalancerruleresponse":{"uuidList":[],"errorcode":530,"cserrorcode":9999,"errortext":"router"}}"#,
                ),
            ));
        }),
        ("job", |world| {
            world.sim.fail_jobs(JobFault::of("createLoadBalancerRule").nth(2))
        }),
    ];
    for (what, fault) in faults {
        for is_vpc in [false, true] {
            let world = if is_vpc {
                World::vpc("tier-acl").await
            } else {
                World::new().await
            };
            world.add_web();
            fault(&world);
            let run = world.run(WEB).await;
            let expected = format!("error creating load balancer rule {NAME}-udp-4500: ");
            assert!(
                run.complaint().starts_with(&expected),
                "{what}: {}",
                run.complaint()
            );
            world.check_nothing_left(what);
            assert_eq!(world.annotation(WEB, "ip-ids").as_deref(), Some(""), "{what}");
            world.run(WEB).await.settled();
            assert_eq!(world.members("udp-4500"), MACHINES);
            world.address();
            world.check(what);
        }
    }
}

/// A passing error in the API's own words.
fn router_down(command: &str) -> Canned {
    let name = format!("{}response", command.to_lowercase());
    let body = json!({ name: { "errorcode": 530, "cserrorcode": 9999, "errortext": "router" } });
    Canned::json(530, &body.to_string())
}

#[tokio::test(start_paused = true)]
async fn nothing_is_taken_back_as_long_as_one_of_the_failed_writes_may_have_had_its_effect() {
    let world = World::with_service().await;
    let faults = world.sim.faults();
    faults.add(
        Fault::operation("createLoadBalancerRule")
            .nth(1)
            .answer(router_down("createLoadBalancerRule")),
    );
    faults.add(Fault::operation("createLoadBalancerRule").nth(2).lose_answer());
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert!(matches!(run.outcome, Outcome::Failed(_)), "{run:#?}");
    assert!(
        !writes.contains(&"disassociateIpAddress".to_owned()),
        "{writes:?}"
    );
    let address = world.address();
    world.run(WEB).await.settled();
    assert_eq!((world.address(), world.rules().len()), (address, 2));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_taken_back_is_not_tried_again_at_once() {
    let world = World::with_service().await;
    let faults = world.sim.faults();
    faults.add(
        Fault::operation("createLoadBalancerRule")
            .times(2)
            .answer(router_down("createLoadBalancerRule")),
    );
    faults.add(
        Fault::operation("disassociateIpAddress")
            .times(1)
            .answer(router_down("disassociateIpAddress")),
    );
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert!(
        run.complaint().starts_with("error creating load balancer rule "),
        "{}",
        run.complaint()
    );
    let releases = writes.iter().filter(|write| *write == "disassociateIpAddress");
    assert_eq!(releases.count(), 1, "{writes:?}");
    let address = world.address();
    world.run(WEB).await.settled();
    assert_eq!((world.address(), world.rules().len()), (address, 2));
}

#[tokio::test(start_paused = true)]
async fn what_fails_for_both_ports_gives_the_address_back_as_well() {
    for is_vpc in [false, true] {
        let opening = match is_vpc {
            true => "createNetworkACL",
            false => "createFirewallRule",
        };
        for command in ["createLoadBalancerRule", "assignToLoadBalancerRule", opening] {
            for kind in ["530", "job"] {
                let what = format!("VPC {is_vpc}, {command}, {kind}");
                let world = World::of(crate::site::Site::new(), is_vpc).await;
                world.add_web();
                match kind {
                    "job" => world.sim.fail_jobs(JobFault::of(command).always()),
                    code => {
                        let envelope = format!("{}response", command.to_lowercase());
                        let body = format!(r#"{{"{envelope}":{{"errorcode":{code},"errortext":"no"}}}}"#);
                        let fault = Fault::operation(command).always();
                        let answer = Canned::json(code.parse().unwrap(), &body);
                        world.sim.faults().add(fault.answer(answer));
                    }
                }
                for _ in 0..2 {
                    let run = world.run(WEB).await;
                    assert!(
                        run.complaint().starts_with("error "),
                        "{what}: {}",
                        run.complaint()
                    );
                    world.check_nothing_left(&what);
                    assert_eq!(world.annotation(WEB, "ip-ids").as_deref(), Some(""), "{what}");
                }
                world.sim.faults().clear();
                world.sim.clear_job_faults();
                world.run(WEB).await.settled();
                world.address();
                world.check(&what);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn slow_jobs_are_waited_for_and_endless_ones_are_not() {
    let world = World::with_service().await;
    world
        .sim
        .set_behaviour(|behaviour| behaviour.job_time = Duration::from_secs(20));
    let run = world.run(WEB).await.settled();
    assert!(run.waited >= Duration::from_secs(60), "{:?}", run.waited);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.job_time = Duration::ZERO);
    world
        .sim
        .fail_jobs(JobFault::of("updateLoadBalancerRule").stuck());
    world.spec(WEB, |spec| spec["sessionAffinity"] = json!("ClientIP"));
    let run = world.run(WEB).await;
    assert!(
        run.complaint()
            .contains("Timeout while waiting for async job to finish"),
        "{}",
        run.complaint()
    );
    assert!((300..320).contains(&run.waited.as_secs()), "{:?}", run.waited);
    world.sim.clear_job_faults();
    world.run(WEB).await.settled();
    assert_eq!(world.rule("tcp-443").algorithm, "source");
    world.check("after the timeout");
}

#[tokio::test(start_paused = true)]
async fn no_free_address_is_an_error_that_leaves_no_claim() {
    let world = World::with_service().await;
    world.sim.exhaust_addresses();
    let run = world.run(WEB).await;
    assert!(
        run.complaint().starts_with("error associating new IP address: "),
        "{}",
        run.complaint()
    );
    assert_eq!(world.annotation(WEB, "ip-ids").as_deref(), Some(""));
}

#[tokio::test(start_paused = true)]
async fn services_choose_different_addresses() {
    let world = World::new().await;
    let keys: Vec<String> = (0..8).map(|number| format!("shop/web-{number}")).collect();
    for (number, key) in keys.iter().enumerate() {
        world.add(
            key,
            &format!("0000000{number}-0000-4000-8000-000000000000"),
            &[("TCP", 443, 31443)],
        );
    }
    let runs = futures::future::join_all(keys.iter().map(|key| world.run(key))).await;
    let mut published: Vec<String> = runs
        .into_iter()
        .flat_map(|run| run.settled().published())
        .collect();
    published.sort();
    published.dedup();
    assert_eq!((published.len(), world.sim.addresses().len()), (8, 8));
}

#[tokio::test(start_paused = true)]
async fn the_cloud_chooses_an_address_that_is_claimed_before_and_by_its_id_once_that_is_told() {
    for is_vpc in [false, true] {
        let mut world = World::of(Site::new(), is_vpc).await;
        world.add_web();
        world
            .sim
            .set_behaviour(|behaviour| behaviour.job_time = Duration::from_secs(20));
        let mark = world.sim.journal().mark();
        world.run_steps(WEB, 1).await;
        assert!(world.annotation(WEB, "ip-ids").unwrap().starts_with("any-of "));
        assert!(
            !world
                .sim
                .calls_since(mark)
                .contains(&"associateIpAddress".to_owned())
        );
        // The job is under way.
        world.run_steps(WEB, 2).await;
        let begun = world.annotation(WEB, "ip-ids").unwrap();
        let calls = world.sim.journal().since(mark);
        let asked = calls.iter().find(|call| call.operation == "associateIpAddress");
        let sent = asked.and_then(|call| call.body.as_ref()?.as_object()).unwrap();
        let place = if is_vpc { "vpcid" } else { "networkid" };
        assert!(
            sent.contains_key(place) && !sent.contains_key("ipaddress"),
            "{sent:?}"
        );
        world.restart().await;
        world.run(WEB).await.settled();
        assert_eq!(world.annotation(WEB, "ip-ids"), Some(begun));
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_no_effect_is_said() {
    let world = World::with_service().await;
    world.annotate(WEB, "proxy-protocol", Some("enabled"));
    world.annotate(WEB, "source-cidrs", Some(""));
    world.annotate(WEB, "keepalive", Some("1"));
    world.spec(WEB, |spec| spec["externalTrafficPolicy"] = json!("Local"));
    world.add_node("ghost", None);
    let run = world.run(WEB).await.settled();
    for text in ["does not switch the PROXY protocol on", "unknown annotations"] {
        assert!(
            run.notes
                .iter()
                .any(|note| note.reason == "IgnoredAnnotations" && note.text.contains(text)),
            "{:#?}",
            run.notes
        );
    }
    for reason in ["SourceCIDRsEmpty", "IgnoredServiceFields", "NodesLeftOut"] {
        assert!(run.has_note(reason), "{reason}: {:#?}", run.notes);
    }
    assert_eq!(world.members("tcp-443"), MACHINES);
}

#[tokio::test(start_paused = true)]
async fn what_an_endless_job_left_is_taken_up_by_the_next_try() {
    for command in [
        "createLoadBalancerRule",
        "assignToLoadBalancerRule",
        "createFirewallRule",
    ] {
        let world = World::with_service().await;
        world.sim.fail_jobs(JobFault::of(command).stuck());
        let run = world.run(WEB).await;
        assert!(
            run.complaint().contains("Timeout while waiting for async job"),
            "{command}: {}",
            run.complaint()
        );
        let address = world.address();
        world.sim.clear_job_faults();
        for _ in 0..3 {
            if matches!(world.run(WEB).await.outcome, Outcome::Settled(_)) {
                break;
            }
        }
        assert!(world.run(WEB).await.settled().waves.is_empty());
        assert_eq!((world.address(), world.rules().len()), (address, 2), "{command}");
        assert_eq!(world.members("tcp-443"), MACHINES);
        assert_eq!(world.openings().len(), 2, "{command}");
        world.check(command);
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_never_acquired_is_an_error_and_stays_claimed() {
    let world = World::with_service().await;
    world.sim.fail_jobs(JobFault::of("associateIpAddress").stuck());
    let run = world.run(WEB).await;
    assert!(
        run.complaint().contains("Timeout while waiting"),
        "{}",
        run.complaint()
    );
    assert!((300..330).contains(&run.waited.as_secs()), "{:?}", run.waited);
    let claimed = world.annotation(WEB, "ip-ids").unwrap();
    let there = world.sim.addresses().into_iter().map(|address| address.id);
    assert_eq!(there.collect::<Vec<_>>(), [claimed]);
}

#[tokio::test(start_paused = true)]
async fn a_claimed_address_that_somebody_took_while_nobody_looked_is_left_to_them() {
    let mut world = World::with_service().await;
    let other = world.sim.add_network(NetworkSpec::new("other"));
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
    world.run_steps(WEB, 1).await;
    let claimed = world.annotation(WEB, "ip-ids").unwrap();
    let ip = "203.0.113.77".parse().unwrap();
    let taken = world.sim.take_address(AddressSpec {
        network: Some(other.clone()),
        ..AddressSpec::at(ip)
    });
    assert!(claimed.starts_with(&format!("{taken} since ")), "{claimed}");
    world.restart().await;
    let run = world.run(WEB).await;
    assert!(
        !world.annotation(WEB, "ip-ids").unwrap().contains(&taken),
        "{run:#?}"
    );
    assert!(!matches!(run.outcome, Outcome::Settled(_)), "{run:#?}");
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(world.address().id, taken);
}

#[tokio::test(start_paused = true)]
async fn a_refused_address_is_not_claimed_any_more() {
    let refusal = r#"{"associateipaddressresponse":{"errorcode":535,"errortext":"Maximum number of resources reached"}}"#;
    for requested in [None, Some("203.0.113.77")] {
        let world = World::with_service().await;
        if let Some(ip) = requested {
            world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(ip));
        }
        let refused = Fault::operation("associateIpAddress").answer(Canned::json(535, refusal));
        world.sim.faults().add(refused);
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert_eq!(writes, ["associateIpAddress"]);
        assert!(
            run.complaint().starts_with("error associating new IP address: "),
            "{}",
            run.complaint()
        );
        assert!(
            run.complaint().contains("Maximum number of resources reached"),
            "{}",
            run.complaint()
        );
        assert_eq!(world.annotation(WEB, "ip-ids").as_deref(), Some(""));
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.run(WEB).await.settled();
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_that_is_refused_like_wrong_keys_while_others_work_is_named_for_the_role() {
    let refusal =
        r#"{"associateipaddressresponse":{"errorcode":401,"errortext":"unable to verify user credentials"}}"#;
    // What the role lacks is a refusal: a rule that it may not make costs the address nothing.
    for (command, is_refused) in [("associateIpAddress", false), ("createLoadBalancerRule", true)] {
        let world = World::with_service().await;
        let refused = Fault::operation(command)
            .always()
            .answer(Canned::json(401, refusal));
        world.sim.faults().add(refused);
        let run = world.run(WEB).await;
        assert_eq!(matches!(run.outcome, Outcome::Refused(_)), is_refused, "{run:#?}");
        let advice = format!("see whether the role of their account allows `{command}`");
        assert!(run.complaint().contains(&advice), "{}", run.complaint());
        assert_eq!(world.sim.addresses().len(), usize::from(is_refused));
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_that_the_role_lacks_costs_its_own_step_only() {
    for status in [401, 432] {
        let world = World::with_service().await;
        world.sim.set_behaviour(|behaviour| {
            behaviour.forbidden_status = status;
            behaviour
                .forbidden_to_users
                .insert("createFirewallRule".to_owned());
        });
        let run = world.run(WEB).await;
        assert!(matches!(run.outcome, Outcome::Refused(_)), "{status}: {run:#?}");
        let advice = "see whether the role of their account allows `createFirewallRule`";
        assert!(run.complaint().contains(advice), "{}", run.complaint());
        assert_eq!(
            (world.rules().len(), world.sim.addresses().len()),
            (2, 1),
            "{status}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_services_that_claim_one_address_only_one_keeps_it() {
    let mut world = World::new().await;
    let keys = ["shop/first", "shop/second"];
    for (key, uid) in keys.iter().zip(["1", "2"]) {
        world.add(
            key,
            &format!("0000000{uid}-0000-4000-8000-000000000000"),
            &[("TCP", 443, 31443)],
        );
    }
    world.run_steps(keys[0], 2).await; // acquired, without a rule
    let id = world.annotation(keys[0], "ip-ids").unwrap();
    world.annotate(keys[1], "ip-ids", Some(&id));
    world.restart().await;
    for key in [keys[1], keys[0]] {
        world.run(key).await.settled();
    }
    assert_ne!(
        world.annotation(keys[0], "ip-ids"),
        world.annotation(keys[1], "ip-ids")
    );
    assert_eq!(world.sim.addresses().len(), 2);
    for key in keys {
        world.delete(key);
        world.run(key).await.settled();
    }
    world.check_nothing_left("both deleted");
}
