//! What is written from the program's own tables, and what is checked as a whole.
//!
//! - [`reference`](mod@reference): the reference pages. `cargo xtask generate` writes them.
//! - [`admission`]: admission policies for Services, from the tables of annotations.
//! - [`chart`]: the chart, rendered with the real Helm, and the plain manifests that come out of it.
//! - [`monitoring`]: alerts, runbooks and dashboard.
//! - [`page`]: the demo's page in a real browser.

pub mod admission;
pub mod chart;
pub mod monitoring;
pub mod page;
pub mod reference;

use std::path::{Path, PathBuf};

/// The repository's root.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}
