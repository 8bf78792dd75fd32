//! Reviews of tokens and access, and tokens for service accounts.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::RngExt;
use serde_json::{Value, json};

use super::Answer;
use crate::access::{Attributes, User};
use crate::clock::seconds;
use crate::core::Core;
use crate::kind::Kind;
use crate::path::{at, number, set, text, texts};
use crate::request::Request;
use crate::status::Status;

/// Lifetime of a token when the client names none (`SetDefaults_TokenRequestSpec`).
const TOKEN_SECONDS: i64 = 3600;

/// Answers a request for one of these kinds; `None` if it is for another.
pub(super) fn answer(core: &Core, request: &Request) -> Option<Result<Answer, Status>> {
    let target = &request.target;
    let asked = (
        target.group.as_str(),
        target.resource.as_str(),
        target.subresource.as_str(),
    );
    let handler = match asked {
        ("authentication.k8s.io", "tokenreviews", "") => token_review,
        ("authorization.k8s.io", "subjectaccessreviews", "") => access_review,
        ("authorization.k8s.io", "selfsubjectaccessreviews", "") => access_review,
        ("", "serviceaccounts", "token") => token_request,
        _ => return None,
    };
    if target.verb != "create" {
        return Some(Err(Status::method_not_allowed()));
    }
    Some(
        request
            .object()
            .and_then(|body| handler(core, request, body))
            .map(|value| Answer::Object(201, value)),
    )
}

fn token_review(core: &Core, _request: &Request, mut review: Value) -> Result<Value, Status> {
    let token = text(&review, "spec.token");
    if token.is_empty() {
        return Err(Status::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let status = match core.access.user_of(token, core.now()) {
        Some(user) => {
            let mut status = json!({"authenticated": true, "user": described(&user)});
            if let Some(audiences) = at(&review, "spec.audiences") {
                status["audiences"] = audiences.clone();
            }
            status
        }
        None => json!({"user": {}, "error": "invalid bearer token"}),
    };
    finish(&mut review, "authentication.k8s.io/v1", "TokenReview", status);
    Ok(review)
}

fn access_review(core: &Core, request: &Request, mut review: Value) -> Result<Value, Status> {
    let own = request.target.resource.starts_with("self");
    let user = if own {
        request.user.clone()
    } else {
        User {
            name: text(&review, "spec.user").to_owned(),
            uid: text(&review, "spec.uid").to_owned(),
            groups: texts(&review, "spec.groups")
                .into_iter()
                .map(str::to_owned)
                .collect(),
        }
    };
    let field = |name: &str| text(&review, &format!("spec.resourceAttributes.{name}")).to_owned();
    let asked = match (
        at(&review, "spec.resourceAttributes"),
        at(&review, "spec.nonResourceAttributes"),
    ) {
        (Some(_), None) => Attributes {
            verb: field("verb"),
            group: field("group"),
            resource: field("resource"),
            subresource: field("subresource"),
            namespace: field("namespace"),
            name: field("name"),
            path: String::new(),
        },
        (None, Some(path)) => Attributes {
            verb: text(path, "verb").to_owned(),
            path: text(path, "path").to_owned(),
            ..Attributes::default()
        },
        _ => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            let field = if core.minor >= 37 {
                "spec"
            } else {
                "spec.resourceAttributes"
            };
            let error = crate::field::FieldError::invalid(field, Value::Null, detail);
            return Err(Status::invalid(
                "authorization.k8s.io",
                "SubjectAccessReview",
                "",
                &[error],
            ));
        }
    };
    let mut status = json!({"allowed": core.access.allows(&user, &asked)});
    if let (Value::Bool(false), Err(denial)) = (&status["allowed"], core.access.authorize(&user, &asked)) {
        status["reason"] = denial.message.into();
    }
    let kind = if own {
        "SelfSubjectAccessReview"
    } else {
        "SubjectAccessReview"
    };
    finish(&mut review, "authorization.k8s.io/v1", kind, status);
    Ok(review)
}

fn token_request(core: &Core, request: &Request, mut body: Value) -> Result<Value, Status> {
    let kind = Kind::named("ServiceAccount").ok_or_else(Status::no_such_path)?;
    let (namespace, name) = (&request.target.namespace, &request.target.name);
    let (uid, mark) = {
        let mut state = core.lock();
        let account = state
            .store
            .get(kind, namespace, name)
            .cloned()
            .ok_or_else(|| Status::not_found(kind, name))?;
        (
            text(&account, "metadata.uid").to_owned(),
            state.random.random::<u64>(),
        )
    };
    let lifetime = match number(&body, "spec.expirationSeconds") {
        0 => TOKEN_SECONDS,
        asked => asked,
    };
    let now = core.now();
    let expires = now + Duration::from_secs(lifetime.unsigned_abs());
    let user = User::service_account(namespace, name, &uid);
    let claims = json!({
        "sub": user.name,
        "aud": texts(&body, "spec.audiences"),
        "iat": now.as_second(),
        "exp": expires.as_second(),
        "jti": format!("{mark:016x}"),
    });
    // Shaped like a JSON web token, but signed by nobody: only this server knows it.
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let token = format!(
        "{}.{}.{mark:016x}",
        part(&json!({"alg": "none", "typ": "JWT"})),
        part(&claims)
    );
    core.access.add_expiring_token(&token, user, expires);
    set(&mut body, "spec.expirationSeconds", lifetime);
    set(&mut body, "metadata.name", name.as_str());
    set(&mut body, "metadata.namespace", namespace.as_str());
    let status = json!({"token": token, "expirationTimestamp": seconds(expires)});
    finish(&mut body, "authentication.k8s.io/v1", "TokenRequest", status);
    Ok(body)
}

fn described(user: &User) -> Value {
    let mut groups = user.groups.clone();
    groups.push("system:authenticated".to_owned());
    let mut described = json!({"username": user.name, "groups": groups});
    if !user.uid.is_empty() {
        described["uid"] = user.uid.as_str().into();
    }
    described
}

fn finish(review: &mut Value, api_version: &str, kind: &str, status: Value) {
    set(review, "apiVersion", api_version);
    set(review, "kind", kind);
    if at(review, "metadata").is_none() {
        set(review, "metadata", json!({}));
    }
    set(review, "status", status);
}
