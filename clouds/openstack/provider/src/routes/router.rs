//! Writes of the router.

use bowline_cloud_provider::CloudError;
use bowline_openstack_client::{ApiError, Class, RouterId, RouterRoute};

use super::RouteTable;
use super::change::{Change, Results, TRIES, is_same};
use super::extensions::Mode;

/// An older Neutron's word for a router that has as many routes as it may have (`max_routes`). A newer one has a quota for
/// them (`quota_router_route`).
const FULL: &str = "RoutesExhausted";

/// Why a write of the router failed.
enum RouterError {
    Api(ApiError),
    Other(CloudError),
}

impl RouterError {
    /// Whether Neutron refused what was asked for, so that a part of it may be taken.
    fn is_about_what_is_asked(&self) -> bool {
        self.is_full() || matches!(self, Self::Api(error) if error.class == Class::Invalid)
    }

    fn is_full(&self) -> bool {
        matches!(self, Self::Api(error) if error.class == Class::Exhausted || error.word.as_deref() == Some(FULL))
    }

    /// Neutron looks at all routes of the router at each write, also at those that are no part of it (`_update_extra_routes` in
    /// `neutron/db/extraroute_db.py`).
    fn of_router(self, router: &RouterId) -> CloudError {
        CloudError::from(self).context(format!(
            "router {router} takes no change of its routes, because of one that it has or of how many it has; correct the route \
             (`openstack router show`), or raise `quota_router_route` of Neutron"
        ))
    }

    /// Whether the router may have been changed all the same.
    fn is_uncertain(&self) -> bool {
        matches!(self, Self::Api(error) if error.maybe_applied())
    }
}

impl From<RouterError> for CloudError {
    fn from(error: RouterError) -> Self {
        match error {
            RouterError::Api(mut error) => {
                error.message = error.message.map(without_list);
                Self::of_write(error)
            }
            RouterError::Other(error) => error,
        }
    }
}

/// A message without the list of all routes that are in it, with which it would be news whenever any route changes.
fn without_list(message: Box<str>) -> Box<str> {
    match (message.find(": [{"), message.rfind("}]")) {
        (Some(begin), Some(end)) if begin < end => {
            format!("{}{}", &message[..begin], &message[end + 2..]).into()
        }
        _ => message,
    }
}

/// So many writes of one kind may fail in one call in a way that names no route. Then the API itself is in trouble, and what is left
/// waits for the next call.
const FAILURES_PER_CALL: usize = 2;

impl RouteTable {
    /// Makes these changes of the router's list with as few writes as it takes: one, or two where routes are added and
    /// removed by calls of their own. Says whether the list is surely what it is meant to be, but for what failed.
    ///
    /// Neutron refuses all routes of a request because of a single one, such as one to an address on no subnet of the router
    /// or one more than there may be. Then the halves are tried by themselves, down to the one that is refused. Where the router
    /// was full the last time, a single route finds out whether it still is. A router that takes no change at all is told as that, and nothing is
    /// tried by itself. Where it failed without such a word, see [`Portion`].
    pub(super) async fn change_router(
        &self,
        mode: Mode,
        changes: Vec<&Change>,
        results: &mut Results,
    ) -> bool {
        let mut is_certain = true;
        // Of removals and of additions: what cannot be removed says nothing about what is added.
        let mut failures = [0, 0];
        let was_full = std::mem::take(&mut self.state().is_full);
        let (mut creations, mut deletions): (Vec<&Change>, Vec<&Change>) =
            changes.into_iter().partition(|change| change.is_creation);
        let turn = self.state().portion.turn();
        for changes in [&mut creations, &mut deletions] {
            let turn = turn.checked_rem(changes.len()).unwrap_or_default();
            changes.rotate_left(turn);
        }
        let mut is_probed = false;
        // The last one is taken first.
        let mut open = match mode {
            _ if was_full && deletions.is_empty() && creations.len() > 1 => {
                let others = creations.split_off(1);
                vec![others, creations]
            }
            Mode::Atomic => vec![creations, deletions],
            Mode::Classic => vec![[deletions, creations].concat()],
        };
        while let Some(mut part) = open.pop() {
            if part.is_empty() {
                continue;
            }
            let most = self.state().portion.most;
            if part.len() > most {
                open.push(part.split_off(most));
            }
            let Err(error) = self.write(mode, &part).await else {
                self.state().portion.made();
                continue;
            };
            // That there is no room for more says nothing of what is there.
            let has_no_room = error.is_full() && part.iter().all(|change| change.is_creation);
            let may_be_of_router = (part.len() > 1 || !part[0].is_creation) && !has_no_room;
            if error.is_about_what_is_asked()
                && may_be_of_router
                && !std::mem::replace(&mut is_probed, true)
                && let Err(error) = self.probe(mode).await
                && error.is_about_what_is_asked()
            {
                let error = error.of_router(&self.router);
                open.push(part);
                open.into_iter().for_each(|part| results.fail(part, &error));
                return is_certain;
            }
            if error.is_about_what_is_asked() && part.len() > 1 {
                let second = part.split_off(part.len() / 2);
                open.extend([second, part]);
                continue;
            }
            let mut given_up = None;
            if !error.is_about_what_is_asked() {
                self.state().portion.failed(part.len());
                let of_kind = &mut failures[usize::from(part[0].is_creation)];
                *of_kind += 1;
                if *of_kind == FAILURES_PER_CALL {
                    given_up = Some(part[0].is_creation);
                }
            }
            is_certain &= !error.is_uncertain();
            let is_full = error.is_full();
            let mut error = CloudError::from(error);
            if is_full {
                error = error.context(format!(
                    "router {} takes no more routes; whoever runs the cloud can raise `quota_router_route` of Neutron \
                     (`max_routes` in older versions)",
                    self.router
                ));
            }
            results.fail(part, &error);
            if let Some(kind) = given_up {
                for part in &mut open {
                    results.fail(part.extract_if(.., |change| change.is_creation == kind), &error);
                }
            }
            if is_full {
                self.state().is_full = true;
                // No other route finds a place either.
                for part in &mut open {
                    let creations = part.extract_if(.., |change| change.is_creation);
                    results.fail(creations, &error);
                }
            }
        }
        is_certain
    }

    /// A write that changes nothing.
    async fn probe(&self, mode: Mode) -> Result<(), RouterError> {
        match mode {
            Mode::Atomic => self.remove(&[]).await,
            Mode::Classic => {
                let router = self.read_router().await.map_err(RouterError::Other)?;
                let (routes, revision) = (&router.routes, router.revision_number);
                let written = self.client.replace_routes(&self.router, routes, revision).await;
                written.map(drop).map_err(RouterError::Api)
            }
        }
    }

    /// Takes back routes that were added in vain. A failure is told, and leaves a doubt.
    pub(super) async fn take_back(&self, mode: Mode, creations: Vec<&Change>) -> bool {
        if creations.is_empty() {
            return true;
        }
        let routes: Vec<&RouterRoute> = creations.iter().map(|change| &change.route).collect();
        let taken = match mode {
            Mode::Atomic => self.remove(&routes).await,
            Mode::Classic => self.replace(&[], &routes).await,
        };
        if let Err(error) = taken {
            let error = CloudError::from(error);
            tracing::warn!(router = %self.router, routes = routes.len(), err = %error, "Failed to take back routes whose ports could not be changed; they are looked at again with the next list");
            return false;
        }
        true
    }

    /// One part: of one kind, unless all routes are replaced.
    async fn write(&self, mode: Mode, part: &[&Change]) -> Result<(), RouterError> {
        let of_kind = |is_creation| {
            let part = part
                .iter()
                .filter(move |change| change.is_creation == is_creation);
            part.map(|change| &change.route).collect::<Vec<_>>()
        };
        let (added, removed) = (of_kind(true), of_kind(false));
        match mode {
            Mode::Classic => self.replace(&added, &removed).await,
            Mode::Atomic if added.is_empty() => self.remove(&removed).await,
            Mode::Atomic => {
                let added: Vec<RouterRoute> = added.into_iter().cloned().collect();
                let written = self.client.add_routes(&self.router, &added).await;
                written.map(drop).map_err(RouterError::Api)
            }
        }
    }

    async fn remove(&self, routes: &[&RouterRoute]) -> Result<(), RouterError> {
        let routes: Vec<RouterRoute> = routes.iter().copied().cloned().collect();
        let written = self.client.remove_routes(&self.router, &routes).await;
        written.map(drop).map_err(RouterError::Api)
    }

    /// Reads the list and writes it anew, unless it is right already. Whoever changed it meanwhile loses nothing: the write is
    /// bound to the revision that was read, and read again if that is outdated.
    async fn replace(&self, added: &[&RouterRoute], removed: &[&RouterRoute]) -> Result<(), RouterError> {
        let mut tries = 1;
        loop {
            let router = self.read_router().await.map_err(RouterError::Other)?;
            let Some(routes) = merged(&router.routes, added, removed) else {
                return Ok(());
            };
            let written = self
                .client
                .replace_routes(&self.router, &routes, router.revision_number)
                .await;
            match written {
                Err(error) if error.is_outdated() && tries < TRIES => tries += 1,
                written => return written.map(drop).map_err(RouterError::Api),
            }
        }
    }
}

/// The list with these routes and without those; `None` if that is no change.
fn merged(
    there: &[RouterRoute],
    added: &[&RouterRoute],
    removed: &[&RouterRoute],
) -> Option<Vec<RouterRoute>> {
    let mut routes = there.to_vec();
    for route in removed {
        if let Some(place) = routes.iter().position(|one| is_same(one, route)) {
            routes.remove(place);
        }
    }
    for route in added {
        if !routes.iter().any(|one| is_same(one, route)) {
            routes.push((*route).clone());
        }
    }
    (routes != there).then_some(routes)
}

#[cfg(test)]
mod tests {
    use super::super::change::tests::router_route;
    use super::*;

    #[test]
    fn other_routes_stay_and_what_is_right_is_not_written() {
        let (vpn, one) = (
            router_route("192.168.0.0/16", "10.0.0.2"),
            router_route("10.244.1.0/24", "10.0.0.11"),
        );
        let two = router_route("10.244.2.0/24", "10.0.0.12");
        let there = [vpn.clone(), one.clone()];
        assert_eq!(
            merged(&there, &[&two], &[&one]),
            Some(vec![vpn.clone(), two.clone()])
        );
        assert_eq!(merged(&there, &[&one], &[&two]), None);
        // The same destination through another address is another route.
        let moved = router_route("10.244.1.0/24", "10.0.0.12");
        assert_eq!(merged(&there, &[], &[&moved]), None);
        assert_eq!(merged(&there, &[&moved], &[&one]), Some(vec![vpn, moved]));
    }
}
