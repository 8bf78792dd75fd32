//! Many Services, and a Node that comes to all of them.

use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::balancers::settled;
use super::{Bench, keep_journal, quiet};
use crate::manager::Subject;
use crate::report::{Figure, Measured};
use crate::world::World;
use crate::{floor, nodes, services, wait};

pub(super) const NODES: u32 = 20;
pub(super) const SERVICES: u32 = 100;
pub(super) const PORTS: u32 = 1;
const OBJECTS: u32 = 1 + PORTS * (3 + NODES);

/// So that managers that do one Service at a time are not measured by their default.
pub(super) const FLAGS: &[&str] = &["--concurrent-service-syncs=20"];

pub(super) async fn floor(bench: &Bench, measured: &mut Measured) -> Result<()> {
    let world = World::start(&bench.cloudscale, 0).await?;
    let begun = Instant::now();
    services::create(&world.client, SERVICES, PORTS).await?;
    floor::balancers(&world, SERVICES, OBJECTS).await?;
    measured.time(Figure::ManyTime, begun.elapsed());
    measured.number(Figure::ManyCalls, u64::from(SERVICES * OBJECTS));
    Ok(())
}

pub(super) async fn measure(bench: &Bench, subject: &Subject, measured: &mut Measured) -> Result<()> {
    // The last server is there from the beginning; its Node comes later.
    let world = World::start(&bench.cloudscale, NODES + 1).await?;
    let _manager = settled(bench, subject, &world, NODES, FLAGS).await?;
    let mark = world.cloud.mark().await?;
    let begun = Instant::now();
    services::create(&world.client, SERVICES, PORTS).await?;
    services::all_served(&world.client, SERVICES).await?;
    measured.time(Figure::ManyTime, begun.elapsed());
    quiet(&world.cloud).await?;
    measured.number(Figure::ManyCalls, world.cloud.calls_since(mark).await?.all);

    if let Some(reads) = reads_of_a_node_more(&world).await? {
        measured.number(Figure::NodeAddedReads, reads);
    }
    keep_journal(bench, &world.cloud, "many", subject).await
}

/// The reads of the cloud when a Node joins, until it is behind every load balancer.
pub(super) async fn reads_of_a_node_more(world: &World) -> Result<Option<u64>> {
    let mark = world.cloud.mark().await?;
    nodes::create(&world.client, NODES + 1..=NODES + 1).await?;
    wait::until(
        "the new node is a member of each pool",
        Duration::from_millis(500),
        async || {
            let calls = world.cloud.calls_since(mark).await?;
            Ok((calls.members_written >= u64::from(SERVICES * PORTS)).then_some(()))
        },
    )
    .await?;
    quiet(&world.cloud).await?;
    Ok(world.cloud.calls_since(mark).await?.reads)
}
