//! The demo: a cluster, a simulated cloud and the manager between them, in one process.
//!
//! The parts: [`control_plane`] is the API server, [`cloud`] the simulated cloud, [`kubelet`], [`kube_proxy`] and, where the
//! cloud has no balancers, [`kube_vip`] stand in for what runs on nodes, [`workload`] answers visitors, and [`manager`] is the manager itself, started with the command
//! line of the deployed manifest. [`stage`] starts and stops them, [`story`] is what happens, [`reporter`] tells it, and [`page`] shows it in a browser.

#![cfg_attr(
    not(all(feature = "cloudscale", feature = "openstack", feature = "phoenixnap")),
    allow(
        unused,
        reason = "without all clouds some parts are used by nobody; without any it says so when it is run"
    )
)]

mod api;
mod args;
mod cloud;
mod control_plane;
mod kube_proxy;
mod kube_vip;
mod kubelet;
mod listen;
mod loopback;
mod manager;
mod narrative;
mod page;
mod reporter;
mod service;
mod stage;
mod story;
mod tour;
mod visitor;
mod web;
mod what_if;
mod workload;

pub use args::Args;
pub use args::Kind as ControlPlaneKind;
pub use cloud::NAMES as CLOUDS;
pub use narrative::{Narrator, Output};
pub use tokio_util::sync::CancellationToken;

use stage::Stage;

const GOODBYE: &str = "everything is stopped, nothing is left behind";

/// Runs the demo until its story ends (`--once`), or until it is interrupted, which is no error.
///
/// # Errors
///
/// What could not be started, or the first point of the story that does not hold.
pub async fn run(args: &Args, narrator: Narrator, interrupt: CancellationToken) -> anyhow::Result<()> {
    let stage = match Stage::start(args, narrator.clone(), &interrupt).await {
        Err(_) if interrupt.is_cancelled() => {
            narrator.tell(GOODBYE);
            return Ok(());
        }
        started => started?,
    };
    let result = tokio::select! {
        biased;
        () = interrupt.cancelled() => Ok(()),
        result = play(args, &stage) => result,
    };
    narrator.chapter("The end");
    stage.stop().await;
    narrator.tell(GOODBYE);
    result
}

async fn play(args: &Args, stage: &Stage) -> anyhow::Result<()> {
    if args.once {
        return story::whole(stage).await;
    }
    let address = story::beginning(stage).await?;
    tour::print(stage, address);
    stage.board().close(None);
    stage.manager().ended().await;
    anyhow::bail!("the manager has ended; its log (--logs) says why")
}
