//! The picture that the page draws: everything at one moment, as plain data.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use super::board::Known;
use super::calls::{self, Counter};
use super::cluster::{Event, Node, Service};
use super::hands::{self, Hands};
use super::{flows, plan, traffic};
use crate::cloud::{Cloud, Instance, Thing};
use crate::manager::Life;
use crate::narrative::Line;

/// How often it is drawn at most.
const PERIOD: Duration = Duration::from_millis(250);

#[derive(Serialize)]
struct Picture<'a> {
    cluster: Cluster<'a>,
    cloud: CloudPicture<'a>,
    traffic: Vec<flows::Shown>,
    manager: ManagerPicture,
    plan: Option<&'a plan::Shown>,
    lines: Vec<LinePicture<'a>>,
    hands: HandsPicture<'a>,
}

#[derive(Serialize)]
struct Cluster<'a> {
    nodes: Vec<&'a Node>,
    services: Vec<ServicePicture<'a>>,
}

#[derive(Serialize)]
struct ServicePicture<'a> {
    #[serde(flatten)]
    service: &'a Service,
    event: Option<&'a Event>,
    /// Where it can be visited from this machine.
    entry: Option<SocketAddr>,
}

#[derive(Serialize)]
struct CloudPicture<'a> {
    title: &'a str,
    url: String,
    is_broken: bool,
    servers: Vec<Server>,
    things: Vec<Thing>,
    /// Instances by the pod network that is sent to them.
    routes: BTreeMap<String, String>,
    bill: Option<String>,
    calls: calls::Shown,
}

#[derive(Serialize)]
struct Server {
    name: String,
    is_on: bool,
    address: String,
    kind: String,
    zone: Option<String>,
}

impl Server {
    fn of(instance: Instance) -> Self {
        Self {
            address: instance.address().to_string(),
            name: instance.name,
            is_on: instance.is_on,
            kind: instance.instance_type,
            zone: instance.zone,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    Leads,
    Waits,
    Killed,
    Ended,
}

#[derive(Serialize)]
struct ManagerPicture {
    role: Role,
    text: &'static str,
}

#[derive(Serialize)]
struct LinePicture<'a> {
    number: u64,
    /// Since the start of the demo, in tenths of a second.
    tenths: u128,
    /// The word that the line begins with, such as `node` or `cloud`.
    kind: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct HandsPicture<'a> {
    closed: Option<&'a str>,
    /// Which port comes next; `None` if there are enough.
    next_port: Option<u16>,
    /// Which port was added last.
    last_port: Option<u16>,
    /// Whether the demo's Service is not there.
    can_create: bool,
}

/// Draws for ever, and publishes what differs; drop it to stop.
pub(super) async fn run(hands: Arc<Hands>, pictures: watch::Sender<Arc<str>>) {
    let mut counter = Counter::new(hands.cloud.journal().clone());
    loop {
        let picture = draw(&hands, &mut counter);
        pictures.send_if_modified(|known| {
            let differs = **known != *picture;
            if differs {
                *known = picture.into();
            }
            differs
        });
        tokio::time::sleep(PERIOD).await;
    }
}

/// The picture of this moment, as JSON.
fn draw(hands: &Hands, counter: &mut Counter) -> String {
    let cloud = &*hands.cloud;
    let lines = hands.narrator.recent();
    let life = hands.manager.life();
    let mut known = hands.board.lock();
    let traffic = known.flows.shown();
    let known = &*known;
    let mut nodes: Vec<&Node> = known.nodes.values().collect();
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    let mut services: Vec<ServicePicture<'_>> = known
        .services
        .values()
        .map(|it| service(it, known, cloud))
        .collect();
    services.sort_by_key(|it| it.service.object());
    let own = known.services.values().find(|it| hands::is_own(it));
    let picture = Picture {
        cluster: Cluster { nodes, services },
        cloud: CloudPicture {
            title: cloud.title(),
            url: cloud.url(),
            is_broken: cloud.has_outage(),
            servers: cloud.instances().into_iter().map(Server::of).collect(),
            things: cloud.things(),
            routes: cloud.routes().unwrap_or_default(),
            bill: cloud.bill(),
            calls: counter.shown(),
        },
        traffic,
        manager: manager(&life, known.holder.as_deref()),
        plan: known.plans.last(),
        lines: lines.iter().map(line).collect(),
        hands: HandsPicture {
            closed: known.closed.as_deref(),
            next_port: own.and_then(hands::next_port),
            last_port: own.and_then(hands::last_port),
            can_create: own.is_none(),
        },
    };
    // The types above serialise without error: no map with keys that are not strings, no foreign code.
    serde_json::to_string(&picture).unwrap_or_else(|_| Value::Null.to_string())
}

fn service<'a>(service: &'a Service, known: &'a Known, cloud: &dyn Cloud) -> ServicePicture<'a> {
    let mut addresses = service.addresses.iter().filter_map(|text| text.parse().ok());
    let port = service.ports.first().map(|port| port.port);
    ServicePicture {
        service,
        event: known.events.get(&format!("Service/{}", service.object())),
        entry: port.and_then(|port| addresses.find_map(|address| traffic::entry(cloud, address, port))),
    }
}

fn manager(life: &Life, holder: Option<&str>) -> ManagerPicture {
    let (role, text) = match life {
        Life::Runs(own) if holder == Some(own) => (Role::Leads, "leads"),
        Life::Runs(_) if holder.is_some() => (
            Role::Waits,
            "runs again, and waits until the lease of the killed process is over",
        ),
        Life::Runs(_) => (Role::Waits, "waits for the lease"),
        Life::Killed => (Role::Killed, "is killed, and will be started again"),
        Life::Ended => (Role::Ended, "has ended"),
    };
    ManagerPicture { role, text }
}

fn line(line: &Line) -> LinePicture<'_> {
    let (kind, text) = match line.text.split_once("  ") {
        _ if line.is_chapter => ("chapter", line.text.as_str()),
        Some((kind, text)) if !kind.contains(' ') => (kind, text.trim_start()),
        _ => match line.text.split_once(' ') {
            Some((kind @ ("service" | "FAILED"), text)) => (kind, text.trim_start()),
            _ => ("", line.text.as_str()),
        },
    };
    LinePicture {
        number: line.number,
        tenths: line.milliseconds / 100,
        kind,
        text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_of_the_kind_that_it_begins_with() {
        let kind = |text: &str, is_chapter| {
            let told = Line {
                number: 1,
                milliseconds: 1250,
                is_chapter,
                text: text.to_owned(),
            };
            let shown = line(&told);
            assert_eq!(shown.tenths, 12);
            (shown.kind.to_owned(), shown.text.to_owned())
        };
        let own = |kind: &str, text: &str| (kind.to_owned(), text.to_owned());
        assert_eq!(kind("node    a registers", false), own("node", "a registers"));
        assert_eq!(
            kind("service web is there", false),
            own("service", "web is there")
        );
        assert_eq!(kind("the manager  starts", false), own("", "the manager  starts"));
        assert_eq!(kind("node  A story", true), own("chapter", "node  A story"));
    }

    #[test]
    fn only_the_process_that_holds_the_lease_leads_and_one_that_is_killed_is_shown_so() {
        let runs = Life::Runs("demo_1".to_owned());
        assert_eq!(manager(&runs, Some("demo_1")).text, "leads");
        assert!(manager(&runs, Some("demo_0")).text.contains("waits until"));
        assert_eq!(manager(&runs, None).text, "waits for the lease");
        assert!(matches!(
            manager(&Life::Killed, Some("demo_1")).role,
            Role::Killed
        ));
    }
}
