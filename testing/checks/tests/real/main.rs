//! The chart and the admission policies on the real kube-apiserver. Needs the built programs; says so when they are missing.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

mod admission;
mod chart;
