//! The same API in other words: servers differ in what they send, and in which form.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloudstack_sim::kit::CloudService;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _, service_fn};

/// How a server differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// It sends the members that matter and no others, no count, and of what a job made the ID alone.
    Bare,
    /// Its rules do not tell which network they lead to.
    Networkless,
    /// Numbers and switches are texts, and ports the other way round.
    Texts,
    /// There is more in everything than anybody knows, and nothing is left out.
    Wordy,
    /// It counts more of everything than it lists, but for virtual machines and what is on an address.
    Boastful,
    /// A list is as it was up to so long ago.
    Late(Duration),
}

/// Stands in front of the simulator.
#[derive(Clone)]
pub(crate) struct Disguise {
    dialect: Dialect,
    /// What was answered to a list, and when.
    lists: Arc<Mutex<BTreeMap<String, (Instant, Bytes)>>>,
}

/// The members of what is listed that this provider may rely on.
const MEMBERS: [(&str, &[&str]); 8] = [
    ("virtualmachine", &["id", "name", "state", "nic"]),
    ("loadbalancerruleinstance", &["id", "name"]),
    (
        "network",
        &["id", "name", "zoneid", "vpcid", "aclid", "aclname", "service"],
    ),
    (
        "publicipaddress",
        &[
            "id",
            "ipaddress",
            "allocated",
            "state",
            "associatednetworkid",
            "vpcid",
        ],
    ),
    (
        "loadbalancerrule",
        &[
            "id",
            "name",
            "algorithm",
            "protocol",
            "publicipid",
            "publicip",
            "publicport",
            "privateport",
            "networkid",
            "cidrlist",
            "state",
        ],
    ),
    (
        "firewallrule",
        &[
            "id",
            "protocol",
            "startport",
            "endport",
            "ipaddressid",
            "cidrlist",
        ],
    ),
    (
        "networkacl",
        &[
            "id",
            "protocol",
            "startport",
            "endport",
            "cidrlist",
            "traffictype",
            "action",
        ],
    ),
    ("networkacllist", &["id", "name"]),
];

/// What a job that makes something shows under which name.
const MADE: [&str; 4] = ["loadbalancer", "ipaddress", "firewallrule", "networkacl"];

impl Disguise {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            lists: Arc::default(),
        }
    }

    pub(crate) fn over(
        &self,
        service: CloudService,
    ) -> BoxCloneSyncService<Request<Full<Bytes>>, Response<Full<Bytes>>, BoxError> {
        let disguise = self.clone();
        BoxCloneSyncService::new(service_fn(move |request: Request<Full<Bytes>>| {
            let (disguise, service) = (disguise.clone(), service.clone());
            async move { disguise.answer(service, request).await }
        }))
    }

    async fn answer(
        &self,
        service: CloudService,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Full<Bytes>>, BoxError> {
        let asked = question(request.uri().query().unwrap_or_default());
        let (mut parts, body) = service.oneshot(request).await?.into_parts();
        let body = body.collect().await?.to_bytes();
        parts.headers.remove(http::header::CONTENT_LENGTH);
        let body = match self.dialect {
            Dialect::Late(time) => self.late(&asked, body, time),
            Dialect::Boastful if asked.contains("publicipid=") || !asked.contains("command=list") => body,
            dialect => match serde_json::from_slice(&body) {
                Ok(value) => Bytes::from(other(dialect, value).to_string()),
                Err(_) => body,
            },
        };
        Ok(Response::from_parts(parts, Full::new(body)))
    }

    fn late(&self, asked: &str, now: Bytes, time: Duration) -> Bytes {
        if !asked.contains("command=list") {
            return now;
        }
        let mut lists = self.lists.lock().unwrap();
        match lists.get(asked) {
            Some((at, then)) if at.elapsed() < time => then.clone(),
            _ => {
                lists.insert(asked.to_owned(), (Instant::now(), now.clone()));
                now
            }
        }
    }
}

/// A question without what differs each time it is asked.
fn question(query: &str) -> String {
    let parts = query.split('&');
    let parts: Vec<&str> = parts
        .filter(|part| !part.starts_with("signature=") && !part.starts_with("expires="))
        .collect();
    parts.join("&")
}

fn other(dialect: Dialect, mut value: Value) -> Value {
    match dialect {
        Dialect::Bare => {
            let payload = value.as_object_mut().and_then(|all| all.values_mut().next());
            if let Some(Value::Object(payload)) = payload {
                bare(payload);
            }
            value
        }
        Dialect::Networkless => {
            let payloads = value.as_object_mut().into_iter().flat_map(Map::values_mut);
            let rules = payloads.filter_map(|payload| payload.get_mut("loadbalancerrule"));
            for rule in rules.filter_map(Value::as_array_mut).flatten() {
                rule.as_object_mut().map(|rule| rule.remove("networkid"));
            }
            value
        }
        Dialect::Texts => texts(None, value),
        Dialect::Wordy => wordy(value),
        Dialect::Boastful => {
            for payload in value.as_object_mut().into_iter().flat_map(Map::values_mut) {
                let is_of_machines = payload.get("virtualmachine").is_some();
                if let Some(count) = payload.get_mut("count").filter(|_| !is_of_machines) {
                    *count = json!(count.as_u64().unwrap_or_default() + 3);
                }
            }
            value
        }
        Dialect::Late(_) => value,
    }
}

fn keep(object: &mut Value, members: &[&str]) {
    if let Value::Object(object) = object {
        object.retain(|key, _| members.contains(&key.as_str()));
    }
}

fn bare(payload: &mut Map<String, Value>) {
    payload.remove("count");
    for (key, members) in MEMBERS {
        let list = payload.get_mut(key).and_then(Value::as_array_mut);
        list.into_iter().flatten().for_each(|item| {
            keep(item, members);
            let nested = item.as_object_mut().into_iter().flatten();
            for (key, value) in nested {
                let members: &[&str] = match key.as_str() {
                    "nic" => &["networkid", "ipaddress"],
                    "service" => &["name"],
                    _ => continue,
                };
                for item in value.as_array_mut().into_iter().flatten() {
                    keep(item, members);
                }
            }
        });
    }
    if payload.contains_key("jobstatus") {
        payload.retain(|key, _| ["jobstatus", "jobresult"].contains(&key.as_str()));
        for key in MADE {
            let made = payload
                .get_mut("jobresult")
                .and_then(|result| result.get_mut(key));
            if let Some(made) = made {
                keep(made, &["id"]);
            }
        }
    } else if payload.contains_key("jobid") {
        payload.retain(|key, _| ["jobid", "id"].contains(&key.as_str()));
    }
}

fn texts(key: Option<&str>, value: Value) -> Value {
    let is_port = key.is_some_and(|key| key.ends_with("port"));
    match value {
        Value::Number(number) => json!(number.to_string()),
        Value::Bool(yes) => json!(yes.to_string()),
        Value::String(text) if is_port => text.parse::<u16>().map_or(json!(text), |port| json!(port)),
        Value::Array(items) => items.into_iter().map(|item| texts(None, item)).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(key, value)| {
                let value = texts(Some(&key), value);
                (key, value)
            })
            .collect(),
        other => other,
    }
}

fn wordy(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(wordy).collect(),
        Value::Object(members) => {
            let mut all: Map<String, Value> = members
                .into_iter()
                .map(|(key, value)| (key, wordy(value)))
                .collect();
            if all.contains_key("id") || all.contains_key("count") || all.contains_key("jobid") {
                all.insert("annotation".to_owned(), Value::Null);
                all.insert("hasannotations".to_owned(), json!([1, { "a": "b" }]));
                for absent in [
                    "cidrlist",
                    "allocated",
                    "vpcid",
                    "aclid",
                    "aclname",
                    "associatednetworkid",
                ] {
                    all.entry(absent).or_insert(Value::Null);
                }
            }
            Value::Object(all)
        }
        other => other,
    }
}
