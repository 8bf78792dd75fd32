//! What a manager does when nothing changes.

use std::time::Duration;

use anyhow::Result;

use super::balancers::settled;
use super::{Bench, quiet};
use crate::manager::Subject;
use crate::report::{Figure, Measured};
use crate::services;
use crate::world::World;

const FEW: u32 = 50;
const SERVICES: u32 = 5;

/// The period at which Nodes are looked at again, shortened from 5 min so that several fit into a measurement.
const PERIOD_FLAG: &[&str] = &["--node-status-update-frequency=15s"];
const PERIOD: Duration = Duration::from_secs(15);
const PERIODS: u32 = 3;

pub(super) async fn measure(bench: &Bench, subject: &Subject, measured: &mut Measured) -> Result<()> {
    for (figure, nodes, with_services) in [
        (Figure::IdleFewNodes, FEW, true),
        (Figure::IdleManyNodes, bench.nodes, false),
    ] {
        let world = World::start(&bench.cloudscale, nodes).await?;
        let _manager = settled(bench, subject, &world, nodes, PERIOD_FLAG).await?;
        if with_services {
            services::create(&world.client, SERVICES, 1).await?;
            services::all_served(&world.client, SERVICES).await?;
            quiet(&world.cloud).await?;
        }
        let mark = world.cloud.mark().await?;
        tokio::time::sleep(PERIOD * PERIODS).await;
        let calls = world.cloud.calls_since(mark).await?.all;
        measured.number(figure, calls.div_ceil(u64::from(PERIODS)));
    }
    Ok(())
}
