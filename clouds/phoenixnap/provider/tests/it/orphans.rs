//! What bears the tags of a cluster and has no Service is given back, and nothing else.

use std::collections::BTreeSet;

use bowline_cloud_provider::orphans::{OrphanFacts, Standing};
use bowline_kit::orphans::{orphan_facts, remove_orphans, survey};
use bowline_phoenixnap_sim::BlockSpec;
use bowline_phoenixnap_sim::kit::Double as _;
use serde_json::json;

use crate::world::{CLUSTER, NETWORK, World};

fn facts(world: &World) -> OrphanFacts {
    orphan_facts(Some(&world.services), &[], "kubernetes", Some(CLUSTER))
}

fn ids(world: &World) -> BTreeSet<String> {
    world.sim.blocks().iter().map(|it| it.id.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn among_hundreds_of_blocks_only_orphans_of_this_cluster_are_given_back() {
    let world = World::with_service();
    world
        .sim
        .add_block(BlockSpec::of_service(CLUSTER, "shop", "checkout").network(NETWORK));
    let mut orphans = BTreeSet::new();
    for number in 0..40 {
        let name = format!("gone-{number}");
        orphans.insert(world.sim.add_block(BlockSpec::of_service(CLUSTER, "shop", &name)));
        world
            .sim
            .add_block(BlockSpec::of_service("another-cluster", "shop", &name));
        world.sim.add_block(BlockSpec::default().tag("team", "blue"));
        world.sim.add_block(
            BlockSpec::default()
                .tag("cluster", CLUSTER)
                .tag("usage", "by-hand"),
        );
    }
    let on_network = BlockSpec::of_service(CLUSTER, "shop", "attached").network(NETWORK);
    orphans.insert(world.sim.add_block(on_network));
    orphans.insert(world.sim.add_block(BlockSpec::marked(CLUSTER)));
    let kept = BlockSpec::of_service(CLUSTER, "shop", "kept").tag("delete", "false");
    world.sim.add_block(kept);
    let before = ids(&world);
    let (found, others) = remove_orphans(&world.cloud, &facts(&world)).await;
    assert_eq!(
        found.into_iter().map(|it| it.id).collect::<BTreeSet<_>>(),
        orphans
    );
    assert_eq!(ids(&world), &before - &orphans);
    let of = |standing| others.iter().filter(|it| it.standing == standing).count();
    assert_eq!(
        (of(Standing::AnotherClusters), of(Standing::Persons)),
        (40, 1),
        "{others:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_block_whose_address_a_service_asks_for_is_no_orphan() {
    let world = World::with_service();
    let spec = BlockSpec::of_service(CLUSTER, "shop", "before").network(NETWORK);
    let block = world.sim.add_block(spec);
    let blocks = world.sim.blocks();
    let there = blocks.iter().find(|it| it.id == block).unwrap();
    let address = there.cidr.to_string().replace("/29", "");
    world.services.edit("shop/checkout", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some(address);
    });
    let (orphans, others) = survey(&world.cloud, &facts(&world)).await;
    assert!(
        orphans.is_empty() && others.is_empty(),
        "{orphans:#?} {others:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_block_that_lost_its_tags_and_has_the_address_of_a_service_is_listed_apart() {
    let world = World::with_service();
    let block = world.sim.add_block(BlockSpec::default().network(NETWORK));
    world.sim.add_block(BlockSpec::default().network(NETWORK));
    let address = world.sim.blocks()[0].cidr.to_string().replace("/29", "");
    world.services.edit("shop/checkout", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some(address);
    });
    let (orphans, others) = survey(&world.cloud, &facts(&world)).await;
    assert!(orphans.is_empty(), "{orphans:#?}");
    let [found] = others.as_slice() else {
        panic!("{others:#?}")
    };
    assert_eq!((&found.id, found.standing), (&block, Standing::Unclear));
    let tags = format!("cluster={CLUSTER}, serviceNamespace=shop, serviceName=checkout");
    assert!(
        found.why.contains("Service shop/checkout") && found.why.contains(&tags),
        "{}",
        found.why
    );
}

#[tokio::test(start_paused = true)]
async fn a_serving_block_that_lost_some_of_its_tags_is_listed_apart() {
    let own = [
        ("serviceNamespace", "shop"),
        ("serviceName", "checkout"),
        ("cluster", CLUSTER),
    ];
    for (kept, missing) in [
        (vec![own[0], own[1]], "the tags cluster="),
        (
            vec![own[2]],
            "the tags serviceNamespace=shop, serviceName=checkout:",
        ),
        (vec![own[0], own[2]], "the tags serviceName=checkout:"),
        (
            vec![own[0], ("serviceName", "q"), own[2]],
            "the tags serviceName=checkout:",
        ),
    ] {
        let world = World::with_service();
        world.run("shop/checkout").await.settled();
        let mut tags = vec![json!({ "name": "usage", "value": "cloud-provider-phoenixnap-auto" })];
        tags.extend(
            kept.iter()
                .map(|(name, value)| json!({ "name": name, "value": value })),
        );
        let mut block = world.sim.objects()["blocks"][0].clone();
        block["tags"] = json!(tags);
        let id = world.sim.blocks()[0].id.clone();
        assert!(world.sim.replace("blocks", &id, block).unwrap());
        let (orphans, others) = survey(&world.cloud, &facts(&world)).await;
        assert!(orphans.is_empty(), "{orphans:#?}");
        let [found] = others.as_slice() else {
            panic!("{kept:?}: {others:#?}")
        };
        assert_eq!(found.standing, Standing::Unclear, "{kept:?}");
        assert!(found.why.contains(missing), "{}", found.why);
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_cluster_that_is_gone_the_uid_has_to_be_said() {
    let world = World::new();
    let block = world
        .sim
        .add_block(BlockSpec::of_service(CLUSTER, "shop", "web").network(NETWORK));
    let (orphans, others) = survey(&world.cloud, &orphan_facts(None, &[], "old", None)).await;
    assert!(orphans.is_empty());
    assert_eq!(others[0].standing, Standing::Unclear);
    assert!(
        others[0].why.contains(&format!("--cluster-uid={CLUSTER}")),
        "{}",
        others[0].why
    );
    let facts = orphan_facts(None, &[], "old", Some(CLUSTER));
    let (orphans, _) = survey(&world.cloud, &facts).await;
    let steps = orphans[0].1.waves.iter().flat_map(|wave| &wave.steps);
    let steps: Vec<&str> = steps.filter_map(|step| step.label.split('(').next()).collect();
    assert_eq!(steps.last(), Some(&"delete-ip-block"), "{steps:?}");
    let (removed, _) = remove_orphans(&world.cloud, &facts).await;
    assert_eq!(removed[0].id, block);
    assert!(world.sim.blocks().is_empty());
}
