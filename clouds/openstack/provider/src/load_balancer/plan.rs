//! Decides what comes next. Pure.
//!
//! The order is the one in which traffic suffers least, and which a process that stops at any point can be taken over in: the
//! load balancer, its name on the Service before anything is waited for, a former name, its parts port by port, its tags, the
//! address, and last the security group.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use bowline_cloud_provider::{LoadBalancerPlan, LoadBalancerStatus, LoadBalancerStep};
use bowline_openstack_client::{LoadBalancer, LoadBalancerId, LoadBalancerUpdate, ProvisioningStatus};
use bowline_plan::{Answer, Note, Plan, Refusal, Step as _, refusal};

use crate::load_balancer::annotations as keys;
use crate::load_balancer::evidence::{self, Found, Role};
use crate::load_balancer::features::Features;
use crate::load_balancer::intent::settings::Bars;
use crate::load_balancer::intent::{Intent, Wanted};
use crate::load_balancer::memory::{Memory, PartRefusals as _, Seen, is_late};
use crate::load_balancer::observe::view::{Need, View};
use crate::load_balancer::observed::{Observed, Parts, is_pending};
use crate::load_balancer::remedies;
use crate::load_balancer::status;
use crate::load_balancer::step::{CloudStep, PartChange};
use crate::load_balancer::tags;
use crate::messages::{DUPLICATE_REMOVED, IN_ERROR, LEFT, QUOTA_MET, RENAMED};

mod absent;
mod attributes;
pub(crate) mod creation;
pub(crate) mod dangling;
mod desired;
pub(crate) mod failed;
pub(crate) mod floating;
mod following;
mod groups;
mod guards;
mod ignored;
pub(crate) mod next;
pub(crate) mod parts;
mod placement;
mod pools;
pub(crate) mod rename;
mod sharing;
mod shown;
mod waiting;

use absent::Left;
use floating::Addressing;
use guards::{several, source_ranges_note};
use next::{Next, annotate, apply, delete_unserving, look_again};
use parts::PartsPlan;
use waiting::wait_for;

/// Decides what comes next.
pub(crate) fn plan(intent: &Intent, seen: &Seen) -> LoadBalancerPlan<CloudStep> {
    let view = View::of(seen);
    let plan = decide(intent, &view);
    match view.lacking() {
        needs if needs.is_empty() => plan,
        needs => Plan::new(Answer::LookAgain {
            reason: format!("{needs:?} must be read"),
        }),
    }
}

/// What has to be read before anything can be decided.
pub(crate) fn needs(intent: &Intent, observed: &Observed, memory: &Memory) -> Vec<Need> {
    let view = View::new(observed, memory);
    decide(intent, &view);
    view.lacking()
}

fn decide(intent: &Intent, seen: &View<'_>) -> LoadBalancerPlan<CloudStep> {
    let wanted = match intent {
        Intent::Absent(identity) => {
            let plan = Plan::new(absent::plan(identity, seen));
            return plan.with_notes(absent::kept_note(identity, seen).into_iter().collect());
        }
        Intent::Wanted(wanted) => wanted,
    };
    let mut plan = wanted_plan(wanted, seen);
    // What comes before a refusal is told: members and the security group follow the Nodes.
    if is_refused(&plan.answer, seen)
        && let Some(first) = follow(wanted, seen).filter(|first| !is_refused(first, seen))
    {
        plan.answer = first;
    }
    plan
}

/// Whether nothing comes next but what is refused.
fn is_refused(next: &Next, seen: &View<'_>) -> bool {
    let refusals = &seen.memory.refusals;
    let is_held = |step: &LoadBalancerStep<CloudStep>| match step {
        LoadBalancerStep::Cloud(step) => refusals.first(|known| known.asks_the_same(step)).is_some(),
        LoadBalancerStep::Kube(_) => false,
    };
    match next {
        Answer::Apply(wave) => wave.steps().iter().all(is_held),
        next => matches!(next, Answer::Refused(_)),
    }
}

fn wanted_plan(wanted: &Wanted, seen: &View<'_>) -> LoadBalancerPlan<CloudStep> {
    let identity = &wanted.identity;
    let mut notes = wanted.notes.clone();
    let (mut publishes, mut lacks) = (None, None);
    let features = seen.features();
    if !seen.is_listed(identity) {
        creation::foresee(
            wanted,
            features.of_balancer(&identity.options, None).surely(),
            seen,
        );
        return Plan::new(look_again());
    }
    if seen.misses() > 0 {
        let _ = absent::of_left(identity, seen); // read beside what tells whose it is
    }
    let found = evidence::resolve(identity, seen);
    let features = features.of_balancer(&identity.options, found.balancer());
    notes.extend(source_ranges_note(wanted, features));
    notes.extend(creation::zone_note(wanted, features));
    if let Some(refusal) = dangling::mistake(identity, seen) {
        return Plan::new(Answer::Refused(refusal)).with_notes(notes);
    }
    let used = match &found {
        Found::One { balancer, role, .. } => Some((*balancer, *role)),
        _ => None,
    };
    let answer = match found {
        Found::Several(balancers) => Answer::Refused(several(identity, &balancers)),
        Found::Missing(id) => Answer::Refused(dangling::refusal(id)),
        Found::OfOtherCluster(balancer) => Answer::Refused(guards::of_other_cluster(identity, balancer)),
        Found::Going(balancer) => wait_for(balancer, seen),
        Found::None if let Some(other) = guards::of_another(identity, seen) => Answer::Refused(other),
        Found::None => creation::next(wanted, features.surely(), seen, &mut notes),
        Found::One {
            balancer,
            role,
            twins,
        } => {
            let (surplus, kept) = evidence::surplus(seen, twins);
            notes.extend(guards::kept_note(identity, balancer, &kept));
            notes.extend(guards::own_note(identity, seen, (balancer, role)));
            let there = Existing::new(wanted, seen, (balancer, role), &surplus);
            let next = there.next(&mut notes, &mut publishes);
            lacks = there.failing().map(Refusal::new);
            next
        }
    };
    let answer = shown::with(wanted, seen, used, answer, &mut notes);
    let mut plan = Plan::new(answer).with_notes(notes);
    if let Answer::Settled(_) = plan.answer {
        plan.again = seen.memory.own.mend_after.filter(|_| lacks.is_some());
        plan.lacks = lacks;
    }
    match publishes.filter(|_| matches!(plan.answer, Answer::Refused(_))) {
        Some(status) => plan.publishing(status),
        None => plan,
    }
}

fn follow(wanted: &Wanted, seen: &View<'_>) -> Option<Next> {
    let Found::One { balancer, role, .. } = evidence::resolve(&wanted.identity, seen) else {
        return None;
    };
    Existing::new(wanted, seen, (balancer, role), &[]).follow()
}

/// A load balancer that is there, and everything that its plan is made from.
struct Existing<'a> {
    wanted: &'a Wanted,
    features: Features,
    seen: &'a View<'a>,
    balancer: &'a LoadBalancer,
    role: Role,
    surplus: &'a [&'a LoadBalancer],
    /// What decides about its parts, once that is asked.
    parts: OnceCell<Option<PartsPlan<'a>>>,
}

impl<'a> Existing<'a> {
    fn new(
        wanted: &'a Wanted,
        seen: &'a View<'a>,
        (balancer, role): (&'a LoadBalancer, Role),
        surplus: &'a [&'a LoadBalancer],
    ) -> Self {
        let options = &wanted.identity.options;
        Self {
            wanted,
            features: seen.features().of_balancer(options, Some(balancer)),
            seen,
            balancer,
            role,
            surplus,
            parts: OnceCell::new(),
        }
    }

    /// The first of these that is due:
    ///
    /// 1. what bars all work is told; a load balancer of another kind is made anew; its ID is written down; it is waited for,
    ///    repaired; its duplicates are removed;
    /// 2. a former name of the cluster is replaced; the tag is written; listeners, pools, members and monitors follow what is wanted;
    /// 3. the floating IP is attached; the address is written down; the security group follows; a load balancer that the Service
    ///    shared before is left; the status is published.
    fn next(&self, notes: &mut Vec<Note>, publishes: &mut Option<LoadBalancerStatus>) -> Next {
        let is_active = self.balancer.provisioning_status == ProvisioningStatus::Active;
        match self.before_parts(notes) {
            // As long as something is not known, what may come after it is read beside it.
            Some(next) if !is_active || self.seen.misses() == 0 => return next,
            _ => {}
        }
        let parts = self.seen.parts(&self.balancer.id);
        match parts.and_then(|parts| self.to_parts(parts, notes)) {
            Some(next) if self.seen.misses() == 0 => next,
            _ => self.after_parts(notes, publishes),
        }
    }

    fn before_parts(&self, notes: &mut Vec<Note>) -> Option<Next> {
        let (wanted, seen, balancer) = (self.wanted, self.seen, self.balancer);
        let sharing = || sharing::refusal(wanted, self.features, seen, (balancer, self.role));
        if let Some(refusal) = guards::flaw(wanted, self.features, &[Bars::All]).or_else(sharing) {
            return Some(Answer::Refused(refusal));
        }
        if self.is_to_be_made_anew() {
            return Some(self.unmake(notes));
        }
        // Before anything is waited for: a process that stops now leaves a load balancer that is found.
        if wanted.identity.annotated.as_ref() != Some(&balancer.id) {
            return Some(annotate(keys::ID.key, Some(balancer.id.as_str())));
        }
        if is_pending(balancer) || seen.memory.own.is_busy {
            return Some(wait_for(balancer, seen));
        }
        if balancer.provisioning_status != ProvisioningStatus::Active {
            return Some(self.failed(notes));
        }
        if self.surplus.is_empty() {
            return None;
        }
        // Another manager may have left them, and said nothing.
        let note = DUPLICATE_REMOVED.note(format!(
            "load balancer {} is kept, its duplicates are removed: {}",
            balancer.id,
            evidence::ids(self.surplus)
        ));
        notes.push(note.even_at_start());
        self.seen.floating_ips(); // those that lead to them are freed
        Some(match self.surplus.iter().find(|there| is_pending(there)) {
            Some(busy) => wait_for(busy, seen),
            None => apply(self.surplus.iter().copied().map(delete_unserving).collect()),
        })
    }

    fn to_parts(&self, parts: &Parts, notes: &mut Vec<Note>) -> Option<Next> {
        let (wanted, balancer) = (self.wanted, self.balancer);
        if let Some(change) = rename::next(&wanted.identity, self.seen, (balancer, self.role), parts) {
            return Some(self.rename(change, notes));
        }
        let change = match self.of_parts(notes) {
            Err(refusal) => return Some(Answer::Refused(refusal)),
            Ok(change) => change,
        };
        // The tag comes before the parts: from then on no other Service's deletion takes the load balancer away, and of two
        // that join at once the second one sees that the places are taken.
        // One under a configured former name is as good until the owner renames it.
        let mark =
            Some(&wanted.identity.name).filter(|_| !evidence::bears_known_tag(&wanted.identity, balancer));
        if let Some(change) = mark.and_then(|mark| self.tagging(Some(mark), &[])) {
            return Some(self.part(change, notes));
        }
        let change = change.map(|change| self.unmarked(change, notes));
        change.or_else(|| {
            let tags = self.tagging(None, &wanted.tags.balancer);
            let tags = tags.filter(|tags| self.seen.memory.refusals.of_change(tags).is_none());
            tags.map(|tags| self.part(tags, notes))
        })
    }

    /// The write of the load balancer's tags; `None` if they are as they are to be, or Octavia has none.
    fn tagging(&self, mark: Option<&String>, wanted: &[String]) -> Option<PartChange> {
        let balancer = self.balancer;
        let removable = match mark {
            Some(_) => BTreeSet::new(),
            None => evidence::removable_tags(&self.wanted.identity, balancer),
        };
        let tags = tags::to_be(&balancer.tags, mark, wanted, &removable).filter(|_| self.features.tags)?;
        let (name, tags) = (None, Some(tags));
        let update = LoadBalancerUpdate { name, tags };
        Some(PartChange::update_balancer(balancer, update))
    }

    /// Forgets the tags that were taken off.
    fn forget_tags(&self) -> Option<Next> {
        let added = &self.wanted.identity.added_tags;
        let of_parts = self.plan_of_parts().into_iter().flat_map(PartsPlan::own_tags);
        let tags = &self.wanted.tags;
        let kept = tags.to_keep(added, &self.balancer.tags, &of_parts.collect())?;
        let kept = Some(kept.as_str()).filter(|kept| !kept.is_empty());
        Some(annotate(keys::ADDED_TAGS.key, kept))
    }

    fn after_parts(&self, notes: &mut Vec<Note>, publishes: &mut Option<LoadBalancerStatus>) -> Next {
        let (wanted, seen, balancer) = (self.wanted, self.seen, self.balancer);
        let address = match floating::next(wanted, seen, Some((balancer, self.role)), notes) {
            Some(Addressing::Write(change)) => {
                if change.place().is_none()
                    && let Some(next) = self.publish_first(&balancer.vip_address)
                {
                    return next;
                }
                let step = CloudStep::FloatingIp(change);
                let refusals = &seen.memory.refusals;
                return match refusals.first(|known| known.asks_the_same(&step)) {
                    Some(why) => self.unaddressed(why.clone(), notes),
                    None => apply(vec![step]),
                };
            }
            Some(Addressing::Refused(refusal)) => return self.unaddressed(refusal, notes),
            Some(Addressing::Done(address)) => address,
            None => {
                let _ = (self.of_group(notes), self.leave(notes));
                return look_again();
            }
        };
        let floating_ip = floating::current(seen, balancer).filter(|_| !wanted.is_internal);
        let of = (balancer, self.role);
        notes.extend(ignored::note(wanted, self.features, of, floating_ip));
        if wanted.identity.recorded_address.as_deref() != Some(&address) {
            notes.extend(floating::lost_note(wanted, seen, balancer));
            return annotate(keys::ADDRESS.key, Some(&address));
        }
        let status = status::status(wanted, balancer, &address);
        let of_group = match self.of_group(notes) {
            Ok(steps) if !steps.is_empty() => return apply(steps),
            Ok(_) => None,
            Err(refusal) => Some(refusal),
        };
        let parts = self.plan_of_parts();
        if let Some(change) = parts.and_then(PartsPlan::late) {
            return waiting::for_change(&change, seen);
        }
        if let Some(forgotten) = self.forget_tags() {
            return forgotten;
        }
        let untagged = self.tagging(None, &wanted.tags.balancer);
        let untagged = untagged.and_then(|change| seen.memory.refusals.of_change(&change).cloned());
        let refusal = together([
            parts.and_then(PartsPlan::unmended),
            guards::held(wanted, self.features, seen),
            of_group,
            parts.and_then(PartsPlan::untaken),
            parts.and_then(PartsPlan::unread),
            untagged,
            guards::port_of_another(wanted, seen, Some(balancer)).filter(|_| self.role == Role::Owner),
            floating::exposed(wanted, seen, balancer).filter(|_| self.role == Role::Owner),
        ]);
        // The API server would refuse the status.
        let unpublished = guards::flaw(wanted, self.features, &[Bars::Status]);
        let left = match refusal {
            None => match (self.leave(notes), parts.and_then(PartsPlan::barred)) {
                (Left::None, Some(barred)) => Left::Stuck(barred.clone()),
                (left, _) => left,
            },
            Some(refusal) => Left::Stuck(refusal),
        };
        match (left, unpublished) {
            (Left::Next(next), _) => self.publish_first(&address).unwrap_or(next),
            (_, Some(refusal)) => Answer::Refused(refusal),
            (Left::None, None) => Answer::Settled(status),
            (Left::Stuck(refusal), None) => {
                // The load balancer works: what is wrong with its group, its certificate or the one before it does not hide its
                // address.
                *publishes = Some(status);
                Answer::Refused(refusal)
            }
        }
    }

    /// Shows where the Service is served by now, before what served it at the address that its status shows is taken away.
    fn publish_first(&self, address: &str) -> Option<Next> {
        let status = status::status(self.wanted, self.balancer, address);
        let identity = &self.wanted.identity;
        if identity.shown.is_empty() || identity.shows(&status) {
            return None;
        }
        let refused = guards::flaw(self.wanted, self.features, &[Bars::Status]);
        Some(refused.map_or_else(|| next::publish(status), Answer::Refused))
    }

    /// No floating IP can be had: all that does not depend on it is done, and the refusal is told then.
    fn unaddressed(&self, refusal: Refusal, notes: &mut Vec<Note>) -> Next {
        notes.extend(floating::unreachable_note(self.wanted, self.seen, self.balancer));
        match self.of_group(notes) {
            Ok(steps) if !steps.is_empty() => apply(steps),
            _ => Answer::Refused(refusal),
        }
    }

    /// Removes what is left on a load balancer that the Service was a guest of: the other one works by now.
    fn leave(&self, notes: &mut Vec<Note>) -> Left {
        let next = absent::of_left(&self.wanted.identity, self.seen);
        // With the write that ends it: processes that were stopped before that have said nothing.
        if let Left::Next(Answer::Apply(wave)) = &next
            && let [LoadBalancerStep::Cloud(step)] = wave.steps()
            && let Some(left) = ends_leaving(step)
        {
            let note = LEFT.note(format!(
                "Service {} uses load balancer {}: its listeners, pools and tag on load balancer {left}, which it shared before, are removed",
                self.wanted.identity.service, self.balancer.id
            ));
            notes.push(note.even_at_start());
        }
        next
    }

    fn rename(&self, change: PartChange, notes: &mut Vec<Note>) -> Next {
        // The last one, so that it is told once.
        if let PartChange::UpdateBalancer { name, update } = &change
            && let Some(now) = &update.name
        {
            notes.push(RENAMED.note(format!(
                "Renaming load balancer {} from {name} to {now}",
                self.balancer.id
            )));
        }
        self.part(change, notes)
    }

    fn of_parts(&self, notes: &mut Vec<Note>) -> Result<Option<PartChange>, Refusal> {
        let Some(plan) = self.plan_of_parts() else {
            return Ok(None);
        };
        if let Some(listener) = plan.conflict() {
            // What no port wants any more goes all the same: somebody else may wait for its port, as where two Services swap theirs.
            if let Some((_, removal)) = plan.surplus().next() {
                return Ok(Some(removal));
            }
            if let Some(change) = self.unused_tag() {
                return Ok(Some(change));
            }
            let port = listener.protocol_port;
            let else_helps = format!(
                "listener {} ({}) of load balancer {} has it: choose another port or load balancer; if the manifest was copied, remove the annotation loadbalancer.openstack.org/load-balancer-id",
                listener.id, listener.name, self.balancer.id
            );
            let identity = &self.wanted.identity;
            let remedy = guards::of_namesake(identity, &listener.tags, else_helps);
            return Err(refusal!("the listener port {port} already exists"; "{remedy}"));
        }
        notes.extend(self.failing().map(|text| IN_ERROR.note(text)));
        if let Some(refused) = plan.refused().find(|why| why.is_limit)
            && let Some((listener, removal)) = plan.surplus().next()
        {
            // Who left makes room, and is missed by nobody.
            if let Some(change) = plan.next_of_members() {
                return Ok(Some(change));
            }
            notes.push(QUOTA_MET.note(format!(
                "a quota of the project leaves no room for a new port beside an old one, so listener {} (port {}) of load balancer {} is removed first, and neither is served for a moment; {}",
                listener.name, listener.protocol_port, self.balancer.id, refused.reason
            )));
            return Ok(Some(removal));
        }
        notes.extend(plan.notes_of_pools());
        let change = plan.next();
        if change.is_none()
            && !plan.serves()
            && let Some(refusal) = plan.untaken()
        {
            return Err(refusal); // no address is told at which nothing is served
        }
        Ok(change)
    }

    /// What is told of parts that failed by themselves.
    fn failing(&self) -> Option<String> {
        let parts = self.plan_of_parts()?.failed()?;
        Some(format!(
            "Octavia could not make the last change of {parts} of load balancer {}; Bowline asks for it once more if it stays so for a minute; if that does not help, ask the operator of the cloud to look at Octavia's workers, or {}",
            self.balancer.id,
            remedies::failover(self.balancer)
        ))
    }

    /// Takes back the tag of a guest that joined, found its ports taken and made nothing: the tag takes one of the places that
    /// `max-shared-lb` leaves to others. One that people reach here already keeps its place, and waits for the port.
    fn unused_tag(&self) -> Option<PartChange> {
        let (identity, balancer) = (&self.wanted.identity, self.balancer);
        let is_unused = self.role == Role::Guest
            && !floating::is_told(identity, self.seen, balancer)
            && !evidence::is_to_be_deleted(identity, self.role, balancer)
            && rename::is_borne_out(identity, self.seen, balancer)
            && absent::own_parts(identity, self.role, self.seen, balancer).is_none();
        is_unused
            .then(|| absent::without_tag(identity, balancer))
            .flatten()
    }

    fn part(&self, change: PartChange, notes: &mut Vec<Note>) -> Next {
        let own = &self.seen.memory.own;
        // Without this, it would be written for ever.
        if let Some(why) = self.seen.memory.refusals.of_change(&change) {
            return Answer::Refused(why.clone());
        }
        if is_late(self.seen.memory, &change) {
            return waiting::for_change(&change, self.seen);
        }
        let tags = &self.wanted.tags;
        if let Some(record) = tags.to_record(
            &self.wanted.identity.added_tags,
            &self.balancer.tags,
            tags::written(&change),
        ) {
            return annotate(keys::ADDED_TAGS.key, Some(&record));
        }
        // Octavia answers a list of members before it makes it. Of all else the answer shows what it keeps.
        let is_repeated = matches!(change, PartChange::SetMembers { .. }) && own.changes.contains(&change);
        let step = change.of(self.balancer);
        if is_repeated {
            notes.push(IN_ERROR.note(format!(
                "Octavia took {} of load balancer {} and did not make it: it is written again",
                step.label(),
                self.balancer.id
            )));
        }
        apply(vec![step])
    }
}

/// Several refusals, to be told as one: what costs most comes first.
fn together(all: impl IntoIterator<Item = Option<Refusal>>) -> Option<Refusal> {
    let all: Vec<Refusal> = all.into_iter().flatten().collect();
    let is_limit = all.iter().any(|refusal| refusal.is_limit);
    Refusal::all(&all).map(|refusal| refusal.of_limit(is_limit))
}

/// The load balancer that a Service has left, if a step takes its tag off that one, or deletes it: after that nothing tells that it was
/// there.
fn ends_leaving(step: &CloudStep) -> Option<&LoadBalancerId> {
    let is_end = matches!(
        step,
        CloudStep::DeleteBalancer { .. }
            | CloudStep::Part {
                change: PartChange::UpdateBalancer { .. },
                ..
            }
    );
    step.balancer().filter(|_| is_end)
}
