//! Requests under the name of a ServiceAccount, with a token that the API server grants for an hour at a time.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::client::{AccountToken, Kube, Token, Tokens};
use crate::error::KubeError;
use crate::exchange::{Call, JSON, segment};
use crate::shape::read;
use crate::waits::{LONGEST_WAIT, Waits};

/// The lifetime that is asked for. This and the numbers below are those of Kubernetes' `controller-manager` library.
const LIFETIME: Duration = Duration::from_secs(3600);
/// What an API server that grants less is not believed: tokens would be asked for all the time.
const LEAST_LIFETIME: Duration = Duration::from_secs(600);
/// A longer lifetime is not believed either: what is no time at all would end the process.
const LONGEST_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// The part of its lifetime after which a token is renewed, in percent.
const RENEWED_AFTER: u32 = 80;
/// Tries while there is no token, with pauses of 0.5, 1 and 2 s between them.
const TRIES: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// While an older token still holds there is one try, and then this pause.
const PAUSE_WITH_TOKEN: Duration = Duration::from_secs(10);
/// How long all who wait are given the error that the one before them was given.
const FAILURE_HOLDS: Duration = Duration::from_secs(5);

impl Kube {
    /// The same API server under the name of this ServiceAccount, which is made where it is missing. Bounds on requests
    /// in flight, gate, clock and metrics stay shared; only the tokens are asked for with the own credentials, when they
    /// are needed.
    pub fn as_service_account(&self, namespace: &str, name: &str) -> Self {
        let account = Arc::new(AccountToken {
            kube: self.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            state: Mutex::default(),
        });
        self.speaking(|speaker| speaker.account = Some(account))
    }
}

impl Token {
    fn granted(header: HeaderValue, asked: Instant, lifetime: Duration) -> Self {
        let lifetime = lifetime.min(LONGEST_LIFETIME);
        Self {
            header,
            renewed_at: asked + lifetime.max(LEAST_LIFETIME) * RENEWED_AFTER / 100,
            expires_at: asked + lifetime,
        }
    }
}

#[derive(Deserialize)]
struct Granted {
    spec: GrantedSpec,
    status: GrantedStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GrantedSpec {
    expiration_seconds: u64,
}

#[derive(Deserialize)]
struct GrantedStatus {
    token: String,
}

impl AccountToken {
    /// The value of the header `Authorization`.
    pub(crate) async fn header(&self) -> Result<HeaderValue, KubeError> {
        let mut state = self.state.lock().await;
        let now = Instant::now();
        if let Some(token) = &state.token
            && now < token.renewed_at
        {
            return Ok(token.header.clone());
        }
        if let Some((until, failure)) = &state.failure
            && now < *until
        {
            return Err(failure.clone());
        }
        let has_token = state.token.as_ref().is_some_and(|token| now < token.expires_at);
        let failure = match self.granted(if has_token { 1 } else { TRIES }).await {
            Ok(token) => {
                let header = token.header.clone();
                *state = Tokens {
                    token: Some(token),
                    failure: None,
                };
                return Ok(header);
            }
            Err(failure) => self.named(failure),
        };
        if let Some(token) = state.token.as_mut().filter(|_| has_token) {
            tracing::warn!(account = self.name, err = %failure, "Token of a service account not renewed, the present token stays in use");
            token.renewed_at = (Instant::now() + PAUSE_WITH_TOKEN).min(token.expires_at);
            return Ok(token.header.clone());
        }
        // Whether this process may write can change at any moment; everything else takes its time.
        if failure != KubeError::GateClosed {
            tracing::error!(account = self.name, err = %failure, "No token for a service account");
            state.failure = Some((Instant::now() + FAILURE_HOLDS, failure.clone()));
        }
        Err(failure)
    }

    /// The API server does not take this token any more: the account was made anew, or its tokens were revoked.
    pub(crate) async fn refused(&self, header: &HeaderValue) {
        let mut state = self.state.lock().await;
        if state.token.as_ref().is_some_and(|token| token.header == *header) {
            state.token = None;
        }
    }

    async fn granted(&self, tries: u32) -> Result<Token, KubeError> {
        let mut waits = Waits::new(FIRST_PAUSE, LONGEST_WAIT);
        for left in (0..tries).rev() {
            match Box::pin(self.request()).await {
                Err(error) if left > 0 && error != KubeError::GateClosed => {
                    tracing::warn!(account = self.name, err = %error, "No token for a service account yet");
                    tokio::time::sleep(waits.after(&error)).await;
                }
                result => return result,
            }
        }
        Err(KubeError::Timeout) // not reached: the last try returns
    }

    /// One try: the account, then its token.
    ///
    /// # Cancellation
    ///
    /// Between the two there is an account without a token, which the next try finds.
    async fn request(&self) -> Result<Token, KubeError> {
        let folder = format!("/api/v1/namespaces/{}/serviceaccounts", segment(&self.namespace));
        let account = format!("{folder}/{}", segment(&self.name));
        match self.kube.exchange(Call::get(account.as_str())).await {
            Err(KubeError::NotFound(_)) => {
                let body = json!({
                    "apiVersion": "v1",
                    "kind": "ServiceAccount",
                    "metadata": { "name": self.name, "namespace": self.namespace },
                });
                match self
                    .kube
                    .exchange(Call::send(Method::POST, folder, JSON, &body))
                    .await
                {
                    // Another replica was faster.
                    Ok(_) | Err(KubeError::Conflict(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            result => drop(result?),
        }
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": { "expirationSeconds": LIFETIME.as_secs() },
        });
        let asked = Instant::now();
        let call = Call::send(Method::POST, format!("{account}/token"), JSON, &body);
        let Granted { spec, status } = read(&self.kube.exchange(call).await?)?;
        let mut header = HeaderValue::from_str(&format!("Bearer {}", status.token))
            .map_err(|_| KubeError::Decode("a token that is no header".to_owned()))?;
        header.set_sensitive(true);
        Ok(Token::granted(
            header,
            asked,
            Duration::from_secs(spec.expiration_seconds),
        ))
    }

    /// The error with the account's name in front.
    fn named(&self, error: KubeError) -> KubeError {
        let with = |text: String| {
            format!(
                "token of the service account {}/{}: {text}",
                self.namespace, self.name
            )
        };
        match error {
            KubeError::NotFound(text) => KubeError::NotFound(with(text)),
            KubeError::Forbidden(text) => KubeError::Forbidden(with(text)),
            KubeError::Unauthorized(text) => KubeError::Unauthorized(with(text)),
            KubeError::Invalid(text) => KubeError::Invalid(with(text)),
            KubeError::Transport(text) => KubeError::Transport(with(text)),
            error => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_renewed_after_four_fifths_of_its_lifetime_but_within_a_day() {
        let asked = Instant::now();
        for (granted, renewed_after) in [
            (3600, 2880),
            (0, 480),
            (7 * 24 * 3600, 69_120),
            (u64::MAX, 69_120),
        ] {
            let header = HeaderValue::from_static("Bearer x");
            let token = Token::granted(header, asked, Duration::from_secs(granted));
            assert_eq!((token.renewed_at - asked).as_secs(), renewed_after, "{granted}");
        }
    }
}
