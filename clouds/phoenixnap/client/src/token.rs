//! The one token of the process (RFC 6749, section 4.4: client credentials).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bowline_cloud_http::{
    Class, CloudHttp, CredentialsFile, Failure, HeaderName, HttpError, Method, Request, Secret, SharedRead,
    Url,
};
use serde::Deserialize;
use tokio::time::Instant;

use crate::error::{ApiError, TOKEN};
use crate::settings::{Credentials, Settings};

/// The scopes asked for, in this order, whatever they are then used for.
const SCOPES: &str = "bmc bmc.read tags tags.read";

/// A token with this much or less to live is renewed at its next use.
const MARGIN: Duration = Duration::from_secs(10);

/// The shortest time between two requests for a token when the first was refused.
const INTERVAL: Duration = Duration::from_millis(500);

const AUTHORIZATION: HeaderName = HeaderName::from_static("authorization");

/// A token, and which of those fetched it is: so that a refused one is dropped only once.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) secret: Secret,
    serial: u64,
    /// None: it never expires.
    expires: Option<Instant>,
}

/// How the credentials are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// In an `Authorization: Basic` header.
    Basic,
    /// In the body.
    Body,
}

/// Where calls get their token from. Clones share it.
#[derive(Clone)]
pub(crate) struct Tokens {
    store: Arc<Store>,
    fetch: SharedRead<Result<Token, ApiError>>,
}

struct Store {
    http: CloudHttp,
    url: Url,
    /// Where the credentials are set.
    source: String,
    /// Where other credentials may appear.
    file: Option<CredentialsFile<Credentials>>,
    state: Mutex<State>,
}

struct State {
    credentials: Arc<Credentials>,
    /// Counts the changes of the credentials.
    generation: u64,
    token: Option<Token>,
    fetched: u64,
    form: Option<Form>,
}

impl Tokens {
    pub(crate) fn new(
        http: CloudHttp,
        settings: &Settings,
        file: Option<CredentialsFile<Credentials>>,
    ) -> Self {
        let credentials = match &file {
            Some(file) => file.current(),
            None => Arc::new(settings.credentials.clone()),
        };
        let store = Arc::new(Store {
            http,
            url: settings.token_url.clone(),
            source: settings.source.clone(),
            file,
            state: Mutex::new(State {
                credentials,
                generation: 0,
                token: None,
                fetched: 0,
                form: None,
            }),
        });
        // One at a time: who needs a token while one is being fetched waits for that one.
        let fetch = SharedRead::single(INTERVAL, &store, |store: Arc<Store>| async move {
            match store.valid() {
                Some(token) => Ok(token),
                None => store.fetch().await,
            }
        });
        Self { store, fetch }
    }

    /// A token with more than the margin to live. Calls that need a new one while it is being fetched wait for it.
    pub(crate) async fn token(&self) -> Result<Token, ApiError> {
        match self.store.valid() {
            Some(token) => Ok(token),
            None => self.fetch.ask().await,
        }
    }

    /// How often the credentials have changed.
    pub(crate) fn generation(&self) -> u64 {
        self.store.follow_file();
        self.store.lock().generation
    }

    /// Forgets a token that an API has refused, unless another one has taken its place.
    pub(crate) fn forget(&self, refused: &Token) {
        let mut state = self.store.lock();
        if state
            .token
            .as_ref()
            .is_some_and(|token| token.serial == refused.serial)
        {
            state.token = None;
        }
    }
}

impl Store {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn valid(&self) -> Option<Token> {
        self.follow_file();
        let state = self.lock();
        let token = state.token.as_ref()?;
        let is_fresh = token
            .expires
            .is_none_or(|expires| expires > Instant::now() + MARGIN);
        is_fresh.then(|| token.clone())
    }

    /// Takes the credentials that the file holds now; a token of the former ones is forgotten.
    fn follow_file(&self) {
        let Some(file) = &self.file else { return };
        let current = file.current();
        let mut state = self.lock();
        if !Arc::ptr_eq(&state.credentials, &current) {
            state.credentials = current;
            state.generation += 1;
            state.token = None;
            state.form = None;
        }
    }

    async fn fetch(&self) -> Result<Token, ApiError> {
        let (credentials, generation, known) = {
            let state = self.lock();
            (Arc::clone(&state.credentials), state.generation, state.form)
        };
        // Its life begins no later than its answer.
        let asked = Instant::now();
        let (form, answer) = match known {
            Some(form) => (form, self.request(&credentials, form).await),
            None => match self.request(&credentials, Form::Basic).await {
                // Not every server takes the header; nobody says so in a way that could be told from a refusal. Where there is no answer, the
                // form would only be waited for as long.
                Err(error) if !matches!(error.class, Class::NotSent | Class::Unanswered | Class::Silent) => {
                    tracing::debug!(err = %error, "No token with credentials in the header, trying the form");
                    (Form::Body, self.request(&credentials, Form::Body).await)
                }
                answer => (Form::Basic, answer),
            },
        };
        let answer = answer.inspect_err(|_| {
            // New ones may be there already.
            if let Some(file) = &self.file {
                file.distrust();
            }
        })?;
        let mut state = self.lock();
        state.fetched += 1;
        let token = Token {
            secret: answer.access_token,
            serial: state.fetched,
            expires: answer.expires_in.map(|life| asked + life),
        };
        if state.generation == generation {
            state.form = Some(form);
            state.token = Some(token.clone());
        }
        Ok(token)
    }

    async fn request(&self, credentials: &Credentials, form: Form) -> Result<Answer, ApiError> {
        let grant = [("grant_type", "client_credentials"), ("scope", SCOPES)];
        // It changes nothing that lasts, so it may be repeated.
        let request = Request::read(Method::POST, TOKEN, self.url.clone())
            .preliminary()
            .conceal(&credentials.client_secret)
            .confidential_answer();
        let request = match form {
            Form::Basic => request
                .secret_header(AUTHORIZATION, "Basic ", &basic(credentials))
                .form(grant),
            Form::Body => {
                let own = [
                    ("client_id", credentials.client_id.as_str()),
                    ("client_secret", credentials.client_secret.expose()),
                ];
                request.form(grant.into_iter().chain(own))
            }
        };
        let answer = self.http.send(request).await.and_then(|response| {
            let answer: Answer = response.json()?;
            if answer.access_token.expose().is_empty() {
                return Err(response.unusable("it holds no access_token"));
            }
            Ok(answer)
        });
        answer.map_err(|error| failed(error, &self.source))
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

/// Both halves form-encoded, then Base64 (RFC 6749, section 2.3.1).
fn basic(credentials: &Credentials) -> Secret {
    let encode = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!(
        "{}:{}",
        encode(&credentials.client_id),
        encode(credentials.client_secret.expose())
    );
    Secret::new(STANDARD.encode(pair))
}

/// Says what the token endpoint said, as far as it is one of the words of RFC 6749, section 5.2: the rest of the answer
/// is never shown. `source` is where the credentials are set.
fn failed(error: HttpError, source: &str) -> ApiError {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    let word = match &error.failure {
        Failure::Status(failure) => serde_json::from_slice::<Refusal>(&failure.body).ok(),
        _ => None,
    };
    let mut error = ApiError::from(error);
    // Whatever it refuses, it speaks of credentials and never of what the token is wanted for: least of all that it is gone.
    if matches!(
        error.class,
        Class::Invalid | Class::Denied | Class::NotFound | Class::Conflict | Class::Exhausted
    ) {
        error.class = Class::Unauthenticated;
    }
    let remedy = match word.as_ref().map(|refusal| refusal.error.as_str()) {
        Some("invalid_client" | "unauthorized_client") => {
            format!("the client ID or the client secret is wrong, or was revoked: correct {source}")
        }
        Some("invalid_scope") => {
            format!("the credentials need the scopes bmc, bmc.read, tags and tags.read: they are {source}")
        }
        _ if error.class == Class::Unauthenticated => {
            format!("the token endpoint refused the credentials: they are {source}")
        }
        _ => "no token could be fetched".to_owned(),
    };
    error.remedy = Some(remedy.into());
    error
}

#[derive(Deserialize)]
struct Answer {
    access_token: Secret,
    #[serde(default, deserialize_with = "lifetime")]
    expires_in: Option<Duration>,
}

/// Seconds as a number or as text. Missing, null or 0 is for ever; less than that is over.
fn lifetime<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    let seconds = match &value {
        serde_json::Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    };
    Ok(seconds
        .filter(|seconds: &f64| *seconds != 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_read_from_a_number_or_a_text() {
        let life = |text: &str| {
            let answer: Answer =
                serde_json::from_str(&format!(r#"{{"access_token":"t","expires_in":{text}}}"#)).unwrap();
            answer.expires_in.map(|life| life.as_secs())
        };
        assert_eq!(life("900"), Some(900));
        assert_eq!(life(r#""900""#), Some(900));
        assert_eq!(life("0"), None);
        assert_eq!(life("-1"), Some(0));
        assert_eq!(life("null"), None);
        assert_eq!(life(r#""soon""#), None);
        let answer: Answer = serde_json::from_str(r#"{"access_token":"t"}"#).unwrap();
        assert_eq!(answer.expires_in, None);
    }

    #[test]
    fn both_halves_of_the_header_are_encoded() {
        let credentials = Credentials {
            client_id: "a:b".to_owned(),
            client_secret: Secret::new("c d+ü"),
        };
        let decoded = STANDARD.decode(basic(&credentials).expose()).unwrap();
        assert_eq!(String::from_utf8(decoded).unwrap(), "a%3Ab:c+d%2B%C3%BC");
    }
}
