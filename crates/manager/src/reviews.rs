//! Reviews by the API server, with the tries and the time limit of the framework.

use std::time::Duration;

use bowline_kube_io::{Kube, KubeError, UserInfo};
use bowline_transport::Jitter;
use futures::future::BoxFuture;
use tokio::time::Instant;

use crate::metrics::{Review, ServingMetrics};
use crate::serving::Reviews;

/// The time for one review, all tries included.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A review is tried this often, with these pauses.
const TRIES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const FACTOR: f64 = 1.5;
/// By which share of itself a pause may be longer, so that managers that lost the same server do not come back as one.
const SPREAD: f64 = 0.2;

/// Asks one API server for token reviews and one, usually the same, for access reviews.
pub struct KubeReviews {
    tokens: Kube,
    access: Kube,
    metrics: ServingMetrics,
    jitter: Jitter,
}

impl KubeReviews {
    /// Reviews by these API servers.
    pub fn new(tokens: &Kube, access: &Kube, metrics: ServingMetrics, seed: u64) -> Self {
        let open = |kube: &Kube| kube.for_reviews().with_timeout(TIMEOUT);
        Self {
            tokens: open(tokens),
            access: open(access),
            metrics,
            jitter: Jitter::seeded(seed),
        }
    }
}

impl KubeReviews {
    async fn measured<T>(
        &self,
        review: Review,
        ask: impl Future<Output = Result<T, KubeError>>,
    ) -> Result<T, KubeError> {
        let begun = Instant::now();
        let result = ask.await;
        self.metrics.reviewed(review, &code(&result), begun.elapsed());
        result
    }
}

/// The status code of an answer, as the series have it.
fn code<T>(result: &Result<T, KubeError>) -> String {
    let code = match result {
        Ok(_) => 201,
        Err(KubeError::Invalid(_)) => 400,
        Err(KubeError::Unauthorized(_)) => 401,
        Err(KubeError::Forbidden(_)) => 403,
        Err(KubeError::NotFound(_)) => 404,
        Err(KubeError::Conflict(_)) => 409,
        Err(KubeError::Expired(_)) => 410,
        Err(KubeError::Throttled { .. }) => 429,
        Err(KubeError::Server { code, .. }) => *code,
        Err(_) => return "<error>".to_owned(),
    };
    code.to_string()
}

impl Reviews for KubeReviews {
    fn token<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, String>> {
        Box::pin(persistently(&self.jitter, move || {
            self.measured(Review::Token, self.tokens.review_token(token))
        }))
    }

    fn access<'a>(
        &'a self,
        user: &'a UserInfo,
        verb: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<bool, String>> {
        Box::pin(persistently(&self.jitter, move || {
            self.measured(Review::Access, self.access.review_access(user, verb, path))
        }))
    }
}

async fn persistently<T, F>(jitter: &Jitter, ask: impl Fn() -> F) -> Result<T, String>
where
    F: Future<Output = Result<T, KubeError>>,
{
    let tries = async {
        let mut pause = FIRST_PAUSE;
        let mut tries = 1;
        loop {
            match ask().await {
                Err(error) if tries < TRIES && is_transient(&error) => {
                    let spread = pause.mul_f64(1.0 + SPREAD * jitter.share(0.0));
                    tokio::time::sleep(error.retry_after().unwrap_or(spread)).await;
                    pause = pause.mul_f64(FACTOR);
                    tries += 1;
                }
                result => return result,
            }
        }
    };
    match tokio::time::timeout(TIMEOUT, tries).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err(KubeError::Timeout.to_string()),
    }
}

fn is_transient(error: &KubeError) -> bool {
    match error {
        KubeError::Throttled { .. } | KubeError::Timeout | KubeError::Transport(_) => true,
        KubeError::Server { code, .. } => *code >= 500,
        _ => false,
    }
}
