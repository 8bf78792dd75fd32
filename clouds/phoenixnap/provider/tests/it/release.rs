//! Services that go, and the sweeper.

use std::time::Duration;

use bowline_cloud_provider::plan::Note;
use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::kit::faults::Canned;
use bowline_phoenixnap_sim::{BlockSpec, BlockStatus, Tag};

use crate::world::{CLUSTER, NETWORK, World};

const KEY: &str = "shop/checkout";

async fn ready() -> World {
    let world = World::with_service();
    world.run(KEY).await.settled();
    world
}

#[tokio::test(start_paused = true)]
async fn a_release_that_fails_works_on_the_same_block_until_it_is_done() {
    let world = ready().await;
    world
        .sim
        .faults()
        .add(Fault::operation("ip-blocks.tag").times(3).status(500));
    let block = world.sim.blocks()[0].id.clone();
    let mark = world.sim.journal().mark();
    world.delete(KEY);
    for _ in 0..3 {
        assert!(world.run(KEY).await.complaint().contains("500"));
    }
    world.run(KEY).await.settled();
    world.forget(KEY);
    world.sweep().await;
    assert!(world.sim.blocks().is_empty());
    let mut writes = world.sim.journal().since(mark);
    writes.retain(|entry| entry.write);
    assert_eq!(
        writes.len(),
        4 + 2,
        "marked at the fourth try, taken off, deleted"
    );
    assert!(writes.iter().all(|entry| entry.path.contains(&block)));
}

/// Nothing changes at the Service, so its own reconcile is minutes away.
#[tokio::test(start_paused = true)]
async fn a_block_that_fell_off_and_cannot_be_attached_again_is_told_of_by_the_first_sweep() {
    for status in [409, 500] {
        let world = ready().await;
        let id = world.sim.blocks()[0].id.clone();
        world.sim.edit_block(&id, |block| {
            block.status = BlockStatus::ErrorAssigning;
            block.assignment = None;
        });
        let attachments = Fault::operation("public-networks.attach").always();
        world.sim.faults().add(attachments.status(status));
        let notes = world.sweep().await;
        let told: Vec<_> = notes.iter().map(|note| note.reason).collect();
        assert_eq!(told, ["IPBlockFallenOff"], "{notes:?}");
        let text = &notes[0].text;
        assert!(
            text.contains("of service shop/checkout is error assigning"),
            "{text}"
        );
        assert!(text.contains(&status.to_string()), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_mark_is_written_once_however_late_a_list_shows_it() {
    let world = ready().await;
    let block = world.sim.blocks()[0].clone();
    let (id, cidr) = (block.id, block.cidr);
    let before = format!(
        r#"[{{"id":"{id}","cidr":"{cidr}","status":"assigned","assignedResourceId":"{NETWORK}",
        "assignedResourceType":"public network","tags":[{{"name":"usage","value":"cloud-provider-phoenixnap-auto"}},
        {{"name":"cluster","value":"{CLUSTER}"}},{{"name":"serviceNamespace","value":"shop"}},
        {{"name":"serviceName","value":"checkout"}}]}}]"#
    );
    let lists = Fault::operation("ip-blocks.list").times(4);
    world.sim.faults().add(lists.answer(Canned::json(200, &before)));
    world.delete(KEY);
    let (run, mut calls) = world.calls_of(world.run(KEY)).await;
    assert!(run.settled().waited <= Duration::from_secs(5));
    calls.retain(|call| call == "ip-blocks.tag");
    assert_eq!(calls.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_marked_block_on_a_server_is_left_alone_and_told_of() {
    let world = World::new();
    let block = world
        .sim
        .add_block(BlockSpec::marked(CLUSTER).attached("s1", "server"));
    let (notes, calls) = world.calls_of(world.sweep()).await;
    assert_eq!(calls, ["ip-blocks.list"]);
    assert_eq!(notes.len(), 1);
    assert_eq!(notes[0].reason, "IPBlockLeftAlone");
    assert!(notes[0].text.contains(&block), "{notes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_block_that_cannot_be_taken_off_keeps_no_other_waiting() {
    let world = World::new();
    let server = world
        .sim
        .add_server(bowline_phoenixnap_sim::ServerSpec::on(NETWORK, "n1"));
    let stuck = world.sim.add_block(BlockSpec::marked(CLUSTER).network(NETWORK));
    world.sim.add_block(BlockSpec::marked(CLUSTER).network(NETWORK));
    let used = world.sim.block(&stuck).unwrap().cidr.network();
    let std::net::IpAddr::V4(used) = used else {
        panic!("no IPv4 block")
    };
    let used = std::net::Ipv4Addr::from_bits(used.to_bits() + 4);
    world.sim.join_network(NETWORK, &server, [used.into()]);
    let notes = world.sweep().await;
    let left: Vec<String> = world.sim.blocks().into_iter().map(|block| block.id).collect();
    assert_eq!(left, [stuck]);
    assert!(
        notes.iter().any(|note| note.reason == "IPBlockSweepFailed"),
        "{notes:?}"
    );
}

/// The next run, half a minute after the last one.
async fn swept_again(world: &World) -> Vec<Note> {
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.sweep().await
}

#[tokio::test(start_paused = true)]
async fn a_service_with_two_blocks_is_told_of_by_the_sweeper() {
    let world = ready().await;
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
async fn the_block_of_a_living_service_that_somebody_marks_is_released_with_an_event_of_that_service() {
    for keeps_its_names in [true, false] {
        let world = ready().await;
        let block = world.sim.blocks()[0].id.clone();
        world.sim.edit_block(&block, |block| {
            block
                .tags
                .retain(|tag| keeps_its_names || !tag.name.starts_with("service"));
            block.tags.push(Tag::new("delete", "true"));
        });
        let detach = Duration::from_secs(5);
        world
            .sim
            .set_behaviour(|behaviour| behaviour.detach_time = detach);
        // What the Service itself says meanwhile.
        let run = world.run(KEY).await;
        assert!(
            run.complaint().contains("has the tag `delete` and is given back"),
            "{run:#?}"
        );
        assert!(run.complaint().contains("remove the tag"), "{run:#?}");
        let sweep = world.sweep().await;
        let told = sweep.iter().filter(|note| note.reason == "IPBlockReleased");
        let told: Vec<&Note> = told.collect();
        assert!(!told.is_empty(), "{sweep:?}");
        assert!(told[0].text.contains(&block) && told[0].text.contains("tag `delete`"));
        assert_eq!(told[0].about.as_deref(), Some(KEY));
        assert!(world.sim.blocks().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_serving_block_whose_tags_were_removed_is_named_and_no_other_one_is_advised() {
    let world = ready().await;
    let block = world.sim.blocks()[0].id.clone();
    let tags = world.sim.blocks()[0].tags.clone();
    for lost in [&["serviceName", "serviceNamespace"][..], &["serviceName"]] {
        world.sim.edit_block(&block, |block| {
            block.tags.retain(|tag| !lost.contains(&tag.name.as_str()));
        });
        let complaint = world.run(KEY).await.complaint().to_owned();
        for words in [
            &block,
            "put the tags serviceNamespace=shop and serviceName=checkout back",
        ] {
            assert!(complaint.contains(words), "{complaint}");
        }
        world.sim.edit_block(&block, |block| block.tags.clone_from(&tags));
        world.run(KEY).await.settled();
    }
    // One that is another Service's is nobody else's to take.
    world.sim.edit_block(&block, |block| {
        block
            .tags
            .iter_mut()
            .filter(|tag| tag.name == "serviceName")
            .for_each(|tag| {
                tag.value = Some("search".to_owned());
            });
    });
    let complaint = world.run(KEY).await.complaint().to_owned();
    assert!(
        complaint.contains("has the tags of service shop/search"),
        "{complaint}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_block_that_no_service_has_is_told_of_and_never_deleted() {
    let world = World::new();
    world.add("shop/plain");
    world.edit("shop/plain", |service| {
        service.spec.as_mut().unwrap().type_ = Some("ClusterIP".to_owned());
        service.metadata.finalizers = None;
    });
    for (spec, words) in [
        (
            BlockSpec::of_service(CLUSTER, "shop", "gone"),
            "service shop/gone, which does not exist",
        ),
        (
            BlockSpec::of_service(CLUSTER, "shop", "plain"),
            "service shop/plain, which is no load balancer",
        ),
        (
            BlockSpec::default()
                .tag("usage", "cloud-provider-phoenixnap-auto")
                .tag("cluster", CLUSTER),
            "of no service",
        ),
    ] {
        let block = world.sim.add_block(spec.network(NETWORK));
        let (notes, calls) = world.calls_of(world.sweep()).await;
        assert_eq!(
            (notes.len(), calls),
            (0, vec!["ip-blocks.list".to_owned()]),
            "{words}"
        );
        let (notes, calls) = world.calls_of(swept_again(&world)).await;
        assert_eq!(calls, ["ip-blocks.list"]);
        assert_eq!(notes[0].reason, "IPBlockOrphaned");
        assert!(notes[0].text.contains(words), "{notes:?}");
        assert_eq!(world.sim.blocks().len(), 1);
        world.sim.remove_block(&block);
    }
}

/// The remedy of an orphan is the tag `delete`, which would take the address from under the Service.
#[tokio::test(start_paused = true)]
async fn a_block_that_lost_its_tags_is_no_orphan_while_a_service_lives_on_it() {
    let world = World::new();
    let own = BlockSpec::default()
        .tag("usage", "cloud-provider-phoenixnap-auto")
        .tag("cluster", CLUSTER);
    world.sim.add_block(own.network(NETWORK));
    let cidr = world.sim.blocks()[0].cidr.to_string();
    world.add("shop/plain");
    world.edit("shop/plain", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some(cidr.replace("/29", ""));
    });
    for _ in 0..3 {
        assert_eq!(swept_again(&world).await, []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_seen_a_moment_after_its_block_makes_no_orphan() {
    let world = World::new();
    let block = world
        .sim
        .add_block(BlockSpec::of_service(CLUSTER, "shop", "checkout").network(NETWORK));
    assert_eq!(world.sweep().await, []);
    world.add(KEY);
    assert_eq!(swept_again(&world).await, []);
    // What it was suspected of then counts for nothing later.
    world.forget(KEY);
    assert_eq!(swept_again(&world).await, []);
    // Nor does a run that follows at once, because some Service went.
    assert_eq!(world.sweep().await, []);
    let notes = swept_again(&world).await;
    assert!(notes.len() == 1 && notes[0].text.contains(&block), "{notes:?}");
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

// A Service without a block is left as it is.

#[tokio::test(start_paused = true)]
async fn a_404_that_is_not_the_apis_own_deletes_nothing_in_the_books() {
    let world = World::new();
    world.sim.add_block(BlockSpec::marked(CLUSTER));
    world
        .sim
        .faults()
        .add(Fault::operation("ip-blocks.delete").nth(1).html(404));
    let notes = world.sweep().await;
    assert!(
        notes.iter().any(|note| note.reason == "IPBlockSweepFailed"),
        "{notes:?}"
    );
    world.sweep().await;
    assert!(world.sim.blocks().is_empty());
}
