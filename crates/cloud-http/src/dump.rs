//! Whole exchanges in the log, for people who look for what goes wrong between a cloud and us.
//!
//! Off unless asked for: bodies say a lot. What may never be shown is cut out all the same: headers are left out, bodies of
//! confidential calls too, and in the others the secrets that the call knows of and whatever is called a secret in JSON.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use crate::error::{Call, Failure};
use crate::request::{Body, Request};
use crate::response::Response;

/// What is shown in place of something that is not.
const HIDDEN: &str = "***";

/// The longest body that is shown, in characters. A list of a hundred servers is longer.
const LONGEST: usize = 16 << 10;

/// Keys in JSON whose values are nobody's business.
const SECRET_KEYS: &[&str] = &["password", "secret", "token"];

/// Writes one line for an exchange.
pub(crate) fn log(request: &Request, call: &Call, outcome: &Result<Response, Failure>, took: Duration) {
    let (status, answer, error) = match outcome {
        Ok(response) => (Some(response.status), body(call, &response.body), None),
        Err(Failure::Status(failure)) => (Some(failure.status), body(call, &failure.body), None),
        Err(failure) => (None, String::new(), Some(failure.to_string())),
    };
    let sent = match &request.body {
        Body::Empty => String::new(),
        Body::Json(bytes) | Body::Form(bytes) => body(call, bytes),
    };
    let mut url = request.url.clone();
    // Both fail only for a URL without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    tracing::info!(
        method = %request.method,
        url = %call.redact(url.as_str()),
        status = status.as_ref().map(StatusCode::as_u16),
        seconds = took.as_secs_f64(),
        authorization = request.headers.contains_key(http::header::AUTHORIZATION).then_some(HIDDEN),
        sent,
        answer,
        err = error,
        "HTTP exchange"
    );
}

/// A body as it may be shown.
fn body(call: &Call, bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return String::new();
    }
    if call.confidential {
        return HIDDEN.to_owned();
    }
    let text = match serde_json::from_slice::<Value>(bytes) {
        Ok(mut document) => {
            hide(&mut document);
            document.to_string()
        }
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    };
    let text = call.redact(&text);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], bytes.len()),
        None => text,
    }
}

/// Takes out the values of keys that name secrets.
fn hide(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.to_ascii_lowercase();
                if SECRET_KEYS.iter().any(|secret| key.contains(secret)) && !value.is_null() {
                    *value = HIDDEN.into();
                } else {
                    hide(value);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::Secret;

    fn call(is_confidential: bool) -> Call {
        let url = "https://cloud.test/v1/servers".parse().unwrap();
        let request = Request::read(Method::GET, "servers.list", url).bearer(&Secret::new("tok-1"));
        if is_confidential {
            request.confidential_answer().call()
        } else {
            request.call()
        }
    }

    #[test]
    fn what_is_called_a_secret_or_is_one_is_cut_out() {
        let text = br#"[{"id":"tok-1","rootPassword":"x","osConfiguration":{"clientSecret":"y","name":"n"},"password":null}]"#;
        assert_eq!(
            body(&call(false), text),
            r#"[{"id":"***","osConfiguration":{"clientSecret":"***","name":"n"},"password":null,"rootPassword":"***"}]"#
        );
        assert_eq!(body(&call(false), b"no JSON, tok-1"), "no JSON, ***");
        assert_eq!(body(&call(true), text), "***");
        assert_eq!(body(&call(true), b""), "");
    }

    #[test]
    fn a_long_body_is_cut() {
        let shown = body(&call(false), "ä".repeat(LONGEST + 1).as_bytes());
        assert!(
            shown.ends_with(&format!("ä... ({} bytes)", 2 * LONGEST + 2)),
            "{}",
            shown.len()
        );
    }
}
