//! APIs that keep to their description and are otherwise as odd as it lets them be: nothing may lean on how the simulator
//! happens to answer.

use bowline_cloud_http::Transport;
use bowline_phoenixnap_sim::PhoenixnapSim;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tower::ServiceExt as _;

/// How an API is odd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Oddity {
    /// It leaves out whatever it may leave out.
    Sparing,
    /// It says `null` for what there is not: absent fields, empty lists, whole lists with nothing in them.
    Null,
    /// It has fields that nobody knows, and shouts its words.
    Modern,
    /// Its lists are the other way round, and say everything twice.
    Muddled,
    /// Every success is a 200, and no write has a body that it need not have.
    Curt,
    /// Every success is a 202.
    Hesitant,
    /// It shows neither networks nor single blocks: calls that the vendor's manager does not make.
    Small,
}

/// The fields that the API's description does not call optional, or without which nothing could be told.
const NEEDED: [&str; 17] = [
    "access_token",
    "id",
    "name",
    "value",
    "message",
    // Of a server.
    "status",
    "hostname",
    "type",
    "location",
    "privateIpAddresses",
    "publicIpAddresses",
    // Of a block.
    "cidr",
    "tags",
    "assignedResourceId",
    "assignedResourceType",
    // Of a network.
    "ipBlocks",
    "memberships",
];

impl Oddity {
    /// The transport to a simulator that answers so.
    pub(crate) fn over(self, sim: &PhoenixnapSim) -> Transport {
        let service = sim.service();
        Transport::memory(tower::service_fn(move |request: Request<Full<Bytes>>| {
            let service = service.clone();
            async move {
                let (method, path) = (request.method().clone(), request.uri().path().to_owned());
                let is_extra = path.contains("/ip-blocks/") || !path.ends_with("/ip-blocks");
                let is_unknown =
                    path.contains("public-networks/") && is_extra || path.contains("/ip-blocks/");
                if self == Self::Small && method == Method::GET && is_unknown {
                    let mut answer = Response::new(Full::new(Bytes::from_static(b"Not Found")));
                    *answer.status_mut() = StatusCode::NOT_FOUND;
                    return Ok(answer);
                }
                let answer = service.oneshot(request).await?;
                let (mut head, body) = answer.into_parts();
                let body = body.collect().await?.to_bytes();
                if !head.status.is_success() || path.ends_with("/token") {
                    return Ok::<_, bowline_phoenixnap_sim::kit::TransportError>(Response::from_parts(
                        head,
                        Full::new(body),
                    ));
                }
                head.headers.clear();
                let is_curt =
                    method != Method::GET && !(method == Method::POST && path == "/ips/v1/ip-blocks");
                let body = match self {
                    Self::Curt => {
                        head.status = StatusCode::OK;
                        if is_curt { Bytes::new() } else { body }
                    }
                    Self::Hesitant => {
                        head.status = StatusCode::ACCEPTED;
                        body
                    }
                    _ => self
                        .answer(serde_json::from_slice(&body).unwrap())
                        .to_string()
                        .into(),
                };
                Ok(Response::from_parts(head, Full::new(body)))
            }
        }))
    }

    /// A whole answer.
    fn answer(self, value: Value) -> Value {
        match self.told(value) {
            Value::Array(list) if self == Self::Muddled => {
                let backwards = list.iter().rev();
                backwards.chain(&list).cloned().collect()
            }
            other => other,
        }
    }

    fn told(self, value: Value) -> Value {
        match value {
            Value::Array(list) if self == Self::Null && list.is_empty() => Value::Null,
            Value::Array(list) => list.into_iter().map(|it| self.told(it)).collect(),
            Value::Object(object) => self.object(object),
            other => other,
        }
    }

    fn object(self, object: Map<String, Value>) -> Value {
        let mut told: Map<String, Value> = object
            .into_iter()
            .filter(|(name, _)| self != Self::Sparing || NEEDED.contains(&name.as_str()))
            .map(|(name, value)| (name, self.told(value)))
            .collect();
        match self {
            Self::Null => {
                for name in [
                    "assignedResourceId",
                    "assignedResourceType",
                    "tags",
                    "value",
                    "description",
                ] {
                    told.entry(name).or_insert(Value::Null);
                }
                told.insert("createdOn".to_owned(), Value::Null);
            }
            Self::Modern => {
                for name in ["status", "assignedResourceType"] {
                    if let Some(Value::String(word)) = told.get_mut(name) {
                        *word = word.to_uppercase().replace(['-', ' '], "_");
                    }
                }
                told.insert("metadata".to_owned(), json!({ "generation": [1, null, {}] }));
                told.insert("createdOn".to_owned(), json!(1_700_000_000));
            }
            _ => {}
        }
        Value::Object(told)
    }
}
