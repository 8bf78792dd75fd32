//! Suites that every provider with its simulator, and every API server arm, must pass.
//!
//! A suite is a table of bodies; a body is one asynchronous function that makes claims about whatever it is handed.
//! The test program mounts each body once per arm, so that a claim which holds for the double and not for the real
//! thing, or the other way round, fails by its name.

#![expect(
    clippy::unwrap_used,
    reason = "this crate is test bodies: what is not there fails the test"
)]

pub mod api_server;
pub mod cloud;
pub mod clouds;
