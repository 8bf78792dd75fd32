//! The one login of the process, and the endpoints that its catalog names.

mod catalog;
mod discovery;
mod token;
mod versions;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_cloud_http::{CloudHttp, CredentialsFile, Request, Response, SharedRead, Url};

use self::token::{Ticket, Tokens};
pub(crate) use self::versions::choices;
use crate::error::ApiError;
use crate::login::Login;
use crate::operation::{self, Service};
use crate::settings::Settings;

/// The shortest time between two requests for the same token or version list when the first failed.
const INTERVAL: Duration = Duration::from_millis(500);

impl Service {
    const ALL: [Self; 4] = [Self::Compute, Self::Network, Self::LoadBalancer, Self::KeyManager];

    /// The service's type in the catalog.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Network => "network",
            Self::LoadBalancer => "load-balancer",
            Self::KeyManager => "key-manager",
        }
    }

    /// The major version of its API that this client speaks.
    fn major(self) -> u32 {
        match self {
            Self::Compute | Self::Network | Self::LoadBalancer => 2,
            Self::KeyManager => 1,
        }
    }

    fn versions(self) -> &'static str {
        match self {
            Self::Compute => operation::COMPUTE_VERSIONS,
            Self::Network => operation::NETWORK_VERSIONS,
            Self::LoadBalancer => operation::BALANCER_VERSIONS,
            Self::KeyManager => operation::KEY_VERSIONS,
        }
    }
}

/// Where a service is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// Where its versions are listed.
    pub(crate) root: Url,
    /// What the paths of its calls are relative to.
    pub(crate) base: Url,
}

/// Sends calls with the token of the login, to the endpoints of its catalog. Clones share both.
#[derive(Clone)]
pub(crate) struct Session {
    tokens: Tokens,
    endpoints: Arc<[Shared; Service::ALL.len()]>,
}

/// A service's endpoint: looked for by all callers together, and kept as long as catalogs name the same places.
struct Shared {
    found: Arc<Mutex<Option<Found>>>,
    look: SharedRead<Result<Arc<Endpoint>, ApiError>>,
}

/// An endpoint, and the URLs of the catalog among which it was found.
#[derive(Clone)]
struct Found {
    urls: Vec<String>,
    endpoint: Arc<Endpoint>,
}

impl Session {
    pub(crate) fn new(http: CloudHttp, settings: Settings) -> Self {
        let tokens = Tokens::new(http, settings);
        let endpoints = Service::ALL.map(|service| Shared::new(&tokens, service, None));
        Self {
            tokens,
            endpoints: Arc::new(endpoints),
        }
    }

    /// Another session, with what this one has found so far, and with a file in which another login may appear.
    pub(crate) fn continued_over(&self, http: CloudHttp, file: Option<CredentialsFile<Login>>) -> Self {
        let tokens = self.tokens.continued_over(http, file);
        let endpoints = Service::ALL.map(|service| {
            let found = lock(&self.endpoints[service as usize].found).clone();
            Shared::new(&tokens, service, found)
        });
        Self {
            tokens,
            endpoints: Arc::new(endpoints),
        }
    }

    /// The token in use, and what came with it.
    pub(crate) async fn ticket(&self) -> Result<Ticket, ApiError> {
        self.tokens.ticket().await
    }

    /// Where a service is, by the catalog of the last login; one that it does not name is looked for in a new one at times.
    pub(crate) async fn endpoint(&self, service: Service) -> Result<Arc<Endpoint>, ApiError> {
        let ticket = self.tokens.ticket_for(service).await?;
        let shared = &self.endpoints[service as usize];
        match shared.found(self.tokens.urls(&ticket, service)) {
            Some(endpoint) => Ok(endpoint),
            None => shared.look.ask().await,
        }
    }

    /// Sends a request with the token, and once more with a new one if the first was refused.
    pub(crate) async fn send(&self, request: Request) -> Result<Response, ApiError> {
        self.tokens.send(request).await
    }
}

impl Shared {
    fn new(tokens: &Tokens, service: Service, found: Option<Found>) -> Self {
        let found = Arc::new(Mutex::new(found));
        let source = (tokens.clone(), found.clone());
        let look = SharedRead::single(INTERVAL, &source, move |(tokens, found)| async move {
            let ticket = tokens.ticket().await?;
            let urls: Vec<String> = tokens.urls(&ticket, service).map(str::to_owned).collect();
            let endpoint = discovery::endpoint(&tokens, service, &urls)
                .await?
                .ok_or_else(|| tokens.no_endpoint(&ticket, service))?;
            let endpoint = Arc::new(endpoint);
            *lock(&found) = Some(Found {
                urls,
                endpoint: Arc::clone(&endpoint),
            });
            Ok(endpoint)
        });
        Self { found, look }
    }

    /// The endpoint, if it was found among these URLs. A catalog with none, which a cloud in trouble may answer, takes away
    /// nothing that was found.
    fn found<'a>(&self, urls: impl Iterator<Item = &'a str>) -> Option<Arc<Endpoint>> {
        let found = lock(&self.found);
        let found = found.as_ref()?;
        let mut urls = urls.peekable();
        let is_same = urls.peek().is_none() || found.urls.iter().map(String::as_str).eq(urls);
        is_same.then(|| Arc::clone(&found.endpoint))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // No code that can panic runs under the lock.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
