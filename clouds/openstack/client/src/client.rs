//! The calls.

mod balancers;
mod compute;
mod keys;
mod network;
mod parts;
mod security;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_cloud_http::{
    Class, CloudHttp, CredentialsFile, Failure, HttpError, Method, Request, Response, Url, resolve,
};
use serde::Serialize;
use tokio::time::Instant;

pub use self::keys::KeyKind;
use crate::error::ApiError;
use crate::login::Login;
use crate::operation::{CallObserver, Operation, Service};
use crate::session::Session;
use crate::settings::Settings;
use crate::wire::{One, PER_PAGE, Page, Resource, Wrapped};

/// More pages than this no list has: at the least that services allow, a thousand entries each.
const MOST_PAGES: usize = 1000;

/// How often a list is begun before it is taken for one that cannot be read.
const MOST_BEGINNINGS: usize = 4;

/// By how much fewer entries are asked for after a page that is too large. A pool shows some 48 bytes of each of its members, so that
/// a thousand pools of 700 members are more than the 32 MiB that are read of an answer; with a quarter of the pools it takes 2,800.
const FEWER: usize = 4;

/// The most entries of a page, in a query.
const LIMIT: &str = "limit";

/// The last entry of the page before, in a query.
const MARKER: &str = "marker";

/// The query of a list that may be long.
fn in_pages(mut query: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    query.push((LIMIT, PER_PAGE.to_string()));
    query
}

/// Sets one value of a query.
fn set(query: &mut Vec<(&'static str, String)>, name: &'static str, value: String) {
    query.retain(|(there, _)| *there != name);
    query.push((name, value));
}

/// What is believed of a link to the next page. Its host is not: behind a proxy it is often another one, and the token would go
/// there. Nor is its query as a whole: Octavia leaves the filters out.
struct Next {
    marker: String,
    limit: Option<String>,
}

impl Next {
    /// `None` where the link does not say how the list goes on.
    fn of(link: &Url) -> Option<Self> {
        let find = |wanted: &str| {
            let mut pairs = link.query_pairs();
            let found = pairs.find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.into_owned())
        };
        Some(Self {
            marker: find(MARKER).filter(|marker| !marker.is_empty())?,
            // Octavia without a limit writes `None`, and refuses that.
            limit: find(LIMIT).filter(|limit| limit.parse::<usize>().is_ok()),
        })
    }
}

/// Nova's word for something that it does not have.
const NO_SERVER: &str = "itemNotFound";

/// A client of all services. Clones share login, endpoints and everything below.
///
/// Reads are repeated by the HTTP stack where that can help; writes are sent once, but for the repeat after a `401`.
/// Lists are whole: all pages are read.
#[derive(Clone)]
pub struct Client {
    http: CloudHttp,
    session: Session,
    observer: Option<Arc<dyn CallObserver>>,
    /// How many entries of a list are asked for at once, by the list's operation, where a page of more was too large.
    page_sizes: Arc<Mutex<BTreeMap<&'static str, usize>>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client")
    }
}

/// What became of something that was to be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted {
    /// The service took the request; the object may be there for a moment longer.
    Accepted,
    /// The object was not there any more.
    AlreadyGone,
}

/// One call without its body.
struct Call<'a> {
    method: Method,
    operation: Operation,
    segments: &'a [&'a str],
}

impl Client {
    /// A client. Makes no call: the login is made with the first one.
    pub fn new(http: CloudHttp, settings: Settings) -> Self {
        Self {
            session: Session::new(http.clone(), settings),
            http,
            observer: None,
            page_sizes: Arc::default(),
        }
    }

    /// The same over another stack, with the token and the endpoints that this one has by now. What either finds later is
    /// its own. With a file, the login in it takes the place of the settings' whenever it changes.
    #[must_use]
    pub fn continued_over(&self, http: CloudHttp, file: Option<CredentialsFile<Login>>) -> Self {
        Self {
            session: self.session.continued_over(http.clone(), file),
            http,
            observer: self.observer.clone(),
            page_sizes: Arc::clone(&self.page_sizes),
        }
    }

    /// Tells `observer` of every call.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The HTTP stack below.
    pub fn http(&self) -> &CloudHttp {
        &self.http
    }

    /// Logs in, unless that is done.
    ///
    /// # Errors
    ///
    /// See [`Class`], as for every call.
    pub async fn login(&self) -> Result<(), ApiError> {
        self.session.ticket().await.map(drop)
    }

    /// The names of the roles that the login has in its project.
    ///
    /// # Errors
    ///
    /// See [`Class`], as for every call.
    pub async fn roles(&self) -> Result<Vec<String>, ApiError> {
        Ok(self.session.ticket().await?.roles().to_vec())
    }

    /// Looks for the endpoint of a service, unless that is done.
    ///
    /// # Errors
    ///
    /// [`ApiError::is_missing_service`] if the catalog has none that can be used. Any other failure may be gone at the next
    /// try.
    pub async fn find(&self, service: Service) -> Result<(), ApiError> {
        self.session.endpoint(service).await.map(drop)
    }

    /// All pages of a list.
    async fn list<T: Resource>(
        &self,
        call: Call<'_>,
        query: &[(&'static str, String)],
    ) -> Result<Vec<T>, ApiError> {
        self.observed(call.operation, self.pages(&call, query)).await
    }

    /// All pages, each object once. A list that changed while it was read is begun again.
    async fn pages<T: Resource>(
        &self,
        call: &Call<'_>,
        query: &[(&'static str, String)],
    ) -> Result<Vec<T>, ApiError> {
        for _ in 0..MOST_BEGINNINGS {
            if let Some(entries) = self.walk(call, query).await? {
                return Ok(entries);
            }
        }
        Err(ApiError::changing(call.operation.name))
    }

    /// All pages; `None` where the object that the next page was to begin after is gone. Neutron then begins the lists of security groups,
    /// floating IPs and subnets anew and says nothing (`Pager.to_kwargs` in `neutron/objects/base.py`, which asks for the marker and takes
    /// none for no marker); it refuses the others with 404 (`get_marker_obj` in `neutron_lib/db/utils.py`), Octavia and Nova with 400.
    async fn walk<T: Resource>(
        &self,
        call: &Call<'_>,
        query: &[(&'static str, String)],
    ) -> Result<Option<Vec<T>>, ApiError> {
        let url = self.url(call).await?;
        let mut entries: Vec<T> = Vec::new();
        let (mut ids, mut pages) = (BTreeSet::new(), 0);
        let mut query = query.to_vec();
        let known = self.page_sizes().get(call.operation.name).copied();
        if let Some(limit) = known {
            set(&mut query, LIMIT, limit.to_string());
        }
        loop {
            let request = Request::read(call.method.clone(), call.operation.name, url.clone());
            let request = query
                .iter()
                .fold(request, |request, (name, value)| request.query(name, value));
            let response = match self.session.send(request).await {
                Err(error) if error.is_too_large() => {
                    let asked = query.iter().find(|(name, _)| *name == LIMIT);
                    let asked = asked
                        .and_then(|(_, limit)| limit.parse().ok())
                        .unwrap_or(PER_PAGE);
                    if asked <= 1 {
                        return Err(error);
                    }
                    let fewer = (asked / FEWER).max(1);
                    self.page_sizes().insert(call.operation.name, fewer);
                    set(&mut query, LIMIT, fewer.to_string());
                    continue;
                }
                Err(error) if pages > 0 && matches!(error.status(), Some(400 | 404)) => return Ok(None),
                response => response?,
            };
            let page: Page<T> = response.json()?;
            let before = entries.len();
            for entry in page.entries {
                if ids.insert(entry.id().to_owned()) {
                    entries.push(entry);
                } else if entries[..before].iter().any(|there| there.id() == entry.id()) {
                    return Ok(None);
                }
            }
            let Some(link) = page.next else {
                entries.shrink_to_fit();
                return Ok(Some(entries));
            };
            pages += 1;
            // Without its next page the list is not whole, and who reads it must not take it for that.
            let next = url.join(&link).ok().and_then(|link| Next::of(&link));
            let next = next.ok_or_else(|| ApiError::cut_off(call.operation.name))?;
            if pages > MOST_PAGES {
                return Err(ApiError::endless(call.operation.name));
            }
            if let Some(limit) = next.limit {
                set(&mut query, LIMIT, limit);
            }
            set(&mut query, MARKER, next.marker);
        }
    }

    fn page_sizes(&self) -> MutexGuard<'_, BTreeMap<&'static str, usize>> {
        // No code that can panic runs under the lock.
        self.page_sizes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One object, or `None` if the service itself says that there is none.
    async fn one<T: Resource>(&self, call: Call<'_>) -> Result<Option<T>, ApiError> {
        self.observed(call.operation, async {
            match self.send(&call, |request| request).await {
                Ok(response) => Ok(Some(response.json::<One<T>>()?.0)),
                Err(error) if proves_absence(&call, &error) => Ok(None),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// A change that answers with the object.
    async fn change<T: Resource>(
        &self,
        call: Call<'_>,
        dress: impl Fn(Request) -> Request,
    ) -> Result<T, ApiError> {
        self.observed(call.operation, async {
            Ok(self.send(&call, dress).await?.json::<One<T>>()?.0)
        })
        .await
    }

    /// Creates an object.
    async fn post<T: Resource>(
        &self,
        operation: Operation,
        segments: &[&str],
        new: &impl Serialize,
    ) -> Result<T, ApiError> {
        let call = write(Method::POST, operation, segments);
        self.change(call, |request| request.json(&Wrapped(T::ONE, new)))
            .await
    }

    /// Changes an object.
    async fn put<T: Resource>(
        &self,
        operation: Operation,
        segments: &[&str],
        update: &impl Serialize,
    ) -> Result<T, ApiError> {
        let call = write(Method::PUT, operation, segments);
        self.change(call, |request| request.json(&Wrapped(T::ONE, update)))
            .await
    }

    /// Deletes an object.
    async fn remove(&self, operation: Operation, segments: &[&str]) -> Result<Deleted, ApiError> {
        let call = write(Method::DELETE, operation, segments);
        self.delete(call, |request| request).await
    }

    async fn delete(&self, call: Call<'_>, dress: impl Fn(Request) -> Request) -> Result<Deleted, ApiError> {
        self.observed(call.operation, async {
            match self.send(&call, dress).await {
                Ok(_) => Ok(Deleted::Accepted),
                Err(error) if error.class == Class::NotFound => Ok(Deleted::AlreadyGone),
                Err(error) => Err(error),
            }
        })
        .await
    }

    async fn send(&self, call: &Call<'_>, dress: impl Fn(Request) -> Request) -> Result<Response, ApiError> {
        let url = self.url(call).await?;
        let request = match call.method {
            Method::GET => Request::read(Method::GET, call.operation.name, url),
            _ => Request::write(call.method.clone(), call.operation.name, url),
        };
        self.session.send(dress(request)).await
    }

    async fn url(&self, call: &Call<'_>) -> Result<Url, ApiError> {
        let endpoint = self.session.endpoint(call.operation.service).await?;
        let url = resolve(&endpoint.base, call.operation.path, call.segments).map_err(|error| {
            let failure = Failure::Unsendable(error.to_string());
            HttpError::new(
                call.operation.name,
                call.method.clone(),
                call.operation.path,
                failure,
            )
        })?;
        Ok(url)
    }

    /// Tells the observer how a call ended.
    async fn observed<T>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let begun = Instant::now();
        let outcome = work.await;
        if let (Some(observer), Some(request)) = (&self.observer, operation.request) {
            observer.observe(request, begun.elapsed(), outcome.is_err());
        }
        outcome
    }
}

/// Whether a refusal proves that the object asked for is absent.
///
/// The services also refuse a path that they do not know, and gateways in front of them one that they do not route, so the
/// text has to name the object. A Node is deleted on Nova's word, so that has to be Nova's own.
fn proves_absence(call: &Call<'_>, error: &ApiError) -> bool {
    let message = error.message.as_deref().unwrap_or_default();
    let names_it = call.segments.last().is_some_and(|id| message.contains(id));
    let is_own_word = call.operation.service != Service::Compute || error.word.as_deref() == Some(NO_SERVER);
    error.class == Class::NotFound && names_it && is_own_word
}

fn read<'a>(operation: Operation, segments: &'a [&'a str]) -> Call<'a> {
    write(Method::GET, operation, segments)
}

fn write<'a>(method: Method, operation: Operation, segments: &'a [&'a str]) -> Call<'a> {
    Call {
        method,
        operation,
        segments,
    }
}
