//! Everything that runs, started in order and stopped in the reverse order.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::api::Api;
use crate::args::{Args, Kind};
use crate::cloud::{self, Cloud};
use crate::control_plane::ControlPlane;
use crate::manager::{Log, Manager};
use crate::narrative::Narrator;
use crate::page::{self, Board, Hands, Page};
use crate::{kube_proxy, kube_vip, kubelet, reporter};

/// How long the manager may take to end, so that all is over 2 s after Ctrl-C.
const MANAGER_DEADLINE: Duration = Duration::from_millis(1200);

/// A cluster, a cloud, and the manager between them.
///
/// # Cancellation
///
/// Dropping it, or the future that starts it, stops everything as well, but does not wait for it.
pub(crate) struct Stage {
    // Dropped in this order: what uses the manager first, then the manager, the files last.
    page: Option<Page>,
    manager: Arc<Manager>,
    actors: Vec<AbortOnDropHandle<()>>,
    cloud: Arc<dyn Cloud>,
    control_plane: ControlPlane,
    narrator: Narrator,
    board: Board,
    directory: TempDir,
}

impl Stage {
    /// Starts everything; an interrupt is an error.
    pub(crate) async fn start(
        args: &Args,
        narrator: Narrator,
        interrupt: &CancellationToken,
    ) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("bowline-demo-")
            .tempdir()
            .context("no temporary directory")?;
        narrator.chapter("A cluster and a cloud");
        if args.control_plane == Kind::Real {
            narrator.tell("a real kube-apiserver starts; the first time it is built, which takes minutes");
        }
        let control_plane = ControlPlane::start(args, directory.path(), interrupt).await?;
        let api = control_plane.api().clone();
        narrator.tell(match control_plane.plain_url() {
            Some(url) => format!("the embedded API server is at {url}"),
            None => "the real kube-apiserver is ready".to_owned(),
        });
        let cloud = cloud::start(&args.cloud, args.seed).await?;
        narrator.tell(format!(
            "a simulated {} with {} servers is at {}",
            cloud.title(),
            cloud.instances().len(),
            cloud.url()
        ));

        let instances = watch::Sender::new(Vec::new());
        let seen = instances.subscribe();
        let announced = instances.subscribe();
        let mut actors = vec![
            spawn(reporter::run(api.clone(), Arc::clone(&cloud), narrator.clone())),
            spawn(kube_proxy::run(
                api.clone(),
                Arc::clone(&cloud),
                seen,
                narrator.clone(),
            )),
            spawn(kubelet::run(
                api.clone(),
                Arc::clone(&cloud),
                instances,
                narrator.clone(),
            )),
        ];
        if cloud.announcer().is_some() {
            narrator.tell(
                "the cloud has no load balancers: a stand-in for kube-vip announces addresses from nodes",
            );
            actors.push(spawn(kube_vip::run(
                api.clone(),
                Arc::clone(&cloud),
                announced,
                narrator.clone(),
            )));
        }
        let log = if args.logs {
            Log::Stderr
        } else {
            Log::File(directory.path().join("manager.log"))
        };
        let board = Board::default();
        let listening = board.clone();
        let manager = Arc::new(Manager::start(
            &*cloud,
            directory.path(),
            control_plane.kubeconfig(),
            log,
            args.seed,
            Arc::new(move |news| listening.heard(&news)),
        )?);
        narrator.tell(
            "the manager starts, with the command line of our own manifest and what a local run needs:",
        );
        narrator.quote(&manager.command_line());
        let page = if args.once {
            None
        } else {
            let (cloud, manager) = (Arc::clone(&cloud), Arc::clone(&manager));
            let hands = Hands::new(api, cloud, manager, board.clone(), narrator.clone());
            let page = Page::start(hands).await?;
            narrator.tell(format!("see all this at {}", page.url()));
            if args.open
                && let Err(error) = page::open(page.url())
            {
                narrator.tell(format!(
                    "no browser could be opened ({error}); open that address yourself"
                ));
            }
            Some(page)
        };
        Ok(Self {
            page,
            manager,
            actors,
            cloud,
            control_plane,
            narrator,
            board,
            directory,
        })
    }

    pub(crate) fn api(&self) -> &Api {
        self.control_plane.api()
    }

    pub(crate) fn cloud(&self) -> &dyn Cloud {
        &*self.cloud
    }

    pub(crate) fn manager(&self) -> &Manager {
        &self.manager
    }

    pub(crate) fn control_plane(&self) -> &ControlPlane {
        &self.control_plane
    }

    pub(crate) fn narrator(&self) -> &Narrator {
        &self.narrator
    }

    /// What the page knows.
    pub(crate) fn board(&self) -> &Board {
        &self.board
    }

    /// Where the page is, if there is one.
    pub(crate) fn page(&self) -> Option<&str> {
        self.page.as_ref().map(Page::url)
    }

    /// Stops everything and waits for it.
    pub(crate) async fn stop(self) {
        let Self {
            page,
            manager,
            actors,
            cloud,
            control_plane,
            narrator,
            board: _,
            directory,
        } = self;
        drop(page);
        if !manager.stop(MANAGER_DEADLINE).await {
            narrator.tell("the manager does not end in time and is left behind to end with this process");
        }
        drop(actors);
        control_plane.stop().await;
        drop(cloud);
        if let Err(error) = directory.close() {
            narrator.tell(format!("temporary files are left: {error}"));
        }
    }
}

fn spawn(actor: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
    AbortOnDropHandle::new(tokio::spawn(actor))
}
