//! Keystone: `/v3/auth/tokens`

use bowline_cloud_kit::service::json;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json as value};

use super::{Answer, Call};
use crate::error::ApiError;
use crate::model::identity::{ApplicationCredential, Scope, Token, User};
use crate::state::{Identity, Named, NamedDomain, Refused, token};

/// Where a token is answered.
const SUBJECT: &str = "x-subject-token";

impl From<Refused> for ApiError {
    fn from(_: Refused) -> Self {
        Self::unauthorized()
    }
}

impl Call<'_> {
    pub(super) fn identity(&mut self, rest: &[&str]) -> Answer {
        match (self.method(), rest) {
            ("POST", ["auth", "tokens"]) => self.log_in(),
            ("GET", ["auth", "tokens"]) => {
                let known = |name| self.header(name).and_then(|it| self.state.identity.token(it));
                known("x-auth-token").ok_or_else(ApiError::unauthorized)?;
                let subject = known(SUBJECT);
                let subject = subject
                    .ok_or_else(|| ApiError::keystone(StatusCode::NOT_FOUND, "Could not find token."))?;
                let body = value!({ "token": self.wire().token(subject) });
                Ok(with_token(json(StatusCode::OK, &body), self.header(SUBJECT)))
            }
            _ => self.no_such_path(),
        }
    }

    fn log_in(&mut self) -> Answer {
        let body: Value = serde_json::from_slice(self.request.body()).unwrap_or(Value::Null);
        let auth = &body["auth"];
        let token = self.new_token(auth)?;
        let seed = self.state.seed.clone();
        let text = self.state.identity.issue(&seed, token.clone());
        let body = value!({ "token": self.wire().token(&token) });
        Ok(with_token(json(StatusCode::CREATED, &body), Some(&text)))
    }

    fn new_token(&self, auth: &Value) -> Result<Token, ApiError> {
        let identity = &self.state.identity;
        let how = &auth["identity"];
        let methods = how["methods"].as_array().map(Vec::as_slice).unwrap_or_default();
        let [method] = methods else {
            return Err(bad("Expecting to find exactly one method in identity"));
        };
        let new = |method, user: &User, scope| {
            let life = self.state.behaviour.token_life;
            token(&self.state.clock, life, vec![method], user, scope)
        };
        match method.as_str() {
            Some("password") => {
                let part = &how["password"]["user"];
                let user = identity.user(&named(part)?)?;
                if part["password"].as_str() != Some(&user.password) {
                    return Err(ApiError::unauthorized());
                }
                self.scoped(auth, user, |scope| new("password", user, scope))
            }
            Some("application_credential") => {
                if !auth["scope"].is_null() {
                    let text = "Application credentials cannot request a scope.";
                    return Err(ApiError::keystone(StatusCode::UNAUTHORIZED, text));
                }
                let credential = credential(identity, &how["application_credential"])?;
                let user = identity.users.get(&credential.user).ok_or(Refused)?;
                let scope = Scope::Project(credential.project.clone());
                Ok(new("application_credential", user, scope))
            }
            Some("token") => {
                let old = how["token"]["id"].as_str().and_then(|it| identity.token(it));
                let old = old.ok_or(Refused)?;
                let user = identity.users.get(&old.user).ok_or(Refused)?;
                // A token got by a token lives no longer than that.
                self.scoped(auth, user, |scope| Token {
                    expires_at: old.expires_at.clone(),
                    ends: old.ends,
                    ..new("token", user, scope)
                })
            }
            _ => Err(ApiError::unauthorized()),
        }
    }

    /// The token for what the body asks for, if the user may have it.
    fn scoped(&self, auth: &Value, user: &User, new: impl Fn(Scope) -> Token) -> Result<Token, ApiError> {
        let identity = &self.state.identity;
        let scope = &auth["scope"];
        if let Some(id) = scope["OS-TRUST:trust"]["id"].as_str() {
            let trust = identity.trusts.get(id).ok_or(Refused)?;
            if trust.trustee != user.id {
                let text = "You are not authorized to perform the requested action.";
                return Err(ApiError::keystone(StatusCode::FORBIDDEN, text));
            }
            let acting = if trust.impersonation {
                &trust.trustor
            } else {
                &user.id
            };
            return Ok(Token {
                user: acting.clone(),
                trust: Some(trust.id.clone()),
                is_admin: false,
                ..new(Scope::Project(trust.project.clone()))
            });
        }
        let scope = match (&scope["project"], &scope["domain"]) {
            (Value::Object(_), _) => {
                let project = identity.project(&named(&scope["project"])?)?;
                if !user.is_admin && !user.projects.contains(&project.id) {
                    return Err(ApiError::unauthorized());
                }
                Scope::Project(project.id.clone())
            }
            (_, Value::Object(_)) if !user.is_admin => return Err(ApiError::unauthorized()),
            (_, Value::Object(_)) => Scope::Domain(Identity::domain(&domain(&scope["domain"])?)?),
            _ => Scope::Unscoped,
        };
        Ok(new(scope))
    }
}

fn credential<'a>(identity: &'a Identity, part: &Value) -> Result<&'a ApplicationCredential, ApiError> {
    let found = match part["id"].as_str() {
        // Keystone says this to anybody (`AppCredInfo` in its `auth/plugins/core.py`).
        Some(id) => Some(identity.credentials.get(id).ok_or_else(|| {
            let text = format!("Could not find Application Credential: {id}.");
            ApiError::keystone(StatusCode::NOT_FOUND, text)
        })?),
        None => {
            let user = identity.user(&named(&part["user"])?)?;
            let mut all = identity.credentials.values();
            all.find(|it| it.user == user.id && part["name"].as_str() == Some(&it.name))
        }
    };
    let found = found.filter(|it| part["secret"].as_str() == Some(&it.secret));
    found.ok_or_else(ApiError::unauthorized)
}

/// Somebody or something by id, or by name within a domain: both at once, or neither, is a bad request.
fn named(part: &Value) -> Result<Named, ApiError> {
    match (part["id"].as_str(), part["name"].as_str()) {
        (Some(id), None) => Ok(Named::ById(id.to_owned())),
        (None, Some(name)) => Ok(Named::ByName {
            name: name.to_owned(),
            domain: domain(&part["domain"])?,
        }),
        _ => Err(bad(
            "Expecting to find either id or name, and a domain with a name",
        )),
    }
}

fn domain(part: &Value) -> Result<NamedDomain, ApiError> {
    match (part["id"].as_str(), part["name"].as_str()) {
        (Some(id), _) => Ok(NamedDomain::ById(id.to_owned())),
        (None, Some(name)) => Ok(NamedDomain::ByName(name.to_owned())),
        _ => Err(bad("Expecting to find domain")),
    }
}

fn bad(text: &str) -> ApiError {
    ApiError::keystone(StatusCode::BAD_REQUEST, text)
}

fn with_token(mut reply: bowline_cloud_kit::Reply, token: Option<&str>) -> bowline_cloud_kit::Reply {
    if let Some(token) = token.and_then(|it| HeaderValue::from_str(it).ok()) {
        reply.headers_mut().insert(SUBJECT, token);
    }
    reply
}
