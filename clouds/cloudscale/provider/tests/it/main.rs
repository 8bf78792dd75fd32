//! The provider against its simulator, in memory and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod calls;
mod change;
mod faults;
mod orphans;
<<<<<<< HEAD
||||||| 716ef6b5
mod owed;
mod policy;
=======
mod owed;
mod policy;
mod predicted;
>>>>>>> cs
mod restored;
mod session;
mod start;
mod world;
