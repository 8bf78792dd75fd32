//! What every provider's tests need: a cluster's Services, and a service loop without a manager.
//!
//! A test keeps its cluster in [`Services`] and lets a [`ServiceLoop`] reconcile one of them with the provider. The loop
//! goes by the order of the service loop's own drive, one step at a time, with the waiting included; it ends as a
//! [`Run`], which says what was done and what came of it. Nothing here knows a cloud.

#![expect(
    clippy::unwrap_used,
    reason = "this crate is test bodies: what is not there fails the test"
)]

mod run;
mod service_loop;
mod services;

pub use run::{Outcome, Run};
pub use service_loop::{Interruption, ServiceLoop};
pub use services::{Services, balanced_service, service_port};
