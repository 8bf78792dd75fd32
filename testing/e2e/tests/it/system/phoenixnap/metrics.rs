//! Counts of blocks.

use super::*;

/// The provider's own series of the manager that was started as the `index`th of those that run.
fn counted(world: &World, index: usize) -> Vec<String> {
    shown(&world.metrics()[index])
}

fn shown(metrics: &bowline_manager::metrics::Metrics) -> Vec<String> {
    let page = metrics.render().unwrap();
    let lines = page.lines().filter(|line| line.starts_with("phoenixnap_"));
    lines.map(str::to_owned).collect()
}

fn expected(active: usize, marked: usize, orphaned: usize, stuck: usize) -> Vec<String> {
    vec![
        format!("phoenixnap_ip_blocks{{state=\"active\"}} {active}"),
        format!("phoenixnap_ip_blocks{{state=\"marked\"}} {marked}"),
        format!("phoenixnap_ip_blocks{{state=\"orphaned\"}} {orphaned}"),
        "phoenixnap_ip_blocks{state=\"surplus\"} 0".to_owned(),
        format!("phoenixnap_ip_blocks_stuck {stuck}"),
    ]
}

#[tokio::test(start_paused = true)]
async fn blocks_are_counted_by_who_leads_and_by_nobody_else() {
    let mut world = idle().await;
    world.start();
    world.apply(web());
    world.settled("web").await;
    world.pass(SECOND * 60).await;
    assert_eq!(counted(&world, 0), expected(1, 0, 0, 0));
    assert_eq!(counted(&world, 1), Vec::<String>::new());

    let cluster = cluster(&world);
    let orphan = world
        .sim
        .add_block(BlockSpec::of_service(&cluster, "default", "gone"));
    world
        .sim
        .add_block(BlockSpec::marked(&cluster).attached("s1", "server"));
    world.pass(SECOND * 70).await;
    assert_eq!(counted(&world, 0), expected(1, 1, 1, 1));

    let former = world.metrics().remove(0);
    world.kill().await;
    assert_eq!(shown(&former), Vec::<String>::new());
    world.sim.remove_block(&orphan);
    assert_eq!(counted(&world, 0), Vec::<String>::new());
    world
        .until("the successor has counted", |w| !counted(w, 0).is_empty())
        .await;
    assert_eq!(counted(&world, 0), expected(1, 1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn what_nobody_could_look_at_is_not_told_of() {
    let world = settled().await;
    world.pass(SECOND * 40).await;
    assert_eq!(counted(&world, 0), expected(1, 0, 0, 0));
    let illness = Fault::operation("ip-blocks.list").always().status(500);
    world.cloud().faults().add(illness);
    world.pass(SECOND * 40).await;
    assert_eq!(counted(&world, 0), Vec::<String>::new());
    world.cloud().faults().clear();
    world.pass(SECOND * 40).await;
    assert_eq!(counted(&world, 0), expected(1, 0, 0, 0));
}
