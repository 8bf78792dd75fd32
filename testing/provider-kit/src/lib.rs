//! What every provider's tests need: a cluster's Services, and the service controller's drive without a manager.
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
mod run;
mod service_loop;
mod services;

/// The most waits of one run: a run that needs more never ends.
const MAX_WAITS: usize = 2_000;

pub use background::run_background;
pub use bowline_drive::predict;
pub use run::{Outcome, Run};
pub use service_loop::{Interruption, ServiceLoop};
pub use services::{Services, balanced_service, service_port};
