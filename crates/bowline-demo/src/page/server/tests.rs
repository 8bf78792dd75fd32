//! The page without a browser: what it refuses, what it shows, and what its buttons do to the simulated cloud.

use std::fmt::Write as _;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::args::Args;
use crate::manager::Life;
use crate::narrative::Narrator;
use crate::stage::Stage;
use crate::story;

/// How long something may take on a machine with much to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// A demo whose page can be asked.
struct Demo {
    stage: Stage,
    host: String,
    token: String,
}

impl Demo {
    async fn start(cloud: &str) -> Self {
        let args = Args::parse(["demo", "--cloud", cloud]).unwrap();
        let narrator = Narrator::new(Box::new(std::io::sink()), false);
        let stage = Stage::start(&args, narrator, &CancellationToken::new())
            .await
            .unwrap();
        let host = stage
            .page()
            .unwrap()
            .trim_start_matches("http://")
            .trim_end_matches('/')
            .to_owned();
        let mut demo = Self {
            stage,
            host,
            token: String::new(),
        };
        let (status, page) = demo.ask("GET / HTTP/1.1", &[("host", &demo.host)]).await;
        assert_eq!(status, 200, "{page}");
        let token = page.split("name=\"token\" content=\"").nth(1).unwrap();
        demo.token = token.split('"').next().unwrap().to_owned();
        demo
    }

    /// After the story, when the buttons work.
    async fn after_the_story(cloud: &str) -> Self {
        let demo = Self::start(cloud).await;
        Box::pin(story::beginning(&demo.stage)).await.unwrap();
        demo.stage.board().close(None);
        demo
    }

    /// The status and the body of an answer.
    async fn ask(&self, line: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut head = format!("{line}\r\nconnection: close\r\ncontent-length: 0\r\n");
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let mut stream = TcpStream::connect(&self.host).await.unwrap();
        stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        (status, body.unwrap_or_default())
    }

    /// As the page does it.
    async fn press(&self, deed: &str) -> (u16, String) {
        let origin = format!("http://{}", self.host);
        let headers = [
            ("host", self.host.as_str()),
            ("origin", &origin),
            ("x-demo-token", &self.token),
        ];
        self.ask(&format!("POST /do/{deed} HTTP/1.1"), &headers).await
    }

    async fn pressed(&self, deed: &str) {
        let (status, said) = self.press(deed).await;
        assert_eq!(status, 200, "{deed}: {said}");
    }

    /// Waits for a picture like this.
    async fn shows(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut stream = TcpStream::connect(&self.host).await.unwrap();
        let head = format!("GET /events HTTP/1.1\r\nhost: {}\r\n\r\n", self.host);
        stream.write_all(head.as_bytes()).await.unwrap();
        let (mut text, mut last) = (Vec::new(), Value::Null);
        let end = Instant::now() + PATIENCE;
        let mut piece = vec![0; 16384];
        loop {
            let read = tokio::time::timeout_at(end, stream.read(&mut piece)).await;
            let Ok(Ok(1..)) = read else {
                panic!("it never shows {what}; the last picture was {last:#}");
            };
            text.extend_from_slice(&piece[..read.unwrap().unwrap()]);
            while let Some(at) = text.windows(2).position(|two| two == b"\n\n") {
                let event: Vec<u8> = text.drain(..at + 2).collect();
                let event = String::from_utf8_lossy(&event).into_owned();
                let Some((_, data)) = event.split_once("data: ") else {
                    continue;
                };
                last = serde_json::from_str(data.trim()).unwrap();
                if is_it(&last) {
                    return last;
                }
            }
        }
    }

    async fn end(self) {
        self.stage.stop().await;
    }
}

fn list<'a>(picture: &'a Value, pointer: &str) -> &'a [Value] {
    picture
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn named<'a>(picture: &'a Value, pointer: &str, name: &str) -> Option<&'a Value> {
    list(picture, pointer).iter().find(|it| it["name"] == name)
}

fn has_port(picture: &Value, port: u16) -> bool {
    let ports = list(picture, "/cluster/services/0/ports");
    let is_visited = list(picture, "/traffic").iter().any(|flow| flow["port"] == port);
    is_visited && ports.iter().any(|it| it["port"] == port)
}

/// Whether the newest plan was shown before it was followed, and each of its steps was made.
fn plan_was_followed(picture: &Value, why: &str) -> bool {
    let plan = &picture["plan"];
    let mut steps = list(plan, "/waves").iter().flat_map(|wave| list(wave, ""));
    plan["why"] == why
        && !list(plan, "/waves").is_empty()
        && list(plan, "/others").is_empty()
        && steps.all(|step| step["progress"] == "done")
}

#[test]
fn the_page_is_one_piece_and_asks_nobody_else_for_anything() {
    let page = page("t0ken", "n0nce");
    assert!(!page.contains("{{"), "something was not put in");
    assert!(page.contains("content=\"t0ken\"") && page.contains("<script nonce=\"n0nce\">"));
    for word in ["https://", "src=", "@import", "url(", "style=", "onclick="] {
        assert!(!page.contains(word), "{word}");
    }
    let addresses: Vec<_> = page.split("http://").skip(1).map(|rest| &rest[..10]).collect();
    let known = ["www.w3.org", "${service."];
    assert!(
        addresses.iter().all(|address| known.contains(address)),
        "{addresses:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_from_elsewhere_are_refused() {
    let demo = Demo::start("cloudscale").await;
    demo.stage.board().close(None);
    let (host, token) = (demo.host.as_str(), demo.token.as_str());
    let origin = format!("http://{host}");
    // A name of another site that leads here, or none.
    for path in [
        "GET / HTTP/1.1",
        "GET /events HTTP/1.1",
        "POST /do/break-api HTTP/1.1",
    ] {
        let headers = [("origin", origin.as_str()), ("x-demo-token", token)];
        for named in [
            &[("host", "evil.example")][..],
            &[("host", host), ("host", "evil.example")],
        ] {
            let headers: Vec<_> = headers.iter().chain(named).copied().collect();
            let (status, _) = demo.ask(path, &headers).await;
            assert!(matches!(status, 400 | 421), "{path} {named:?}: {status}");
        }
    }
    // Another page of the same browser.
    let line = "POST /do/break-api HTTP/1.1";
    for headers in [
        &[("host", host)][..],
        &[("host", host), ("x-demo-token", token)],
        &[
            ("host", host),
            ("x-demo-token", token),
            ("origin", "http://evil.example"),
        ],
        &[("host", host), ("x-demo-token", token), ("origin", "null")],
        &[("host", host), ("origin", &origin)],
        &[("host", host), ("origin", &origin), ("x-demo-token", "guessed")],
    ] {
        assert_eq!(demo.ask(line, headers).await.0, 403, "{headers:?}");
    }
    assert!(!demo.stage.cloud().has_outage());
    assert_eq!(
        demo.ask("GET /do/break-api HTTP/1.1", &[("host", host)]).await.0,
        405
    );
    assert_eq!(demo.press("format-disk").await.0, 404);
    assert_eq!(demo.press("mend-api").await.0, 409, "there is no outage");
    assert_eq!(demo.press("break-api").await.0, 200);
    assert!(demo.stage.cloud().has_outage());
    demo.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn buttons_do_nothing_while_the_story_is_told() {
    let demo = Demo::start("cloudscale").await;
    let (status, said) = demo.press("kill-manager").await;
    assert_eq!(status, 409);
    assert!(said.contains("story first"), "{said}");
    demo.end().await;
}

/// The story's Service: its traffic, and its plan ticked off, in every cloud.
#[tokio::test(flavor = "multi_thread")]
async fn the_story_is_shown_in_every_cloud() {
    for cloud in crate::CLOUDS {
        let demo = Demo::after_the_story(cloud).await;
        let picture = demo
            .shows("the plan followed, and traffic", |picture| {
                plan_was_followed(picture, "the Service becomes a LoadBalancer") && has_port(picture, 8080)
            })
            .await;
        assert_eq!(list(&picture, "/cloud/servers").len(), 3, "{cloud}");
        assert_eq!(list(&picture, "/cluster/nodes").len(), 3, "{cloud}");
        assert!(
            !list(&picture, "/cloud/things/0/parts").is_empty(),
            "{cloud}: {picture:#}"
        );
        assert_eq!(picture["manager"]["role"], "leads", "{cloud}");
        demo.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_come_and_go_and_so_does_the_service() {
    let demo = Demo::after_the_story("cloudscale").await;
    demo.pressed("add-port").await;
    demo.shows("the port open as planned", |picture| {
        plan_was_followed(picture, "port 8081 is added") && has_port(picture, 8081)
    })
    .await;
    demo.pressed("remove-port").await;
    demo.shows("the port closed as planned", |picture| {
        plan_was_followed(picture, "port 8081 is removed") && !has_port(picture, 8081)
    })
    .await;
    demo.pressed("delete-service").await;
    demo.shows("no Service and no balancer", |picture| {
        plan_was_followed(picture, "the Service web is deleted")
            && list(picture, "/cluster/services").is_empty()
            && list(picture, "/cloud/things").is_empty()
    })
    .await;
    assert_eq!(demo.press("add-port").await.0, 409);
    demo.pressed("create-service").await;
    demo.shows("the Service again", |picture| {
        plan_was_followed(picture, "the Service web is made again") && has_port(picture, 8080)
    })
    .await;
    demo.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_are_stopped_started_and_deleted() {
    let demo = Demo::after_the_story("cloudscale").await;
    demo.pressed("stop-server/demo-node-2").await;
    demo.shows("the tainted Node", |picture| {
        named(picture, "/cloud/servers", "demo-node-2").is_some_and(|it| it["is_on"] == false)
            && named(picture, "/cluster/nodes", "demo-node-2").is_some_and(|it| it["is_shut_down"] == true)
    })
    .await;
    assert_eq!(demo.press("stop-server/demo-node-2").await.0, 409, "it is off");
    demo.pressed("start-server/demo-node-2").await;
    demo.shows("the Node free of its taint", |picture| {
        named(picture, "/cluster/nodes", "demo-node-2")
            .is_some_and(|it| it["is_shut_down"] == false && it["ready"] == "True")
    })
    .await;
    demo.pressed("delete-server/demo-node-3").await;
    demo.shows("neither Node nor member", |picture| {
        named(picture, "/cluster/nodes", "demo-node-3").is_none()
            && named(picture, "/cloud/servers", "demo-node-3").is_none()
            && plan_was_followed(picture, "once the Node demo-node-3 is deleted")
            && list(picture, "/cloud/things/0/parts/0/parts").len() == 2
    })
    .await;
    assert_eq!(demo.press("delete-server/demo-node-3").await.0, 409, "it is gone");
    demo.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_shown_and_the_work_is_finished_after_it() {
    let demo = Demo::after_the_story("cloudscale").await;
    demo.pressed("break-api").await;
    demo.pressed("add-port").await;
    demo.shows("the failure", |picture| {
        picture["cloud"]["is_broken"] == true
            && picture["cluster"]["services"][0]["event"]["reason"] == "SyncLoadBalancerFailed"
            && picture["plan"]["is_stuck"] == true
    })
    .await;
    demo.pressed("mend-api").await;
    demo.shows("the port open", |picture| has_port(picture, 8081))
        .await;
    demo.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_manager_comes_back_and_finishes_what_was_begun() {
    let demo = Demo::after_the_story("cloudscale").await;
    let before = demo.stage.manager().life();
    demo.pressed("add-port").await;
    demo.pressed("kill-manager").await;
    // What lasts: a picture of the two seconds without a process, or of its wait for the lease, may come too late for them.
    demo.shows("that another process leads, and the port open", |picture| {
        let life = demo.stage.manager().life();
        let is_another = life != before && matches!(life, Life::Runs(_));
        is_another && picture["manager"]["role"] == "leads" && has_port(picture, 8081)
    })
    .await;
    demo.end().await;
}
