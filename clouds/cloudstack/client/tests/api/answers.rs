//! An API that gives prepared answers.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bowline_cloud_http::{
    BoxError, Bytes, CloudHttp, CloudHttpConfig, CredentialsFile, HeaderMap, Secret, Transport,
    TransportError,
};
use bowline_cloudstack_client::{Client, Keys, Project, Settings};
use http_body_util::{BodyExt, Full};

pub(crate) const API_KEY: &str = "q7J-not+a/real-key-93";
pub(crate) const SECRET_KEY: &str = "w2L-not-a-real-secret-94";

/// One prepared answer.
#[derive(Clone)]
pub(crate) enum Answer {
    /// A status and a body.
    Body(u16, String),
    /// A status and what is made of the query or form of the request.
    Echo(u16),
    /// No connection.
    NoConnection,
}

impl Answer {
    pub(crate) fn ok(body: &str) -> Self {
        Self::Body(200, body.to_owned())
    }

    /// A list answer with a count and things that have only ids.
    pub(crate) fn machines(count: usize, ids: &[&str]) -> Self {
        let ids: Vec<String> = ids
            .iter()
            .map(|id| format!(r#"{{"id":"{id}","name":"{id}"}}"#))
            .collect();
        Self::ok(&format!(
            r#"{{"listvirtualmachinesresponse":{{"count":{count},"virtualmachine":[{}]}}}}"#,
            ids.join(",")
        ))
    }
}

/// A request as the API saw it.
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

/// The API.
#[derive(Clone)]
pub(crate) struct Api {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Api {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            seen: Arc::default(),
        }
    }

    pub(crate) fn client(&self) -> Client {
        self.client_in(None)
    }

    pub(crate) fn client_in(&self, project: Option<&str>) -> Client {
        self.client_with(project, None)
    }

    pub(crate) fn client_following(&self, file: CredentialsFile<Keys>) -> Client {
        self.client_with(None, Some(file))
    }

    fn client_with(&self, project: Option<&str>, file: Option<CredentialsFile<Keys>>) -> Client {
        let api = self.clone();
        let transport = Transport::memory(tower::service_fn(move |request| api.clone().answer(request)));
        let keys = Keys {
            api_key: Secret::new(API_KEY),
            secret_key: Secret::new(SECRET_KEY),
        };
        let settings = Settings::new(
            "https://cloud.example/client/api",
            keys,
            project.and_then(Project::parse),
        );
        let http = CloudHttp::new(
            CloudHttpConfig::new("external-cloudstack", "bowline/test"),
            transport,
        );
        let now = "2030-01-02T02:54:05Z".parse().unwrap();
        Client::new(http, &settings.unwrap(), file, Arc::new(move || now))
    }

    pub(crate) fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    /// What distinguishes the requests: method, command and its own parameters.
    pub(crate) fn take_commands(&self) -> Vec<String> {
        self.take_seen().iter().map(Seen::command).collect()
    }

    async fn answer(
        self,
        request: http::Request<Full<Bytes>>,
    ) -> Result<http::Response<Full<Bytes>>, BoxError> {
        let (head, body) = request.into_parts();
        let body = String::from_utf8(body.collect().await?.to_bytes().to_vec())?;
        let line = format!("{} {}", head.method, head.uri);
        self.seen.lock().unwrap().push(Seen {
            line: line.clone(),
            headers: head.headers,
            body: body.clone(),
        });
        let answer = self.answers.lock().unwrap().pop_front();
        let response = http::Response::builder();
        match answer.ok_or("a request more than was prepared for")? {
            Answer::Body(status, body) => Ok(response.status(status).body(Full::from(body))?),
            Answer::Echo(status) => Ok(response
                .status(status)
                .body(Full::from(format!("you sent {line} {body}")))?),
            Answer::NoConnection => Err(TransportError::Connect("refused".into()).into()),
        }
    }
}

impl Seen {
    /// The query of a `GET`, the form of a `POST`.
    fn parameters(&self) -> Vec<(String, String)> {
        let text = match self.line.split_once('?') {
            Some((_, query)) => query,
            None => &self.body,
        };
        text.split('&')
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap();
                (unescaped(name), unescaped(value))
            })
            .collect()
    }

    pub(crate) fn command(&self) -> String {
        let mut parameters = self.parameters();
        let mut command = String::new();
        for (name, expected) in [
            ("apiKey", Some(API_KEY)),
            ("response", Some("json")),
            ("signatureversion", Some("3")),
            ("expires", Some("2030-01-02T03:04:05Z")),
            ("signature", None),
            ("command", None),
        ] {
            let place = parameters.iter().position(|(found, _)| found == name).unwrap();
            let (_, value) = parameters.remove(place);
            assert!(
                expected.is_none_or(|expected| expected == value),
                "{name}: {value}"
            );
            if name == "command" {
                command = value;
            }
        }
        let method = self.line.split(' ').next().unwrap();
        let own: Vec<String> = parameters
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        format!("{method} {command} {}", own.join(" "))
            .trim_end()
            .to_owned()
    }
}

fn unescaped(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_encoding::percent_decode_str(&text)
        .decode_utf8()
        .unwrap()
        .into_owned()
}
