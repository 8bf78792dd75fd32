//! Rules that lead to Nodes of this cluster and have no Service go, and nothing else.

use std::collections::BTreeSet;

use bowline_cloud_provider::orphans::{OrphanFacts, Standing};
use bowline_cloudstack_sim::{AddressSpec, RuleSpec, VmSpec};
use bowline_kit::orphans::{orphan_facts, remove_orphans, survey};

use crate::world::{NAME, WEB, World};

fn facts(world: &World) -> OrphanFacts {
    orphan_facts(Some(&world.services), &world.nodes(), "kubernetes", None)
}

fn ids(world: &World) -> BTreeSet<String> {
    world.sim.rules().iter().map(|it| it.id.clone()).collect()
}

/// The name of a rule of a Service that is gone.
fn name(number: usize, port: u16) -> String {
    format!("a{number:031x}-tcp-{port}")
}

#[tokio::test(start_paused = true)]
async fn among_hundreds_of_rules_only_those_that_lead_to_nodes_of_this_cluster_go() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    let address = world.sim.addresses()[0].id.clone();
    let (node, other) = (
        world.sim.vms()[0].id.clone(),
        world.sim.add_vm(VmSpec::new("elsewhere")),
    );
    let foreign = world.sim.take_address(AddressSpec::default());
    let mut orphans = BTreeSet::new();
    for number in 1..=40_usize {
        let port = u16::try_from(1000 + 10 * number).unwrap();
        let add = |name: String, offset: u16, members: &[&String]| {
            let members = members.iter().map(|it| (*it).clone()).collect();
            let spec = RuleSpec::new(name, &foreign, port + offset, 30_000);
            world.sim.add_rule(RuleSpec { members, ..spec })
        };
        orphans.insert(add(name(number, port), 0, &[&node]));
        orphans.insert(add(name(number, port + 1), 1, &[&node]));
        add(name(1000 + number, port), 2, &[&other]);
        add(name(2000 + number, port), 3, &[&node, &other]);
        add(name(3000 + number, port), 4, &[]);
        add(format!("web-{number}"), 5, &[&node]);
        add(format!("a{number}-tcp-80"), 6, &[&node]);
    }
    let before = ids(&world);
    let (found, others) = remove_orphans(&world.cloud, &facts(&world)).await;
    assert_eq!(
        found.into_iter().map(|it| it.id).collect::<BTreeSet<_>>(),
        orphans
    );
    assert_eq!(ids(&world), &before - &orphans);
    assert_eq!(
        others
            .iter()
            .filter(|it| it.standing == Standing::Unclear)
            .count(),
        120
    );
    // Whose the address is, nothing tells any more.
    let held: Vec<String> = world.sim.addresses().into_iter().map(|it| it.id).collect();
    assert!(held.contains(&address) && held.contains(&foreign), "{held:?}");
    assert!(world.sim.rules().iter().any(|rule| rule.name.starts_with(NAME)));
}

#[tokio::test(start_paused = true)]
async fn rules_of_a_service_that_lives_are_no_orphans_and_one_beside_them_is_told_of() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    let address = world.sim.addresses()[0].id.clone();
    let node = world.sim.vms()[0].id.clone();
    let (orphans, others) = survey(&world.cloud, &facts(&world)).await;
    assert!(
        orphans.is_empty() && others.is_empty(),
        "{orphans:#?} {others:#?}"
    );
    let beside = RuleSpec::new(name(1, 80), &address, 80, 30_000);
    let beside = world.sim.add_rule(RuleSpec {
        members: vec![node],
        ..beside
    });
    let (orphans, others) = survey(&world.cloud, &facts(&world)).await;
    assert!(orphans.is_empty(), "{orphans:#?}");
    assert_eq!(others.len(), 1, "{others:#?}");
    assert_eq!((&others[0].id, others[0].standing), (&beside, Standing::Unclear));
    let why = &others[0].why;
    assert!(
        why.contains(WEB) && why.contains("may live by this rule"),
        "{why}"
    );
}
