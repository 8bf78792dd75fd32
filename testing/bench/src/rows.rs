//! The rows of the table.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Result;

use crate::manager::Subject;
use crate::report::Measured;
use crate::simulator::{Kind, Program, Simulator};
use crate::wait;

mod balancers;
mod crowd;
mod failover;
mod idle;
mod many;
mod nodes;
mod openstack;
mod services;
mod start;

/// What all rows are measured with.
pub(crate) struct Bench {
    pub(crate) cloudscale: Program,
    pub(crate) openstack: Program,
    pub(crate) binary: Option<PathBuf>,
    /// Nodes of the rows with many of them.
    pub(crate) nodes: u32,
    pub(crate) logs: Option<PathBuf>,
}

type Done<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// Things that are measured together.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// The cloud that it is measured on.
    pub(crate) cloud: Kind,
    pub(crate) floor: for<'a> fn(&'a Bench, &'a mut Measured) -> Done<'a>,
    pub(crate) measure: for<'a> fn(&'a Bench, &'a Subject, &'a mut Measured) -> Done<'a>,
}

/// All rows, in the order of the table.
pub(crate) const ROWS: [Row; 14] = [
    Row {
        name: "nodes",
        cloud: Kind::Cloudscale,
        floor: |bench, measured| Box::pin(nodes::floor(bench, measured)),
        measure: |bench, subject, measured| Box::pin(nodes::measure(bench, subject, measured)),
    },
    Row {
        name: "fleet",
        cloud: Kind::Cloudscale,
        floor: |_, _| Box::pin(async { Ok(()) }),
        measure: |bench, subject, measured| Box::pin(nodes::measure_fleet(bench, subject, measured)),
    },
    Row {
        name: "second-cloud",
        cloud: Kind::Cloudscale,
        floor: |_, _| Box::pin(async { Ok(()) }),
        measure: |bench, subject, measured| Box::pin(nodes::measure_second_cloud(bench, subject, measured)),
    },
    Row {
        name: "balancers",
        cloud: Kind::Cloudscale,
        floor: |bench, measured| Box::pin(balancers::floor(bench, measured)),
        measure: |bench, subject, measured| Box::pin(balancers::measure(bench, subject, measured)),
    },
    Row {
        name: "many",
        cloud: Kind::Cloudscale,
        floor: |bench, measured| Box::pin(many::floor(bench, measured)),
        measure: |bench, subject, measured| Box::pin(many::measure(bench, subject, measured)),
    },
    Row {
        name: "services",
        cloud: Kind::Cloudscale,
        floor: |_, _| Box::pin(async { Ok(()) }),
        measure: |bench, subject, measured| Box::pin(services::measure(bench, subject, measured)),
    },
    Row {
        name: "idle",
        cloud: Kind::Cloudscale,
        floor: |_, _| Box::pin(async { Ok(()) }),
        measure: |bench, subject, measured| Box::pin(idle::measure(bench, subject, measured)),
    },
    Row {
        name: "start",
        cloud: Kind::Cloudscale,
        floor: |_, _| Box::pin(async { Ok(()) }),
        measure: |bench, subject, measured| Box::pin(start::measure(bench, subject, measured)),
    },
    Row {
        name: "failover",
        cloud: Kind::Cloudscale,
        floor: |_, measured| {
            Box::pin(async {
                failover::floor(measured);
                Ok(())
            })
        },
        measure: |bench, subject, measured| Box::pin(failover::measure(bench, subject, measured)),
    },
    Row {
        name: "heartbeats",
        cloud: Kind::Cloudscale,
        floor: |_, _| Box::pin(async { Ok(()) }),
        measure: |bench, subject, measured| Box::pin(crowd::measure_heartbeats(bench, subject, measured)),
    },
    Row {
        name: "cluster-services",
        cloud: Kind::Cloudscale,
        floor: |_, _| Box::pin(async { Ok(()) }),
        measure: |bench, subject, measured| Box::pin(crowd::measure_services(bench, subject, measured)),
    },
    Row {
        name: "binary",
        cloud: Kind::Cloudscale,
        floor: |_, _| Box::pin(async { Ok(()) }),
        measure: |bench, subject, measured| Box::pin(async { start::binary(bench, subject, measured) }),
    },
    Row {
        name: "openstack-nodes",
        cloud: Kind::OpenStack,
        floor: |bench, measured| Box::pin(openstack::nodes_floor(bench, measured)),
        measure: |bench, subject, measured| Box::pin(openstack::measure_nodes(bench, subject, measured)),
    },
    Row {
        name: "openstack-many",
        cloud: Kind::OpenStack,
        floor: |_, _| Box::pin(async { Ok(()) }),
        measure: |bench, subject, measured| Box::pin(openstack::measure_many(bench, subject, measured)),
    },
];

/// Waits until the cloud has not been called for this long. Managers look again some time after they have written.
const QUIET: Duration = Duration::from_secs(2);

async fn quiet(cloud: &Simulator) -> Result<()> {
    let mut last = None;
    wait::until("the manager leaves the cloud alone", QUIET, async || {
        let now = cloud.mark().await?;
        Ok((last.replace(now) == Some(now)).then_some(()))
    })
    .await
}

/// Keeps the record of the cloud's calls beside the managers' logs, to see what the figures are made of.
async fn keep_journal(bench: &Bench, cloud: &Simulator, row: &str, subject: &Subject) -> Result<()> {
    if let Some(directory) = &bench.logs {
        let file = directory.join(format!("{}-{row}-journal.json", subject.name));
        std::fs::write(file, cloud.journal().await?)?;
    }
    Ok(())
}
