//! What a manager spends on what it has nothing to do with: heartbeats of Nodes, and Services of other types.

use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::balancers::settled;
use super::{Bench, quiet};
use crate::manager::Subject;
use crate::process::{self, mebibytes};
use crate::report::{Figure, Measured};
use crate::world::World;
use crate::{nodes, services};

const NODES: u32 = 5000;

/// Each Node writes its status once in this time. Three rounds are measured; a minute has six.
const PERIOD: Duration = Duration::from_secs(10);
const ROUNDS: u32 = 3;
const ROUNDS_A_MINUTE: u32 = 6;

const CLUSTER_SERVICES: u32 = 20_000;

pub(super) async fn measure_heartbeats(
    bench: &Bench,
    subject: &Subject,
    measured: &mut Measured,
) -> Result<()> {
    let world = World::start(&bench.cloudscale, NODES).await?;
    let manager = settled(bench, subject, &world, NODES, &[]).await?;
    let id = manager.id()?;
    let before = process::processor_time(id)?;
    // A machine that does not keep up makes the rounds longer. Their number is what counts.
    let mut rounds = interval_at(Instant::now(), PERIOD);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for _ in 0..ROUNDS {
        rounds.tick().await;
        nodes::heartbeat(&world.client, 1..=NODES).await?;
    }
    quiet(&world.cloud).await?;
    let spent = process::processor_time(id)?.saturating_sub(before);
    measured.time(Figure::HeartbeatsProcessor, spent * ROUNDS_A_MINUTE / ROUNDS);
    measured.value(
        Figure::HeartbeatsResident,
        mebibytes(process::memory(id)?.resident),
    );
    Ok(())
}

pub(super) async fn measure_services(
    bench: &Bench,
    subject: &Subject,
    measured: &mut Measured,
) -> Result<()> {
    let world = World::start(&bench.cloudscale, 1).await?;
    services::create_of("ClusterIP", &world.client, CLUSTER_SERVICES, 1).await?;
    let manager = settled(bench, subject, &world, 1, &[]).await?;
    let memory = process::memory(manager.id()?)?;
    measured.value(Figure::ClusterServicesResident, mebibytes(memory.resident));
    Ok(())
}
