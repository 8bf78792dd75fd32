//! The same on OpenStack, where a Node is a server and its ports, and each write keeps a load balancer busy.

use anyhow::Result;
use tokio::time::Instant;

use super::balancers::settled;
use super::many::{self, reads_of_a_node_more};
use super::nodes::initialise;
use super::{Bench, keep_journal, quiet};
use crate::floor;
use crate::manager::Subject;
use crate::process::mebibytes;
use crate::report::{Figure, Measured};
use crate::services;
use crate::world::World;

pub(super) async fn nodes_floor(bench: &Bench, measured: &mut Measured) -> Result<()> {
    let world = World::start(&bench.openstack, 0).await?;
    let time = floor::nodes(&world, bench.nodes).await?;
    measured.time(Figure::OpenstackNodesTime, time);
    Ok(())
}

pub(super) async fn measure_nodes(bench: &Bench, subject: &Subject, measured: &mut Measured) -> Result<()> {
    let run = initialise(bench, &bench.openstack, subject, bench.nodes, &[]).await?;
    measured.time(Figure::OpenstackNodesTime, run.time);
    measured.number(Figure::OpenstackNodesCalls, run.calls);
    measured.time(Figure::OpenstackNodesProcessor, run.processor);
    measured.value(Figure::OpenstackNodesResident, mebibytes(run.memory.resident));
    Ok(())
}

pub(super) async fn measure_many(bench: &Bench, subject: &Subject, measured: &mut Measured) -> Result<()> {
    let world = World::start(&bench.openstack, many::NODES + 1).await?;
    let _manager = settled(bench, subject, &world, many::NODES, many::FLAGS).await?;
    let mark = world.cloud.mark().await?;
    let begun = Instant::now();
    services::create(&world.client, many::SERVICES, many::PORTS).await?;
    services::all_served(&world.client, many::SERVICES).await?;
    measured.time(Figure::OpenstackManyTime, begun.elapsed());
    quiet(&world.cloud).await?;
    let calls = world.cloud.calls_since(mark).await?;
    measured.number(Figure::OpenstackManyCalls, calls.all);
    if let Some(reads) = reads_of_a_node_more(&world).await? {
        measured.number(Figure::OpenstackNodeAddedReads, reads);
    }
    keep_journal(bench, &world.cloud, "openstack-many", subject).await
}
