//! What Services cost in memory.

use anyhow::Result;

use super::balancers::settled;
use super::{Bench, quiet};
use crate::manager::Subject;
use crate::process::{self, mebibytes};
use crate::report::{Figure, Measured};
use crate::services;
use crate::world::World;

const NODES: u32 = 10;
const SERVICES: u32 = 1000;
const PORTS: u32 = 1;

pub(super) async fn measure(bench: &Bench, subject: &Subject, measured: &mut Measured) -> Result<()> {
    let world = World::start(&bench.cloudscale, NODES).await?;
    let manager = settled(bench, subject, &world, NODES, super::many::FLAGS).await?;
    services::create(&world.client, SERVICES, PORTS).await?;
    services::all_served(&world.client, SERVICES).await?;
    quiet(&world.cloud).await?;
    let memory = process::memory(manager.id()?)?;
    measured.value(Figure::ServicesResident, mebibytes(memory.resident));
    measured.value(Figure::ServicesPeak, mebibytes(memory.peak));
    Ok(())
}
