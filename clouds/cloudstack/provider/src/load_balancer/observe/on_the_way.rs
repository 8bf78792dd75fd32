//! Addresses that are on their way, and for how long a reconcile has seen them so.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::load_balancer::objects::{Address, AddressState, PublicIpId};

/// The addresses that are on their way, by jobs that nobody knows. How long a reconcile has waited for other things says nothing
/// about them: the time of each one counts from the first look that shows it in its state.
#[derive(Debug, Default)]
pub(crate) struct OnTheWay {
    /// How long the reconcile had waited in all at the last look.
    now: Duration,
    since: BTreeMap<PublicIpId, (AddressState, Duration)>,
}

impl OnTheWay {
    /// A look shows the addresses so; those that it did not look for are as they were.
    pub(crate) fn look<'a>(
        &mut self,
        waited: Duration,
        is_absent: impl Fn(&PublicIpId) -> bool,
        shown: impl Iterator<Item = &'a Address>,
    ) {
        self.now = waited;
        self.since.retain(|id, _| !is_absent(id));
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

    /// How long that one of the addresses of a look has been on its way which is it for longest.
    pub(crate) fn longest<'a>(&self, shown: impl Iterator<Item = &'a Address>) -> Duration {
        let all = shown.map(|known| self.time(&known.address.id));
        all.max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_balancer::objects::AddressRef;
    use crate::load_balancer::observe::observed::Observed;

    /// A look at an address; nobody has it if it has no state.
    fn look(state: Option<AddressState>) -> Observed {
        let address = state.map(|state| Address {
            address: AddressRef {
                id: "ip".into(),
                ip: "203.0.113.1".to_owned(),
            },
            state,
            allocated: None,
            network: None,
            vpc: None,
            is_source_nat: false,
            is_static_nat: false,
        });
        Observed {
            addresses: [("ip".into(), address)].into(),
            ..Observed::default()
        }
    }

    #[test]
    fn the_time_of_an_address_counts_from_the_first_look_that_shows_it_in_its_state() {
        use AddressState::{Allocated, Allocating, Releasing};
        let id = PublicIpId::from("ip");
        let mut way = OnTheWay::default();
        for (waited, state, time) in [
            (0, Some(Allocated), 0),
            (50, Some(Allocating), 0),
            (54, Some(Allocating), 4),
            (60, Some(Allocating), 10),
            (62, Some(Releasing), 0),
            (70, Some(Releasing), 8),
            (72, Some(Allocated), 0),
            (80, Some(Allocating), 0),
            (84, None, 0),
            (90, Some(Allocating), 0),
            (94, Some(Allocating), 4),
        ] {
            let (waited, time) = (Duration::from_secs(waited), Duration::from_secs(time));
            let observed = look(state);
            observed.time(&mut way, waited);
            assert_eq!(
                (way.time(&id), way.longest(observed.known_addresses())),
                (time, time),
                "{waited:?}"
            );
        }
        let elsewhere = Observed::default();
        elsewhere.time(&mut way, Duration::from_secs(100));
        assert_eq!(way.time(&id), Duration::from_secs(10), "it was not looked for");
        assert_eq!(way.longest(elsewhere.known_addresses()), Duration::ZERO);
    }
}
