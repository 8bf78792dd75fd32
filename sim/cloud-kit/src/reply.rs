//! What a simulated cloud answers.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;

/// The answer of a simulated cloud: all of it at once.
pub type Reply = Response<Bytes>;

/// A JSON answer.
pub fn json(status: StatusCode, value: &Value) -> Reply {
    let mut reply = Response::new(Bytes::from(value.to_string()));
    *reply.status_mut() = status;
    reply
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    reply
}

/// An answer without a body.
pub fn no_content() -> Reply {
    let mut reply = Response::new(Bytes::new());
    *reply.status_mut() = StatusCode::NO_CONTENT;
    reply
}
