//! Why a call failed, in terms of what to do next.

use std::error::Error as StdError;
use std::fmt;

use bowline_cloud_http::{Class, Classified, Failure, HttpError, speaks_of_limit, speaks_of_no_address};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::settings::Interface;

/// A call that failed.
///
/// The text is `operation: METHOD path: status: message`, without query, headers, token or password.
#[derive(Debug, Clone)]
pub struct ApiError {
    /// What to do about it. [`Class::NotFound`] is said by the service itself.
    pub class: Class,
    /// What the service said.
    pub message: Option<Box<str>>,
    /// The word by which Neutron and Nova tell their errors apart, e.g. `IpAddressGenerationFailure`, `itemNotFound`.
    pub word: Option<Box<str>>,
    /// What to do about a refused login, or what is known of a refused token, as a sentence.
    pub(crate) remedy: Option<Box<str>>,
    /// What failed below.
    pub(crate) cause: Cause,
}

/// What failed.
#[derive(Debug, Clone)]
pub(crate) enum Cause {
    /// The call itself.
    Http(Box<HttpError>),
    /// The catalog has no such service. The text says for which interface and region it was looked for, and what to do.
    NoEndpoint(Box<str>),
    /// Keystone offers no version 3 of its API.
    NoIdentity,
    /// A list has more pages than can be.
    Endless(&'static str),
    /// A list changed whenever it was read.
    Changing(&'static str),
    /// A list names a next page that cannot be asked for.
    CutOff(&'static str),
}

impl ApiError {
    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        match &self.cause {
            Cause::Http(http) => http.status().map(|status| status.as_u16()),
            Cause::NoEndpoint(_)
            | Cause::NoIdentity
            | Cause::Endless(_)
            | Cause::Changing(_)
            | Cause::CutOff(_) => None,
        }
    }

    /// Whether a write may have had its effect: look before trying again.
    pub fn maybe_applied(&self) -> bool {
        matches!(&self.cause, Cause::Http(http) if http.maybe_applied() && !self.is_of_login())
    }

    /// Whether the answer took too long, here or at something on the way: a write may have its effect later.
    pub fn is_late(&self) -> bool {
        matches!(&self.cause, Cause::Http(http) if matches!(http.failure, Failure::Timeout { .. }))
            || self.status() == Some(504)
    }

    /// Whether the answer is longer than this client reads.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(&self.cause, Cause::Http(http) if matches!(http.failure, Failure::TooLarge { .. }))
    }

    /// Whether the load balancer, or a part of it, is being changed and takes no other change now.
    pub fn is_busy(&self) -> bool {
        self.status() == Some(409)
            && self
                .message
                .as_deref()
                .is_some_and(|message| message.contains("immutable") || message.starts_with("Invalid state"))
    }

    /// Whether it is a pool that takes no other change now: also one in provisioning status `ERROR` takes neither members nor a
    /// monitor, for as long as it is not written itself.
    pub fn is_of_pool(&self) -> bool {
        self.is_busy()
            && self
                .message
                .as_deref()
                .is_some_and(|message| message.starts_with("Pool "))
    }

    /// Whether a pool was not deleted because an L7 policy names it. A policy that sends nothing does that too, and shows nowhere at the
    /// pool.
    pub fn is_of_policy(&self) -> bool {
        let message = self.message.as_deref().unwrap_or_default();
        self.status() == Some(409) && message.contains("in use by L7 policy")
    }

    /// Whether Octavia passes on what the load balancer's provider could not do, such as to get an address from Neutron. It answers
    /// 500 to that, and has made no load balancer; it may have left a port that has the address.
    pub fn is_of_provider(&self) -> bool {
        let is_said = |message: &str| message.starts_with("Provider '") && message.contains("reports error");
        self.status() == Some(500) && self.message.as_deref().is_some_and(is_said)
    }

    /// Whether a floating IP was refused because the address of the port has one already.
    pub fn is_associated(&self) -> bool {
        self.word.as_deref() == Some("FloatingIPPortAlreadyAssociated")
    }

    /// Whether the object was changed since it was read.
    pub fn is_outdated(&self) -> bool {
        self.status() == Some(412)
    }

    /// Whether the catalog names no endpoint of the service, or none that can be used.
    pub fn is_missing_service(&self) -> bool {
        matches!(self.cause, Cause::NoEndpoint(_))
    }

    pub(crate) fn no_endpoint(service: &str, interface: Interface, region: &str, remedy: &str) -> Self {
        let region = match region {
            "" => "any region".to_owned(),
            region => format!("region {region:?}"),
        };
        let text = format!("{service}, interface {}, {region}: {remedy}", interface.as_str());
        Self::of(Class::Unavailable { after: None }, Cause::NoEndpoint(text.into()))
    }

    pub(crate) fn no_identity() -> Self {
        Self::of(Class::Unavailable { after: None }, Cause::NoIdentity)
    }

    pub(crate) fn endless(operation: &'static str) -> Self {
        Self::of(Class::Unusable, Cause::Endless(operation))
    }

    pub(crate) fn changing(operation: &'static str) -> Self {
        Self::of(Class::Unavailable { after: None }, Cause::Changing(operation))
    }

    pub(crate) fn cut_off(operation: &'static str) -> Self {
        Self::of(Class::Unusable, Cause::CutOff(operation))
    }

    fn of(class: Class, cause: Cause) -> Self {
        Self {
            class,
            message: None,
            word: None,
            remedy: None,
            cause,
        }
    }

    /// Whether it was the login that failed, so that the call itself was never made.
    pub fn is_of_login(&self) -> bool {
        matches!(&self.cause, Cause::Http(http) if http.call.operation == crate::operation::LOGIN)
    }
}

/// What a service said, whichever form it has.
struct Said {
    message: String,
    word: Option<String>,
}

impl Said {
    /// Reads an error body. Keystone: `{"error": {"message"}}`; Nova: `{"itemNotFound": {"message"}}`; Neutron:
    /// `{"NeutronError": {"type", "message"}}`; Octavia: `{"faultstring"}`; Barbican: `{"title", "description"}`.
    fn read(body: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Inner {
            message: String,
            #[serde(default, rename = "type")]
            word: Option<String>,
        }

        let map: Map<String, Value> = serde_json::from_slice(body).ok()?;
        for key in ["faultstring", "description"] {
            if let Some(text) = map.get(key).and_then(Value::as_str) {
                return Some(Self {
                    message: text.to_owned(),
                    word: None,
                });
            }
        }
        // One key, whose name is the kind of error.
        let (key, inner) = map.into_iter().find(|(_, value)| value.is_object())?;
        let inner: Inner = serde_json::from_value(inner).ok()?;
        Some(Self {
            message: inner.message,
            word: inner.word.or(Some(key)),
        })
    }
}

impl From<HttpError> for ApiError {
    fn from(http: HttpError) -> Self {
        let said = match &http.failure {
            Failure::Status(failure) => Said::read(&failure.body),
            _ => None,
        };
        let message: Option<Box<str>> = said.as_ref().map(|said| http.call.redact(&said.message).into());
        let word: Option<Box<str>> = said.and_then(|said| said.word).map(Into::into);
        let class = refine(&http, message.as_deref(), word.as_deref());
        Self {
            class,
            message,
            word,
            remedy: None,
            cause: Cause::Http(Box::new(http)),
        }
    }
}

/// What the services mean differently from what HTTP says.
fn refine(http: &HttpError, message: Option<&str>, word: Option<&str>) -> Class {
    let class = http.class();
    let status = http.status().map(|status| status.as_u16());
    // Neutron 409 `OverQuota`; Octavia 403 `Quota has been met for resources: ...`; Nova 403 and 413. What Neutron says to a driver of
    // load balancers may come as a 500.
    let is_quota = word == Some("OverQuota") || message.is_some_and(speaks_of_limit);
    // Octavia passes on Neutron's words without the type.
    let is_without_address = matches!(word, Some("IpAddressGenerationFailure" | "NoMoreIpAddresses"))
        || message.is_some_and(speaks_of_no_address);
    match (class, status) {
        // A page of HTML comes from something in between, or from a wrong endpoint, and proves nothing.
        (Class::NotFound, _) if message.is_none() => Class::Invalid,
        (_, Some(400 | 403 | 409 | 413 | 500)) if is_quota => Class::Exhausted,
        (_, Some(409 | 500)) if is_without_address => Class::Exhausted,
        // Octavia's word for an option that the load balancer's provider does not know.
        (_, Some(501)) => Class::Invalid,
        // What was read before is not so any more (`If-Match`).
        (_, Some(412)) => Class::Conflict,
        _ => class,
    }
}

impl Classified for ApiError {
    fn class(&self) -> Class {
        self.class
    }

    fn maybe_applied(&self) -> bool {
        self.maybe_applied()
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tell(f)?;
        match &self.remedy {
            Some(remedy) => write!(f, ". {remedy}"),
            None => Ok(()),
        }
    }
}

impl ApiError {
    fn tell(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let http = match &self.cause {
            Cause::Http(http) => http,
            Cause::NoEndpoint(service) => {
                return write!(
                    f,
                    "No suitable endpoint could be found in the service catalog for {service}"
                );
            }
            Cause::NoIdentity => {
                return f.write_str("Keystone offers no version 3 of its API at `auth-url`");
            }
            Cause::Endless(operation) => {
                return write!(f, "{operation}: the list has no end");
            }
            Cause::Changing(operation) => {
                return write!(
                    f,
                    "{operation}: the list is not whole: each time it was read, a page began anew or after an object that was gone by then"
                );
            }
            Cause::CutOff(operation) => {
                return write!(
                    f,
                    "{operation}: the list is not whole: its next page has no usable URL"
                );
            }
        };
        match (&http.failure, &self.message) {
            (Failure::Status(failure), Some(message)) => {
                let call = &http.call;
                let message = match self.remedy {
                    Some(_) => message.trim_end_matches('.'),
                    None => message,
                };
                write!(
                    f,
                    "{}: {} {}: {}: {message}",
                    call.operation, call.method, call.path, failure.status
                )
            }
            _ => write!(f, "{http}"),
        }
    }
}

impl StdError for ApiError {}
