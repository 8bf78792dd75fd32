//! Two processes: how long nobody works after the leader has ended.

use std::time::Duration;

use anyhow::Result;
use rustix::process::Signal;

use super::balancers::settled;
use super::{Bench, quiet};
use crate::manager::Subject;
use crate::nodes::{self, TaintWatch};
use crate::report::{Figure, Measured};
use crate::world::World;

const NODES: u32 = 50;

/// The default of `--leader-elect-lease-duration`.
const LEASE: Duration = Duration::from_secs(15);

/// After a kill nobody else may lead before the lease is over. After a release nothing has to be waited for.
pub(super) fn floor(measured: &mut Measured) {
    measured.time(Figure::FailoverKill, LEASE);
}

/// From the end of the old process to the first work that the new leader has done: a Node that joined just after the
/// end is initialised.
pub(super) async fn measure(bench: &Bench, subject: &Subject, measured: &mut Measured) -> Result<()> {
    for (figure, signal) in [
        (Figure::FailoverRelease, Signal::TERM),
        (Figure::FailoverKill, Signal::KILL),
    ] {
        // The last server is there from the beginning; its Node comes later.
        let world = World::start(&bench.cloudscale, NODES + 1).await?;
        let leader = settled(bench, subject, &world, NODES, &[]).await?;
        let mut standby = subject.start(&world, &[], bench.logs.as_deref())?;
        standby.healthy().await?;
        quiet(&world.cloud).await?;
        let newcomer = NODES + 1..=NODES + 1;
        let watch = TaintWatch::open(&world.client, newcomer.clone()).await?;
        let ended = leader.end(signal).await?;
        nodes::create(&world.client, newcomer).await?;
        measured.time(figure, watch.all_clear().await? - ended);
    }
    Ok(())
}
