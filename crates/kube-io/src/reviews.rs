//! The API server's word about somebody else's credentials: whose token this is, and what its user may do.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_transport::OpenGate;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::{Kube, header};
use crate::error::KubeError;
use crate::exchange::{Call, JSON};
use crate::rbac::Question;
use crate::shape::read;

/// A user as the API server knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct UserInfo {
    /// The name.
    #[serde(rename(deserialize = "username", serialize = "user"))]
    pub name: String,
    /// The UID; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Further facts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Reviewed<S> {
    status: S,
}

#[derive(Deserialize)]
struct TokenStatus {
    #[serde(default)]
    authenticated: bool,
    #[serde(default)]
    user: UserInfo,
}

#[derive(Deserialize)]
struct AccessStatus {
    #[serde(default)]
    allowed: bool,
}

impl UserInfo {
    /// A ServiceAccount, as its tokens name it.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let groups = [
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{namespace}"),
            "system:authenticated".to_owned(),
        ];
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            groups: groups.to_vec(),
            ..Self::default()
        }
    }
}

impl Kube {
    /// The same connections for reviews. They change nothing, so the write gate does not hold them: a follower is asked for
    /// its metrics, too. Nor do they take part in the [bound on the rate](crate::KubeOptions::pace), which is the
    /// controllers': whoever asks for reviews bounds their number.
    pub fn for_reviews(&self) -> Self {
        self.with_gate(Arc::new(OpenGate))
            .speaking(|speaker| speaker.pacer = None)
    }

    /// The same connections for a person who asks in the name of a ServiceAccount, which takes the verb `impersonate` on it. The API
    /// server adds the groups of all ServiceAccounts.
    pub fn acting_as(&self, namespace: &str, name: &str) -> Self {
        let user = header(&UserInfo::service_account(namespace, name).name);
        self.speaking(|speaker| speaker.acts_as = Some(user))
    }

    /// Whose bearer token this is; `None` if it is nobody's. A review is no write to the cluster, but it is sent as one:
    /// a follower needs an open gate for it.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] unless the role grants `create` on `tokenreviews`.
    pub async fn review_token(&self, token: &str) -> Result<Option<UserInfo>, KubeError> {
        let body = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": { "token": token },
        });
        let call = Call::send(
            Method::POST,
            "/apis/authentication.k8s.io/v1/tokenreviews",
            JSON,
            &body,
        );
        let answer: Reviewed<TokenStatus> = read(&self.exchange(call).await?)?;
        Ok(answer.status.authenticated.then_some(answer.status.user))
    }

    /// Whether the user may do this to a path that belongs to no resource, such as `get` to `/metrics`. A review is no
    /// write to the cluster, but it is sent as one: a follower needs an open gate for it.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] unless the role grants `create` on `subjectaccessreviews`.
    pub async fn review_access(&self, user: &UserInfo, verb: &str, path: &str) -> Result<bool, KubeError> {
        let mut spec = json!(user);
        spec["nonResourceAttributes"] = json!({ "path": path, "verb": verb });
        self.is_allowed("SubjectAccessReview", "subjectaccessreviews", &spec)
            .await
    }

    /// Whether we may do what the question asks for, as everybody may ask about himself. A closed gate does not hold it: it
    /// changes nothing. The gate stays closed for all else.
    ///
    /// # Errors
    ///
    /// There is no answer.
    pub async fn may(&self, question: &Question) -> Result<bool, KubeError> {
        let attributes = attributes(question);
        self.for_reviews().review_own_access(attributes).await
    }

    /// Whether somebody else may do what the question asks for. A closed gate does not hold it.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] unless the caller may create `subjectaccessreviews`.
    pub async fn may_somebody(&self, user: &UserInfo, question: &Question) -> Result<bool, KubeError> {
        let mut spec = json!(user);
        spec["resourceAttributes"] = attributes(question);
        self.for_reviews()
            .is_allowed("SubjectAccessReview", "subjectaccessreviews", &spec)
            .await
    }

    /// Whether we may do this to a resource.
    pub(crate) async fn review_own_access(&self, resource: Value) -> Result<bool, KubeError> {
        let spec = json!({ "resourceAttributes": resource });
        self.is_allowed("SelfSubjectAccessReview", "selfsubjectaccessreviews", &spec)
            .await
    }

    async fn is_allowed(&self, kind: &str, resource: &str, spec: &Value) -> Result<bool, KubeError> {
        let body = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec });
        let path = format!("/apis/authorization.k8s.io/v1/{resource}");
        let call = Call::send(Method::POST, path, JSON, &body);
        let answer: Reviewed<AccessStatus> = read(&self.exchange(call).await?)?;
        Ok(answer.status.allowed)
    }
}

/// A question as a review has it.
fn attributes(question: &Question) -> Value {
    let (resource, subresource) = question
        .resource
        .split_once('/')
        .unwrap_or((question.resource, ""));
    json!({
        "verb": question.verb,
        "group": question.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": question.namespace.as_deref().unwrap_or_default(),
        "name": question.name.as_deref().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_read_from_a_token_review_and_written_to_an_access_review() {
        let user: UserInfo = serde_json::from_value(json!({
            "username": "system:serviceaccount:monitoring:prometheus",
            "uid": "u-1",
            "groups": ["system:authenticated"],
            "extra": { "node": ["a"] },
        }))
        .unwrap();
        assert_eq!(
            json!(user),
            json!({
                "user": "system:serviceaccount:monitoring:prometheus",
                "uid": "u-1",
                "groups": ["system:authenticated"],
                "extra": { "node": ["a"] },
            })
        );
    }
}
