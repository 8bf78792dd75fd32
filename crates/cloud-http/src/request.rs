//! What is to be sent.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use http_body_util::Full;
use serde::Serialize;
use url::{Position, Url};

use crate::error::{Call, Failure};
use crate::secret::Secret;

/// Whether a call changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Changes nothing in the cloud, whatever its HTTP method: may be repeated, and runs under the timeout for reads.
    Read,
    /// May change something: passes the write gate, runs under the timeout for writes, and is never repeated unless
    /// [`Request::idempotent`] says that it may be.
    Write,
}

/// The body of a request.
#[derive(Clone, Default)]
pub enum Body {
    /// None.
    #[default]
    Empty,
    /// A JSON document.
    Json(Bytes),
    /// `application/x-www-form-urlencoded`.
    Form(Bytes),
}

/// One call to a cloud, ready to be sent any number of times.
#[derive(Clone)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) operation: &'static str,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    pub(crate) kind: Kind,
    pub(crate) idempotent: bool,
    pub(crate) is_preliminary: bool,
    pub(crate) timeout: Option<Duration>,
    secrets: Vec<Secret>,
    confidential: bool,
    problem: Option<String>,
}

impl Request {
    /// A call that changes nothing. `operation` is its name in metrics and messages, e.g. `load-balancers.list`.
    pub fn read(method: Method, operation: &'static str, url: Url) -> Self {
        Self::new(Kind::Read, method, operation, url)
    }

    /// A call that may change something.
    pub fn write(method: Method, operation: &'static str, url: Url) -> Self {
        Self::new(Kind::Write, method, operation, url)
    }

    fn new(kind: Kind, method: Method, operation: &'static str, url: Url) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        Self {
            method,
            operation,
            url,
            headers,
            body: Body::Empty,
            kind,
            idempotent: kind == Kind::Read,
            is_preliminary: false,
            timeout: None,
            secrets: Vec::new(),
            confidential: false,
            problem: None,
        }
    }

    /// Appends a parameter to the query, form-encoded (a blank is `+`).
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.url.query_pairs_mut().append_pair(name, value);
        self
    }

    /// Sets the whole query as it shall stand on the wire, for APIs that sign it in their own encoding.
    pub fn raw_query(mut self, query: &str) -> Self {
        self.url.set_query(Some(query));
        self
    }

    /// Sets a header.
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        match HeaderValue::from_str(value) {
            Ok(value) => {
                self.headers.insert(name, value);
            }
            Err(_) => self.problem = Some(format!("the value of header {name} is not allowed in HTTP")),
        }
        self
    }

    /// Sets a header whose value must not be shown: marked sensitive, and cut out of anything the cloud answers.
    /// `prefix` is the part that is no secret, e.g. `Bearer `.
    pub fn secret_header(mut self, name: HeaderName, prefix: &str, secret: &Secret) -> Self {
        match HeaderValue::from_str(&format!("{prefix}{}", secret.expose())) {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.headers.insert(name, value);
            }
            Err(_) => {
                self.problem = Some(format!(
                    "the secret for header {name} holds characters not allowed in HTTP"
                ))
            }
        }
        self.conceal(secret)
    }

    /// `Authorization: Bearer <token>`.
    pub fn bearer(self, token: &Secret) -> Self {
        self.secret_header(AUTHORIZATION, "Bearer ", token)
    }

    /// Sends a JSON document.
    pub fn json<T: Serialize>(mut self, document: &T) -> Self {
        match serde_json::to_vec(document) {
            Ok(bytes) => self.body = Body::Json(bytes.into()),
            Err(error) => self.problem = Some(format!("the body cannot be written as JSON: {error}")),
        }
        self
    }

    /// Sends a form: pairs in the given order, a blank as `+`.
    pub fn form<'a>(mut self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let text = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(pairs)
            .finish();
        self.body = Body::Form(text.into());
        self
    }

    /// Says that this write may be repeated because doing it twice is the same as doing it once.
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Says that none of the cloud's objects is asked for: a login, or which versions there are. That it succeeds does not show
    /// that the cloud can be read.
    pub fn preliminary(mut self) -> Self {
        self.is_preliminary = true;
        self
    }

    /// Overrides the timeout of one exchange.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Names a further text that must not be shown, e.g. one inside of the body.
    pub fn conceal(mut self, secret: &Secret) -> Self {
        self.secrets.push(secret.clone());
        self
    }

    /// Says that the answer itself is a secret: no message shows any of it.
    pub fn confidential_answer(mut self) -> Self {
        self.confidential = true;
        self
    }

    pub(crate) fn call(&self) -> Call {
        Call {
            operation: self.operation,
            method: self.method.clone(),
            path: self.url.path().to_owned(),
            host: Some(self.url[Position::BeforeHost..Position::AfterPort].to_owned()),
            secrets: self.secrets.clone(),
            confidential: self.confidential,
        }
    }

    /// The request as the transport takes it; made anew for each try.
    pub(crate) fn to_http(&self, user_agent: &HeaderValue) -> Result<http::Request<Full<Bytes>>, Failure> {
        if let Some(problem) = &self.problem {
            return Err(Failure::Unsendable(problem.clone()));
        }
        let (content_type, body) = match &self.body {
            Body::Empty => (None, Bytes::new()),
            Body::Json(bytes) => (Some("application/json"), bytes.clone()),
            Body::Form(bytes) => (Some("application/x-www-form-urlencoded"), bytes.clone()),
        };
        // A fragment is never sent. The URL's own user name and password are not either: see `bearer`.
        let mut url = self.url.clone();
        url.set_fragment(None);
        // Both fail only for a URL without a host, which the transport refuses anyway.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let mut request = http::Request::builder()
            .method(self.method.clone())
            .uri(url.as_str())
            .body(Full::new(body))
            .map_err(|error| Failure::Unsendable(error.to_string()))?;
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(USER_AGENT, user_agent.clone());
        if let Some(content_type) = content_type {
            request
                .headers_mut()
                .entry(CONTENT_TYPE)
                .or_insert(HeaderValue::from_static(content_type));
        }
        Ok(request)
    }
}

impl fmt::Debug for Request {
    // No query, no headers, no body: each of them may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.operation, self.method, self.url.path())
    }
}

/// A URL could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The relative part does not parse.
    #[error("bad path `{path}`: {source}")]
    Path {
        /// The relative part.
        path: String,
        /// What is wrong with it.
        source: url::ParseError,
    },
    /// The base has no path at all, as in `mailto:`.
    #[error("the base URL cannot hold a path")]
    Base,
    /// An identifier would lead to another path.
    #[error("`{0}` cannot stand in a path")]
    Segment(String),
}

/// Resolves a relative path against a base URL (RFC 3986, section 5.2), then appends each segment percent-encoded, so
/// that no identifier can reach another path.
///
/// `https://h` and `https://h/` both give `https://h/v1/...`; the last segment of a base that does not end in a slash
/// is replaced.
///
/// # Errors
///
/// The base cannot hold a path, the relative part does not parse, or a segment is empty, `.` or `..`.
pub fn resolve(base: &Url, relative: &str, segments: &[&str]) -> Result<Url, UrlError> {
    let mut url = base.join(relative).map_err(|source| UrlError::Path {
        path: relative.to_owned(),
        source,
    })?;
    if let Some(segment) = segments
        .iter()
        .find(|segment| matches!(**segment, "" | "." | ".."))
    {
        return Err(UrlError::Segment((*segment).to_owned()));
    }
    url.path_segments_mut()
        .map_err(|()| UrlError::Base)?
        .pop_if_empty()
        .extend(segments);
    Ok(url)
}
