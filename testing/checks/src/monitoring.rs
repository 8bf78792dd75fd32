//! The alerts, the runbooks and the dashboard, held together and tested with the real promtool.
//!
//! The rules are `deploy/chart/files/rules.yaml`. The dashboard comes out of the queries of `docs/guides/monitor.md`: [`dashboard`]
//! makes it. promtool is compiled by the Go toolchain from Prometheus' published module, which takes minutes: only
//! `cargo xtask monitoring` does it, and tests that need it say what they left out without it.

mod dashboard;
mod guide;
mod promtool;
mod rules;
mod samples;

pub use crate::root;
pub use bowline_base::go::BuildError;
pub use dashboard::{DASHBOARD, dashboard};
pub use guide::{Query, Question, expressions, questions};
pub use promtool::{Promtool, PromtoolError, build};
pub use rules::{Alert, RULES, alerts};
pub use samples::Samples;
