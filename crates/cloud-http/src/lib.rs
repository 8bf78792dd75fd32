//! The one HTTP stack through which every cloud is called.
//!
//! A cloud's client says *what* to send ([`Request`]) and reads what came back ([`Response`] or [`HttpError`]). How a
//! call travels is decided here, once for all clouds. From the outside to the inside a call passes
//!
//! 1. a log span, and the metrics of each exchange ([`Metrics`]);
//! 2. the retry of calls that may be repeated ([`RetryPolicy`]): `429`, `502`, `503`, `504` and broken connections;
//! 3. the budget: a rate, a bound on the calls in flight, and a pause of the whole provider after a `429`;
//! 4. the gate ([`Gate`]), asked before each exchange, and by each connection before it sends;
//! 5. one exchange under a timeout that includes reading the body, over a [`Transport`]: sockets or memory.
//!
//! What this crate is not: it knows no cloud, no Kubernetes, no credentials beyond carrying a [`Secret`], and it reads
//! neither the environment nor the wall clock. How connections are made and trusted, the gate, the token bucket and the
//! back-off are not its own either: `bowline-transport` has them for this stack and the one to the API server. It starts no task
//! of its own (the connections of a socket transport are driven by hyper's).
//!
//! [`SharedRead`] lives here too, because every cloud needs it: calls that ask for the same list together share one read;
//! and so do [`ids!`] and [`words!`], the forms of all ids and words that clouds put on the wire.

mod base_url;
mod budget;
mod client;
mod config;
mod dump;
mod error;
mod ids;
pub mod lenient;
mod metrics;
mod request;
mod response;
mod retry;
mod secret;
mod shared_read;
mod shown;
mod transport;
mod words;

pub use base_url::{BaseUrlError, base_url, is_url_text};
pub use client::{CloudHttp, LONGEST_DELAY};
pub use config::{CloudHttpConfig, RetryPolicy};
pub use error::{Call, Failure, HttpError, Phase, StatusFailure};
pub use metrics::Metrics;
pub use request::{Body, Kind, Request, UrlError, resolve};
pub use response::Response;
pub use secret::{Secret, mask_token};
pub use shared_read::SharedRead;
pub use shown::ShownSetting;
pub use transport::{
    AnswerBody, ClientCertificate, SocketOptions, Transport, TransportError, TransportSetupError,
    TrustedAuthorities,
};

// What the contract with the controllers understands of a failure, whatever the cloud.
pub use bowline_plan::{Class, Classified, Pairs, speaks_of_limit, speaks_of_no_address};
// What this stack and the one to the API server have in common.
pub use bowline_transport::{
    BoxError, CredentialsError, CredentialsFile, Gate, GateClosed, Malformed, OpenGate, Proxy, ProxyError,
    ProxyRules, Rate, Silences, glimpse, is_word, meant, shown_name, yaml,
};
// The vocabulary of requests and answers, so that a cloud's client needs no HTTP crate of its own.
pub use bytes::Bytes;
pub use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
pub use tokio_util::sync::CancellationToken;
pub use url::Url;
