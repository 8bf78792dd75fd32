//! Calls to the services as tests make them: one request, one answer, nothing interpreted and nothing repeated.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::service::Service;

/// For one call. Octavia's first creation takes seconds on a machine with two cores.
const CALL: Duration = Duration::from_secs(120);

/// The header with the token that a login gives.
const SUBJECT_TOKEN: &str = "x-subject-token";

/// Why a call has no answer, or not the expected one.
#[derive(Debug, thiserror::Error)]
pub enum RestError {
    /// The request could not be made.
    #[error("{method} {url} is no request")]
    Request {
        /// The method.
        method: Method,
        /// The URL.
        url: String,
        /// What is wrong.
        source: http::Error,
    },
    /// No connection, or it broke.
    #[error("no answer to {method} {url}")]
    NoAnswer {
        /// The method.
        method: Method,
        /// The URL.
        url: String,
        /// What is wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The service did not answer in time.
    #[error("no answer to {method} {url} within {} s", CALL.as_secs())]
    Late {
        /// The method.
        method: Method,
        /// The URL.
        url: String,
    },
    /// The service refused.
    #[error("{request} was answered with {status}: {body}")]
    Refused {
        /// Method and URL.
        request: String,
        /// The status.
        status: StatusCode,
        /// What it said.
        body: Value,
    },
    /// The answer lacks something.
    #[error("the answer to {request} has no {what}")]
    Lacks {
        /// Method and URL.
        request: String,
        /// What.
        what: String,
    },
    /// The catalog has no such service.
    #[error("the catalog has no {0}")]
    NoService(&'static str),
}

/// An answer, whatever its status.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Method and URL of the request.
    pub request: String,
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body; null if there is none, a string if it is no JSON.
    pub body: Value,
}

impl Answer {
    /// The answer, if its status says success.
    ///
    /// # Errors
    ///
    /// When the service refused.
    pub fn ok(self) -> Result<Self, RestError> {
        if self.status.is_success() {
            return Ok(self);
        }
        Err(RestError::Refused {
            request: self.request,
            status: self.status,
            body: self.body,
        })
    }

    /// A text in the body of a successful answer, by its JSON pointer.
    ///
    /// # Errors
    ///
    /// When the service refused, or there is no such text.
    pub fn text(self, pointer: &str) -> Result<String, RestError> {
        let answer = self.ok()?;
        match answer.body.pointer(pointer).and_then(Value::as_str) {
            Some(text) => Ok(text.to_owned()),
            None => Err(RestError::Lacks {
                request: answer.request,
                what: pointer.to_owned(),
            }),
        }
    }

    /// The id of the one object in a successful answer.
    ///
    /// # Errors
    ///
    /// As [`Self::text`].
    pub fn id(self, kind: &str) -> Result<String, RestError> {
        self.text(&format!("/{kind}/id"))
    }
}

/// How somebody logs in: the `auth` of Keystone's `POST /v3/auth/tokens`.
#[derive(Clone)]
pub struct Login(Value);

/// Nothing of it: it holds a secret.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}

impl Login {
    /// As Keystone's API reference has it: `identity` and `scope`.
    pub fn of(auth: Value) -> Self {
        Self(auth)
    }

    /// By name and password of the default domain, for a project of it.
    pub fn password(user: &str, password: &str, project: &str) -> Self {
        let domain = json!({ "id": "default" });
        let user = json!({ "name": user, "password": password, "domain": domain });
        Self(json!({
            "identity": { "methods": ["password"], "password": { "user": user } },
            "scope": { "project": { "name": project, "domain": domain } },
        }))
    }

    /// By application credential, which brings its project.
    pub fn application_credential(id: &str, secret: &str) -> Self {
        Self(json!({
            "identity": {
                "methods": ["application_credential"],
                "application_credential": { "id": id, "secret": secret },
            },
        }))
    }

    /// By password, with the rights that a trust gives.
    pub fn trust(user_id: &str, password: &str, trust_id: &str) -> Self {
        let user = json!({ "id": user_id, "password": password });
        Self(json!({
            "identity": { "methods": ["password"], "password": { "user": user } },
            "scope": { "OS-TRUST:trust": { "id": trust_id } },
        }))
    }
}

/// Somebody who is logged in, and the catalog that Keystone gave.
#[derive(Clone)]
pub struct Session {
    http: Client<HttpConnector, Full<Bytes>>,
    token: String,
    catalog: BTreeMap<String, String>,
    /// Who this is.
    pub user_id: String,
    /// In which project.
    pub project_id: String,
}

/// Without the token.
impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("user_id", &self.user_id)
            .field("project_id", &self.project_id)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Logs in at a Keystone, whose URL ends with its version.
    ///
    /// # Errors
    ///
    /// When there is no Keystone or it does not let in.
    pub async fn open(keystone: &str, login: &Login) -> Result<Self, RestError> {
        let answer = log_in(keystone, login).await?.ok()?;
        let token = answer.headers.get(SUBJECT_TOKEN);
        let token = token
            .and_then(|value| value.to_str().ok())
            .ok_or_else(|| RestError::Lacks {
                request: answer.request.clone(),
                what: SUBJECT_TOKEN.to_owned(),
            })?
            .to_owned();
        Ok(Self {
            http: client(),
            token,
            catalog: catalog(&answer.body),
            user_id: answer.clone().text("/token/user/id")?,
            project_id: answer.text("/token/project/id")?,
        })
    }

    /// The same catalog with another token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self {
            token: token.to_owned(),
            ..self.clone()
        }
    }

    /// Makes one call. The path follows the service's URL in the catalog.
    ///
    /// # Errors
    ///
    /// When there is no answer. A refusal is an answer.
    pub async fn call(
        &self,
        service: Service,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Answer, RestError> {
        let body = body.as_ref().map_or(Body::None, Body::Json);
        self.send(service, method, path, &[], body).await
    }

    /// The same with more headers, lower case.
    ///
    /// # Errors
    ///
    /// As [`Self::call`].
    pub async fn call_with_headers(
        &self,
        service: Service,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Option<Value>,
    ) -> Result<Answer, RestError> {
        let body = body.as_ref().map_or(Body::None, Body::Json);
        self.send(service, method, path, headers, body).await
    }

    /// Uploads bytes as they are.
    pub(crate) async fn upload(
        &self,
        service: Service,
        path: &str,
        bytes: &'static [u8],
    ) -> Result<Answer, RestError> {
        let body = Body::Bytes(bytes);
        self.send(service, Method::PUT, path, &[], body).await
    }

    async fn send(
        &self,
        service: Service,
        method: Method,
        path: &str,
        headers: &[(&'static str, &str)],
        body: Body<'_>,
    ) -> Result<Answer, RestError> {
        let kind = service.catalog_type();
        let base = self.catalog.get(kind).ok_or(RestError::NoService(kind))?;
        let url = format!("{base}{path}");
        let token = ("x-auth-token", self.token.as_str());
        let headers: Vec<(&str, &str)> = [token].into_iter().chain(headers.iter().copied()).collect();
        exchange(&self.http, method, &url, &headers, body).await
    }

    /// Gives a user a role, by its name, in a project. For administrators.
    pub(crate) async fn grant(&self, project: &str, user: &str, role: &str) -> Result<(), RestError> {
        let found = self
            .call(
                Service::Identity,
                Method::GET,
                &format!("/roles?name={role}"),
                None,
            )
            .await?
            .text("/roles/0/id")?;
        let path = format!("/projects/{project}/users/{user}/roles/{found}");
        self.call(Service::Identity, Method::PUT, &path, None)
            .await?
            .ok()?;
        Ok(())
    }
}

/// Tries to log in. A refusal is an answer.
///
/// # Errors
///
/// When there is no answer.
pub async fn log_in(keystone: &str, login: &Login) -> Result<Answer, RestError> {
    let url = format!("{keystone}/auth/tokens");
    let body = json!({ "auth": login.0 });
    exchange(&client(), Method::POST, &url, &[], Body::Json(&body)).await
}

fn client() -> Client<HttpConnector, Full<Bytes>> {
    Client::builder(TokioExecutor::new()).build_http()
}

/// What a request carries.
enum Body<'a> {
    None,
    Json(&'a Value),
    Bytes(&'static [u8]),
}

async fn exchange(
    http: &Client<HttpConnector, Full<Bytes>>,
    method: Method,
    url: &str,
    headers: &[(&str, &str)],
    body: Body<'_>,
) -> Result<Answer, RestError> {
    let mut request = Request::builder()
        .method(method.clone())
        .uri(url)
        .header(ACCEPT, "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (kind, bytes) = match body {
        Body::None => (None, Bytes::new()),
        Body::Json(value) => (Some("application/json"), Bytes::from(value.to_string())),
        Body::Bytes(bytes) => (Some("application/octet-stream"), Bytes::from_static(bytes)),
    };
    if let Some(kind) = kind {
        request = request.header(CONTENT_TYPE, kind);
    }
    let request = request
        .body(Full::new(bytes))
        .map_err(|source| RestError::Request {
            method: method.clone(),
            url: url.to_owned(),
            source,
        })?;
    let no_answer = |source| RestError::NoAnswer {
        method: method.clone(),
        url: url.to_owned(),
        source,
    };
    let exchange = async {
        let response = http
            .request(request)
            .await
            .map_err(|error| no_answer(error.into()))?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(|error| no_answer(error.into()))?;
        Ok((parts, bytes.to_bytes()))
    };
    let (parts, bytes) = tokio::time::timeout(CALL, exchange)
        .await
        .map_err(|_| RestError::Late {
            method: method.clone(),
            url: url.to_owned(),
        })??;
    let text = || Value::String(String::from_utf8_lossy(&bytes).into_owned());
    Ok(Answer {
        request: format!("{method} {url}"),
        status: parts.status,
        headers: parts.headers,
        body: if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes).unwrap_or_else(|_| text())
        },
    })
}

/// The public URL of each service in a token.
fn catalog(token: &Value) -> BTreeMap<String, String> {
    let services = token.pointer("/token/catalog").and_then(Value::as_array);
    let public = |service: &Value| {
        let endpoints = service.get("endpoints")?.as_array()?;
        let endpoint = endpoints
            .iter()
            .find(|endpoint| endpoint["interface"] == "public")?;
        let url = endpoint["url"].as_str()?.trim_end_matches('/');
        Some((service["type"].as_str()?.to_owned(), url.to_owned()))
    };
    services.into_iter().flatten().filter_map(public).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_urls_of_the_catalog_are_taken() {
        let endpoint = |interface: &str, url: &str| json!({ "interface": interface, "url": url });
        let token = json!({ "token": { "catalog": [
            { "type": "network", "endpoints": [endpoint("admin", "http://a"), endpoint("public", "http://p/")] },
            { "type": "image", "endpoints": [endpoint("internal", "http://i")] },
        ] } });
        let catalog = catalog(&token);
        assert_eq!(catalog.get("network").map(String::as_str), Some("http://p"));
        assert_eq!(catalog.len(), 1);
    }

    #[test]
    fn a_login_does_not_show_its_secret() {
        let login = Login::password("somebody", "open-sesame", "project");
        assert!(!format!("{login:?}").contains("sesame"));
    }

    #[test]
    fn a_refusal_says_what_was_asked_and_answered() {
        let answer = Answer {
            request: "GET http://a/b".to_owned(),
            status: StatusCode::CONFLICT,
            headers: HeaderMap::new(),
            body: json!({ "faultstring": "immutable" }),
        };
        let text = answer.ok().unwrap_err().to_string();
        assert!(
            text.contains("GET http://a/b") && text.contains("immutable"),
            "{text}"
        );
    }
}
