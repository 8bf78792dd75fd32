//! A walk: requests one after the other, whose answers are kept. It is a scenario beside what was seen (`walks/*.scenario`).
//!
//! `neutron GET networks as own networks` makes a request and keeps its answer under that name; without a name it is only looked at,
//! as `last`. `base` says a request that `but` makes with other fields.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_kit::scenario::{Complaint, ScenarioCloud, Words, word};
use bowline_openstack_services::{Answer, Login, Service, Session, log_in};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::ground::Ground;

/// For a load balancer to stop being pending.
const CHANGE: Duration = Duration::from_secs(120);

/// An id that nothing has.
const NOBODY: &str = "00000000-0000-4000-8000-00000000dead";

/// All answers, by the names of their steps.
pub(crate) type Answers = Arc<Mutex<Vec<(String, Answer)>>>;

/// A walk under way.
pub(crate) struct Walk<'a> {
    ground: &'a Ground,
    session: Session,
    answers: Answers,
    last: Value,
    base: Option<Request>,
    /// The load balancer that each write to Octavia is waited for.
    written: Option<String>,
    /// A header of the next request.
    if_match: Option<String>,
}

#[derive(Clone)]
struct Request {
    service: Service,
    method: Method,
    path: String,
    body: Option<Value>,
}

impl ScenarioCloud for Walk<'_> {
    const RUNS_BY_ITSELF: bool = true;

    fn part(&self, name: &str) -> Value {
        match name {
            "last" => json!({ name: self.last }),
            "nobody" => json!({ name: NOBODY }),
            _ => json!({}),
        }
    }

    async fn act(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        let (told, name) = match words.rest.strip_prefix("as ") {
            Some(name) => ("", name),
            None => words.rest.split_once(" as ").unwrap_or((words.rest, "")),
        };
        let (first, rest) = word(told);
        if let Some(service) = service(words.verb) {
            let request = request(service, told)?;
            self.make(&request, name).await;
            return Ok(true);
        }
        match words.verb {
            "base" => self.base = Some(request(service(first).ok_or("no service")?, rest)?),
            "but" => {
                let request = self.changed(told)?;
                self.make(&request, name).await;
            }
            "refused" => {
                let request = self.changed(told)?;
                self.refused(&request, name).await;
            }
            "busy" => {
                let request = match told {
                    "" => self.changed("{}")?,
                    told => request(Service::LoadBalancer, told)?,
                };
                let change = json!({ "loadbalancer": { "description": name } });
                let path = format!(
                    "/v2.0/lbaas/loadbalancers/{}",
                    self.written.as_ref().ok_or("no writes-to")?
                );
                let changed = self
                    .session
                    .call(Service::LoadBalancer, Method::PUT, &path, Some(change))
                    .await;
                changed.unwrap().ok().unwrap();
                self.make(&request, name).await;
            }
            "if-match" => self.if_match = Some(told.to_owned()),
            "writes-to" => self.written = Some(told.to_owned()).filter(|id| id != "nothing"),
            "wait-for" => self.settle(told).await,
            "limit" | "limit-to-present" => {
                let service = service(first).ok_or("no service")?;
                let (quota, how) = word(rest);
                let limit = match words.verb {
                    "limit" => how.parse().map_err(|_| format!("{how:?} is no limit"))?,
                    // Neutron takes no limit below what there is.
                    _ => {
                        let there = self.look(&request(service, &format!("GET {how}"))?).await.body;
                        let list = there[how.replace('-', "_")].as_array().map(Vec::len);
                        i32::try_from(list.unwrap_or_default()).unwrap()
                    }
                };
                self.ground.limit(service, quota, limit).await;
            }
            "server" => self.last = json!({ "id": self.ground.server(first).await }),
            "small-subnet" => self.last = json!({ "id": self.ground.small_subnet().await }),
            "last-port" => self.last = json!({ "id": self.ground.last_port(first).await }),
            "members" => self.members(told, name).await?,
            // `order WORDS: FIELD ... as NAME`: whether the list that was seen last is in the order of these fields.
            "order" => {
                let (what, fields) = told.split_once(": ").ok_or("order WORDS: FIELD ...")?;
                let lists = self.last.as_object().into_iter().flat_map(Map::values);
                let items = lists.filter_map(Value::as_array).flatten();
                let keys = items.map(|item| fields.split(' ').map(|it| item[it].to_string()).collect());
                let keys: Vec<Vec<String>> = keys.collect();
                self.note(name, json!({ what: keys.is_sorted() }));
            }
            "logins" => self.log_in().await,
            "made-up-token" => self.session = self.session.with_token("made-up"),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl<'a> Walk<'a> {
    /// Begins as the ground's ordinary user.
    pub(crate) fn on(ground: &'a Ground, answers: &Answers) -> Self {
        Self {
            ground,
            session: ground.session().clone(),
            answers: Arc::clone(answers),
            last: Value::Null,
            base: None,
            written: None,
            if_match: None,
        }
    }

    fn keep(&mut self, name: &str, answer: Answer) {
        self.last = answer.body.clone();
        if !name.is_empty() {
            self.answers.lock().unwrap().push((name.to_owned(), answer));
        }
    }

    /// Keeps a fact that was found otherwise.
    fn note(&self, name: &str, fact: Value) {
        let answer = Answer {
            request: String::new(),
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body: fact,
        };
        self.answers.lock().unwrap().push((name.to_owned(), answer));
    }

    /// Reads without keeping anything.
    async fn look(&self, request: &Request) -> Answer {
        let Request {
            service,
            method,
            path,
            body,
        } = request.clone();
        let headers: Vec<_> = self
            .if_match
            .iter()
            .map(|value| ("if-match", value.as_str()))
            .collect();
        let answer = self
            .session
            .call_with_headers(service, method, &path, &headers, body)
            .await;
        answer.unwrap()
    }

    async fn make(&mut self, request: &Request, name: &str) {
        let answer = self.look(request).await;
        self.if_match = None;
        self.keep(name, answer);
        let is_write = request.service == Service::LoadBalancer && request.method != Method::GET;
        if let Some(id) = self.written.clone().filter(|_| is_write) {
            self.settle(&id).await;
        }
    }

    /// The base with other fields: `[POINTER] {FIELDS}`.
    fn changed(&self, told: &str) -> Result<Request, Complaint> {
        let mut request = self.base.clone().ok_or("no base")?;
        let (pointer, fields) = match told.starts_with('/') {
            true => word(told),
            false => ("", told),
        };
        let fields: Map<String, Value> =
            serde_json::from_str(fields).map_err(|error| format!("{fields}: {error}"))?;
        let body = request.body.as_mut().and_then(Value::as_object_mut);
        let inner = body
            .and_then(|body| body.values_mut().next())
            .ok_or("an empty base")?;
        if !fields.is_empty() {
            let inner = inner.pointer_mut(pointer).and_then(Value::as_object_mut);
            inner.ok_or_else(|| format!("no {pointer}"))?.extend(fields);
        }
        Ok(request)
    }

    async fn ports(&self) -> BTreeSet<String> {
        let ports = self.ground.get(Service::Network, "/v2.0/ports").await;
        let ports = ports["ports"].as_array().unwrap();
        ports
            .iter()
            .map(|port| port["id"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Asks for a load balancer that is refused, and takes away the port that stays.
    async fn refused(&mut self, request: &Request, name: &str) {
        let before = self.ports().await;
        self.make(request, name).await;
        let after = self.ports().await;
        let left: Vec<&String> = after.difference(&before).collect();
        self.note(name, json!({ "a port stays": !left.is_empty() }));
        for port in left {
            let path = format!("/v2.0/ports/{port}");
            let shown = self.ground.get(Service::Network, &path).await;
            self.note(name, json!({ "its owner": shown["port"]["device_owner"] }));
            let delete = Request {
                service: Service::Network,
                method: Method::DELETE,
                path,
                body: None,
            };
            self.make(&delete, "its port is deleted").await;
        }
    }

    /// Keeps what a list of members says of them, numbers included.
    async fn members(&mut self, path: &str, name: &str) -> Result<(), Complaint> {
        const FIELDS: [&str; 8] = [
            "address",
            "name",
            "weight",
            "backup",
            "admin_state_up",
            "monitor_port",
            "monitor_address",
            "tags",
        ];
        let shown = self
            .look(&request(Service::LoadBalancer, &format!("GET {path}"))?)
            .await
            .body;
        let said = shown["members"].as_array().unwrap().iter().map(|member| {
            let word = |field: &str| match &member[field] {
                Value::String(text) => text.replace('.', "_"),
                other => other.to_string().replace('"', ""),
            };
            let fields = FIELDS.map(|field| format!("{field}-is-{}", word(field)));
            format!("{} subnet-{}", fields.join(" "), member["subnet_id"].is_string())
        });
        let said: BTreeSet<String> = said.collect();
        self.note(name, json!(said));
        Ok(())
    }

    /// Every way to log in.
    async fn log_in(&mut self) {
        let (url, user) = (self.ground.keystone_url(), self.ground.user());
        let logins = self.ground.logins().await;
        for (name, login) in [
            ("password", Login::password(user, user, user)),
            ("wrong password", Login::password(user, "wrong", user)),
            ("unknown user", Login::password("nobody", user, user)),
            ("foreign project", Login::password(user, user, "admin")),
            ("application credential by id", logins.by_id),
            ("application credential by name", logins.by_name),
            ("trust", logins.by_trust),
            (
                "unknown application credential",
                Login::application_credential("00000000000000000000000000000000", "secret"),
            ),
        ] {
            let answer = log_in(url, &login).await.unwrap();
            self.keep(name, answer);
        }
    }

    /// Waits until a load balancer is not pending any more, or is gone.
    async fn settle(&self, id: &str) {
        if self.ground.ends_change(id) {
            return;
        }
        let path = format!("/v2.0/lbaas/loadbalancers/{id}");
        let deadline = tokio::time::Instant::now() + CHANGE;
        loop {
            let answer = self
                .session
                .call(Service::LoadBalancer, Method::GET, &path, None)
                .await;
            let body = answer.unwrap().body;
            let state = body["loadbalancer"]["provisioning_status"].as_str();
            if !state.is_some_and(|state| state.starts_with("PENDING")) {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{id} is {state:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn service(name: &str) -> Option<Service> {
    match name {
        "keystone" => Some(Service::Identity),
        "neutron" => Some(Service::Network),
        "octavia" => Some(Service::LoadBalancer),
        "nova" => Some(Service::Compute),
        _ => None,
    }
}

/// `METHOD PATH [BODY]`; a path that does not begin with a slash is one of the service's API.
fn request(service: Service, told: &str) -> Result<Request, Complaint> {
    let (method, rest) = word(told);
    let (path, body) = word(rest);
    let body = match body {
        "" => None,
        body => Some(serde_json::from_str(body).map_err(|error| format!("{body}: {error}"))?),
    };
    let start = match service {
        _ if path.is_empty() || path.starts_with('/') => "",
        Service::Network => "/v2.0/",
        Service::LoadBalancer => "/v2.0/lbaas/",
        _ => "/",
    };
    Ok(Request {
        service,
        method: method.parse().map_err(|_| format!("no method {method}"))?,
        path: format!("{start}{path}"),
        body,
    })
}

/// A text in a body.
#[track_caller]
pub(crate) fn text<'a>(body: &'a Value, pointer: &str) -> &'a str {
    body.pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_else(|| panic!("no {pointer} in {body}"))
}
