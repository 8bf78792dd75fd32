//! Background work, by the service controller's own drive.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::plan::Note;
use bowline_cloud_provider::{BackgroundFacts, CloudError, CloudProvider, DynPlan, KubeWrite, Measurement};
use bowline_drive::{DriveError, Driven, GivenUp, Hooks, Lanes, Mode, Took, drive, others_wait};
use futures::future::BoxFuture;

/// Runs a provider's background work until it need not wait; its notes, each once, and what it has counted.
///
/// # Errors
///
/// The first read or write that failed.
///
/// # Panics
///
/// If there is no such work, if it is refused, or if it never ends.
pub async fn run_background(
    cloud: &dyn CloudProvider,
    name: &'static str,
    facts: impl Fn() -> BackgroundFacts,
) -> Result<(Vec<Note>, Vec<Measurement>), CloudError> {
    let work = cloud
        .background_work()
        .into_iter()
        .find(|work| work.name() == name);
    let work = work.unwrap();
    let hooks = Working {
        name,
        notes: Mutex::default(),
        given_up: Mutex::default(),
    };
    for _ in 0..crate::MAX_WAITS {
        let mut session = Arc::clone(&work).begin(facts()).unwrap();
        let mode = Mode::Apply(&Lanes::default());
        match drive(&mut *session, mode, &hooks, &mut false).await {
            Ok(Driven::Settled(..)) => {
                let notes = std::mem::take(&mut *hooks.notes.lock().unwrap());
                return Ok((notes, session.measurements()));
            }
            Ok(Driven::Wait { after, .. }) => tokio::time::sleep(after).await,
            Err(DriveError::Observe(error) | DriveError::Step { error, .. }) => return Err(error),
            other => panic!("{name}: {other:?}"),
        }
    }
    panic!("{name} never ends");
}

struct Working {
    name: &'static str,
    notes: Mutex<Vec<Note>>,
    given_up: Mutex<GivenUp>,
}

impl Hooks<BackgroundFacts, Infallible> for Working {
    fn planned(&self, _facts: &BackgroundFacts, plan: &DynPlan) {
        let mut notes = self.notes.lock().unwrap();
        for note in &plan.notes {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
    }

    fn write<'a>(
        &'a self,
        _facts: &'a Mutex<BackgroundFacts>,
        write: &'a KubeWrite,
    ) -> BoxFuture<'a, Result<(), Infallible>> {
        panic!("{} writes to Kubernetes: {write:?}", self.name)
    }

    fn newer_waits<'a>(&'a self, label: &'a str) -> BoxFuture<'a, Duration> {
        others_wait(label, &self.given_up.lock().unwrap())
    }

    fn made(&self, label: &str, gave_up: bool, _took: Took) {
        self.given_up.lock().unwrap().made(label, gave_up);
    }

    fn object(&self) -> String {
        self.name.to_owned()
    }
}
