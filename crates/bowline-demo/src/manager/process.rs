//! What stands for the manager's process: a thread with a runtime of its own. Killed, it is started again, as a kubelet
//! does with a container.

use std::time::Duration;

use anyhow::Context as _;
use bowline::args::Options;
use bowline::commands::{self, Surroundings, Untaken};
use bowline_cloud_provider::Environment;
use bowline_manager::Identity;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::Dispatch;
use uuid::Uuid;

/// From a kill to the next start. A kubelet waits some seconds as well.
const PAUSE: Duration = Duration::from_secs(2);

/// Whether the manager lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It runs and writes this holder into the lease when it leads.
    Runs(String),
    /// It was killed, and will be started again.
    Killed,
    /// It is over.
    Ended,
}

/// A manager that runs until it is stopped or dropped.
pub(super) struct Process {
    stop: CancellationToken,
    /// How often it was killed.
    kills: watch::Sender<u32>,
    life: watch::Receiver<Life>,
}

impl Process {
    /// Starts it with this command line; what it logs goes to `log`.
    pub(super) fn start(
        options: Options,
        environment: Environment,
        seed: u64,
        log: Dispatch,
    ) -> anyhow::Result<Self> {
        let stop = CancellationToken::new();
        let (kills, killed) = watch::channel(0);
        let (sender, life) = watch::channel(Life::Killed);
        let thread = Thread {
            options,
            environment,
            seed,
            stop: stop.clone(),
            killed,
            life: sender,
        };
        std::thread::Builder::new()
            .name("manager".to_owned())
            .spawn(move || tracing::dispatcher::with_default(&log, || thread.run()))
            .context("no thread for the manager")?;
        Ok(Self { stop, kills, life })
    }

    pub(super) fn life(&self) -> Life {
        // A thread that panicked is over, too.
        match self.life.has_changed() {
            Ok(_) => self.life.borrow().clone(),
            Err(_) => Life::Ended,
        }
    }

    pub(super) async fn ended(&self) {
        let is_over = |life: &Life| *life == Life::Ended;
        // An error is a thread that is gone.
        let _ = self.life.clone().wait_for(is_over).await;
    }

    /// Asks it to end.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Ends it at whatever it waits for: no lease is released, no answer awaited.
    pub(super) fn kill(&self) {
        self.kills.send_modify(|times| *times += 1);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Thread {
    options: Options,
    environment: Environment,
    seed: u64,
    stop: CancellationToken,
    killed: watch::Receiver<u32>,
    life: watch::Sender<Life>,
}

impl Thread {
    fn run(mut self) {
        loop {
            // The next process draws other numbers than the one before.
            let seed = self
                .seed
                .wrapping_add(u64::from(*self.killed.borrow_and_update()));
            let surroundings = surroundings(&self.environment, seed);
            self.life
                .send_replace(Life::Runs(surroundings.identity.holder.clone()));
            if self.lives(surroundings) == End::Own || self.stop.is_cancelled() {
                break;
            }
            self.life.send_replace(Life::Killed);
            if !self.pause() {
                break;
            }
        }
        self.life.send_replace(Life::Ended);
    }

    /// As the binary's `main` does, with a token in place of signals.
    fn lives(&mut self, surroundings: Surroundings) -> End {
        let Some(runtime) = runtime() else {
            return End::Own;
        };
        let manager = commands::run_until(self.options.clone(), surroundings, self.stop.clone());
        let end = runtime.block_on(async {
            tokio::select! {
                biased;
                Ok(()) = self.killed.changed() => End::Killed,
                _status = manager => End::Own,
            }
        });
        runtime.shutdown_background();
        end
    }

    /// Whether it goes on after that.
    fn pause(&self) -> bool {
        let Some(runtime) = runtime() else {
            return false;
        };
        let asked = async { tokio::time::timeout(PAUSE, self.stop.cancelled()).await };
        runtime.block_on(asked).is_err()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Own,
    Killed,
}

fn runtime() -> Option<tokio::runtime::Runtime> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built
        .inspect_err(|error| tracing::error!(err = %error, "No runtime for the manager"))
        .ok()
}

/// What a process of the manager has around it. No two have the same identity.
pub(super) fn surroundings(environment: &Environment, seed: u64) -> Surroundings {
    Surroundings {
        environment: environment.clone(),
        identity: Identity::new("demo", &Uuid::new_v4().to_string()),
        seed,
        copies: Vec::new(),
        untaken: Untaken::default(),
    }
}
