//! The chart and the monitoring, in files and under the real Helm and promtool. Says so when one is missing.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

mod chart;
mod monitoring;
