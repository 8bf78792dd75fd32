//! What a fault does.

use super::{Bytes, Deserialize, Duration, HeaderValue, Response, Serialize, StatusCode, header, millis};

/// What happens to a request that a rule strikes.
///
/// *Before* means that the request is not carried out, *after* that it is and only the answer suffers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Action {
    /// This answer instead of the effect.
    Answer(Canned),
    /// The effect, then this answer instead of the true one.
    AnswerAfter(Canned),
    /// The effect, then only the first bytes of the body as if they were all of it.
    Truncate {
        /// How many bytes are left.
        bytes: usize,
    },
    /// The effect, then the connection breaks within the body.
    BreakBody {
        /// How many bytes come through.
        bytes: usize,
    },
    /// The effect comes later.
    Delay {
        /// By how much, in milliseconds.
        #[serde(with = "millis")]
        delay_ms: Duration,
    },
    /// The connection is dropped instead of the effect.
    DropBefore,
    /// The effect, then the connection is dropped.
    DropAfter,
    /// The connection is dropped at once, and the effect comes later: the server goes on with what it had begun.
    DropThen {
        /// By how much, in milliseconds.
        #[serde(with = "millis")]
        delay_ms: Duration,
    },
    /// Neither effect nor answer, for ever.
    HangBefore,
    /// The effect, then no answer, for ever.
    HangAfter,
}

/// An answer made up in advance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Canned {
    /// HTTP status; an impossible one becomes 500.
    pub status: u16,
    /// Headers in order; those that are not valid are left out.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// The body as text.
    #[serde(default)]
    pub body: String,
}

impl Canned {
    /// No body.
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    /// A JSON body, sent as it is written.
    pub fn json(status: u16, body: &str) -> Self {
        Self {
            body: body.to_owned(),
            ..Self::empty(status)
        }
        .header("content-type", "application/json")
    }

    /// An HTML body.
    pub fn html(status: u16, body: &str) -> Self {
        Self {
            body: body.to_owned(),
            ..Self::empty(status)
        }
        .header("content-type", "text/html")
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(self.body.clone()));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        for (name, value) in &self.headers {
            if let (Ok(name), Ok(value)) = (
                header::HeaderName::from_bytes(name.as_bytes()),
                HeaderValue::from_str(value),
            ) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}
