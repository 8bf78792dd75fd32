//! Which rules have the right members, as far as that was seen a moment ago.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use bowline_cloud_provider::Kept;
use tokio::time::Instant;

use super::observed::{Need, Seen};
use crate::load_balancer::intent::Wanted;
use crate::load_balancer::members::{self, Difference};
use crate::load_balancer::objects::{RuleId, RuleState, VirtualMachineId};

/// How long members that were right are taken to be right, as long as the Nodes are the same.
const MEMBERS_TTL: Duration = Duration::from_secs(300);

/// The same while a Node is left out: its virtual machine may come to light.
const INCOMPLETE_TTL: Duration = Duration::from_secs(60);

/// How many calls a look at an unchanged balancer may take: as long as there are fewer, members are read all the same, those
/// that were not read for the longest time first.
const CALLS: usize = 4;

/// What was seen.
#[derive(Default)]
pub(super) struct Trust {
    /// By the ID of the rule.
    rules: Kept<RuleId, Verified>,
    /// The instances of Nodes, and until when they are taken to be these.
    instances: Kept<u64, (Instant, BTreeSet<VirtualMachineId>)>,
}

/// When the members of a rule were found to be right, and for which Nodes.
#[derive(Clone, Copy)]
struct Verified {
    nodes: u64,
    at: Instant,
    /// Until when they are taken to be right.
    until: Instant,
}

impl Trust {
    /// The virtual machines of the Nodes as they were listed a moment ago.
    pub(super) fn expected(&self, wanted: &Wanted) -> Option<BTreeSet<VirtualMachineId>> {
        self.instances.with(&nodes_fingerprint(wanted), |known| {
            let (until, instances) = known.as_ref()?;
            (Instant::now() < *until).then(|| instances.clone())
        })
    }

    /// Takes rules whose members were right a moment ago off the list of what is to be read. `calls` is how many calls the look
    /// takes with all that is on the list.
    pub(super) fn trust(
        &self,
        wanted: &Wanted,
        observed: &mut Seen,
        needs: &mut BTreeSet<Need>,
        calls: usize,
    ) {
        let (nodes, now) = (nodes_fingerprint(wanted), Instant::now());
        let known = |need: &Need| {
            let Need::Members(id) = need else { return None };
            let mut rules = observed.rules.iter();
            let is_active = rules.any(|rule| rule.id == *id && rule.state == RuleState::Active);
            let known = self.rules.with(id, |known| *known).filter(|_| is_active)?;
            known.is_for(nodes, now).then(|| (known.at, id.clone()))
        };
        let mut fresh: Vec<(Instant, RuleId)> = needs.iter().filter_map(known).collect();
        fresh.sort();
        let others = calls - fresh.len();
        for (_, id) in fresh.into_iter().skip(CALLS.saturating_sub(others)) {
            needs.remove(&Need::Members(id.clone()));
            observed.memory.own.known.trusted.insert(id);
        }
    }

    /// Remembers which rules have the right members.
    pub(super) fn remember(&self, wanted: &Wanted, observed: &Seen) {
        let before = &observed.memory.own.known;
        let found = observed.members_of(&wanted.nodes);
        let named = members::named(&wanted.nodes);
        let is_right = |present: &BTreeSet<VirtualMachineId>| match &found {
            Some(found) => found.compare(present) == Difference::default(),
            None => named.as_ref() == Some(present) || before.expected.as_ref() == Some(present),
        };
        let (nodes, now) = (nodes_fingerprint(wanted), Instant::now());
        let known_until = self.instances.with(&nodes, |known| {
            if let Some(found) = &found {
                let ttl = match found.is_whole() {
                    true => MEMBERS_TTL,
                    false => INCOMPLETE_TTL,
                };
                let ids = found.instances.iter().map(|instance| instance.id.clone());
                *known = Some((now + ttl, ids.collect()));
            }
            let until = known.as_ref().map(|(until, _)| *until);
            until.filter(|until| now < *until)
        });
        // Where not all Nodes name their instances, no longer than these are known.
        let until = match (&named, known_until) {
            (None, Some(until)) => until,
            _ => now + MEMBERS_TTL,
        };
        for (rule, present) in &observed.members {
            let (is_right, is_trusted) = (is_right(present), before.trusted.contains(rule));
            self.rules.with(rule, |known| {
                if !is_right {
                    *known = None;
                } else if !is_trusted || !known.is_some_and(|known| known.is_for(nodes, now)) {
                    *known = Some(Verified {
                        nodes,
                        at: now,
                        until,
                    });
                }
            });
        }
    }
}

impl Verified {
    /// Whether it still counts for these Nodes.
    fn is_for(&self, nodes: u64, now: Instant) -> bool {
        self.nodes == nodes && now < self.until
    }
}

/// Tells one set of Nodes from another.
fn nodes_fingerprint(wanted: &Wanted) -> u64 {
    BuildHasherDefault::<DefaultHasher>::new().hash_one(&wanted.nodes)
}
