//! What is given back, and when.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_service_goes_before_its_block_is_off_the_network() {
    let world = settled().await;
    world.sim.set_behaviour(|it| it.detach_time = SECOND * 5);
    let begun = world.since();
    world.delete_service("web");
    let took = world.until("it is gone", |w| w.service("web").is_none()).await;
    assert!(took < SECOND * 2, "{took:?}");
    assert_eq!(marked(&world).len(), 1, "the block is on its way");
    let took = world
        .until("nothing is left", |w| w.sim.blocks().is_empty())
        .await;
    assert!(took < SECOND * 60, "{took:?}");
    let writes: Vec<String> = world
        .calls(begun)
        .into_iter()
        .filter(|call| call.write)
        .map(|call| call.operation)
        .collect();
    assert_eq!(
        writes,
        ["ip-blocks.tag", "public-networks.detach", "ip-blocks.delete"]
    );
}

#[tokio::test(start_paused = true)]
async fn five_at_once_are_gone_in_time_and_nothing_is_refused() {
    let world = idle().await;
    let names: Vec<String> = (0..5).map(|index| format!("s{index}")).collect();
    for (name, port) in names.iter().zip(30080..) {
        world.apply(service(name, &[("", 80, port)]));
    }
    world
        .until("all addresses", |w| {
            names.iter().all(|name| !w.addresses(name).is_empty())
        })
        .await;
    world.rest().await;
    world.sim.set_behaviour(|it| it.detach_time = SECOND * 5);
    let mark = world.cloud().journal().mark();
    for name in &names {
        world.delete_service(name);
    }
    let took = world
        .until("all blocks are gone", |w| w.sim.blocks().is_empty())
        .await;
    assert!(took < SECOND * 100, "{took:?}");
    for entry in world.cloud().journal().since(mark) {
        assert!(entry.status().is_some_and(|status| status < 300), "{entry:?}");
    }
    world.assert_served();
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_is_tried_again_on_the_same_block() {
    let world = settled().await;
    let block = world.sim.blocks()[0].id.clone();
    world
        .cloud()
        .faults()
        .add(Fault::operation("ip-blocks.tag").times(3).status(500));
    let mark = world.cloud().journal().mark();
    world.delete_service("web");
    world.pass(SECOND * 10).await;
    assert!(world.has_finalizer("web"), "it stays Terminating");
    world.gone("web").await;
    assert!(world.sim.blocks().is_empty());
    let writes = world.cloud().journal().since(mark);
    let on_blocks = writes.iter().filter(|entry| entry.write);
    assert!(on_blocks.clone().all(|entry| entry.path.contains(&block)));
    assert_eq!(on_blocks.count(), 4 + 2);
}

#[tokio::test(start_paused = true)]
async fn a_service_of_the_same_name_gets_a_block_of_its_own() {
    let world = settled().await;
    let old = world.sim.blocks()[0].id.clone();
    world.delete_service("web");
    world.until("it is gone", |w| w.service("web").is_none()).await;
    world.pass(SECOND * 2).await;
    world.apply(web());
    world.settled("web").await;
    let blocks = world.sim.blocks();
    assert!(blocks.len() == 1 && blocks[0].id != old, "{blocks:?}");
    world.assert_served();
}

#[tokio::test(start_paused = true)]
async fn the_blocks_of_another_cluster_are_nobodys_business() {
    for filter in [TagFilter::Ignored, TagFilter::Any] {
        let world = idle().await;
        world.sim.set_behaviour(|it| it.tag_filter = filter);
        const OTHER: &str = "7a1d4c52-93f0-4c46-8f0e-1b6f7d5f6a11";
        let theirs = [
            BlockSpec::of_service(OTHER, "default", "web").network(NETWORK),
            BlockSpec::marked(OTHER).network(NETWORK),
            BlockSpec::marked(OTHER),
        ]
        .map(|spec| world.sim.add_block(spec));
        let before: Vec<_> = theirs.iter().map(|id| world.sim.block(id)).collect();
        world.apply(web());
        world
            .until("its address", |w| !w.addresses("web").is_empty())
            .await;
        world.delete_service("web");
        world.until("it is gone", |w| w.service("web").is_none()).await;
        world.pass(SECOND * 120).await;
        let after: Vec<_> = theirs.iter().map(|id| world.sim.block(id)).collect();
        assert_eq!(after, before, "{filter:?}");
        assert_eq!(world.sim.blocks().len(), theirs.len(), "{filter:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_sweeper_lists_twice_a_minute_and_nothing_else() {
    let world = settled().await;
    world.pass(SECOND * 45).await;
    let mark = world.cloud().journal().mark();
    world.pass(SECOND * 590).await;
    let calls = world.cloud().journal().since(mark);
    let of_cluster = calls
        .iter()
        .filter(|call| call.operation == "ip-blocks.list" && call.query.len() == 2);
    assert!((19..=20).contains(&of_cluster.count()), "{calls:#?}");
    assert!(calls.iter().all(|call| !call.write), "{calls:#?}");
}
