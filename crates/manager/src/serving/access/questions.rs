//! Questions to the API server of one kind: an answer is remembered, and what is asked twice at the same time is asked
//! once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use rustls::SupportedCipherSuite;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;

use super::lanes::Lane;
use super::remembered::Remembered;
use super::{Origin, Unanswered};

/// What a question is known by: a hash, because tokens are secret and as long as somebody likes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(Vec<u8>);

impl Key {
    /// The key of what these parts make up.
    pub(super) fn of(parts: &[&[u8]]) -> Self {
        let hash = match TLS13_AES_128_GCM_SHA256 {
            SupportedCipherSuite::Tls12(suite) => suite.common.hash_provider,
            SupportedCipherSuite::Tls13(suite) => suite.common.hash_provider,
        };
        let mut hash = hash.start();
        for part in parts {
            hash.update(&part.len().to_be_bytes());
            hash.update(part);
        }
        Self(hash.finish().as_ref().to_vec())
    }
}

type Answer<V> = Result<V, Unanswered>;
type UnderWay<V> = BoxFuture<'static, Answer<V>>;

/// Questions of one kind.
pub(super) struct Questions<V> {
    answers: Arc<Remembered<Key, V>>,
    /// Questions that somebody waits for.
    under_way: Mutex<BTreeMap<Key, WeakShared<UnderWay<V>>>>,
}

impl<V> Default for Questions<V> {
    fn default() -> Self {
        Self {
            answers: Arc::default(),
            under_way: Mutex::default(),
        }
    }
}

impl<V: Clone + Send + 'static> Questions<V> {
    /// The answer, if it is remembered.
    pub(super) fn recall(&self, key: &Key) -> Option<V> {
        self.answers.recall(key)
    }

    /// The answer; asked for on this lane unless it is being asked for already. `ttl` says how long it is remembered.
    pub(super) async fn ask(
        &self,
        key: Key,
        lane: Arc<Lane>,
        origin: Option<Origin>,
        review: BoxFuture<'static, Result<V, String>>,
        ttl: impl FnOnce(&V) -> Duration + Send + 'static,
    ) -> Answer<V> {
        let question = self.shared(&key, || {
            let (key, answers) = (key.clone(), Arc::clone(&self.answers));
            async move {
                let _turn = lane.turn(origin).await.map_err(|_| Unanswered::Full)?;
                let answer = review.await.map_err(|error| Unanswered::Failed(error.into()))?;
                let ttl = ttl(&answer);
                answers.remember(key, answer.clone(), ttl);
                Ok(answer)
            }
            .boxed()
        });
        question.await
    }

    fn shared(&self, key: &Key, begin: impl FnOnce() -> UnderWay<V>) -> Shared<UnderWay<V>> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(question) = under_way.get(key).and_then(WeakShared::upgrade)
            && question.peek().is_none()
        {
            return question;
        }
        // Those that nobody waits for any more. There are no more than lanes have room for.
        under_way.retain(|_, question| {
            question
                .upgrade()
                .is_some_and(|question| question.peek().is_none())
        });
        let question = begin().shared();
        if let Some(weak) = question.downgrade() {
            under_way.insert(key.clone(), weak);
        }
        question
    }
}
