//! Starting, and what is started.

use std::time::Duration;

use anyhow::{Context, Result};

use super::Bench;
use crate::manager::Subject;
use crate::report::{Figure, Measured};
use crate::world::World;

/// The figure is the median of so many.
const STARTS: usize = 9;

pub(super) async fn measure(bench: &Bench, subject: &Subject, measured: &mut Measured) -> Result<()> {
    let world = World::start(&bench.cloudscale, 0).await?;
    let mut times: Vec<Duration> = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let mut manager = subject.start(&world, &[], bench.logs.as_deref())?;
        times.push(manager.healthy().await?);
    }
    times.sort_unstable();
    measured.time(Figure::Start, times[STARTS / 2]);
    Ok(())
}

/// The size of the program as it is shipped; only ours is known.
#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
pub(super) fn binary(bench: &Bench, subject: &Subject, measured: &mut Measured) -> Result<()> {
    if let Some(path) = bench.binary.as_deref().filter(|_| subject.name == "bowline") {
        let file = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        measured.value(Figure::Binary, file.len() as f64 / 1e6);
    }
    Ok(())
}
