//! What the harnesses of real servers share.
//!
//! - [`Process`]: a server with its output in a log file, killed with all its children when the test is done with it or
//!   dies, however it dies.
//! - [`free_ports`]: where servers listen that cannot choose a port themselves.
//! - [`cache_directory`]: where what takes minutes to build or to install is kept between runs, and [`lock_cache`]: one builds, others wait.
//!
//! Nothing here knows a server. What is started, and when it is ready, the harnesses say.

mod cache;
mod ports;
mod process;

pub use cache::{cache_directory, in_ci, key, lock_cache, or_skip};
pub use ports::free_ports;
pub use process::{Process, ProcessError};
