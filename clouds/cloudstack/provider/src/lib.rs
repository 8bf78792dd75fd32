//! The Apache CloudStack provider: virtual machines as the machines of Nodes, load balancer rules for Services.
//!
//! It takes the place of the Go manager 1.2.0: same file, provider IDs, labels and objects, so that a cluster can be
//! switched over and back without any of them changing. The keys of an ordinary user are enough.

mod error;
mod ini;
mod instances;
mod labels;
mod machines;
mod options;
mod provider;
pub mod provider_id;
mod start;
mod version;

pub use bowline_cloudstack_client::WallClock;
pub use ini::SyntaxError;
pub use options::{FileError, Options, OptionsError, Setting};
pub use provider::CloudStack;
pub use provider_id::PROVIDER_NAME;
pub use start::Introduction;
pub use version::{Version, VersionError};
