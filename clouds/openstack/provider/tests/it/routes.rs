//! Routes of a router to pod networks.

mod world;

mod changes;
mod failures;
mod listing;
mod writers;
