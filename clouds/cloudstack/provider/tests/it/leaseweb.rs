//! Taking over from Leaseweb's manager v1.8.1, and going back to it.

use std::net::IpAddr;

use bowline_cloud_provider::{CloudProvider as _, InstanceAnswer, InstanceQuery, IpMode, Purpose};
use bowline_cloudstack_sim::{AddressSpec, Behaviour, FirewallSpec, RuleSpec, VmSpec};
use serde_json::json;

use crate::site::Site;
use crate::world::{MACHINES, NAME, Outcome, Run, UID, WEB, World};

const IP: &str = "203.0.113.60";
const LEASEWEB: &str = "K8s_svc_kubernetes_shop_web";

/// What that manager leaves of the Service `shop/web`: rules without source networks, an open firewall, and three annotations. The ID of
/// the address.
fn of_leaseweb(world: &World, ports: &[(&str, u16, u16)]) -> String {
    world.sim.set_behaviour(Behaviour::carry_everything);
    let ip: IpAddr = IP.parse().unwrap();
    let network = world.sim.vm_named("cp-a").unwrap().nics[0].network.clone();
    let address = world.sim.take_address(AddressSpec::at(ip));
    for (protocol, port, node_port) in ports {
        world.sim.add_rule(RuleSpec {
            protocol: Some((*protocol).to_owned()),
            network: Some(network.clone()),
            members: MACHINES
                .iter()
                .map(|name| world.sim.vm_named(name).unwrap().id)
                .collect(),
            ..RuleSpec::new(
                format!("{LEASEWEB}-{protocol}-{port}"),
                &address,
                *port,
                *node_port,
            )
        });
        let protocol = protocol.trim_end_matches("-proxy");
        world
            .sim
            .add_firewall_rule(FirewallSpec::new(&address, protocol, *port));
    }
    let of_service: Vec<_> = ports
        .iter()
        .map(|(protocol, port, node_port)| {
            let protocol = if *protocol == "udp" { "UDP" } else { "TCP" };
            (protocol, *port, *node_port)
        })
        .collect();
    world.add(WEB, UID, &of_service);
    world.annotate(WEB, "address", Some(IP));
    world.annotate(WEB, "id", Some(&address));
    world.annotate(WEB, "network-id", Some(&network));
    world.publish_at(WEB, IP);
    address
}

const PORTS: &[(&str, u16, u16)] = &[("tcp", 443, 31443), ("udp", 4500, 31500)];

fn assert_quiet(run: &Run, writes: &[String]) {
    assert!(
        run.waves.is_empty() && writes.is_empty(),
        "{:?} {writes:?}",
        run.waves
    );
    assert!(run.notes.is_empty(), "{:?}", run.notes);
}

#[tokio::test(start_paused = true)]
async fn what_version_1_8_1_made_needs_no_write_of_any_kind_and_goes_with_the_service() {
    let world = World::new().await;
    of_leaseweb(&world, PORTS);
    let before = world.sim.snapshot();
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert_eq!(run.published(), [IP]);
    assert_quiet(&run, &writes);
    assert_eq!(world.sim.snapshot(), before);
    world.delete(WEB);
    world.run(WEB).await.settled();
    world.check_nothing_left("of Leaseweb's manager");
}

/// It looks for the rules on the address that it noted, by the beginning of their names: it would see no other one beside them, and try to
/// make it again.
#[tokio::test(start_paused = true)]
async fn what_is_made_beside_its_rules_has_the_names_that_it_looks_for() {
    let world = World::new().await;
    of_leaseweb(&world, PORTS);
    // One rule is replaced, and one is new.
    world.spec(WEB, |spec| {
        spec["ports"][0]["nodePort"] = json!(32443);
        let new = json!({ "name": "new", "protocol": "TCP", "port": 80, "nodePort": 31080 });
        spec["ports"].as_array_mut().unwrap().push(new);
    });
    world.run(WEB).await.settled();
    let mut names: Vec<String> = world.sim.rules().into_iter().map(|rule| rule.name).collect();
    names.sort();
    assert_eq!(
        names,
        [
            format!("{LEASEWEB}-tcp-443"),
            format!("{LEASEWEB}-tcp-80"),
            format!("{LEASEWEB}-udp-4500")
        ]
    );
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert_quiet(&run, &writes);
    world.check("beside its rules");
}

/// Where it has no rule, it looks for those that are named after the UID.
#[tokio::test(start_paused = true)]
async fn a_new_service_has_rules_that_it_finds_by_the_uid() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    assert!(world.sim.rules().iter().all(|rule| rule.name.starts_with(NAME)));
    // What it writes when it takes that over changes nothing.
    let address = world.address();
    world.annotate(WEB, "address", Some(&address.address.to_string()));
    world.annotate(WEB, "id", Some(&address.id));
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert_quiet(&run, &writes);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_people_keep_stays() {
    for kept_by in ["keep-ip", "spec.loadBalancerIP"] {
        let world = World::new().await;
        let address = of_leaseweb(&world, PORTS);
        match kept_by {
            "keep-ip" => world.annotate(WEB, kept_by, Some("true")),
            _ => world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP)),
        }
        world.delete(WEB);
        world.run(WEB).await.settled();
        assert!(world.sim.rules().is_empty(), "{kept_by}");
        assert!(
            world.sim.addresses().iter().any(|it| it.id == address),
            "{kept_by}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_only_a_copied_annotation_names_stays() {
    for is_requested in [false, true] {
        let world = World::new().await;
        let ip: IpAddr = IP.parse().unwrap();
        let theirs = world.sim.take_address(AddressSpec::at(ip));
        let network = world.sim.vm_named("cp-a").unwrap().nics[0].network.clone();
        world.add(WEB, UID, &[("TCP", 443, 31443)]);
        world.annotate(WEB, "id", Some(&theirs));
        world.annotate(WEB, "network-id", Some(&network));
        world.annotate(WEB, "address", is_requested.then_some(IP));
        world.run(WEB).await.settled();
        world.delete(WEB);
        world.run(WEB).await.settled();
        assert_eq!(world.address().id, theirs, "requested {is_requested}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_stays_forgets_what_it_had() {
    let world = World::new().await;
    of_leaseweb(&world, PORTS);
    world.spec(WEB, |spec| spec["type"] = json!("ClusterIP"));
    world.run(WEB).await.settled();
    world.check_nothing_left("of a ClusterIP");
    for name in ["id", "network-id"] {
        assert_eq!(world.annotation(WEB, name), None, "{name}");
    }
}

/// Its keyword finds the rules of `shop/web-tcp` too, and another cluster of the name has the same names at another address.
#[tokio::test(start_paused = true)]
async fn rules_of_others_that_are_named_alike_are_left_alone() {
    let world = World::new().await;
    let address = of_leaseweb(&world, &[("tcp", 443, 31443)]);
    let elsewhere = world
        .sim
        .take_address(AddressSpec::at("203.0.113.61".parse::<IpAddr>().unwrap()));
    for (name, at, port) in [
        (format!("{LEASEWEB}-tcp-tcp-80"), &address, 80),
        (format!("{LEASEWEB}2-tcp-81"), &address, 81),
        (format!("{LEASEWEB}-tcp-443"), &elsewhere, 443),
    ] {
        world.sim.add_rule(RuleSpec::new(name, at, port, 31443));
    }
    world.delete(WEB);
    world.run(WEB).await.settled();
    assert_eq!(world.sim.rules().len(), 3);
    let addresses = world.sim.addresses();
    assert!(addresses.iter().any(|it| it.id == address), "others are on it");
}

#[tokio::test(start_paused = true)]
async fn its_proxy_mode_and_its_source_ranges_hold() {
    let world = World::new().await;
    let address = of_leaseweb(&world, &[("tcp-proxy", 443, 31443)]);
    world.annotate(WEB, "proxy-protocol", Some("true"));
    world.edit(WEB, |service| {
        let annotations = service.metadata.annotations.get_or_insert_default();
        annotations.insert(
            "service.beta.kubernetes.io/load-balancer-source-ranges".to_owned(),
            "192.0.2.0/24, 198.51.100.0/24".to_owned(),
        );
    });
    let rule = world.sim.firewall_rules().remove(0).id;
    world.sim.remove_firewall_rule(&rule);
    let ranges = ["192.0.2.0/24", "198.51.100.0/24"];
    world
        .sim
        .add_firewall_rule(FirewallSpec::new(&address, "tcp", 443).cidrs(ranges));
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert_quiet(&run, &writes);
    let Outcome::Settled(status) = &run.outcome else {
        panic!("{run:?}")
    };
    assert_eq!(status.ingress[0].ip_mode, Some(IpMode::Proxy));
}

#[tokio::test(start_paused = true)]
async fn nodes_look_as_it_has_them_where_the_file_says_so() {
    let site = Site::new().with("compatible-with = leaseweb\n");
    site.sim.add_vm(VmSpec::new("cp-a"));
    let world = World::around(site).await;
    let vm = world.sim.vm_named("cp-a").unwrap();
    let query = InstanceQuery {
        node: world.nodes().remove(0),
        purpose: Purpose::Metadata,
    };
    let instances = world.cloud.instances().unwrap();
    let answer = instances.instances(&[query]).await.remove(0).unwrap();
    let InstanceAnswer::Present(instance) = answer else {
        panic!("{answer:?}")
    };
    let metadata = instance.metadata;
    // That of a Node which has one is never changed.
    assert_eq!(
        metadata.provider_id,
        Some(format!("external-cloudstack://{}", vm.id))
    );
    assert_eq!((&*metadata.zone, &*metadata.region), ("Zurich-1", ""));
    let unnamed = InstanceQuery {
        node: std::sync::Arc::new(bowline_cloud_provider::Node::named("cp-a")),
        purpose: Purpose::Metadata,
    };
    let answer = instances.instances(&[unnamed]).await.remove(0).unwrap();
    let InstanceAnswer::Present(instance) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(
        instance.metadata.provider_id,
        Some(format!("cloudstack:///{}", vm.id))
    );
}
