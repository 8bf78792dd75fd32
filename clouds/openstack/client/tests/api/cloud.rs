//! A client over prepared answers.

use std::time::Duration;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Secret};
pub(crate) use bowline_kit::prepared::{Answer, PreparedApi};
use bowline_openstack_client::{Client, Credentials, Interface, Login, Settings};

/// The recorded answer to a login.
pub(crate) const TOKEN: &str = include_str!("recorded/token.json");
/// The recorded versions of Neutron.
pub(crate) const NEUTRON: &str = include_str!("recorded/neutron-versions.json");
/// The recorded versions of Octavia.
pub(crate) const OCTAVIA: &str = include_str!("recorded/octavia-versions.json");

pub(crate) fn settings() -> Settings {
    let login = Login::new(&Credentials {
        username: "demo".to_owned(),
        password: Some(Secret::new("hunter2")),
        tenant_name: "demo".to_owned(),
        domain_id: "default".to_owned(),
        ..Credentials::default()
    });
    Settings {
        auth_url: "http://127.0.0.1:15000/v3".parse().unwrap(),
        login: login.unwrap(),
        source: "cloud.conf".to_owned(),
        region: "RegionOne".to_owned(),
        interface: Interface::Public,
        request_timeout: Duration::from_secs(60),
    }
}

/// The answer to a login, with a token.
pub(crate) fn token(token: &'static str) -> Answer {
    Answer::Header(201, ("x-subject-token", token), TOKEN.to_owned())
}

pub(crate) fn refusal(status: u16, body: &str) -> Answer {
    Answer::Body(status, body.to_owned())
}

/// A client whose requests get these answers, one each.
pub(crate) fn client_with(
    settings: Settings,
    answers: impl IntoIterator<Item = Answer>,
) -> (Client, PreparedApi) {
    let api = PreparedApi::new(answers);
    let mut config = CloudHttpConfig::new("openstack", "test");
    settings.configure(&mut config);
    config.retry.attempts = 1;
    let http = CloudHttp::new(config, api.transport());
    (Client::new(http, settings), api)
}

/// A client that logs in first.
pub(crate) fn client(answers: impl IntoIterator<Item = Answer>) -> (Client, PreparedApi) {
    client_with(settings(), [token("T1")].into_iter().chain(answers))
}

/// A client of Neutron: the login, its versions, then these answers.
pub(crate) fn neutron(answers: impl IntoIterator<Item = Answer>) -> (Client, PreparedApi) {
    client([Answer::ok(NEUTRON)].into_iter().chain(answers))
}

/// A client of Octavia: the login, its versions, then these answers.
pub(crate) fn octavia(answers: impl IntoIterator<Item = Answer>) -> (Client, PreparedApi) {
    client([Answer::ok(OCTAVIA)].into_iter().chain(answers))
}

/// Method, URL and body of each request after the first ones.
pub(crate) fn lines(api: &PreparedApi, first: usize) -> Vec<String> {
    let seen = api.take_seen();
    let shown = seen.iter().skip(first);
    shown
        .map(|seen| format!("{} {}", seen.line, seen.body).trim_end().to_owned())
        .collect()
}
