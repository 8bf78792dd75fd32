//! Apache CloudStack with a whole manager. What every cloud must do is in the conformance suite; rules, addresses and
//! openings are tested beside the provider.

use std::time::Duration;

use bowline_cloudstack_sim::{AddressSpec, FirewallSpec, Operation, RuleSpec, VmSpec};
use bowline_conformance::cloud::{CloudUnderTest as _, Instance, SECOND, UNINITIALIZED, service, web};
use bowline_conformance::clouds::cloudstack::{Isolated, Place};
use bowline_conformance::clouds::{CloudStack, Tier};
use bowline_kube_api::{Effect, Fault, Status};
use serde_json::{Value, json};

type World = bowline_conformance::cloud::World<CloudStack>;

/// A port and its node port.
type Ports = [(&'static str, u16, u16); 2];

const OF_WEB: Ports = [("web", 8080, 31200), ("admin", 9000, 31201)];
const OF_PLAIN: Ports = [("web", 80, 30080), ("secure", 443, 30443)];

/// A Node as version 1.2.0 of the former manager leaves it.
fn node_of_upstream(world: &World, name: &str) -> Value {
    let instance = &world.sim.instances()[name];
    let (zone, kind) = (&instance.zone, &instance.instance_type);
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": name, "labels": {
            "kubernetes.io/hostname": name,
            "node.kubernetes.io/instance-type": kind, "beta.kubernetes.io/instance-type": kind,
            "topology.kubernetes.io/zone": zone, "failure-domain.beta.kubernetes.io/zone": zone,
            "topology.kubernetes.io/region": zone, "failure-domain.beta.kubernetes.io/region": zone,
        } },
        "spec": { "providerID": instance.provider_id },
        "status": {
            "conditions": [{ "type": "Ready", "status": "True" }],
            "addresses": [
                { "type": "InternalIP", "address": instance.addresses[0].address },
                { "type": "Hostname", "address": name },
            ],
        },
    })
}

/// A Service and its rules as that version leaves them.
fn service_of_upstream(world: &World, name: &str, ports: Ports) {
    let mut object = service(name, &ports);
    object["metadata"]["finalizers"] = json!([bowline_conformance::cloud::FINALIZER]);
    let address = world.sim.take_address(AddressSpec::default());
    let held = world.sim.addresses();
    let ip = held.iter().find(|it| it.id == address).unwrap().address;
    object["status"] = json!({ "loadBalancer": { "ingress": [{ "ip": ip.to_string() }] } });
    world.apply(object);
    let mark = world.mark(name);
    let members: Vec<String> = world.sim.vms().into_iter().map(|vm| vm.id).collect();
    for (_, port, node_port) in ports {
        let rule = RuleSpec {
            cidrs: Some("0.0.0.0/0".into()),
            members: members.clone(),
            ..RuleSpec::new(format!("{mark}-tcp-{port}"), &address, port, node_port)
        };
        world.sim.add_rule(rule);
        world
            .sim
            .add_firewall_rule(FirewallSpec::new(&address, "tcp", port));
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_on_which_nothing_may_be_written_is_served_and_goes() {
    let world = World::with_nodes(2).await;
    let refusal = Status::new(403, "Forbidden", "cannot patch resource \"services\"");
    world.api.faults().inject(
        Fault::new(Effect::Answer(refusal))
            .verb("patch")
            .resource("services")
            .subresource(""),
    );
    world.apply(web());
    world.settled("web").await;
    assert!(world.sim.rules().len() == world.sim.firewall_rules().len() && world.sim.addresses().len() == 1);
    world.delete_service("web");
    world.gone("web").await;
    assert_eq!(world.sim.addresses().len(), 0);
    let told = world.events("web");
    let told = told.iter().filter(|line| line.contains("AnnotationsForbidden"));
    assert_eq!(told.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_version_1_2_0_left_is_taken_over_without_a_write_to_either_side_and_no_event() {
    let mut world = World::new();
    for name in ["n1", "n2", "n3"] {
        world.sim.add_vm(VmSpec::new(name));
        world.apply(node_of_upstream(&world, name));
    }
    service_of_upstream(&world, "web", OF_WEB);
    service_of_upstream(&world, "plain", OF_PLAIN);
    let (begun, before) = (world.since(), world.sim.state());
    world.start();
    // Its first syncs, two periodic checks, and several passes over addresses.
    world.pass(SECOND * 1_500).await;
    let (reads, writes) = world.counts(begun);
    assert!(reads > 0, "it never looked");
    assert_eq!(writes, 0, "{:?}", world.writes(begun));
    assert_eq!(world.object_writes(begun), Vec::<String>::new());
    assert_eq!(world.all_events(), Vec::<String>::new());
    assert_eq!(world.sim.state(), before);
    world.assert_served();
    // And it is ours to change and to remove.
    world.change("web");
    world.rest().await;
    world.assert_served();
    for name in ["web", "plain"] {
        world.delete_service(name);
        world.gone(name).await;
    }
    assert_eq!(world.sim.addresses().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn with_two_things_on_a_page_everything_is_as_with_five_hundred() {
    let mut ends = Vec::new();
    for page_size in [500, 2] {
        let mut world = World::new();
        world.sim.set_behaviour(|it| it.page_size = Some(page_size));
        for name in ["other-1", "other-2"] {
            world.sim.add_vm(VmSpec::new(name));
        }
        for name in ["n1", "n2", "n3", "n4", "n5"] {
            world.join(name);
        }
        world.start();
        world.apply(service(
            "wide",
            &[("a", 80, 31100), ("b", 81, 31101), ("c", 82, 31102)],
        ));
        world.settled("wide").await;
        world.assert_served();
        assert_eq!(world.unlike().len(), 2, "the two others have no Node");
        world.sim.remove_instance("n5");
        world.set_ready("n5", "Unknown");
        world.until("the node goes", |w| w.node("n5").is_none()).await;
        world.rest().await;
        world.assert_served();
        ends.push(world.sim.state().replace(&world.mark("wide"), "NAME"));
        world.delete_service("wide");
        world.gone("wide").await;
        assert_eq!(world.sim.addresses().len(), 0);
    }
    assert_eq!(ends[0], ends[1]);
}

#[tokio::test(start_paused = true)]
async fn many_nodes_cost_a_handful_of_calls_for_a_pass_and_three_pages_for_a_start() {
    twelve_hundred_instances::<Isolated>().await;
}

#[tokio::test(start_paused = true)]
async fn in_a_project_many_nodes_cost_as_few_calls() {
    twelve_hundred_instances::<Tier>().await;
}

async fn twelve_hundred_instances<P: Place>() {
    const NODES: usize = 300;
    /// As many again and more are no nodes: 1,200 instances, on three pages.
    const OTHERS: usize = 900;
    let mut world = bowline_conformance::cloud::World::<CloudStack<P>>::new();
    for index in 0..OTHERS {
        world
            .sim
            .add_instance(&Instance::plain(&format!("other-{index}")));
    }
    for index in 0..NODES {
        world.join(&format!("n{index}"));
    }
    world.start();
    let took = world
        .until("all are initialised", |w| {
            let nodes = w.api.objects("Node");
            nodes
                .iter()
                .all(|node| !node["spec"]["taints"].to_string().contains(UNINITIALIZED))
        })
        .await;
    assert!(took < SECOND * 30, "{took:?}");
    world.rest().await;
    let listings = world
        .sim
        .journal()
        .count_operation(Operation::ListVirtualMachines.name());
    assert!(listings <= 3 * 3, "{listings} pages");

    // The addresses of all Nodes are looked at every five minutes.
    let begun = world.since();
    world.pass(Duration::from_secs(310)).await;
    let (reads, writes) = world.counts(begun);
    assert_eq!(writes, 0);
    assert!((1..=8).contains(&reads), "{:?}", world.tally(begun));

    let begun = world.since();
    world.apply(web());
    world.settled("web").await;
    world.assert_served();
    let rules = world.sim.rules();
    assert!(rules.iter().all(|rule| rule.members.len() == NODES));
    assert_eq!(world.writes(begun).len(), 1 + 2 * 3, "{:?}", world.writes(begun));
    let begun = world.since();
    world.annotate_idly("web");
    world.rest().await;
    let (reads, writes) = world.counts(begun);
    assert!(reads <= 4 && writes == 0, "{:?}", world.tally(begun));
    world.assert_hidden();
}
