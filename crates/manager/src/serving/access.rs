//! Who may read what: first who asks, then whether they may.

mod authentication;
mod authorization;
mod lanes;
mod questions;
mod remembered;

use std::sync::Arc;
use std::time::Duration;

use bowline_kube_io::{Clock, UserInfo};
use futures::future::BoxFuture;
use http::Method;
use tokio::time::Instant;

use super::authorities::Authorities;
use super::client::Client;
use super::places::Origin;
use crate::config::AccessConfig;
use crate::metrics::ServingMetrics;
pub(super) use authentication::Claim;
pub(super) use authorization::verb;
use lanes::Lane;
use questions::{Key, Questions};
use remembered::Remembered;

/// How long a request for what everybody may read waits until it is known who asks. It is a probe, most likely, and
/// those are given up after a second.
const PROBE_PATIENCE: Duration = Duration::from_millis(300);

/// How long it is remembered that something was granted: longer than the pauses between scrapes.
const KNOWN_TTL: Duration = Duration::from_secs(60 * 60);

/// The API server's word about tokens and access.
pub trait Reviews: Send + Sync {
    /// Whose token this is; `None` if it is nobody's.
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
    /// The API server is being asked about too many others.
    Full,
}

/// Why the API server's word is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Unanswered {
    /// It was not asked, because too many others wait.
    Full,
    /// It did not say, or not in time.
    Failed(Arc<str>),
}

/// Decides who may read what.
pub(super) struct Access {
    always_allowed: Vec<String>,
    ttl: Ttl,
    authorities: Authorities,
    reviews: Option<Arc<dyn Reviews>>,
    clock: Arc<dyn Clock>,
    metrics: ServingMetrics,
    unknown: Arc<Lane>,
    known: Arc<Lane>,
    /// Tokens and accesses that were granted something private once. They are asked about on a way of their own. What a cluster
    /// lets everybody read, such as `/version`, does not count.
    granted: Remembered<Key, ()>,
    tokens: Questions<Option<UserInfo>>,
    decisions: Questions<bool>,
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
            unknown: Arc::new(Lane::unknown()),
            known: Arc::new(Lane::known()),
            granted: Remembered::default(),
            tokens: Questions::default(),
            decisions: Questions::default(),
        }
    }

    /// Lets a request of this client pass or says why not.
    pub(super) async fn admit(
        &self,
        claim: Claim,
        method: &Method,
        path: &str,
        client: &Client,
    ) -> Result<(), Denial> {
        // Credentials that are nobody's are refused even where everybody may read, as in the framework.
        let begun = Instant::now();
        let token = claim.token_key();
        let user = if self.is_open_to_all(path) {
            tokio::time::timeout(PROBE_PATIENCE, self.user(claim, client))
                .await
                .unwrap_or(Err(Denial::Undecided))
                // That nobody says who asks must not fail a probe: everybody may read this.
                .or_else(|denial| match denial {
                    Denial::Undecided | Denial::Full => Ok(authentication::anonymous()),
                    denial => Err(denial),
                })
        } else {
            self.user(claim, client).await.map_err(|denial| match denial {
                Denial::Undecided => Denial::Unknown,
                denial => denial,
            })
        };
        match &user {
            Ok(user) => self.metrics.authenticated(&user.name, begun),
            Err(_) => self.metrics.not_authenticated(begun),
        }
        let user = user?;
        let begun = Instant::now();
        let decision = self.may(&user, method, path, client).await;
        let result = match &decision {
            Ok(true) => "allowed",
            Ok(false) => "no-opinion",
            Err(_) => "error",
        };
        self.metrics.authorized(result, begun);
        if !decision? {
            return Err(Denial::Forbidden { user: user.name });
        }
        if super::paths::is_private(path)
            && !self.is_open_to_all(path)
            && user.name != authentication::ANONYMOUS
        {
            let decision = authorization::key(&user, &verb(method), path);
            for key in token.into_iter().chain([decision]) {
                self.granted.remember(key, (), KNOWN_TTL);
            }
            if let Some(place) = client.place() {
                place.trusted();
            }
        }
        Ok(())
    }

    /// The lane for a question with this key.
    fn lane(&self, key: &Key) -> Arc<Lane> {
        let is_known = self.granted.recall(key).is_some();
        Arc::clone(if is_known { &self.known } else { &self.unknown })
    }

    /// Keeps up with what vouches for clients. Never returns.
    pub(super) async fn keep_fresh(&self) {
        self.authorities.keep_fresh().await;
    }
}

#[cfg(test)]
mod tests;
