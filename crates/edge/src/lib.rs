//! What a program takes from its surroundings: files with secrets, proxies, and whom to trust.
//!
//! Both stacks, the one to clouds and the one to the API server, meet the same world outside and must read it alike. So
//! here, once for both, is
//!
//! - how files are read that may hold secrets: [`yaml`] and [`pem`] say what is wrong and where, as [`Malformed`], which
//!   cannot hold any part of a file; [`CredentialsFile`] follows files that are replaced while the program runs;
//! - how a connection is made: [`Connector`], directly or through the proxies that [`ProxyRules`] name, with TLS where the
//!   target wants it;
//! - whom to trust: [`Trusted`] checks certificates as Go's programs do, [`roots`] finds the system's authorities;
//! - how a delay is read that the other side states: [`stated_delay`].
//!
//! It knows no cloud and no Kubernetes, and it reads neither the environment nor the wall clock: both are handed in.

mod any_certificate;
mod connector;
mod credentials;
mod delay;
mod malformed;
pub mod pem;
mod proxy;
pub mod roots;
mod socks;
mod trusted;
mod tunnel;
pub mod yaml;

pub use any_certificate::AnyCertificate;
pub use connector::{ConnectFailed, Connector, Io, Stream, Way};
pub use credentials::{CredentialsError, CredentialsFile};
pub use delay::stated_delay;
pub use malformed::{Malformed, glimpse, is_word};
pub use proxy::{Proxy, ProxyError, ProxyRules, basic_auth};
pub use trusted::{Authorities, NoAuthority, Trusted};

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
