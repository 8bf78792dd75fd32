//! The loops in memory, under a stopped clock.
