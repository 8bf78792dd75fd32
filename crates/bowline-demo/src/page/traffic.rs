//! Visitors of every Service with an address: real requests through the simulated load balancers, and what came of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_kit::dataplane::Transport;
use serde::Serialize;
use tokio::task::JoinSet;

use super::board::{Board, Known};
use super::seconds::Seconds;
use crate::cloud::Cloud;
use crate::visitor;

/// From one visit of a port to the next: ten in a second.
const PERIOD: Duration = Duration::from_millis(100);

/// The most visits under way: what hangs must not pile up.
const UNDER_WAY: usize = 100;

/// The most ports that are visited, so that a reader's experiments stay cheap.
const PORTS: usize = 12;

/// Over how many seconds the rates are.
const RATE: usize = 2;

/// A place that is visited.
type Place = (String, IpAddr, u16);

/// What came of the visits of one second.
#[derive(Clone, Debug, Default)]
struct Visits {
    answered: BTreeMap<String, u32>,
    failed: u32,
}

/// The visits of one port.
#[derive(Debug, Default)]
struct Flow {
    seconds: Seconds<Visits>,
    /// Whether it ever answered. Until then nobody was promised anything.
    is_open: bool,
    failed: u64,
    last_error: Option<String>,
}

/// All visits.
#[derive(Debug, Default)]
pub(super) struct Flows(BTreeMap<Place, Flow>);

/// The visits of one port, as the page shows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Shown {
    service: String,
    address: IpAddr,
    port: u16,
    is_open: bool,
    /// In a second.
    rate: u32,
    failing: u32,
    /// In a second, by instance.
    answered_by: BTreeMap<String, u32>,
    /// Since the port opened.
    failed: u64,
    last_error: Option<String>,
    /// Good and failed ones of each second.
    history: Vec<(u32, u32)>,
}

impl Flows {
    pub(super) fn shown(&mut self) -> Vec<Shown> {
        let flows = self.0.iter_mut().filter(|(_, flow)| flow.is_open);
        flows.map(|(place, flow)| flow.shown(place)).collect()
    }

    /// Forgets what nobody asks for any more.
    fn keep(&mut self, places: &BTreeSet<Place>) {
        self.0.retain(|place, _| places.contains(place));
        for place in places {
            self.0.entry(place.clone()).or_default();
        }
    }

    fn note(&mut self, place: &Place, visit: anyhow::Result<String>) {
        // A visit may end after its Service has.
        let Some(flow) = self.0.get_mut(place) else {
            return;
        };
        match visit {
            Ok(instance) => {
                flow.is_open = true;
                *flow.seconds.now().answered.entry(instance).or_default() += 1;
            }
            Err(error) if flow.is_open => {
                flow.seconds.now().failed += 1;
                flow.failed += 1;
                flow.last_error = Some(format!("{error:#}"));
            }
            Err(_) => {}
        }
    }
}

impl Flow {
    fn shown(&mut self, (service, address, port): &Place) -> Shown {
        let mut answered_by: BTreeMap<String, u32> = BTreeMap::new();
        let (mut answered, mut failing) = (0, 0);
        for visits in self.seconds.over().rev().take(RATE) {
            failing += visits.failed;
            for (instance, times) in &visits.answered {
                answered += times;
                *answered_by.entry(instance.clone()).or_default() += times;
            }
        }
        // Half a visit in a second is one: a share that is there is shown.
        let rate = |times: u32| times.div_ceil(u32::try_from(RATE).unwrap_or(1));
        answered_by.values_mut().for_each(|times| *times = rate(*times));
        Shown {
            service: service.clone(),
            address: *address,
            port: *port,
            is_open: self.is_open,
            rate: rate(answered),
            failing: rate(failing),
            answered_by,
            failed: self.failed,
            last_error: self.last_error.clone(),
            history: self
                .seconds
                .over()
                .map(|visits| (visits.answered.values().sum(), visits.failed))
                .collect(),
        }
    }
}

/// Visits for ever; drop it to stop.
pub(super) async fn run(cloud: Arc<dyn Cloud>, board: Board) {
    let mut visits = JoinSet::new();
    loop {
        while visits.try_join_next().is_some() {}
        let places = places(&board.lock());
        board.lock().flows.keep(&places);
        for place in places {
            if visits.len() >= UNDER_WAY {
                break;
            }
            let (cloud, board) = (Arc::clone(&cloud), board.clone());
            visits.spawn(async move {
                let visit = visit(&*cloud, place.1, place.2).await;
                board.lock().flows.note(&place, visit);
            });
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Every TCP port of every Service with an address that can be reached here.
fn places(known: &Known) -> BTreeSet<Place> {
    let services = known.services.values();
    let places = services.flat_map(|service| {
        let addresses = service.addresses.iter().filter_map(|text| text.parse().ok());
        let addresses = addresses.filter(IpAddr::is_ipv4);
        addresses.flat_map(move |address: IpAddr| {
            let ports = service.ports.iter().filter(|port| port.protocol == "TCP");
            ports.map(move |port| (service.object(), address, port.port))
        })
    });
    places.take(PORTS).collect()
}

/// Which instance answers.
async fn visit(cloud: &dyn Cloud, address: IpAddr, port: u16) -> anyhow::Result<String> {
    let page = visitor::visit(cloud, address, port).await?;
    let instance = visitor::instance(&page).map(str::to_owned);
    instance.ok_or_else(|| anyhow::anyhow!("a strange page: {page}"))
}

/// Where a person finds the first open port of a Service on this machine.
pub(super) fn entry(cloud: &dyn Cloud, address: IpAddr, port: u16) -> Option<SocketAddr> {
    cloud.listener(Transport::Tcp, address, port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        ("default/web".to_owned(), IpAddr::from([127, 0, 0, 9]), 80)
    }

    #[tokio::test(start_paused = true)]
    async fn failures_count_from_the_first_answer_on() {
        let mut flows = Flows::default();
        flows.keep(&BTreeSet::from([place()]));
        flows.note(&place(), Err(anyhow::anyhow!("nothing listens")));
        assert!(flows.shown().is_empty(), "it is not open yet");
        for instance in ["a", "b", "a"] {
            flows.note(&place(), Ok(instance.to_owned()));
        }
        flows.note(&place(), Err(anyhow::anyhow!("refused")));
        tokio::time::advance(Duration::from_millis(1100)).await;
        let shown = &flows.shown()[0];
        assert_eq!(shown.history, [(3, 1)]);
        assert_eq!((shown.rate, shown.failing, shown.failed), (2, 1, 1));
        assert_eq!(shown.answered_by.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(shown.last_error.as_deref(), Some("refused"));
        flows.keep(&BTreeSet::new());
        flows.note(&place(), Ok("a".to_owned()));
        assert!(flows.shown().is_empty(), "its Service is gone");
    }
}
