use std::sync::Mutex;

use bowline_kube_io::SystemClock;
use futures::future::join_all;
use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::authentication::anonymous;
use super::lanes::{MAX_WAITING, MAX_WAITING_PER_ORIGIN, UNKNOWN_AT_ONCE};
use super::remembered::MAX_REMEMBERED;
use super::*;
use crate::config::AccessConfig;
use crate::serving::places::Places;

/// An API server that knows one token, and writes down what it was asked.
#[derive(Default)]
struct Server {
    asked: Mutex<Vec<String>>,
    is_down: bool,
    /// How long it takes over an answer.
    takes: Duration,
}

impl Server {
    /// One that never answers in time.
    fn slow() -> Self {
        Self {
            takes: Duration::from_secs(60),
            ..Self::default()
        }
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Reviews for Server {
    fn token<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<UserInfo>, String>> {
        self.asked.lock().unwrap().push(format!("token {token}"));
        let user = match token {
            "prometheus" => Some(vec!["system:authenticated".to_owned()]),
            "pod" => Some(vec![]),
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
        Box::pin(async {
            tokio::time::sleep(self.takes).await;
            answer
        })
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
            // Kubernetes lets everybody who shows a token read below /api.
            Ok(user.name == "prometheus" || path.starts_with("/api"))
        };
        Box::pin(async {
            tokio::time::sleep(self.takes).await;
            answer
        })
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
    get_as(access, &Client::default(), path, token).await
}

async fn get_as(access: &Access, client: &Client, path: &str, token: Option<&str>) -> Result<(), Denial> {
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        headers.insert(AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    }
    let claim = access.claim(&headers, client);
    access.admit(claim, &Method::GET, path, client).await
}

/// A client at this address.
async fn client_at(places: &Arc<Places>, last: u8) -> Client {
    let origin = Origin::from(std::net::IpAddr::from([10, 0, 0, last]));
    Client::default().at(places.enter(origin).await)
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

#[tokio::test(start_paused = true)]
async fn of_a_thousand_made_up_tokens_of_one_address_few_are_asked_about_and_the_rest_is_told_to_come_later()
{
    let (access, server) = setup(Server::slow());
    let places = Places::new();
    let client = client_at(&places, 1).await;
    let begun = Instant::now();
    let asks = (0..1000).map(|n| {
        let (access, client) = (&access, &client);
        async move {
            let denial = get_as(access, client, "/metrics", Some(&n.to_string())).await;
            (denial.unwrap_err(), begun.elapsed())
        }
    });
    let denials = join_all(asks).await;
    let at_once = denials
        .iter()
        .filter(|it| **it == (Denial::Full, Duration::ZERO))
        .count();
    assert_eq!(at_once, 1000 - UNKNOWN_AT_ONCE - MAX_WAITING_PER_ORIGIN);
    assert_eq!(server.asked(), UNKNOWN_AT_ONCE);
    let longest = denials.iter().filter(|(it, _)| *it == Denial::Full);
    assert!(longest.map(|(_, took)| *took).max() <= Some(Duration::from_secs(6)));
}

#[tokio::test(start_paused = true)]
async fn one_address_leaves_room_in_the_queue_to_others_and_all_together_have_a_bound() {
    let (access, server) = setup(Server::slow());
    let places = Places::new();
    let mut clients = Vec::new();
    for last in 0..4 {
        clients.push(client_at(&places, last).await);
    }
    let asks = clients.iter().enumerate().flat_map(|(at, client)| {
        let access = &access;
        (0..100).map(move |n| async move { get_as(access, client, &format!("/{at}/{n}"), None).await })
    });
    let asks = join_all(asks);
    let refused = asks.await.iter().filter(|it| **it == Err(Denial::Full)).count();
    assert_eq!(refused, 400 - UNKNOWN_AT_ONCE);
    let paths = server.asked.lock().unwrap().clone();
    assert_eq!(paths, ["system:anonymous get /0/0", "system:anonymous get /0/1"]);
    assert_eq!(MAX_WAITING, 2 * MAX_WAITING_PER_ORIGIN);
}

#[tokio::test(start_paused = true)]
async fn made_up_tokens_are_asked_about_no_faster_than_ten_in_a_second() {
    let (access, server) = setup(Server::default());
    let begun = Instant::now();
    for n in 0..60 {
        assert_eq!(
            get(&access, "/metrics", Some(&n.to_string())).await,
            Err(Denial::Unknown)
        );
    }
    assert_eq!(server.asked(), 60);
    let beyond_the_burst = Duration::from_secs(4);
    assert!(begun.elapsed() >= beyond_the_burst, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_twice_at_the_same_time_is_reviewed_once() {
    let (access, server) = setup(Server {
        takes: Duration::from_secs(1),
        ..Server::default()
    });
    let asks = (0..100).map(|_| get(&access, "/metrics", Some("prometheus")));
    assert!(join_all(asks).await.iter().all(Result::is_ok));
    assert_eq!(
        *server.asked.lock().unwrap(),
        ["token prometheus", "prometheus get /metrics"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_review_that_nobody_waits_for_any_more_does_not_stand_in_the_way() {
    let (access, server) = setup(Server::slow());
    for _ in 0..100 {
        let ask = get(&access, "/metrics", Some("prometheus"));
        assert!(tokio::time::timeout(Duration::from_secs(1), ask).await.is_err());
    }
    assert_eq!(server.asked(), 100);
}

#[tokio::test(start_paused = true)]
async fn a_probe_waits_for_no_review_of_others_and_not_long_for_its_own() {
    let (access, _server) = setup(Server::slow());
    let hostile = (0..100).map(|n| get(&access, "/metrics", Some(["a", "b", "c"][n % 3])));
    let hostile = join_all(hostile);
    let probes = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let begun = Instant::now();
        assert_eq!(get(&access, "/livez", None).await, Ok(()));
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert_eq!(get(&access, "/livez", Some("prometheus")).await, Ok(()));
        assert!(
            begun.elapsed() < Duration::from_millis(500),
            "{:?}",
            begun.elapsed()
        );
    };
    tokio::join!(hostile, probes);
}

#[tokio::test(start_paused = true)]
async fn a_probe_with_a_token_is_answered_while_the_api_server_is_down() {
    let (access, _server) = setup(Server {
        is_down: true,
        ..Server::default()
    });
    assert_eq!(get(&access, "/livez", Some("prometheus")).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_scrape_that_was_granted_before_does_not_wait_behind_made_up_tokens() {
    let (access, server) = setup(Server {
        takes: Duration::from_millis(400),
        ..Server::default()
    });
    assert_eq!(get(&access, "/metrics", Some("prometheus")).await, Ok(()));
    // The answers are forgotten, but not that they were good.
    tokio::time::advance(Duration::from_secs(30)).await;
    let tokens: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let hostile = join_all(tokens.iter().map(|token| get(&access, "/metrics", Some(token))));
    let scrape = async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let begun = Instant::now();
        assert_eq!(get(&access, "/metrics", Some("prometheus")).await, Ok(()));
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    };
    tokio::join!(hostile, scrape);
    assert!(server.asked() < 20, "{}", server.asked());
}

#[tokio::test(start_paused = true)]
async fn only_a_grant_of_something_private_makes_a_client_known() {
    let (access, _server) = setup(Server::default());
    let places = Places::new();
    let client = client_at(&places, 1).await;
    for (path, token, is_known) in [
        ("/livez", "prometheus", false),
        ("/api/x", "pod", false),
        ("/version", "prometheus", false),
        ("/metrics", "prometheus", true),
    ] {
        assert_eq!(get_as(&access, &client, path, Some(token)).await, Ok(()));
        let key = Key::of(&[token.as_bytes()]);
        assert_eq!(access.granted.recall(&key).is_some(), is_known, "{path}");
    }
}
