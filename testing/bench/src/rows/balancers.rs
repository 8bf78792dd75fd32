//! Some Services with many Nodes behind them.

use anyhow::Result;
use tokio::time::Instant;

use super::{Bench, keep_journal, quiet};
use crate::manager::{Manager, Subject};
use crate::nodes::{self, TaintWatch};
use crate::report::{Figure, Measured};
use crate::world::World;
use crate::{floor, services};

const NODES: u32 = 50;
const SERVICES: u32 = 5;
const PORTS: u32 = 2;

/// What must be created for a Service: the balancer and, for each port, pool, listener, monitor and members.
const OBJECTS: u32 = 1 + PORTS * (3 + NODES);

pub(super) async fn floor(bench: &Bench, measured: &mut Measured) -> Result<()> {
    let world = World::start(&bench.cloudscale, 0).await?;
    let begun = Instant::now();
    services::create(&world.client, SERVICES, PORTS).await?;
    floor::balancers(&world, SERVICES, OBJECTS).await?;
    measured.time(Figure::BalancersTime, begun.elapsed());
    measured.number(Figure::BalancersCalls, u64::from(SERVICES * OBJECTS));
    measured.time(Figure::RemovalTime, floor::removals(&world, SERVICES).await?);
    Ok(())
}

/// Starts a manager over Nodes and waits until it has done with them.
pub(super) async fn settled(
    bench: &Bench,
    subject: &Subject,
    world: &World,
    nodes: u32,
    flags: &[&str],
) -> Result<Manager> {
    nodes::create(&world.client, 1..=nodes).await?;
    let watch = TaintWatch::open(&world.client, 1..=nodes).await?;
    let mut manager = subject.start(world, flags, bench.logs.as_deref())?;
    manager.leading(world).await?;
    watch.all_clear().await?;
    quiet(&world.cloud).await?;
    Ok(manager)
}

pub(super) async fn measure(bench: &Bench, subject: &Subject, measured: &mut Measured) -> Result<()> {
    let world = World::start(&bench.cloudscale, NODES).await?;
    let _manager = settled(bench, subject, &world, NODES, &[]).await?;
    let mark = world.cloud.mark().await?;
    let begun = Instant::now();
    services::create(&world.client, SERVICES, PORTS).await?;
    services::all_served(&world.client, SERVICES).await?;
    measured.time(Figure::BalancersTime, begun.elapsed());
    quiet(&world.cloud).await?;
    measured.number(Figure::BalancersCalls, world.cloud.calls_since(mark).await?.all);

    let begun = Instant::now();
    services::delete(&world.client, SERVICES).await?;
    services::all_gone(&world.client).await?;
    measured.time(Figure::RemovalTime, begun.elapsed());
    keep_journal(bench, &world.cloud, "balancers", subject).await
}
