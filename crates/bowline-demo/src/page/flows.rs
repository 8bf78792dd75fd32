//! What came of the visits of every port, second by second, as the page shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde::Serialize;

use super::seconds::Seconds;

/// Over how many seconds the rates are.
const RATE: usize = 2;

/// A place that is visited.
pub(super) type Place = (String, IpAddr, u16);

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
    pub(super) fn keep(&mut self, places: &BTreeSet<Place>) {
        self.0.retain(|place, _| places.contains(place));
        for place in places {
            self.0.entry(place.clone()).or_default();
        }
    }

    pub(super) fn note(&mut self, place: &Place, visit: anyhow::Result<String>) {
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
