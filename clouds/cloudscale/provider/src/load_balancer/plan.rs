//! Decides what comes next. Pure.
//!
//! The order of waves is the order in which traffic suffers least: a balancer that is ready, what made way before and was not
//! succeeded, members of what is served, pools,
//! members (missing ones before surplus ones go), listeners, monitors, pools that nobody leads to any more, attributes, floating IPs, and last
//! what is written to the Service. A wave is planned only when nothing is left to do in the waves before it, so a member
//! is never removed while another one that shall take over could not be created. Where members are probed elsewhere from now on, the
//! monitor of each pool and then its members change right after the members of what is served, pool by pool.

use std::sync::Arc;

use bowline_cloud_provider::{KubeWrite, LoadBalancerPlan, LoadBalancerStatus, LoadBalancerStep};
use bowline_cloudscale_client::{LoadBalancer, NewLoadBalancer, NewVipAddress};
use bowline_plan::{Answer, Note, Plan, Refusal};

use crate::load_balancer::annotations as keys;
use crate::load_balancer::evidence::{self, Found};
use crate::load_balancer::intent::{Intent, Wanted};
use crate::load_balancer::observe::Seen;
use crate::load_balancer::plan::answer::{Next, apply, wait_for, wait_to_see};
use crate::load_balancer::plan::desired::Desired;
use crate::load_balancer::plan::hrefs::Hrefs;
use crate::load_balancer::plan::members::Served;
use crate::load_balancer::plan::parts::Parts;
use crate::load_balancer::plan::texts::{foreign, member_notes, several, whose};
use crate::load_balancer::step::CloudStep;
use crate::load_balancer::{refused, status};
use crate::messages::{DUPLICATE_REMOVED, FOREIGN_KEPT};

mod absent;
mod answer;
mod attributes;
mod desired;
mod exchange;
pub(super) mod floating;
mod following;
mod guards;
pub(super) mod hrefs;
mod members;
mod parts;
pub(super) mod persisted;
mod texts;

/// Decides what comes next.
pub(crate) fn plan(hrefs: &Hrefs, intent: &Intent, seen: &Seen) -> LoadBalancerPlan<CloudStep> {
    if !seen.covers(intent) {
        // The Service or the nodes changed meanwhile: the next look reads everything.
        return Plan::new(Answer::LookAgain {
            reason: "the Service changed".to_owned(),
        });
    }
    match intent {
        Intent::Wanted(wanted) => wanted_plan(hrefs, wanted, seen),
        Intent::Unclear(unclear) => following::plan(hrefs, unclear, seen),
        Intent::Absent(identity) => absent::plan(hrefs, identity, seen),
    }
}

fn wanted_plan(hrefs: &Hrefs, wanted: &Wanted, seen: &Seen) -> LoadBalancerPlan<CloudStep> {
    let identity = &wanted.identity;
    let desired = Desired::new(&wanted.membership, seen);
    let mut notes = wanted.notes.clone();
    let mut publishes = None;
    if let Some(refusal) = guards::no_server(&desired) {
        return Plan::new(Answer::Refused(refusal)).with_notes(notes);
    }
    notes.extend(member_notes(&wanted.membership, &desired));
    let served = |balancer| Served {
        hrefs,
        tags: &wanted.tags,
        desired: &desired,
        seen,
        balancer,
    };
    let members_of_own = |own, refusal, notes: &mut Vec<Note>| match own {
        None => Answer::Refused(refusal),
        Some(own) => served(own).only_members(&wanted.backends(), Some(&wanted.monitor), refusal, notes),
    };
    let answer = match evidence::resolve(identity, &seen.balancers) {
        Found::Several { own } => {
            let refusal = several(identity, &seen.balancers.iter().collect::<Vec<_>>());
            members_of_own(own, refusal, &mut notes)
        }
        Found::Foreign { balancer, owner, own } => {
            notes.push(FOREIGN_KEPT.note(format!(
                "load balancer {} ({}) is not changed: {}",
                balancer.name,
                balancer.uuid,
                whose(identity, balancer, owner)
            )));
            let refusal = foreign(identity, balancer, owner);
            members_of_own(own, refusal, &mut notes)
        }
        Found::None => {
            let next = creation(wanted, &desired, seen);
            notes.extend(guards::gone_note(identity, seen, &next));
            next
        }
        Found::One { balancer, surplus } => {
            if !surplus.is_empty() {
                notes.push(DUPLICATE_REMOVED.note(format!(
                    "load balancer {} is kept, its duplicates are removed: {}",
                    balancer.uuid,
                    evidence::ids(&surplus)
                )));
            }
            let there = Existing {
                served: served(balancer),
                wanted,
                surplus: &surplus,
            };
            let next = there.next(&mut notes, &mut publishes);
            notes.extend(floating::moved(seen));
            next
        }
    };
    let plan = Plan::new(answer).with_notes(notes);
    match publishes {
        Some(status) => plan.publishing(status),
        None => plan,
    }
}

/// There is no balancer yet.
fn creation(wanted: &Wanted, desired: &Desired<'_>, seen: &Seen) -> Next {
    if let Some(refusal) = guards::conflict(wanted) {
        return Answer::Refused(refusal);
    }
    let zone = match guards::zone(wanted, desired) {
        Err(refusal) => return Answer::Refused(refusal),
        Ok(Some(zone)) => zone,
        Ok(None) => {
            return Answer::Refused(guards::without_zone(wanted));
        }
    };
    let new = NewLoadBalancer {
        name: wanted.identity.name.clone(),
        flavor: wanted.flavor.clone(),
        vip_addresses: wanted
            .vips
            .iter()
            .map(|vip| NewVipAddress {
                address: vip.address.map(|address| address.to_string()),
                subnet: vip.subnet.clone(),
            })
            .collect(),
        zone: Some(zone),
        tags: Arc::clone(&wanted.balancer_tags),
    };
    let mut steps = vec![CloudStep::CreateBalancer { new }];
    let not_persisted = persisted::split_off(seen, &mut steps);
    match persisted::refusal(seen, &not_persisted) {
        Some(_) if persisted::may_be_late(seen, &not_persisted) => wait_to_see(seen),
        Some(refusal) => Answer::Refused(refusal),
        None => apply(steps),
    }
}

/// A balancer that is there, and everything that its plan is made from.
struct Existing<'a> {
    served: Served<'a>,
    wanted: &'a Wanted,
    surplus: &'a [&'a LoadBalancer],
}

/// What comes next, and what came to nothing before.
#[derive(Default)]
struct NextSteps {
    steps: Vec<CloudStep>,
    not_persisted: Vec<CloudStep>,
}

impl NextSteps {
    /// Adds a wave, if none before it has a step or stands in its way. Returns whether to go on.
    fn add(&mut self, seen: &Seen, wave: Vec<CloudStep>) -> bool {
        let mut wave = seen.memory.without_stuck(wave);
        self.not_persisted.extend(persisted::split_off(seen, &mut wave));
        self.steps = wave;
        // What cannot be created is not stood in for: later waves lean on it, and none may delete its forerunner.
        self.steps.is_empty() && !self.not_persisted.iter().any(CloudStep::creates)
    }
}

impl Existing<'_> {
    fn next(&self, notes: &mut Vec<Note>, publishes: &mut Option<LoadBalancerStatus>) -> Next {
        let Served {
            hrefs,
            seen,
            balancer,
            desired,
            ..
        } = self.served;
        let wanted = self.wanted;
        if seen.memory.own.busy.is_now {
            return wait_for(balancer, seen, notes);
        }
        let parts = Parts::new(self.served, wanted);
        let mut owed = parts.owed();
        persisted::split_off(seen, &mut owed);
        if !owed.is_empty() {
            return self.served.write(owed, notes);
        }
        let href = hrefs.balancer(balancer.uuid);
        if let Some(refusal) = guards::before_change(wanted, desired, balancer, &href) {
            let (backends, monitor) = (wanted.backends(), Some(&wanted.monitor));
            return self.served.only_members(&backends, monitor, refusal, notes);
        }
        let NextSteps { steps, not_persisted } = self.next_steps(&parts, notes);
        if !steps.is_empty() {
            return self.served.write(steps, notes);
        }
        if !not_persisted.is_empty() && persisted::may_be_late(seen, &not_persisted) {
            return wait_to_see(seen);
        }
        let refusals = &seen.memory.refusals;
        let of_ports = refused::of_ports(refusals);
        let is_served = of_ports.is_none() || seen.serves_a_port();
        let refused = [
            of_ports,
            persisted::refusal(seen, &not_persisted),
            refused::of_members(refusals),
            refused::of_attributes(refusals),
            floating::refusal(wanted, seen),
        ];
        let refusal = Refusal::all(refused.iter().flatten());
        if let Some(refusal) = &refusal
            && (!is_served || not_persisted.iter().any(CloudStep::creates))
        {
            return Answer::Refused(refusal.clone());
        }
        if let Some(write) = annotations(wanted, balancer) {
            return Answer::apply_or(vec![LoadBalancerStep::Kube(write)], || {
                Answer::Settled(LoadBalancerStatus::empty())
            });
        }
        let status = match status::status(&wanted.publish, balancer) {
            Ok(status) => status,
            Err(refusal) => return Answer::Refused(refusal),
        };
        // The balancer works: what is wrong with the rest does not hide its addresses.
        match refusal {
            None => Answer::Settled(status),
            Some(refusal) => {
                *publishes = Some(status);
                Answer::Refused(refusal)
            }
        }
    }

    /// The steps of the first wave that has any.
    fn next_steps(&self, parts: &Parts<'_>, notes: &mut Vec<Note>) -> NextSteps {
        let Served {
            hrefs,
            seen,
            balancer,
            ..
        } = self.served;
        let wanted = self.wanted;
        let mut first: Vec<CloudStep> = self
            .surplus
            .iter()
            .map(|duplicate| absent::delete(hrefs, duplicate, false))
            .collect();
        if balancer.name.trim() != wanted.identity.name.trim() {
            first.push(CloudStep::RenameBalancer {
                balancer: balancer.uuid,
                name: wanted.identity.name.clone(),
            });
        }
        first.extend(parts.missing_pools());
        let mut next = NextSteps::default();
        // Whatever the API makes of all else, nobody is balanced over who left.
        if !(next.add(seen, parts.members_of_served()) && next.add(seen, parts.moved_monitors())) {
            return next;
        }
        if parts.has_no_room() {
            notes.extend(guards::quota_note(balancer, &first));
        }
        let waves: [&dyn Fn() -> Vec<CloudStep>; 5] = [
            &|| parts.members(),
            &|| parts.listeners(),
            &|| parts.monitors(),
            &|| parts.surplus_pools(),
            &|| parts.attributes(),
        ];
        if !next.add(seen, first) || !waves.iter().all(|wave| next.add(seen, wave())) {
            return next;
        }
        next.add(seen, floating::assignments(wanted, seen, balancer));
        // They go one by one, so that it is told of each that was moved whatever becomes of the others. One that the API did not keep
        // is in nobody's way.
        next.steps.truncate(1);
        next
    }
}

/// The annotations that differ, in upstream's order.
fn annotations(wanted: &Wanted, balancer: &LoadBalancer) -> Option<KubeWrite> {
    let values = [
        (keys::UUID.key, balancer.uuid.to_string()),
        (keys::CONFIG_VERSION.key, keys::CONFIG_VERSION.default.to_owned()),
        (keys::ZONE.key, balancer.zone.slug.to_string()),
    ];
    let differing: Vec<(String, Option<String>)> = values
        .into_iter()
        .filter(|(key, value)| wanted.written.get(key) != Some(value))
        .map(|(key, value)| (key.to_owned(), Some(value)))
        .collect();
    (!differing.is_empty()).then_some(KubeWrite::AnnotateService(differing))
}
