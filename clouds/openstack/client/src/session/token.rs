//! The one token of the process (Identity API v3, "Token authentication").

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_http::lenient::list;
use bowline_cloud_http::{
    Class, CloudHttp, CredentialsFile, HeaderName, Method, Request, Response, Secret, SharedRead, Url,
};
use serde::Deserialize;
use tokio::time::Instant;

use super::catalog::Catalog;
use super::versions::{self, Version, cut};
use super::{INTERVAL, Service, lock};
use crate::error::ApiError;
use crate::login::{Login, LoginBody};
use crate::operation::{IDENTITY_VERSIONS, LOGIN};
use crate::settings::Settings;

const AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
const SUBJECT_TOKEN: &str = "x-subject-token";

/// The time after a refused login before the next one; it doubles with each further refusal. Many clouds lock a user out who
/// tries a wrong password a few times (Keystone, `security_compliance/lockout_failure_attempts`).
const FIRST_PAUSE: Duration = Duration::from_secs(30);
/// The longest such time.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// A token and what came with it, and which of those made it is: so that a refused one is dropped only once.
#[derive(Clone)]
pub(crate) struct Ticket {
    token: Secret,
    catalog: Arc<Catalog>,
    project: Option<Arc<str>>,
    roles: Arc<[String]>,
    serial: u64,
}

impl Ticket {
    /// The project that the token is for; `None` if it is for none.
    pub(crate) fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// The names of the roles that its user has there.
    pub(crate) fn roles(&self) -> &[String] {
        &self.roles
    }

    /// What asks a list for nothing but the token's project. To an administrator it would show all projects' things.
    pub(crate) fn of_project(&self) -> Vec<(&'static str, String)> {
        let project = self.project.iter();
        project.map(|id| ("project_id", id.to_string())).collect()
    }

    /// Whether something is of another project than the token. An administrator's lists have such things. What names no project is
    /// not.
    pub(crate) fn is_foreign(&self, project: Option<&str>) -> bool {
        let project = project.filter(|project| !project.is_empty());
        matches!((project, self.project.as_deref()), (Some(theirs), Some(own)) if theirs != own)
    }
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
    /// Where another login may appear.
    file: Option<CredentialsFile<Login>>,
    state: Mutex<State>,
}

#[derive(Clone)]
struct State {
    login: Arc<Login>,
    /// Where Keystone's version 3 is, once that is known.
    identity: Option<Url>,
    ticket: Option<Ticket>,
    made: u64,
    /// The last answer to this login, if it was a refusal.
    refusal: Option<Refusal>,
    look: Look,
}

/// When the catalog may be read anew for a service that it does not name.
#[derive(Clone)]
struct Look {
    is_wanted: bool,
    pause: Duration,
    due: Instant,
}

impl Look {
    fn after(pause: Duration) -> Self {
        Self {
            is_wanted: false,
            pause,
            due: Instant::now() + pause,
        }
    }

    /// After a login, which a look may have been the reason for: then the next one is put off for longer.
    fn next(&self) -> Self {
        match self.is_wanted {
            true => Self::after(LONGEST_PAUSE.min(self.pause * 2)),
            false => Self::after(FIRST_PAUSE),
        }
    }
}

/// Keystone refused the login: it is not tried again for a while.
#[derive(Clone)]
struct Refusal {
    error: ApiError,
    pause: Duration,
    ends: Instant,
}

impl Tokens {
    pub(crate) fn new(http: CloudHttp, settings: Settings) -> Self {
        let state = State {
            login: Arc::new(settings.login.clone()),
            identity: None,
            ticket: None,
            made: 0,
            refusal: None,
            look: Look::after(FIRST_PAUSE),
        };
        Self::with(http, settings, None, state)
    }

    /// The same over another stack, with the token in use, and with a file in which another login may appear.
    pub(crate) fn continued_over(&self, http: CloudHttp, file: Option<CredentialsFile<Login>>) -> Self {
        let mut state = lock(&self.store.state).clone();
        if let Some(file) = &file {
            state.login = file.current();
        }
        Self::with(http, self.store.settings.clone(), file, state)
    }

    fn with(http: CloudHttp, settings: Settings, file: Option<CredentialsFile<Login>>, state: State) -> Self {
        let store = Arc::new(Store {
            http,
            settings,
            file,
            state: Mutex::new(state),
        });
        // One at a time: who needs a token while one is being made waits for that one.
        let make = SharedRead::single(INTERVAL, &store, |store: Arc<Store>| async move {
            match store.known().filter(|_| !store.is_look_wanted()) {
                Some(known) => known,
                None => store.make().await,
            }
        });
        Self { store, make }
    }

    /// The token in use. Calls that need a new one while it is being made wait for it; those that need one after a refusal
    /// get that refusal until the login is tried again.
    pub(crate) async fn ticket(&self) -> Result<Ticket, ApiError> {
        match self.store.known() {
            Some(known) => known,
            None => self.make.ask().await,
        }
    }

    /// The token with which a service's URLs are read: one whose catalog names none is replaced by a new one, once for all
    /// callers and not before a pause is over. If there is no new one, the old one is as good as before.
    pub(crate) async fn ticket_for(&self, service: Service) -> Result<Ticket, ApiError> {
        let ticket = self.ticket().await?;
        if self.urls(&ticket, service).next().is_some() || !self.store.wants_look(&ticket) {
            return Ok(ticket);
        }
        tracing::info!(
            service = service.kind(),
            "The service catalog does not name the service, logging in again to read it anew"
        );
        Ok(self.make.ask().await.unwrap_or(ticket))
    }

    /// The URLs of a service in the catalog that came with a token, for the interface and the region in use.
    pub(crate) fn urls<'a>(&'a self, ticket: &'a Ticket, service: Service) -> impl Iterator<Item = &'a str> {
        let settings = &self.store.settings;
        ticket.catalog.urls(service, settings.interface, &settings.region)
    }

    /// The error of a service that has no usable URL there.
    pub(crate) fn no_endpoint(&self, ticket: &Ticket, service: Service) -> ApiError {
        let settings = &self.store.settings;
        let (interface, region) = (settings.interface, settings.region.as_str());
        let remedy = ticket
            .catalog
            .remedy(service, interface, region, &settings.source);
        ApiError::no_endpoint(service.kind(), interface, region, &remedy)
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
        http.send(with(&request, &ticket)).await.map_err(|error| {
            let mut error = ApiError::from(error);
            if error.class == Class::Unauthenticated {
                error.remedy = Some(NEW_TOKEN_REFUSED.into());
            }
            error
        })
    }
}

/// What a service that refuses a new token as well does not say: the credentials are not the cause.
const NEW_TOKEN_REFUSED: &str = "The login succeeded, and the service refuses the new token as well";

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
    project: Option<Project>,
    #[serde(default, deserialize_with = "list")]
    roles: Vec<Role>,
}

#[derive(Deserialize)]
struct Role {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Project {
    id: Arc<str>,
}

impl Store {
    /// The token in use, or why there is none for now.
    fn known(&self) -> Option<Result<Ticket, ApiError>> {
        self.follow_file();
        let state = lock(&self.state);
        let refusal = || {
            state
                .refusal
                .as_ref()
                .filter(|refusal| Instant::now() < refusal.ends)
        };
        match &state.ticket {
            Some(ticket) => Some(Ok(ticket.clone())),
            None => refusal().map(|refusal| Err(refusal.error.clone())),
        }
    }

    fn is_look_wanted(&self) -> bool {
        lock(&self.state).look.is_wanted
    }

    /// Asks for another catalog than the one that came with this token. Whether one is to be had.
    fn wants_look(&self, ticket: &Ticket) -> bool {
        let mut state = lock(&self.state);
        let is_in_use = state
            .ticket
            .as_ref()
            .is_some_and(|used| used.serial == ticket.serial);
        if is_in_use && Instant::now() >= state.look.due {
            state.look.is_wanted = true;
        }
        // Another one is there already, or on its way.
        !is_in_use || state.look.is_wanted
    }

    /// Takes the login that the file holds now; what came of the former one is forgotten.
    fn follow_file(&self) {
        let Some(file) = &self.file else { return };
        let current = file.current();
        let mut state = lock(&self.state);
        if !Arc::ptr_eq(&state.login, &current) {
            state.login = current;
            state.ticket = None;
            state.refusal = None;
        }
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
        let login = Arc::clone(&lock(&self.state).login);
        let made = self.log_in(&login).await;
        let mut state = lock(&self.state);
        state.look = state.look.next();
        let is_current = Arc::ptr_eq(&state.login, &login);
        let (token, answer) = match made {
            Ok(made) => made,
            Err(error) if opens_nothing(&error) => {
                let mut error = unauthenticated(error);
                error.remedy = Some(remedy(&login, &self.settings.source).into());
                if is_current {
                    let refusal = Refusal::after(state.refusal.as_ref(), error.clone());
                    tracing::warn!(err = %error, pause = ?refusal.pause, "Keystone refused the login, the next one is made after a pause or with other credentials");
                    state.refusal = Some(refusal);
                    // Others may be there already.
                    if let Some(file) = &self.file {
                        file.distrust();
                    }
                }
                return Err(error);
            }
            Err(error) => return Err(unauthenticated(error)),
        };
        state.made += 1;
        let ticket = Ticket {
            token,
            catalog: Arc::new(answer.catalog),
            project: answer.project.map(|project| project.id),
            roles: answer.roles.into_iter().map(|role| role.name).collect(),
            serial: state.made,
        };
        if is_current {
            state.ticket = Some(ticket.clone());
            state.refusal = None;
        }
        Ok(ticket)
    }

    async fn log_in(&self, login: &Login) -> Result<(Secret, Token), ApiError> {
        let mut url = self.identity(login).await?;
        url.set_path(&format!("{}/auth/tokens", url.path().trim_end_matches('/')));
        // It changes nothing that lasts, so it may be repeated.
        let request = Request::read(Method::POST, LOGIN, url)
            .conceal(login.secret())
            .preliminary()
            .json(&LoginBody(login));
        let response = self.http.send(request).await?;
        let token = response
            .headers
            .get(SUBJECT_TOKEN)
            .and_then(|token| token.to_str().ok())
            .map(Secret::new)
            .ok_or_else(|| response.unusable("it holds no X-Subject-Token"))?;
        let answer: Answer = response.json()?;
        Ok((token, answer.token))
    }

    /// Where Keystone's version 3 is.
    async fn identity(&self, login: &Login) -> Result<Url, ApiError> {
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
        let url = if login.has_trust() {
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
        let request = Request::read(Method::GET, IDENTITY_VERSIONS, root.clone()).preliminary();
        let answer = self.http.send(request).await.map_err(ApiError::from);
        let versions = versions::versions(answer)?;
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

impl Refusal {
    /// A refusal after the one before, if there was one.
    fn after(last: Option<&Self>, error: ApiError) -> Self {
        let pause = last.map_or(FIRST_PAUSE, |last| LONGEST_PAUSE.min(last.pause * 2));
        Self {
            error,
            pause,
            ends: Instant::now() + pause,
        }
    }
}

/// Which options a refused login was made with, and where they are.
fn remedy(login: &Login, source: &str) -> String {
    let doubt = match &*login.doubt {
        "" => String::new(),
        doubt => format!("; {doubt}"),
    };
    format!(
        "The login is made with {} of {source}: correct these there, or the options of domain and project, or `auth-url`{doubt}",
        login.options()
    )
}

/// Whether Keystone itself says that these credentials open nothing. An unknown application credential is `404`.
fn opens_nothing(error: &ApiError) -> bool {
    matches!(
        error.class,
        Class::Unauthenticated | Class::Denied | Class::NotFound
    )
}

/// Whatever Keystone refuses, it speaks of credentials and never of what the token is wanted for: least of all that it is
/// gone.
fn unauthenticated(mut error: ApiError) -> ApiError {
    if matches!(
        error.class,
        Class::Invalid | Class::Denied | Class::NotFound | Class::Conflict | Class::Exhausted
    ) {
        error.class = Class::Unauthenticated;
    }
    error
}
