//! Whatever goes wrong at whichever write, and wherever the process stops: the next runs end in the same state.

use std::fmt::Debug;

use bowline_cloud_kit::Fault;
use bowline_cloud_kit::faults::FaultBuilder;
pub use bowline_cloud_kit::{Faults, Journal};

use crate::{Interruption, Outcome, Run};

/// What a [`Disturbed`] world shows, as the simulator in its field `sim` has it. Stands in the `impl`.
#[macro_export]
macro_rules! disturbed {
    () => {
        fn state(&self) -> Self::State {
            self.sim.snapshot()
        }

        fn violations(&self) -> Vec<String> {
            self.sim.check_invariants()
        }

        fn faults(&self) -> &$crate::faults::Faults {
            self.sim.faults()
        }

        fn journal(&self) -> &$crate::faults::Journal {
            self.sim.journal()
        }
    };
}

/// A cluster with a cloud, in which one Service is changed.
#[expect(async_fn_in_trait, reason = "a test runs on one thread")]
pub trait Disturbed: Sized {
    /// What is changed. The creation is a change too.
    type Change: Copy;
    /// What the cloud shows.
    type State: PartialEq + Debug;
    /// The most runs until a change is made after something went wrong: as many less one may fail.
    const RUNS: usize = 1;

    /// All changes, and how they are called in messages.
    fn changes() -> Vec<(String, Self::Change)>;

    /// A world that is about to be changed.
    async fn before(change: Self::Change) -> Self;

    /// One run of the controller.
    async fn reconcile(&self, interruption: Interruption) -> Run;

    /// A process takes the place of the one before, which remembers nothing.
    async fn start_anew(&mut self);

    /// What is done when a run has settled, by others than the controller.
    async fn tidy_up(&self) {}

    /// What the cloud shows.
    fn state(&self) -> Self::State;

    /// What must never be in the cloud, and is.
    fn violations(&self) -> Vec<String>;

    /// The cloud's faults.
    fn faults(&self) -> &Faults;

    /// What the cloud was asked.
    fn journal(&self) -> &Journal;
}

/// Runs until it settles, as the service controller does after failures; what the cloud shows then. Another run does nothing.
///
/// # Panics
///
/// If that is not so.
pub async fn finish<W: Disturbed>(world: &W, what: &str) -> W::State {
    for left in (0..W::RUNS).rev() {
        let run = world.reconcile(Interruption::Never).await;
        match run.outcome {
            Outcome::Settled(_) => break,
            Outcome::Failed(_) if left > 0 => {}
            // What was refused once is held back for five seconds.
            Outcome::Refused(_) if left > 0 => tokio::time::sleep(std::time::Duration::from_secs(6)).await,
            _ => panic!("{what}: {run:#?}"),
        }
    }
    let (again, writes) = written(world).await;
    assert!(again.waves.is_empty() && writes == 0, "{what}: {again:#?}");
    world.tidy_up().await;
    assert_eq!(world.violations(), Vec::<String>::new(), "{what}");
    world.state()
}

/// What the cloud shows after a change without any fault, and how many writes that takes.
///
/// # Panics
///
/// If the change is not made, or is none.
pub async fn undisturbed<W: Disturbed>(change: W::Change) -> (W::State, u64) {
    let world = W::before(change).await;
    let (_, writes) = written(&world).await;
    assert!(writes > 0);
    (finish(&world, "undisturbed").await, writes)
}

/// A run that settles, and how much it wrote to the cloud.
async fn written<W: Disturbed>(world: &W) -> (Run, u64) {
    let mark = world.journal().mark();
    let run = world.reconcile(Interruption::Never).await.settled();
    let calls = world.journal().since(mark);
    (run, calls.iter().filter(|call| call.write).count() as u64)
}

/// Something goes wrong at each write of each change in turn.
///
/// # Panics
///
/// If the next runs do not make it good, be it in the same process or in another one.
pub async fn at_every_write<W: Disturbed>(kind: &str, fault: impl Fn(FaultBuilder) -> Fault) {
    struck_at_every_write::<W>(kind, |world, k| {
        world.faults().add(fault(Fault::write().nth(k)));
    })
    .await;
}

/// The same; `strike` sees to it that something goes wrong at the write of this number.
///
/// # Panics
///
/// As there, or if a fault does not strike.
pub async fn struck_at_every_write<W: Disturbed>(kind: &str, strike: impl Fn(&W, u64)) {
    for (name, change) in W::changes() {
        let (expected, writes) = undisturbed::<W>(change).await;
        for k in 1..=writes {
            for restarts in [false, true] {
                let mut world = W::before(change).await;
                strike(&world, k);
                // It may fail, or may not notice at all.
                let first = world.reconcile(Interruption::Never).await;
                let what = format!("{name}: {kind} at {k}, restarts {restarts}: {first:#?}");
                assert!(
                    world.faults().list().iter().all(|fault| fault.struck == 1),
                    "{what}"
                );
                if restarts {
                    world.start_anew().await;
                }
                assert_eq!(finish(&world, &what).await, expected, "{what}");
            }
        }
    }
}

/// The process is stopped at each step of each change in turn, as `stop` says, in a world that is `prepared`.
///
/// # Panics
///
/// If the next process does not end it.
pub async fn at_every_stop<W: Disturbed>(stop: fn(usize) -> Interruption, prepared: impl Fn(&W)) {
    for (name, change) in W::changes() {
        let (expected, _) = undisturbed::<W>(change).await;
        for k in 0.. {
            let mut world = W::before(change).await;
            prepared(&world);
            let stopped = world.reconcile(stop(k)).await;
            world.start_anew().await;
            let what = format!("{name}: stopped after {k}");
            assert_eq!(finish(&world, &what).await, expected, "{what}");
            if matches!(stopped.outcome, Outcome::Settled(_)) {
                break;
            }
        }
    }
}
