//! Who may read what: a bearer token is reviewed by the API server, and so is what its user may do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_kube_io::UserInfo;
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::config::AccessConfig;

/// Reviews under way at once. They share the connections to the API server with the loops, and whoever can reach the
/// port can cause one; so there are few.
const MAX_REVIEWS: usize = 4;

/// Answers remembered at once; beyond, the one that ends soonest is forgotten.
const MAX_REMEMBERED: usize = 1024;

/// Whoever shows no credentials.
fn anonymous() -> UserInfo {
    UserInfo {
        name: "system:anonymous".to_owned(),
        groups: vec!["system:unauthenticated".to_owned()],
        ..UserInfo::default()
    }
}

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
    config: AccessConfig,
    reviews: Option<Arc<dyn Reviews>>,
    turns: Semaphore,
    // A token is a key here and nowhere shown: this type has no Debug.
    tokens: Remembered<String, Option<UserInfo>>,
    decisions: Remembered<(UserInfo, String, String), bool>,
}

impl Access {
    pub(super) fn new(config: AccessConfig, reviews: Option<Arc<dyn Reviews>>) -> Self {
        Self {
            config,
            reviews,
            turns: Semaphore::new(MAX_REVIEWS),
            tokens: Remembered::default(),
            decisions: Remembered::default(),
        }
    }

    /// Lets a request pass or says why not.
    pub(super) async fn admit(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Denial> {
        // A token that is nobody's is refused even where everybody may read, as in the framework.
        let user = match bearer(headers) {
            Some(token) => self.user(token).await?,
            None => anonymous(),
        };
        if user.groups.iter().any(|group| group == "system:masters") || self.is_open_to_all(path) {
            return Ok(());
        }
        let verb = verb(method);
        match self.may(&user, &verb, path).await? {
            true => Ok(()),
            false => Err(Denial::Forbidden { user: user.name }),
        }
    }

    fn is_open_to_all(&self, path: &str) -> bool {
        self.config
            .always_allowed
            .iter()
            .any(|allowed| match allowed.strip_suffix('*') {
                Some(prefix) => path.starts_with(prefix),
                None => path == allowed,
            })
    }

    async fn user(&self, token: &str) -> Result<UserInfo, Denial> {
        let Some(reviews) = &self.reviews else {
            return Err(Denial::Unknown);
        };
        if let Some(known) = self.tokens.recall(token) {
            return known.ok_or(Denial::Unknown);
        }
        let _turn = self.turns.acquire().await;
        // Whoever waited may find that the one before asked the same.
        if let Some(known) = self.tokens.recall(token) {
            return known.ok_or(Denial::Unknown);
        }
        match reviews.token(token).await {
            Ok(user) => {
                self.tokens
                    .remember(token.to_owned(), user.clone(), self.config.token_ttl);
                user.ok_or(Denial::Unknown)
            }
            Err(error) => {
                tracing::warn!(error, "Reviewing a token failed");
                Err(Denial::Unknown)
            }
        }
    }

    async fn may(&self, user: &UserInfo, verb: &str, path: &str) -> Result<bool, Denial> {
        let Some(reviews) = &self.reviews else {
            return Ok(false);
        };
        let key = (user.clone(), verb.to_owned(), path.to_owned());
        if let Some(decision) = self.decisions.recall(&key) {
            return Ok(decision);
        }
        let _turn = self.turns.acquire().await;
        if let Some(decision) = self.decisions.recall(&key) {
            return Ok(decision);
        }
        match reviews.access(user, verb, path).await {
            Ok(decision) => {
                let ttl = if decision {
                    self.config.granted_ttl
                } else {
                    self.config.refused_ttl
                };
                self.decisions.remember(key, decision, ttl);
                Ok(decision)
            }
            Err(error) => {
                tracing::warn!(error, user = user.name, path, "Reviewing an access failed");
                Err(Denial::Undecided)
            }
        }
    }
}

/// The verb of a request for a path: its method in lower case.
pub(super) fn verb(method: &Method) -> String {
    method.as_str().to_ascii_lowercase()
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Answers with an end.
struct Remembered<K, V>(Mutex<BTreeMap<K, (Instant, V)>>);

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<K: Ord + Clone, V: Clone> Remembered<K, V> {
    fn recall<Q: Ord + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: std::borrow::Borrow<Q>,
    {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (end, value) = entries.get(key)?;
        (Instant::now() < *end).then(|| value.clone())
    }

    fn remember(&self, key: K, value: V, ttl: Duration) {
        if ttl.is_zero() {
            return;
        }
        let now = Instant::now();
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, (end, _)| now < *end);
        if entries.len() >= MAX_REMEMBERED {
            let soonest = entries
                .iter()
                .min_by_key(|(_, (end, _))| *end)
                .map(|(key, _)| key.clone());
            if let Some(soonest) = soonest {
                entries.remove(&soonest);
            }
        }
        entries.insert(key, (now + ttl, value));
    }
}

#[cfg(test)]
mod tests;
