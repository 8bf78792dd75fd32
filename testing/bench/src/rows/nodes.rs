//! Many Nodes that wait to be initialised.

use std::time::Duration;

use anyhow::Result;

use super::Bench;
use crate::floor;
use crate::manager::Subject;
use crate::nodes::{self, TaintWatch};
use crate::process::{self, mebibytes};
use crate::report::{Figure, Measured};
use crate::simulator::{Program, Simulator};
use crate::world::World;

/// Memory is looked at so long after the last taint: events are still being written then.
const AFTERWARDS: Duration = Duration::from_secs(5);

const FLEET: u32 = 5000;

pub(super) async fn floor(bench: &Bench, measured: &mut Measured) -> Result<()> {
    let world = World::start(&bench.cloudscale, 0).await?;
    measured.time(Figure::NodesTime, floor::nodes(&world, bench.nodes).await?);
    Ok(())
}

pub(super) async fn measure(bench: &Bench, subject: &Subject, measured: &mut Measured) -> Result<()> {
    let run = initialise(bench, &bench.cloudscale, subject, bench.nodes, &[]).await?;
    measured.time(Figure::NodesTime, run.time);
    measured.time(Figure::NodesProcessor, run.processor);
    measured.number(Figure::NodesCalls, run.calls);
    measured.value(Figure::NodesResident, mebibytes(run.memory.resident));
    measured.value(Figure::NodesPeak, mebibytes(run.memory.peak));
    Ok(())
}

/// So many that it shows what each of them costs.
pub(super) async fn measure_fleet(bench: &Bench, subject: &Subject, measured: &mut Measured) -> Result<()> {
    let run = initialise(bench, &bench.cloudscale, subject, FLEET, &[]).await?;
    measured.time(Figure::FleetProcessor, run.processor);
    measured.value(Figure::FleetResident, mebibytes(run.memory.resident));
    Ok(())
}

/// Beside a second cloud in the same process, which has no servers.
pub(super) async fn measure_second_cloud(
    bench: &Bench,
    subject: &Subject,
    measured: &mut Measured,
) -> Result<()> {
    if !subject.is_ours {
        return Ok(());
    }
    let second = Simulator::start(&bench.openstack, 0).await?;
    let scratch = tempfile::tempdir()?;
    let configuration = scratch.path().join("second.conf");
    second.configure(&configuration)?;
    let configured = format!("--cloud-config=openstack={}", configuration.display());
    let flags = [
        "--cloud-provider=cloudscale,openstack",
        &configured,
        "--load-balancer-class=openstack=example.com/openstack",
    ];
    let run = initialise(bench, &bench.cloudscale, subject, bench.nodes, &flags).await?;
    measured.value(Figure::SecondCloudResident, mebibytes(run.memory.resident));
    Ok(())
}

pub(super) struct Run {
    /// From leadership to the last taint.
    pub(super) time: Duration,
    pub(super) processor: Duration,
    pub(super) calls: u64,
    pub(super) memory: process::Memory,
}

pub(super) async fn initialise(
    bench: &Bench,
    cloud: &Program,
    subject: &Subject,
    nodes: u32,
    flags: &[&str],
) -> Result<Run> {
    let world = World::start(cloud, nodes).await?;
    nodes::create(&world.client, 1..=nodes).await?;
    let watch = TaintWatch::open(&world.client, 1..=nodes).await?;
    let mut manager = subject.start(&world, flags, bench.logs.as_deref())?;
    let clearing = async {
        let cleared = watch.all_clear().await?;
        anyhow::Ok((cleared, world.cloud.mark().await?))
    };
    let id = manager.id()?;
    let (leading, (cleared, calls)) = tokio::try_join!(manager.leading(&world), clearing)?;
    let processor = process::processor_time(id)?;
    tokio::time::sleep(AFTERWARDS).await;
    Ok(Run {
        time: cleared - leading,
        processor,
        calls,
        memory: process::memory(id)?,
    })
}
