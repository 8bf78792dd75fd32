//! Addresses that are on their way, and for how long a reconcile has seen them so.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::objects::{Address, AddressState, PublicIpId};

/// The addresses that are on their way, by jobs that nobody knows. How long a reconcile has waited for other things says nothing
/// about them: the time of each one counts from the first look that shows it in its state.
#[derive(Debug, Default)]
pub(crate) struct OnTheWay {
    /// How long the reconcile had waited in all at the last look.
    now: Duration,
    since: BTreeMap<PublicIpId, (AddressState, Duration)>,
}

impl OnTheWay {
    /// A look shows these addresses; the others are as they were.
    pub(crate) fn look<'a>(&mut self, waited: Duration, shown: impl IntoIterator<Item = &'a Address>) {
        self.now = waited;
        for Address { address, state, .. } in shown {
            if !state.is_on_the_way() {
                self.since.remove(&address.id);
            } else if self
                .since
                .get(&address.id)
                .is_none_or(|(known, _)| known != state)
            {
                self.since.insert(address.id.clone(), (*state, waited));
            }
        }
    }

    /// How long an address has been on its way.
    pub(crate) fn time(&self, id: &PublicIpId) -> Duration {
        let since = self.since.get(id).map(|(_, since)| self.now - *since);
        since.unwrap_or_default()
    }

    /// How long that one is on its way which is it for longest.
    pub(crate) fn longest(&self) -> Duration {
        let all = self.since.values().map(|(_, since)| self.now - *since);
        all.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::AddressRef;

    fn shown(id: &str, state: AddressState) -> Address {
        Address {
            address: AddressRef {
                id: id.into(),
                ip: "203.0.113.1".to_owned(),
            },
            state,
            allocated: None,
            network: None,
            vpc: None,
            is_source_nat: false,
            is_static_nat: false,
        }
    }

    #[test]
    fn the_time_of_an_address_counts_from_the_first_look_that_shows_it_in_its_state() {
        use AddressState::{Allocated, Allocating, Releasing};
        let mut way = OnTheWay::default();
        let rows = [
            (0, Allocated, 0),
            (50, Allocating, 0),
            (54, Allocating, 4),
            (60, Allocating, 10),
            (62, Releasing, 0),
            (70, Releasing, 8),
            (72, Allocated, 0),
            (80, Allocating, 0),
        ];
        for (waited, state, time) in rows {
            let early = shown("early", Allocating);
            way.look(Duration::from_secs(waited), [&shown("ip", state), &early]);
            assert_eq!(way.time(&"ip".into()), Duration::from_secs(time), "{waited}");
            assert_eq!(way.longest(), Duration::from_secs(waited));
        }
        way.look(Duration::from_secs(90), []);
        assert_eq!(
            way.time(&"ip".into()),
            Duration::from_secs(10),
            "it was not looked at"
        );
        assert_eq!(way.time(&"other".into()), Duration::ZERO);
    }
}
