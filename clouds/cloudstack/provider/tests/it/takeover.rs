//! Taking over from the Go manager, and from those before it.

use std::net::IpAddr;

use bowline_cloudstack_sim::{AclItemSpec, AddressSpec, FirewallSpec, RuleSpec};
use serde_json::json;

use crate::world::{MACHINES, NAME, WEB, World};

const IP: &str = "203.0.113.60";

/// What version 1.2.0 leaves of the Service `shop/web`.
async fn of_upstream(world: &World, change: impl Fn(RuleSpec) -> RuleSpec) {
    let ip: IpAddr = IP.parse().unwrap();
    let vpc = world.sim.vpcs().first().map(|vpc| vpc.id.clone());
    let tier = world.sim.vm_named("cp-a").unwrap().nics[0].network.clone();
    let address = match &vpc {
        Some(vpc) => AddressSpec {
            vpc: Some(vpc.to_owned()),
            ..AddressSpec::at(ip)
        },
        None => AddressSpec::at(ip),
    };
    let address = world.sim.take_address(address);
    let members: Vec<String> = MACHINES
        .iter()
        .map(|name| world.sim.vm_named(name).unwrap().id)
        .collect();
    for (protocol, port, node_port) in [("tcp", 443, 31443), ("udp", 4500, 31500)] {
        let spec = RuleSpec {
            protocol: Some(protocol.to_owned()),
            cidrs: Some("0.0.0.0/0".into()),
            network: Some(tier.clone()),
            members: members.clone(),
            ..RuleSpec::new(format!("{NAME}-{protocol}-{port}"), &address, port, node_port)
        };
        world.sim.add_rule(change(spec));
        match world.sim.acl_list("tier-acl") {
            Some(list) => world.sim.add_acl_item(AclItemSpec::new(&list, protocol, port)),
            None => world
                .sim
                .add_firewall_rule(FirewallSpec::new(&address, protocol, port)),
        };
    }
    world.add_web();
}

#[tokio::test(start_paused = true)]
async fn what_version_1_2_0_made_needs_no_write_of_any_kind() {
    for is_vpc in [false, true] {
        let world = if is_vpc {
            World::vpc("tier-acl").await
        } else {
            World::new().await
        };
        of_upstream(&world, |rule| rule).await;
        let before = world.sim.snapshot();
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert_eq!(run.published(), [IP]);
        assert!(
            run.waves.is_empty() && writes.is_empty(),
            "{:?} {writes:?}",
            run.waves
        );
        assert!(run.notes.is_empty(), "{:?}", run.notes);
        assert_eq!(world.sim.snapshot(), before);
        world.delete(WEB);
        world.run(WEB).await.settled();
        world.check_nothing_left("of upstream");
    }
}

#[tokio::test(start_paused = true)]
async fn rules_of_version_1_1_without_a_list_need_no_write() {
    for version in ["4.22.0.0", "4.20.0.0", "4.17.0.0"] {
        let world = World::built(|builder| builder.version(version), "").await;
        of_upstream(&world, |mut rule| {
            rule.cidrs = None;
            rule
        })
        .await;
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert!(
            run.settled().waves.is_empty() && writes.is_empty(),
            "{version}: {writes:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn rules_that_let_everybody_in_need_no_write_unless_a_list_is_asked_for() {
    for version in ["4.22.0.0", "4.20.0.0"] {
        for list in ["0.0.0.0/0 ::/0", "10.0.0.0/8 0.0.0.0/0", ""] {
            let world = World::built(|builder| builder.version(version), "").await;
            of_upstream(&world, |mut rule| {
                rule.cidrs = Some(list.to_owned());
                rule
            })
            .await;
            let (run, writes) = world.writes_of(world.run(WEB)).await;
            assert!(
                run.settled().waves.is_empty() && writes.is_empty(),
                "{version}, {list}: {writes:?}"
            );
            world.annotate(WEB, "source-cidrs", Some("0.0.0.0/0"));
            let (run, writes) = world.writes_of(world.run(WEB)).await;
            run.settled();
            assert_eq!(
                writes.is_empty(),
                list.is_empty(),
                "{version}, {list}: {writes:?}"
            );
            // The firewall is not as patient.
            assert_eq!(world.openings(), ["tcp 443 0.0.0.0/0", "udp 4500 0.0.0.0/0"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rules_of_the_provider_inside_of_kubernetes_are_renamed_and_kept() {
    let world = World::new().await;
    of_upstream(&world, |mut rule| {
        rule.name = format!("{NAME}-{}", rule.public_port);
        rule.cidrs = None;
        // As it wrote them.
        rule.protocol = rule.protocol.map(|word| word.to_uppercase());
        rule
    })
    .await;
    let ids = |world: &World| {
        world
            .sim
            .rules()
            .into_iter()
            .map(|rule| rule.id)
            .collect::<Vec<_>>()
    };
    let before = ids(&world);
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    run.settled();
    assert_eq!(writes, ["updateLoadBalancerRule", "updateLoadBalancerRule"]);
    assert_eq!(
        (world.rules(), ids(&world)),
        (vec!["tcp-443".to_owned(), "udp-4500".to_owned()], before)
    );
}

#[tokio::test(start_paused = true)]
async fn its_requested_addresses_are_released_if_it_marked_them() {
    for (mark, is_released) in [(Some("true"), true), (None, false)] {
        let world = World::new().await;
        of_upstream(&world, |rule| rule).await;
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
        world.annotate(WEB, "ip-associated-by-controller", mark);
        let (run, writes) = world.writes_of(world.run(WEB)).await;
        assert!(run.settled().waves.is_empty() && writes.is_empty(), "{writes:?}");
        world.delete(WEB);
        world.run(WEB).await.settled();
        assert_eq!(world.rules(), Vec::<String>::new());
        assert_eq!(world.sim.addresses().is_empty(), is_released, "{mark:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_it_marked_and_never_used_is_released() {
    let world = World::with_service().await;
    world.sim.take_address(AddressSpec::at(IP.parse().unwrap()));
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
    world.annotate(WEB, "ip-associated-by-controller", Some("true"));
    world.delete(WEB);
    world.run(WEB).await.settled();
    world.check_nothing_left("marked only");
}

#[tokio::test(start_paused = true)]
async fn a_rule_without_a_protocol_is_its_names() {
    let world = World::new().await;
    of_upstream(&world, |mut rule| {
        rule.protocol = None;
        rule
    })
    .await;
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert!(run.settled().waves.is_empty() && writes.is_empty(), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_open_for_a_rule_whose_protocol_is_strange_is_closed() {
    for word in ["ssl", "TCP"] {
        let world = World::new().await;
        of_upstream(&world, |mut rule| {
            if rule.public_port == 443 {
                rule.protocol = Some(word.to_owned());
            }
            rule
        })
        .await;
        // The address is the user's own.
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
        world.delete(WEB);
        world.run(WEB).await.settled();
        assert_eq!(world.openings(), Vec::<String>::new(), "{word}");
        assert_eq!(
            (world.rules().len(), world.sim.addresses().len()),
            (0, 1),
            "{word}"
        );
    }
}
