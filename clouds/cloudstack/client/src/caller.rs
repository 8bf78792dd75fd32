//! How commands are sent, whatever the project: signed, once more under new keys, and lists whole.

use std::fmt;
use std::sync::Arc;

use bowline_cloud_http::{
    Class, CloudHttp, CredentialsFile, Failure, HeaderName, HttpError, Kind, Method, Request, Response,
    Secret, Url,
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::accepted::Accepted;
use crate::cookies::Cookies;
use crate::envelope;
use crate::error::{ApiError, Members};
use crate::paging::{self, Counted, Listed, Listing, Next};
use crate::settings::WallClock;
use crate::sign::{Keys, Parameters, Signed, escaped};

/// How often a list that changes while it is read is begun again.
const LISTINGS: usize = 3;

/// Sends commands, whatever the project.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) http: CloudHttp,
    pub(crate) url: Url,
    pub(crate) keys: Arc<Keys>,
    /// Where other keys may appear.
    pub(crate) file: Option<Arc<CredentialsFile<Keys>>>,
    pub(crate) clock: WallClock,
    pub(crate) cookies: Arc<Cookies>,
    pub(crate) accepted: Arc<Accepted>,
    /// Whether a list that ends before the server's count is taken for whole if it does so each time.
    pub(crate) takes_short_lists: bool,
}

/// Why one reading of a list is not whole.
enum Broken<T> {
    /// It changed under the reader.
    Changing,
    /// It ended before the server's count.
    Short { items: Counted<T>, count: usize },
}

impl<T> fmt::Display for Broken<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changing => f.write_str("it changes while it is read"),
            Self::Short { items, count } => {
                write!(f, "the server lists {} and counts {count}", items.items.len())
            }
        }
    }
}

impl Caller {
    /// Those that are used now.
    pub(crate) fn keys(&self) -> Arc<Keys> {
        match &self.file {
            Some(file) => file.current(),
            None => Arc::clone(&self.keys),
        }
    }

    /// Sends a command that changes nothing.
    pub(crate) async fn get(
        &self,
        command: &'static str,
        parameters: &Parameters,
    ) -> Result<Answer, ApiError> {
        self.call(Kind::Read, command, parameters).await
    }

    /// Sends a command that may change something.
    pub(crate) async fn post(
        &self,
        command: &'static str,
        parameters: &Parameters,
    ) -> Result<Answer, ApiError> {
        self.call(Kind::Write, command, parameters).await
    }

    /// Sends a command, and once more if its keys were refused and there are others in the file by now: nothing was done
    /// then.
    async fn call(
        &self,
        kind: Kind,
        command: &'static str,
        parameters: &Parameters,
    ) -> Result<Answer, ApiError> {
        let keys = self.keys();
        let error = match self.once(kind, command, parameters, &keys).await {
            Err(error) if error.is_of_keys() => error,
            outcome => return outcome,
        };
        let Some(file) = &self.file else { return Err(error) };
        file.distrust();
        let others = file.current();
        if Arc::ptr_eq(&keys, &others) {
            return Err(error);
        }
        self.once(kind, command, parameters, &others).await
    }

    async fn once(
        &self,
        kind: Kind,
        command: &'static str,
        parameters: &Parameters,
        keys: &Arc<Keys>,
    ) -> Result<Answer, ApiError> {
        let signed = parameters.clone().sign(command, keys, (self.clock)());
        let request = match kind {
            Kind::Read => Request::read(Method::GET, command, self.url.clone()).raw_query(&signed.query()),
            Kind::Write => Request::write(Method::POST, command, self.url.clone()).form(signed.form()),
        };
        let request = conceal(request, keys, &signed);
        let request = match self.cookies.header() {
            Some(cookies) => request.secret_header(HeaderName::from_static("cookie"), "", &cookies),
            None => request,
        };
        let answer = self.send(request, parameters).await;
        let now = (self.clock)();
        if answer.is_ok() {
            self.accepted.note(keys, command, now);
        }
        let of_role = || self.accepted.refused(keys, command, now);
        answer.map_err(|error| error.advised(&self.url, now, of_role).doubting(&keys.doubt))
    }

    async fn send(&self, request: Request, sent: &Parameters) -> Result<Answer, ApiError> {
        let response = self.http.send(request).await;
        let headers = match &response {
            Ok(response) => Some(&response.headers),
            Err(HttpError {
                failure: Failure::Status(failure),
                ..
            }) => Some(&failure.headers),
            Err(_) => None,
        };
        if let Some(headers) = headers {
            self.cookies.keep(headers, self.url.scheme() == "https");
        }
        let response = response.map_err(|error| ApiError::of_call(error, sent))?;
        let payload = match envelope::open(&response.body) {
            Ok(payload) => payload.to_owned(),
            Err(reason) => return Err(ApiError::of_call(response.unusable(reason), sent)),
        };
        // A good status is not yet a good answer.
        if let Ok(members) = serde_json::from_slice::<Members>(payload.get().as_bytes())
            && members.errorcode.is_some_and(|code| code != 0)
        {
            return Err(ApiError::of_answer(members, &response, sent));
        }
        Ok(Answer { response, payload })
    }

    /// A whole list, without a project.
    pub(crate) async fn list<T: Listed>(
        &self,
        command: &'static str,
        parameters: &Parameters,
    ) -> Result<Vec<T>, ApiError> {
        Ok(self.counted(command, parameters).await?.items)
    }

    /// The same, and whether the server's count is that of the list.
    pub(crate) async fn counted<T: Listed>(
        &self,
        command: &'static str,
        parameters: &Parameters,
    ) -> Result<Counted<T>, ApiError> {
        let mut lengths = Vec::new();
        loop {
            let broken = match self.listing(command, parameters).await? {
                Ok(items) => return Ok(items),
                Err(broken) => broken,
            };
            let problem = broken.to_string();
            lengths.push(match &broken {
                Broken::Short { items, .. } => Some(items.items.len()),
                Broken::Changing => None,
            });
            if lengths.len() < LISTINGS {
                tracing::debug!(command, problem, "A list is read again");
                continue;
            }
            lengths.dedup();
            return match broken {
                Broken::Short { items, .. } if self.takes_short_lists && lengths.len() == 1 => {
                    tracing::debug!(command, problem, "A list is taken as it is");
                    Ok(items)
                }
                _ => Err(ApiError::noted(
                    Class::Unanswered,
                    format!("{command}: the list is not whole: {problem}"),
                    self.failure(command, &problem),
                )),
            };
        }
    }

    /// The item of a list that has this id. If the first answer holds it, nothing else matters about the list; else the list
    /// has to be whole.
    pub(crate) async fn find<T: Listed>(
        &self,
        command: &'static str,
        parameters: &Parameters,
        id: &str,
    ) -> Result<Option<T>, ApiError> {
        let answer = self.get(command, parameters).await?;
        let page = paging::page::<T>(&answer.payload).map_err(|reason| answer.unreadable(reason))?;
        let is_whole = page.is_whole();
        match page.find(id) {
            None if !is_whole => {
                let list = self.list::<T>(command, parameters).await?;
                Ok(list.into_iter().find(|item| item.id().eq_ignore_ascii_case(id)))
            }
            found => Ok(found),
        }
    }

    /// One reading of a list; the inner error says that it is not whole.
    async fn listing<T: Listed>(
        &self,
        command: &'static str,
        parameters: &Parameters,
    ) -> Result<Result<Counted<T>, Broken<T>>, ApiError> {
        let mut listing = Listing::new();
        let mut parameters = parameters.clone();
        loop {
            let answer = self.get(command, &parameters).await?;
            let page = paging::page(&answer.payload).map_err(|reason| answer.unreadable(reason))?;
            match listing.take(page) {
                Next::Whole => return Ok(Ok(listing.finish())),
                Next::Page { number, size } => {
                    parameters.set("page", number.to_string());
                    parameters.set("pagesize", size.to_string());
                }
                Next::Again => return Ok(Err(Broken::Changing)),
                Next::Short { count, .. } => {
                    let items = listing.finish();
                    return Ok(Err(Broken::Short { items, count }));
                }
            }
        }
    }

    /// A failure without an exchange of its own.
    pub(crate) fn failure(&self, command: &'static str, problem: &str) -> HttpError {
        let failure = Failure::Unsendable(problem.to_owned());
        HttpError::new(command, Method::GET, self.url.path(), failure)
    }
}

/// A good answer.
pub(crate) struct Answer {
    pub(crate) response: Response,
    pub(crate) payload: Box<RawValue>,
}

impl Answer {
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        serde_json::from_slice(self.payload.get().as_bytes())
            .map_err(|error| self.unreadable(error.to_string()))
    }

    pub(crate) fn unreadable(&self, reason: String) -> ApiError {
        ApiError::of_call(self.response.unusable(reason), &Parameters::default())
    }
}

/// Says what must not be shown, should something on the way repeat it. The secret key is never sent.
fn conceal(request: Request, keys: &Keys, signed: &Signed) -> Request {
    [&keys.api_key, &signed.signature]
        .into_iter()
        .fold(request, |request, secret| {
            let escaped = escaped(secret.expose());
            let request = request.conceal(secret);
            if escaped == secret.expose() {
                request
            } else {
                request.conceal(&Secret::new(escaped))
            }
        })
}
