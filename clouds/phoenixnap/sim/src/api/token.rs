//! The token endpoint: OAuth2 client credentials (RFC 6749, section 4.4).

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bowline_cloud_kit::Reply;
use bowline_cloud_kit::service::json;
use bytes::Bytes;
use http::{Request, StatusCode, header};
use serde_json::json as value;
use tokio::time::Instant;
use url::form_urlencoded;

use crate::behaviour::{CredentialForm, ExpiresIn};
use crate::options::Scope;
use crate::state::{Grant, State, TokenRequest};

/// The most token requests that are remembered, so that a program can run for ever.
const REMEMBERED: usize = 1_000;

/// A refusal: a status, a word of RFC 6749, and a sentence.
type Refusal = (StatusCode, &'static str, String);

pub(super) fn answer(state: &mut State, request: &Request<Bytes>) -> Reply {
    let form = form(request);
    let (client_id, secret) = credentials(state.behaviour.credentials_in, request, &form);
    let granted = grant(state, &form, &client_id, &secret);
    if state.token_requests.len() == REMEMBERED {
        state.token_requests.remove(0);
    }
    state.token_requests.push(TokenRequest {
        client_id,
        at: state.clock.elapsed(),
        in_header: request.headers().contains_key(header::AUTHORIZATION),
        is_granted: granted.is_ok(),
    });
    match granted {
        Ok(scopes) => issue(state, scopes),
        Err((status, word, text)) => json(status, &value!({ "error": word, "error_description": text })),
    }
}

fn form(request: &Request<Bytes>) -> Vec<(String, String)> {
    let content_type = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|it| it.to_str().ok());
    let is_form = content_type.is_some_and(|it| it.starts_with("application/x-www-form-urlencoded"));
    if is_form {
        form_urlencoded::parse(request.body()).into_owned().collect()
    } else {
        Vec::new()
    }
}

fn field<'f>(form: &'f [(String, String)], name: &str) -> &'f str {
    let found = form.iter().find(|(key, _)| key == name);
    found.map_or("", |(_, value)| value)
}

/// The client's id and secret; empty where there is none.
fn credentials(
    wanted: CredentialForm,
    request: &Request<Bytes>,
    form: &[(String, String)],
) -> (String, String) {
    let header = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|it| it.to_str().ok());
    if let Some(header) = header.filter(|_| wanted != CredentialForm::Body) {
        return basic(header).unwrap_or_default();
    }
    if wanted == CredentialForm::Header {
        return Default::default();
    }
    (
        field(form, "client_id").to_owned(),
        field(form, "client_secret").to_owned(),
    )
}

/// Both halves are form-encoded before they are joined (RFC 6749, section 2.3.1).
fn basic(header: &str) -> Option<(String, String)> {
    let bytes = BASE64_STANDARD.decode(header.strip_prefix("Basic ")?).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let (id, secret) = text.split_once(':')?;
    Some((decode(id)?, decode(secret)?))
}

/// Decodes one form-encoded word.
fn decode(text: &str) -> Option<String> {
    let text = text.replace('+', " ");
    let decoded = percent_encoding::percent_decode_str(&text).decode_utf8().ok()?;
    Some(decoded.into_owned())
}

fn grant(
    state: &State,
    form: &[(String, String)],
    client_id: &str,
    secret: &str,
) -> Result<BTreeSet<Scope>, Refusal> {
    let bad = |word, text: String| Err((StatusCode::BAD_REQUEST, word, text));
    match field(form, "grant_type") {
        "" => return bad("invalid_request", "Missing form parameter: grant_type".to_owned()),
        "client_credentials" => {}
        other => {
            return bad(
                "unsupported_grant_type",
                format!("Unsupported grant_type {other:?}"),
            );
        }
    }
    let Some(owned) = state.options.credentials.scopes(client_id, secret) else {
        let text = "Invalid client or Invalid client credentials".to_owned();
        return Err((StatusCode::UNAUTHORIZED, "invalid_client", text));
    };
    let mut scopes = BTreeSet::new();
    let asked = field(form, "scope");
    for name in asked.split_whitespace() {
        match Scope::named(name).filter(|scope| owned.contains(scope)) {
            Some(scope) => {
                scopes.insert(scope);
            }
            None if state.behaviour.drops_missing_scopes => {}
            None => return bad("invalid_scope", format!("Invalid scopes: {asked}")),
        }
    }
    Ok(scopes)
}

fn issue(state: &mut State, scopes: BTreeSet<Scope>) -> Reply {
    let token = format!("{}.{}", state.id(), state.id());
    let seconds = state.behaviour.token_lifetime.as_secs();
    let names: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
    let mut body = value!({
        "access_token": token,
        "refresh_expires_in": 0,
        "token_type": "Bearer",
        "not-before-policy": 0,
        "scope": names.join(" "),
    });
    match state.behaviour.expires_in {
        ExpiresIn::Number => body["expires_in"] = seconds.into(),
        ExpiresIn::Text => body["expires_in"] = seconds.to_string().into(),
        ExpiresIn::Zero => body["expires_in"] = 0.into(),
        ExpiresIn::Missing => {}
    }
    let now = Instant::now();
    state.tokens.retain(|_, grant| grant.until > now);
    let until = now + state.behaviour.token_lifetime;
    state.tokens.insert(token, Grant { scopes, until });
    json(StatusCode::OK, &body)
}
