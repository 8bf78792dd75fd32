//! What the tests of clients ([`prepared`]), of simulators ([`program`], [`scenario::calls`]) and of providers share.
//!
//! A provider's tests need a cluster's Services, and the service controller's drive without a manager.
//!
//! A test keeps its cluster in [`Services`] and lets a [`ServiceLoop`] reconcile one of them with the provider. That is
//! the drive of the service controller, one step at a time, with the waiting included; it ends as a [`Run`], which says what
//! was done and what came of it. [`faults`] lets something go wrong at each write and stops the process at each step. Nothing
//! here knows a cloud.

#![expect(
    clippy::unwrap_used,
    reason = "this crate is test bodies: what is not there fails the test"
)]

mod background;
pub mod faults;
pub mod orphans;
pub mod prepared;
pub mod program;
mod run;
pub mod scenario;
mod service_loop;
mod services;

/// Which originals the doubles are in this run: `BOWLINE_SIM_WORLD`, `kind` or `unkind`; the unkind ones if it is not set.
///
/// # Panics
///
/// If it is set to something else.
pub fn world() -> World {
    let name = std::env::var("BOWLINE_SIM_WORLD").unwrap_or_else(|_| "unkind".to_owned());
    name.parse()
        .unwrap_or_else(|error| panic!("BOWLINE_SIM_WORLD: {error}"))
}

/// The most waits of one run: a run that needs more never ends.
const MAX_WAITS: usize = 2_000;

pub use background::run_background;
use bowline_cloud_kit::World;
pub use bowline_drive::predict;
pub use run::{Outcome, Run, predicted_kinds};
pub use service_loop::{Interruption, ServiceLoop};
pub use services::{Services, balanced_service, service_port};
