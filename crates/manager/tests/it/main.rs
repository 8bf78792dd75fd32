//! The manager against an API server in memory, under a stopped clock.

mod clouds;
mod deletions;
mod doctor;
mod life;
mod plan;
#[expect(dead_code, reason = "some of it is for the scenarios")]
mod process;
mod routes;
mod serving;
mod side_by_side;
