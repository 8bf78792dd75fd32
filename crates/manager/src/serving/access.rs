//! Who may read what: first who asks, then whether they may.

mod authentication;
mod authorization;
mod remembered;

use std::sync::Arc;
use std::time::Duration;

use bowline_kube_io::{Clock, UserInfo};
use futures::future::BoxFuture;
use http::{HeaderMap, Method};
use rustls::pki_types::CertificateDer;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::authorities::Authorities;
use crate::config::AccessConfig;
use crate::metrics::ServingMetrics;
pub(super) use authorization::verb;
use remembered::Remembered;

/// Reviews under way at once. They share the connections to the API server with the loops, and whoever can reach the
/// port can cause one; so there are few.
const MAX_REVIEWS: usize = 4;

/// The API server's word about tokens and access.
pub trait Reviews: Send + Sync {
    /// Whose token this is; none if it is nobody's.
    fn token<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, String>>;

    /// Whether the user may do this to a path.
    fn access<'a>(
        &'a self,
        user: &'a UserInfo,
        verb: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<bool, String>>;
}

/// Why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Denial {
    /// The credentials are nobody's.
    Unknown,
    /// The user may not do this.
    Forbidden {
        /// The user's name.
        user: String,
    },
    /// The API server did not say.
    Undecided,
}

/// Decides who may read what.
pub(super) struct Access {
    always_allowed: Vec<String>,
    ttl: Ttl,
    authorities: Authorities,
    reviews: Option<Arc<dyn Reviews>>,
    clock: Arc<dyn Clock>,
    metrics: ServingMetrics,
    turns: Semaphore,
    // A token is a key here and nowhere shown: this type has no Debug.
    tokens: Remembered<String, Option<UserInfo>>,
    decisions: Remembered<(UserInfo, String, String), bool>,
}

/// How long answers are remembered.
struct Ttl {
    token: Duration,
    granted: Duration,
    refused: Duration,
}

impl Access {
    pub(super) fn new(
        config: &AccessConfig,
        authorities: Authorities,
        reviews: Option<Arc<dyn Reviews>>,
        clock: Arc<dyn Clock>,
        metrics: ServingMetrics,
    ) -> Self {
        Self {
            always_allowed: config.always_allowed.clone(),
            ttl: Ttl {
                token: config.token_ttl,
                granted: config.granted_ttl,
                refused: config.refused_ttl,
            },
            authorities,
            reviews,
            clock,
            metrics,
            turns: Semaphore::new(MAX_REVIEWS),
            tokens: Remembered::default(),
            decisions: Remembered::default(),
        }
    }

    /// Lets a request pass or says why not. `peer` is the certificate that the client showed, with its chain.
    pub(super) async fn admit(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
        peer: &[CertificateDer<'_>],
    ) -> Result<(), Denial> {
        // Credentials that are nobody's are refused even where everybody may read, as in the framework.
        let begun = Instant::now();
        let user = self.user(headers, peer).await;
        match &user {
            Ok(user) => self.metrics.authenticated(&user.name, begun),
            Err(_) => self.metrics.not_authenticated(begun),
        }
        let user = user?;
        let begun = Instant::now();
        let decision = self.may(&user, method, path).await;
        let result = match &decision {
            Ok(true) => "allowed",
            Ok(false) => "no-opinion",
            Err(_) => "error",
        };
        self.metrics.authorized(result, begun);
        match decision? {
            true => Ok(()),
            false => Err(Denial::Forbidden { user: user.name }),
        }
    }

    /// Keeps up with what vouches for clients. Never returns.
    pub(super) async fn keep_fresh(&self) {
        self.authorities.keep_fresh().await;
    }
}

#[cfg(test)]
mod tests;
