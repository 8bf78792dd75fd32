//! Services that go, and the sweeper.

use std::net::IpAddr;
use std::time::Duration;

use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::{BlockSpec, ServerSpec};

use crate::world::{CLAIM, CLUSTER, NETWORK, World};

const KEY: &str = "shop/checkout";

#[tokio::test(start_paused = true)]
async fn who_keeps_a_marked_block_on_its_network_is_told() {
    let world = World::with_service();
    let address: IpAddr = world.run(KEY).await.published()[0].parse().unwrap();
    let server = world.sim.add_server(ServerSpec::on(NETWORK, "n1"));
    world.sim.join_network(NETWORK, &server, [address]);
    world.delete(KEY);
    world.run(KEY).await.settled();
    world.sweep().await;
    let told = world.left_over().await;
    assert_eq!(told.len(), 1, "{told:?}");
    for word in ["is marked to be given back", &server, &address.to_string()] {
        assert!(told[0].contains(word), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_with_two_blocks_is_told_of_by_the_sweeper() {
    let world = World::with_service();
    world.run(KEY).await.settled();
    let second = BlockSpec::of_service(CLUSTER, "shop", "checkout");
    let second = world.sim.add_block(second.network(NETWORK));
    let notes = world.sweep().await;
    assert_eq!(notes[0].reason, "IPBlockSurplus", "{notes:?}");
    assert!(notes[0].text.contains(&second), "{notes:?}");
    assert_eq!(notes[0].about.as_deref(), Some(KEY));
    let measured = world.measure().await;
    for counted in [
        "phoenixnap_ip_blocks{state=active} 1",
        "phoenixnap_ip_blocks{state=surplus} 1",
    ] {
        assert!(measured.iter().any(|it| it == counted), "{measured:?}");
    }
    assert_eq!(world.sim.blocks().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn every_block_of_the_cluster_is_counted_once_and_by_no_call_of_its_own() {
    let world = World::with_service();
    world.run(KEY).await.settled();
    let counted = |active: usize, marked: usize, orphaned: usize, stuck: usize| {
        [
            format!("phoenixnap_ip_blocks{{state=active}} {active}"),
            format!("phoenixnap_ip_blocks{{state=marked}} {marked}"),
            format!("phoenixnap_ip_blocks{{state=orphaned}} {orphaned}"),
            "phoenixnap_ip_blocks{state=surplus} 0".to_owned(),
            format!("phoenixnap_ip_blocks_stuck {stuck}"),
        ]
    };
    let (measured, calls) = world.calls_of(world.measure()).await;
    assert_eq!(measured, counted(1, 0, 0, 0));
    assert_eq!(calls, ["ip-blocks.list"]);
    for spec in [
        BlockSpec::of_service(CLUSTER, "shop", "gone").network(NETWORK),
        // Somebody else's, and somebody's who is not known at all.
        BlockSpec::of_service("7a1d4c52-93f0-4c46-8f0e-1b6f7d5f6a11", "shop", "checkout").network(NETWORK),
        BlockSpec::default(),
        // Left alone.
        BlockSpec::marked(CLUSTER).attached("s1", "server"),
    ] {
        world.sim.add_block(spec);
    }
    assert_eq!(world.measure().await, counted(2, 1, 0, 1), "not an orphan yet");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(world.measure().await, counted(1, 1, 1, 1));
    let (told, calls) = world.calls_of(world.left_over()).await;
    assert_eq!(calls, ["ip-blocks.list"]);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[0].ends_with("bears the tags of service shop/gone, which does not exist"),
        "{told:?}"
    );
    assert!(
        told[1].contains("is marked to be given back, and is attached to"),
        "{told:?}"
    );
    // One that cannot be given back is stuck; one that was is not there any more.
    world.sim.add_block(BlockSpec::marked(CLUSTER));
    let fault = Fault::operation("ip-blocks.delete").nth(1).status(500);
    world.sim.faults().add(fault);
    assert_eq!(world.measure().await, counted(1, 2, 1, 2));
    assert_eq!(world.measure().await, counted(1, 1, 1, 1));
}

/// The controllers look for what comes late with the Service as it was, claim and all.
#[tokio::test(start_paused = true)]
async fn a_claim_whose_block_was_seen_keeps_no_service() {
    for fault in [
        Fault::operation("public-networks.attach").lose_answer(),
        Fault::operation("ip-blocks.create").lose_answer(),
    ] {
        let world = World::with_service();
        world.sim.faults().add(fault);
        assert!(world.run(KEY).await.complaint().contains("broke"));
        let claim = world.claim(KEY).unwrap();
        world.delete(KEY);
        world.run(KEY).await.settled();
        world.sweep().await;
        assert_eq!(world.sim.blocks().len(), 0);
        world.annotate(KEY, CLAIM, &claim);
        let run = world.run(KEY).await;
        assert_eq!(run.waited, Duration::ZERO, "{}", run.waited_for);
        run.settled();
    }
}

#[tokio::test(start_paused = true)]
async fn services_come_before_marked_blocks_where_the_network_moves_one_at_a_time() {
    let world = World::with_service();
    world.run(KEY).await.settled();
    world.sim.set_behaviour(|it| {
        it.busy_refuses_detachment = true;
        it.attach_time = Duration::from_secs(2);
        it.detach_time = Duration::from_secs(2);
    });
    for _ in 0..6 {
        world.sim.add_block(BlockSpec::marked(CLUSTER).network(NETWORK));
    }
    let services = ["shop/a", "shop/b", "shop/c"];
    services.iter().for_each(|key| world.add(key));
    let mark = world.sim.journal().mark();
    let come = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let come = services.map(|key| world.run(key));
        futures::future::join_all(come).await;
    };
    tokio::join!(world.sweep(), come);
    let taken = world.sim.journal().since(mark).into_iter();
    let taken = taken.filter(|it| it.status().is_some_and(|status| status == 202));
    let moves: Vec<String> = taken.map(|it| it.operation.to_string()).collect();
    let attached = |it: &String| it == "public-networks.attach";
    let first = moves.iter().position(attached).unwrap();
    assert!(moves[first..first + 3].iter().all(attached), "{moves:?}");
    assert_eq!(moves.len(), 6 + 3, "{moves:?}");
}
