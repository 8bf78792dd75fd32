//! A walk: requests one after the other, whose answers are kept.

use std::time::Duration;

use bowline_openstack_services::{Answer, Service, Session};
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

use crate::ground::Ground;

/// For a load balancer to stop being pending.
const CHANGE: Duration = Duration::from_secs(120);

/// A walk under way.
pub(crate) struct Walk<'a> {
    pub(crate) ground: &'a Ground,
    session: Session,
    answers: Vec<(&'static str, Answer)>,
}

impl<'a> Walk<'a> {
    /// Begins as the ground's ordinary user.
    pub(crate) fn on(ground: &'a Ground) -> Self {
        Self {
            ground,
            session: ground.session().clone(),
            answers: Vec::new(),
        }
    }

    /// All answers, by the names of their steps.
    pub(crate) fn answers(self) -> Vec<(&'static str, Answer)> {
        self.answers
    }

    /// Makes a request to Octavia.
    pub(crate) async fn balance(
        &mut self,
        name: &'static str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Value {
        let path = format!("/v2.0/lbaas/{path}");
        self.step(name, Service::LoadBalancer, method, &path, body).await
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Keeps an answer that was got otherwise.
    pub(crate) fn keep(&mut self, name: &'static str, answer: Answer) {
        self.answers.push((name, answer));
    }

    /// Makes a request, keeps the answer, and gives its body.
    pub(crate) async fn step(
        &mut self,
        name: &'static str,
        service: Service,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Value {
        let answer = self.session.call(service, method, path, body).await.unwrap();
        let body = answer.body.clone();
        self.answers.push((name, answer));
        body
    }

    pub(crate) async fn get(&mut self, name: &'static str, service: Service, path: &str) -> Value {
        self.step(name, service, Method::GET, path, None).await
    }

    pub(crate) async fn delete(&mut self, name: &'static str, service: Service, path: &str) -> Value {
        self.step(name, service, Method::DELETE, path, None).await
    }

    pub(crate) async fn put(
        &mut self,
        name: &'static str,
        service: Service,
        path: &str,
        body: impl Into<Option<Value>>,
    ) -> Value {
        self.step(name, service, Method::PUT, path, body.into()).await
    }

    pub(crate) async fn post(
        &mut self,
        name: &'static str,
        service: Service,
        path: &str,
        body: impl Into<Option<Value>>,
    ) -> Value {
        self.step(name, service, Method::POST, path, body.into()).await
    }

    /// Reads without keeping anything.
    pub(crate) async fn look(&self, service: Service, path: &str) -> Answer {
        self.session.call(service, Method::GET, path, None).await.unwrap()
    }

    /// Keeps a fact that was found otherwise.
    pub(crate) fn note(&mut self, name: &'static str, fact: Value) {
        let (status, headers) = (StatusCode::OK, HeaderMap::new());
        let answer = Answer {
            request: String::new(),
            status,
            headers,
            body: fact,
        };
        self.keep(name, answer);
    }

    /// Waits until a load balancer is not pending any more, or is gone.
    pub(crate) async fn settle(&self, id: &str) {
        if self.ground.ends_change(id) {
            return;
        }
        let path = format!("/v2.0/lbaas/loadbalancers/{id}");
        let deadline = tokio::time::Instant::now() + CHANGE;
        loop {
            let answer = self.look(Service::LoadBalancer, &path).await;
            let pointer = "/loadbalancer/provisioning_status";
            let state = answer.body.pointer(pointer).and_then(Value::as_str);
            if !state.is_some_and(|state| state.starts_with("PENDING")) {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{id} is {state:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// A text in a body.
#[track_caller]
pub(crate) fn text<'a>(body: &'a Value, pointer: &str) -> &'a str {
    body.pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no {pointer} in {body}"))
}
