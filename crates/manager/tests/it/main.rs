//! The manager against an API server in memory, under a stopped clock.

mod clouds;
mod deletions;
mod doctor;
mod election;
mod life;
mod migration;
mod outage;
mod plan;
mod process;
mod recovery;
mod routes;
mod serving;
mod side_by_side;
