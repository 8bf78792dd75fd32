//! The base of outgoing calls: what is the same for the stack to clouds and for the one to the API server.
//!
//! Both meet the same world outside, must read it alike and go out under the same conditions. So here, once for both, is
//!
//! - whether a request may begin: the [`Gate`], asked last, by the [`Fenced`] body too; how fast and how many side by side: [`Bucket`] and [`Places`];
//!   when something that failed is tried again: [`Backoff`]; and when a call that hangs is given up: [`patience`];
//! - how files are read that may hold secrets: [`yaml`] and [`pem`] say what is wrong and where, as [`Malformed`], which
//!   cannot hold any part of a file; [`CredentialsFile`] follows files that are replaced while the program runs;
//! - how a connection is made: [`Connector`], over sockets ([`tcp`]), directly or through the proxies that [`ProxyRules`] name,
//!   with TLS where the target wants it; kept: [`pool`]; and given up when another one has died without a word: [`Lines`];
//! - whom to trust: [`client_tls`] checks certificates as Go's programs do, [`roots`] finds the system's authorities;
//! - how a delay is read that the other side states, [`stated_delay`], and told, [`seconds`]; its clock, [`Dates`], reads that it does not answer, [`Silences`], and the end of credentials, [`end_of_token`] and
//!   [`end_of_certificate`].
//!
//! It knows no cloud and no Kubernetes, and it reads neither the environment nor the wall clock: both are handed in.

mod any_certificate;
mod backoff;
mod causes;
mod connector;
mod credentials;
mod dates;
mod delay;
mod expiry;
mod fence;
mod gate;
mod lines;
mod malformed;
mod names;
mod pace;
pub mod patience;
pub mod pem;
mod proxy;
pub mod roots;
mod silences;
mod sockets;
mod socks;
mod stream;
mod trusted;
mod tunnel;
pub mod yaml;

pub use backoff::{Backoff, Jitter};
pub use causes::{cause, with_causes};
pub use connector::{Connector, Sockets, Way, turned_away};
pub use credentials::{CredentialsError, CredentialsFile};
pub use dates::Dates;
pub use delay::{seconds, stated_delay};
pub use expiry::{end_of_certificate, end_of_token};
pub use fence::{Fence, Fenced};
pub use gate::{Gate, GateClosed, OpenGate};
pub use lines::Lines;
pub use malformed::{Malformed, glimpse, is_path, is_word, meant, shown_name};
pub use names::{Names, OnLookup};
pub use pace::{Bucket, Place, Places, Rate};
pub use proxy::{Proxy, ProxyError, ProxyRules, basic_auth};
pub use silences::{Silences, TOLD_AFTER, Unheard};
pub use sockets::{Pool, pool, send, tcp};
pub use stream::{Io, Stream};
pub use trusted::{Authorities, client_tls};

/// Any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
