//! The clouds that the suite is played on: one file each, and a line where the tests are mounted (`tests/it/main.rs`).

pub mod cloudscale;
pub mod cloudstack;
pub mod openstack;
pub mod paper;
pub mod phoenixnap;

pub use cloudscale::Cloudscale;
pub use cloudstack::{CloudStack, Tier};
pub use openstack::{KeptNodes, OpenStack, Parts};
pub use paper::Paper;
pub use phoenixnap::Phoenixnap;
