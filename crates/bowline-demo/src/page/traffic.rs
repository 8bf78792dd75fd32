//! Visitors of every Service with an address: real requests through the simulated load balancers.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_kit::dataplane::Transport;
use tokio::task::JoinSet;

use super::board::{Board, Known};
use super::flows::Place;
use crate::cloud::Cloud;
use crate::visitor;

/// From one visit of a port to the next: ten in a second.
const PERIOD: Duration = Duration::from_millis(100);

/// The most visits under way: what hangs must not pile up.
const UNDER_WAY: usize = 100;

/// The most ports that are visited, so that a reader's experiments stay cheap.
const PORTS: usize = 12;

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
