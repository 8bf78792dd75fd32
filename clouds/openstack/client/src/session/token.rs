//! The one token of the process (Identity API v3, "Token authentication").

use std::sync::{Arc, Mutex};

use bowline_cloud_http::{Class, CloudHttp, HeaderName, Method, Request, Response, Secret, SharedRead, Url};
use serde::Deserialize;

use super::catalog::Catalog;
use super::discovery::{self, Version, cut};
use super::{INTERVAL, lock};
use crate::error::ApiError;
use crate::login::LoginBody;
use crate::operation::{IDENTITY_VERSIONS, LOGIN};
use crate::settings::Settings;

const AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const SUBJECT_TOKEN: &str = "x-subject-token";

/// A token and what came with it, and which of those made it is: so that a refused one is dropped only once.
#[derive(Clone)]
pub(crate) struct Ticket {
    token: Secret,
    pub(crate) catalog: Arc<Catalog>,
    serial: u64,
}

/// Where calls get their token from. Clones share it.
#[derive(Clone)]
pub(crate) struct Tokens {
    store: Arc<Store>,
    make: SharedRead<Result<Ticket, ApiError>>,
}

struct Store {
    http: CloudHttp,
    settings: Settings,
    state: Mutex<State>,
}

#[derive(Clone, Default)]
struct State {
    /// Where Keystone's version 3 is, once that is known.
    identity: Option<Url>,
    ticket: Option<Ticket>,
    made: u64,
}

impl Tokens {
    pub(crate) fn new(http: CloudHttp, settings: Settings) -> Self {
        Self::with(http, settings, State::default())
    }

    /// The same over another stack, with the token in use.
    pub(crate) fn continued_over(&self, http: CloudHttp) -> Self {
        let state = lock(&self.store.state).clone();
        Self::with(http, self.store.settings.clone(), state)
    }

    fn with(http: CloudHttp, settings: Settings, state: State) -> Self {
        let store = Arc::new(Store {
            http,
            settings,
            state: Mutex::new(state),
        });
        // One at a time: who needs a token while one is being made waits for that one.
        let make = SharedRead::single(INTERVAL, &store, |store: Arc<Store>| async move {
            match store.ticket() {
                Some(ticket) => Ok(ticket),
                None => store.make().await,
            }
        });
        Self { store, make }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.store.settings
    }

    /// The token in use. Calls that need a new one while it is being made wait for it.
    pub(crate) async fn ticket(&self) -> Result<Ticket, ApiError> {
        match self.store.ticket() {
            Some(ticket) => Ok(ticket),
            None => self.make.ask().await,
        }
    }

    /// Sends a request with the token, and once more with a new one if the first was refused.
    pub(crate) async fn send(&self, request: Request) -> Result<Response, ApiError> {
        let ticket = self.ticket().await?;
        let http = &self.store.http;
        let error = match http.send(with(&request, &ticket)).await {
            Ok(response) => return Ok(response),
            Err(error) => ApiError::from(error),
        };
        if error.class != Class::Unauthenticated {
            return Err(error);
        }
        tracing::debug!("Token refused, logging in again");
        self.store.forget(&ticket);
        let ticket = self.ticket().await?;
        Ok(http.send(with(&request, &ticket)).await?)
    }
}

fn with(request: &Request, ticket: &Ticket) -> Request {
    request.clone().secret_header(AUTH_TOKEN, "", &ticket.token)
}

/// The part of the answer to a login that is used.
#[derive(Deserialize)]
struct Answer {
    token: Token,
}

#[derive(Deserialize)]
struct Token {
    #[serde(default)]
    catalog: Catalog,
}

impl Store {
    fn ticket(&self) -> Option<Ticket> {
        lock(&self.state).ticket.clone()
    }

    /// Forgets a token that a service has refused, unless another one has taken its place.
    fn forget(&self, refused: &Ticket) {
        let mut state = lock(&self.state);
        if state
            .ticket
            .as_ref()
            .is_some_and(|ticket| ticket.serial == refused.serial)
        {
            state.ticket = None;
        }
    }

    async fn make(&self) -> Result<Ticket, ApiError> {
        let (token, catalog) = self.login().await.map_err(refused)?;
        let mut state = lock(&self.state);
        state.made += 1;
        let ticket = Ticket {
            token,
            catalog: Arc::new(catalog),
            serial: state.made,
        };
        state.ticket = Some(ticket.clone());
        Ok(ticket)
    }

    async fn login(&self) -> Result<(Secret, Catalog), ApiError> {
        let mut url = self.identity().await?;
        url.set_path(&format!("{}/auth/tokens", url.path().trim_end_matches('/')));
        // It changes nothing that lasts, so it may be repeated.
        let request = Request::read(Method::POST, LOGIN.name, url)
            .conceal(self.settings.login.secret())
            .json(&LoginBody(&self.settings.login));
        let response = self.http.send(request).await?;
        let token = response
            .headers
            .get(SUBJECT_TOKEN)
            .and_then(|token| token.to_str().ok())
            .map(Secret::new)
            .ok_or_else(|| response.unusable("it holds no X-Subject-Token"))?;
        let answer: Answer = response.json()?;
        Ok((token, answer.token.catalog))
    }

    /// Where Keystone's version 3 is.
    async fn identity(&self) -> Result<Url, ApiError> {
        if let Some(url) = lock(&self.state).identity.clone() {
            return Ok(url);
        }
        let (root, version) = cut(&self.settings.auth_url);
        let has_version = self
            .settings
            .auth_url
            .path()
            .trim_end_matches('/')
            .ends_with("/v3");
        let url = if self.settings.login.has_trust() {
            let mut url = root;
            url.set_path(&format!("{}v3/", url.path()));
            url
        } else if has_version && version == Some((3, 0)) {
            self.settings.auth_url.clone()
        } else {
            self.find_identity(root).await?
        };
        lock(&self.state).identity = Some(url.clone());
        Ok(url)
    }

    async fn find_identity(&self, root: Url) -> Result<Url, ApiError> {
        let request = Request::read(Method::GET, IDENTITY_VERSIONS.name, root.clone());
        let answer = self.http.send(request).await.map_err(ApiError::from);
        let versions = discovery::versions(answer)?;
        let link = versions
            .iter()
            .filter(|version| version.is_usable())
            .filter(|version| version.number().is_some_and(|(major, _)| major == 3))
            .max_by_key(|version| version.number())
            .and_then(Version::self_link)
            .ok_or_else(ApiError::no_identity)?;
        Ok(same_trust(&root, link))
    }
}

/// A service behind a proxy often writes links with the scheme that it is spoken to by the proxy: a password that was to
/// travel encrypted must not follow such a link in the clear.
fn same_trust(asked: &Url, link: Url) -> Url {
    if asked.scheme() == link.scheme() || link.scheme() == "https" {
        return link;
    }
    let mut url = asked.clone();
    url.set_path(link.path());
    url
}

/// Whatever Keystone refuses, it speaks of credentials and never of what the token is wanted for: least of all that it is
/// gone.
fn refused(mut error: ApiError) -> ApiError {
    if matches!(
        error.class,
        Class::Invalid | Class::Denied | Class::NotFound | Class::Conflict | Class::Exhausted
    ) {
        error.class = Class::Unauthenticated;
    }
    error
}
