//! Plays the scenarios of `scenarios/` on an API server: `GET`, `POST`, `PUT`, `DELETE` and `PATCH`, and the patches `merge`,
//! `strategic` and `json-patch`.

use bowline_kit::scenario::calls::Answer;
use bowline_kit::scenario::{Complaint, ScenarioCloud, Words};
use http::Method;
use serde_json::{Value, json};

use super::scope::{Scope, text};

/// Who calls, in a namespace of its own.
pub(super) struct Player {
    pub(super) scope: Scope,
}

impl Player {
    /// A path in full. The kinds of a namespace are those of this one.
    fn path(&self, short: &str) -> String {
        let of_namespace = format!("namespaces/{}/{short}", self.scope.namespace());
        match short.split(['/', '?']).next().unwrap_or_default() {
            "services" | "events" | "serviceaccounts" => format!("/api/v1/{of_namespace}"),
            "leases" => format!("/apis/coordination.k8s.io/v1/{of_namespace}"),
            "nodes" => format!("/api/v1/{short}"),
            _ => short.to_owned(),
        }
    }
}

impl ScenarioCloud for Player {
    async fn call(&mut self, words: &Words<'_>) -> Result<Option<Answer>, Complaint> {
        let (method, content_type) = match words.verb {
            "GET" => (Method::GET, "application/json"),
            "POST" => (Method::POST, "application/json"),
            "PUT" => (Method::PUT, "application/json"),
            "DELETE" => (Method::DELETE, "application/json"),
            "PATCH" => (Method::PATCH, "application/json"),
            "merge" => (Method::PATCH, "application/merge-patch+json"),
            "strategic" => (Method::PATCH, "application/strategic-merge-patch+json"),
            "json-patch" => (Method::PATCH, "application/json-patch+json"),
            _ => return Ok(None),
        };
        let (path, body) = words.rest.split_once(' ').unwrap_or((words.rest, ""));
        let body = match (&method, body) {
            (&Method::GET, _) => None,
            (_, "") => Some((content_type, "{}".to_owned())),
            (_, body) => Some((content_type, body.to_owned())),
        };
        let answer = self
            .scope
            .send(method, &self.path(path), body, "application/json")
            .await;
        let (code, body) = (answer.code, answer.body);
        if code >= 400 && body.is_object() {
            let told = (&body["kind"], &body["status"], &body["code"]);
            if told != (&json!("Status"), &json!("Failure"), &json!(code)) {
                return Err(format!("no refusal: {body:#}"));
            }
        }
        Ok(Some(Answer {
            status: Some(code),
            body,
            ..Answer::default()
        }))
    }

    /// Field and message of each cause; without causes, reason and message.
    fn said(answer: &Value) -> String {
        let pair = |one: &Value, other: &Value| format!("{}: {}", text(one), text(other));
        let causes = answer["details"]["causes"].as_array().into_iter().flatten();
        let causes: Vec<String> = causes.map(|it| pair(&it["field"], &it["message"])).collect();
        match causes.is_empty() {
            true => pair(&answer["reason"], &answer["message"]),
            false => causes.join("; "),
        }
    }

    fn state(&self) -> Value {
        json!({ "ns": self.scope.namespace() })
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        match words.verb {
            "compact" => self.scope.embedded().compact(),
            _ => return Ok(false),
        }
        Ok(true)
    }
}
