//! Many Nodes that wait to be initialised.

use std::time::Duration;

use anyhow::Result;

use super::Bench;
use crate::manager::Subject;
use crate::nodes::{self, TaintWatch};
use crate::report::{Figure, Measured};
use crate::world::World;
use crate::{floor, process};

/// Memory is looked at so long after the last taint: events are still being written then.
const AFTERWARDS: Duration = Duration::from_secs(5);

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1024.0 / 1024.0
}

pub(super) async fn floor(bench: &Bench, measured: &mut Measured) -> Result<()> {
    let world = World::start(&bench.simulator, 0).await?;
    measured.time(Figure::NodesTime, floor::nodes(&world, bench.nodes).await?);
    Ok(())
}

pub(super) async fn measure(bench: &Bench, subject: &Subject, measured: &mut Measured) -> Result<()> {
    let world = World::start(&bench.simulator, bench.nodes).await?;
    nodes::create(&world.client, 1..=bench.nodes).await?;
    let watch = TaintWatch::open(&world.client, 1..=bench.nodes).await?;
    let mut manager = subject.start(&world, &[], bench.logs.as_deref())?;
    let clearing = async {
        let cleared = watch.all_clear().await?;
        anyhow::Ok((cleared, world.cloud.mark().await?))
    };
    let id = manager.id()?;
    let (leading, (cleared, calls)) = tokio::try_join!(manager.leading(&world), clearing)?;
    measured.time(Figure::NodesTime, cleared - leading);
    measured.time(Figure::NodesProcessor, process::processor_time(id)?);
    measured.number(Figure::NodesCalls, calls);
    tokio::time::sleep(AFTERWARDS).await;
    let memory = process::memory(id)?;
    measured.value(Figure::NodesResident, mebibytes(memory.resident));
    measured.value(Figure::NodesPeak, mebibytes(memory.peak));
    Ok(())
}
