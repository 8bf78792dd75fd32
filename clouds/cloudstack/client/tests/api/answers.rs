//! An API that gives prepared answers.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

use std::ops::Deref;
use std::sync::Arc;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, CredentialsFile, Secret};
use bowline_cloudstack_client::{Client, Keys, Project, Settings};
use bowline_kit::prepared::{PreparedApi, Seen};

pub(crate) use bowline_kit::prepared::Answer;

pub(crate) const API_KEY: &str = "q7J-not+a/real-key-93";
pub(crate) const SECRET_KEY: &str = "w2L-not-a-real-secret-94";

/// A list answer with a count and things that have only ids.
pub(crate) fn machines(count: usize, ids: &[&str]) -> Answer {
    let ids: Vec<String> = ids
        .iter()
        .map(|id| format!(r#"{{"id":"{id}","name":"{id}"}}"#))
        .collect();
    Answer::ok(&format!(
        r#"{{"listvirtualmachinesresponse":{{"count":{count},"virtualmachine":[{}]}}}}"#,
        ids.join(",")
    ))
}

pub(crate) struct Api(PreparedApi);

impl Deref for Api {
    type Target = PreparedApi;

    fn deref(&self) -> &PreparedApi {
        &self.0
    }
}

impl Api {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self(PreparedApi::new(answers))
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
        self.client_of("https://cloud.example/client/api", project, file)
    }

    pub(crate) fn client_at(&self, url: &str) -> Client {
        self.client_of(url, None, None)
    }

    fn client_of(&self, url: &str, project: Option<&str>, file: Option<CredentialsFile<Keys>>) -> Client {
        let keys = Keys {
            api_key: Secret::new(API_KEY),
            secret_key: Secret::new(SECRET_KEY),
            doubt: String::new(),
        };
        let settings = Settings::new(url, keys, project.and_then(Project::parse));
        let http = CloudHttp::new(
            CloudHttpConfig::new("external-cloudstack", "bowline/test"),
            self.transport(),
        );
        let now = "2030-01-02T02:54:05Z".parse().unwrap();
        Client::new(http, &settings.unwrap(), file, Arc::new(move || now))
    }

    /// What distinguishes the requests: method, command and its own parameters.
    pub(crate) fn take_commands(&self) -> Vec<String> {
        self.take_seen().iter().map(command).collect()
    }
}

/// The query of a `GET`, the form of a `POST`.
fn parameters(seen: &Seen) -> Vec<(String, String)> {
    let text = match seen.line.split_once('?') {
        Some((_, query)) => query,
        None => &seen.body,
    };
    text.split('&')
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap();
            (unescaped(name), unescaped(value))
        })
        .collect()
}

fn command(seen: &Seen) -> String {
    let mut parameters = parameters(seen);
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
    let method = seen.line.split(' ').next().unwrap();
    let own: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    format!("{method} {command} {}", own.join(" "))
        .trim_end()
        .to_owned()
}

fn unescaped(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_encoding::percent_decode_str(&text)
        .decode_utf8()
        .unwrap()
        .into_owned()
}
