//! Processes that are killed in the middle of a Service's creation, change and removal, and those that come after them.

use std::time::Duration;

use bowline_cloudscale_sim::kit::Fault;
use rustix::process::Signal;

use super::life::Life;
use super::site::{Site, ended};
use crate::process::program::{DEADLINE, Running};

/// What is under way when the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Creation,
    Change,
    Removal,
}

impl Doing {
    const ALL: [Self; 3] = [Self::Creation, Self::Change, Self::Removal];
}

/// Where writes go.
#[derive(Debug, Clone, Copy)]
enum To {
    Cloud,
    Kubernetes,
}

/// A cloud in which a process is killed at every write.
pub(crate) trait Mortal: Life {
    /// The writes to the cloud that a Service takes: for its creation, its change and its removal.
    fn writes(&self) -> [u64; 3];

    /// The writes to Kubernetes, lease and events left aside.
    fn object_writes(&self) -> [u64; 3];

    /// Takes away what the first Service leaves for all later ones, so that each one writes as the first one did.
    fn forget(&self) {}

    /// Takes away what lingers, where its going is not the point.
    fn hasten(&self) {}

    /// How long the next process may need for what the dead one left.
    fn patience(&self) -> Duration {
        DEADLINE
    }
}

impl<C: Mortal> Site<C> {
    /// Kills a process at every write to the cloud, which is carried out and whose answer never comes. The next process
    /// finishes the job. Then the same as soon as a write to Kubernetes is in the audit log, while the next call to the cloud is
    /// under way.
    pub(crate) async fn die_at_every_write(&self) {
        let mut first = self.mortal();
        for name in C::INSTANCES {
            self.join(name).await;
            self.initialised(&first, name).await;
        }
        first.signal(Signal::KILL);
        first.ended().await;
        self.die_at_all(To::Cloud, self.cloud.writes()).await;
        self.die_at_all(To::Kubernetes, self.cloud.object_writes()).await;
    }

    async fn die_at_all(&self, to: To, writes: [u64; 3]) {
        self.undisturbed(&mut self.mortal(), to, writes).await;
        for (doing, writes) in Doing::ALL.into_iter().zip(writes) {
            for k in 1..=writes {
                // Only the last write to the cloud takes anything away that lingers.
                let waits = matches!((doing, to), (Doing::Removal, To::Cloud)) && k == writes;
                self.die(doing, to, k, waits).await;
            }
        }
    }

    /// A process that needs no lease, so that the next one does not wait for it to expire.
    fn mortal(&self) -> Running {
        self.manager_with(&["--leader-elect=false"])
    }

    /// Holds the number of writes to account.
    async fn undisturbed(&self, manager: &mut Running, to: To, writes: [u64; 3]) {
        let before = self.written(to);
        let mut written = Vec::new();
        for (doing, wanted) in Doing::ALL.into_iter().zip(writes) {
            let before = self.written(to);
            self.ask(doing, "web").await;
            let waits = matches!(to, To::Cloud);
            self.finished(manager, doing, "web", "undisturbed", waits).await;
            // The audit log has a write after the one who made it was answered.
            manager
                .until(&format!("{wanted} writes in a {doing:?}"), async || {
                    self.written(to) >= before + wanted
                })
                .await;
            written.push(self.written(to) - before);
        }
        ended(manager).await;
        assert_eq!(written, writes, "{to:?}");
        assert_eq!(self.written(to) - before, writes.iter().sum::<u64>(), "{to:?}");
    }

    fn written(&self, to: To) -> u64 {
        let written = match to {
            To::Cloud => self.journal().writes().len(),
            To::Kubernetes => self.object_writes().len(),
        };
        u64::try_from(written).unwrap()
    }

    async fn die(&self, doing: Doing, to: To, k: u64, waits: bool) {
        let name = format!("web-{k}");
        let shown = format!("{doing:?}, write {k} to {to:?}");
        self.cloud.forget();
        let mut manager = self.mortal();
        if doing != Doing::Creation {
            self.ask(Doing::Creation, &name).await;
            self.served(&manager, &name).await;
        }
        match to {
            To::Cloud => {
                let fault = self.faults().add(Fault::write().nth(k).hang_after());
                self.ask(doing, &name).await;
                manager
                    .until("the write", async || self.faults().struck(fault) > 0)
                    .await;
            }
            To::Kubernetes => {
                self.cloud.api().set_latency(Duration::from_millis(100));
                let before = self.written(to);
                self.ask(doing, &name).await;
                manager
                    .until("the write", async || self.written(to) >= before + k)
                    .await;
            }
        }
        manager.signal(Signal::KILL);
        manager.ended().await;
        self.faults().clear();
        self.cloud.api().set_latency(Duration::ZERO);
        self.until("what it had under way is over", async || {
            self.journal().entries().iter().all(|it| it.outcome.is_some())
        })
        .await;

        let mut next = self.mortal().patiently(self.cloud.patience());
        self.finished(&next, doing, &name, &shown, waits).await;
        if doing != Doing::Removal {
            self.ask(Doing::Removal, &name).await;
            self.finished(&next, Doing::Removal, &name, &shown, waits).await;
        }
        self.assert_sound(&shown);
        // It may have had nothing to do, and be young still.
        next.signal(Signal::KILL);
        next.ended().await;
    }

    async fn ask(&self, doing: Doing, name: &str) {
        match (doing, self.cloud.change()) {
            (Doing::Creation, _) => drop(self.add_service(self.cloud.service(name)).await),
            (Doing::Change, Some(change)) => self.patch_service(name, change).await,
            (Doing::Change, None) => {}
            (Doing::Removal, _) => self.delete_service(name).await,
        }
    }

    /// What was asked for is done; what lingers is waited for or taken away.
    async fn finished(&self, manager: &Running, doing: Doing, name: &str, what: &str, waits: bool) {
        if doing == Doing::Removal {
            self.gone(manager, name).await;
            let hasten = || {
                if !waits {
                    self.cloud.hasten();
                }
            };
            return self.bare(manager, hasten).await;
        }
        if doing == Doing::Change {
            self.changed(manager).await;
        }
        let addresses = self.served(manager, name).await;
        self.cloud.assert_whole(&addresses, what);
    }
}
