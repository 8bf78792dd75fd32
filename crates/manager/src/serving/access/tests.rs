use std::sync::Mutex;

use bowline_kube_io::SystemClock;
use http::header::AUTHORIZATION;

use super::authentication::anonymous;
use super::remembered::MAX_REMEMBERED;
use super::*;
use crate::config::AccessConfig;

/// An API server that knows one token, and writes down what it was asked.
#[derive(Default)]
struct Server {
    asked: Mutex<Vec<String>>,
    is_down: bool,
}

impl Reviews for Server {
    fn token<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, String>> {
        self.asked.lock().unwrap().push(format!("token {token}"));
        let user = match token {
            "prometheus" => Some(vec!["system:authenticated".to_owned()]),
            "root" => Some(vec!["system:masters".to_owned()]),
            _ => None,
        };
        let user = user.map(|groups| UserInfo {
            name: token.to_owned(),
            groups,
            ..anonymous()
        });
        let answer = if self.is_down {
            Err("down".to_owned())
        } else {
            Ok(user)
        };
        Box::pin(async { answer })
    }

    fn access<'a>(
        &'a self,
        user: &'a UserInfo,
        verb: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<bool, String>> {
        self.asked
            .lock()
            .unwrap()
            .push(format!("{} {verb} {path}", user.name));
        let answer = if self.is_down {
            Err("down".to_owned())
        } else {
            Ok(user.name == "prometheus")
        };
        Box::pin(async { answer })
    }
}

fn setup(server: Server) -> (Access, Arc<Server>) {
    let server = Arc::new(server);
    (access(&AccessConfig::default(), Some(server.clone())), server)
}

fn access(config: &AccessConfig, reviews: Option<Arc<dyn Reviews>>) -> Access {
    let (clock, metrics) = (Arc::new(SystemClock), ServingMetrics::default());
    Access::new(config, Authorities::nobody(), reviews, clock, metrics)
}

async fn get(access: &Access, path: &str, token: Option<&str>) -> Result<(), Denial> {
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    }
    access.admit(&Method::GET, path, &headers, &[]).await
}

fn forbidden(user: &str) -> Result<(), Denial> {
    Err(Denial::Forbidden {
        user: user.to_owned(),
    })
}

#[tokio::test(start_paused = true)]
async fn a_granted_access_is_reviewed_once_in_ten_seconds() {
    let (access, server) = setup(Server::default());
    assert_eq!(get(&access, "/metrics", Some("prometheus")).await, Ok(()));
    tokio::time::advance(Duration::from_secs(9)).await;
    assert_eq!(get(&access, "/metrics", Some("prometheus")).await, Ok(()));
    assert_eq!(
        *server.asked.lock().unwrap(),
        ["token prometheus", "prometheus get /metrics"]
    );
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(get(&access, "/metrics", Some("prometheus")).await, Ok(()));
    assert_eq!(server.asked.lock().unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn nobody_s_token_is_refused_even_where_everybody_may_read() {
    let (access, server) = setup(Server::default());
    assert_eq!(
        get(&access, "/healthz", Some("stolen")).await,
        Err(Denial::Unknown)
    );
    assert_eq!(
        get(&access, "/healthz", Some("stolen")).await,
        Err(Denial::Unknown)
    );
    assert_eq!(*server.asked.lock().unwrap(), ["token stolen"]);
}

#[tokio::test(start_paused = true)]
async fn health_is_open_and_everything_else_is_not() {
    let (access, server) = setup(Server::default());
    assert_eq!(get(&access, "/healthz", None).await, Ok(()));
    assert!(server.asked.lock().unwrap().is_empty());
    assert_eq!(
        get(&access, "/metrics", None).await,
        forbidden("system:anonymous")
    );
    assert_eq!(
        get(&access, "/healthz/ping", None).await,
        forbidden("system:anonymous")
    );
    assert_eq!(get(&access, "/metrics", Some("root")).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_prefix_opens_all_below_it() {
    let config = AccessConfig {
        always_allowed: vec!["/healthz*".to_owned()],
        ..AccessConfig::default()
    };
    let access = access(&config, None);
    assert_eq!(get(&access, "/healthz/ping", None).await, Ok(()));
    assert_eq!(
        get(&access, "/metrics", None).await,
        forbidden("system:anonymous")
    );
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_down_opens_nothing_and_is_asked_again() {
    let (access, server) = setup(Server {
        is_down: true,
        ..Server::default()
    });
    assert_eq!(get(&access, "/metrics", None).await, Err(Denial::Undecided));
    assert_eq!(get(&access, "/metrics", Some("root")).await, Err(Denial::Unknown));
    assert_eq!(get(&access, "/metrics", Some("root")).await, Err(Denial::Unknown));
    assert_eq!(server.asked.lock().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_is_remembered_has_a_bound() {
    let remembered = Remembered::default();
    for key in 0..=MAX_REMEMBERED {
        remembered.remember(key, (), Duration::from_secs(10));
    }
    assert_eq!(remembered.0.lock().unwrap().len(), MAX_REMEMBERED);
    assert_eq!(remembered.recall(&MAX_REMEMBERED), Some(()));
}
