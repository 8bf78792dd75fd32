//! The chart in `deploy/chart`, rendered with the real Helm.
//!
//! Helm is one of [`bowline_base::go`]. [`manifests`] are the plain manifests under `deploy/`, which are what the chart
//! makes of a few values, so that both say the same.

mod build;
mod flags;
mod helm;
mod manifests;

pub use crate::root;
pub use bowline_base::go::BuildError;
pub use build::build;
pub use flags::with_flags;
pub use helm::{Helm, HelmError, Missing, Release};
pub use manifests::{Plain, manifests};

use std::path::PathBuf;

/// The clouds that the chart knows, by the names that its value `cloud` has.
pub const CLOUDS: [&str; 4] = ["cloudscale", "phoenixnap", "cloudstack", "openstack"];

/// The folder of the chart.
#[must_use]
pub fn chart() -> PathBuf {
    root().join("deploy/chart")
}
