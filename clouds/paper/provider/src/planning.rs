//! Decides what comes next. Pure.
//!
//! The order of the waves is the order in which traffic suffers least, and a wave is planned only when nothing is left
//! to do in those before it: a member never goes while the one that shall take over could not be added.

use bowline_cloud_provider::{Ingress, LoadBalancerPlan, LoadBalancerStatus, LoadBalancerStep, Pauses, Seen};
use bowline_paper_client::{Balancer, BalancerState, MachineId, Port};
use bowline_plan::{Answer, Note, Plan, Refusal, Wave, diff};

use crate::events::NODES_LEFT_OUT;
use crate::intent::{Intent, Wanted};
use crate::observe::Observed;
use crate::provider_id;
use crate::step::{BalancerStep, Change};

/// The time before each look at a balancer that is waited for.
const LOOKS: Pauses = Pauses::of_micros(&[1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000]);

type Next = Answer<LoadBalancerStep<BalancerStep>, LoadBalancerStatus>;

/// Decides what comes next.
pub(crate) fn plan(
    intent: &Intent,
    seen: &Seen<Observed, (), BalancerStep>,
) -> LoadBalancerPlan<BalancerStep> {
    match intent {
        Intent::Absent(_) => Plan::new(removal(seen)),
        Intent::Wanted(wanted) => {
            let (members, notes) = members(wanted, seen);
            Plan::new(next(wanted, &members, seen)).with_notes(notes)
        }
    }
}

// guide: removal
/// Everything of ours goes. Settled is only what the cloud lists no more.
fn removal(seen: &Seen<Observed, (), BalancerStep>) -> Next {
    let steps = present(seen).map(|balancer| delete(balancer, false)).collect();
    apply_or(steps, || match seen.own.first() {
        Some(balancer) => wait(seen, format!("balancer {} is being deleted", balancer.id)),
        None => Answer::Settled(LoadBalancerStatus::empty()),
    })
}
// guide: end

// guide: next
fn next(wanted: &Wanted, members: &[MachineId], seen: &Seen<Observed, (), BalancerStep>) -> Next {
    let Some(balancer) = present(seen).next() else {
        return Answer::Apply(Wave::one(LoadBalancerStep::Cloud(BalancerStep::Create(
            wanted.new.clone(),
        ))));
    };
    match &balancer.state {
        BalancerState::Ready => {}
        BalancerState::Building | BalancerState::Deleting => {
            return wait(seen, format!("balancer {} is being built", balancer.id));
        }
        BalancerState::Other(state) => {
            let refusal = Refusal::new(format!("balancer {} is in the state {state:?}", balancer.id));
            return Answer::Refused(refusal.with_remedy("repair it, or delete it to get another one"));
        }
    }
    let members = diff(members, &balancer.members, |machine| machine, |machine| machine);
    let ports = diff(&wanted.ports, &balancer.ports, Port::to_string, Port::to_string);
    let is_known = |machine: &&&MachineId| seen.machines.with_id(**machine).is_some();
    let changed = ports.kept.iter().filter(|(wish, open)| wish != open);
    let waves: [Vec<Change>; 4] = [
        members
            .missing
            .iter()
            .filter(is_known)
            .map(|id| Change::AddMember((*id).clone()))
            .collect(),
        members
            .surplus
            .iter()
            .map(|id| Change::RemoveMember((*id).clone()))
            .collect(),
        changed
            .map(|(wish, _)| Change::MovePort(**wish))
            .chain(ports.missing.iter().map(|port| Change::OpenPort(**port)))
            .collect(),
        ports
            .surplus
            .iter()
            .map(|port| Change::ClosePort(**port))
            .collect(),
    ];
    let step = |change| BalancerStep::Change {
        balancer: balancer.id.clone(),
        name: balancer.name.clone(),
        change,
    };
    // A removal that failed stops nothing else.
    let mut waves = waves
        .into_iter()
        .map(|wave| seen.memory.without_stuck(wave.into_iter().map(step).collect()));
    let steps = waves.find(|wave| !wave.is_empty()).unwrap_or_default();
    // The oldest one is complete: what a lost answer left beside it can go.
    let duplicates = present(seen).skip(1).map(|balancer| delete(balancer, true));
    apply_or(steps, || {
        apply_or(duplicates.collect(), || Answer::Settled(status(balancer)))
    })
}
// guide: end

// guide: members
/// The machines of the Nodes, and what is to be said about Nodes without one.
///
/// A machine that the listing does not have is not added, but neither is it removed as long as its Node is there: a miss
/// in a listing proves nothing.
fn members(wanted: &Wanted, observed: &Observed) -> (Vec<MachineId>, Vec<Note>) {
    let (mut members, mut left_out) = (Vec::new(), Vec::new());
    for node in &*wanted.nodes {
        let id = node
            .provider_id
            .as_deref()
            .and_then(|text| provider_id::parse(text).ok());
        if id
            .as_ref()
            .is_none_or(|id| observed.machines.with_id(id).is_none())
        {
            left_out.push(node.name.as_str());
        }
        members.extend(id);
    }
    let text = format!("no machine of this project is known for: {}", left_out.join(", "));
    let note = NODES_LEFT_OUT.note(text);
    (
        members,
        if left_out.is_empty() {
            Vec::new()
        } else {
            vec![note]
        },
    )
}
// guide: end

/// The Service's balancers, oldest first, without those that go already.
fn present(observed: &Observed) -> impl Iterator<Item = &Balancer> {
    observed
        .own
        .iter()
        .filter(|balancer| balancer.state != BalancerState::Deleting)
}

fn delete(balancer: &Balancer, is_duplicate: bool) -> BalancerStep {
    BalancerStep::Delete {
        balancer: balancer.id.clone(),
        name: balancer.name.clone(),
        is_duplicate,
    }
}

fn apply_or(steps: Vec<BalancerStep>, otherwise: impl FnOnce() -> Next) -> Next {
    Answer::apply_or(
        steps.into_iter().map(LoadBalancerStep::Cloud).collect(),
        otherwise,
    )
}

/// Nobody sleeps meanwhile: the caller puts the reconcile aside.
fn wait(seen: &Seen<Observed, (), BalancerStep>, reason: String) -> Next {
    Answer::Wait {
        after: seen.memory.pause(LOOKS),
        reason,
    }
}

fn status(balancer: &Balancer) -> LoadBalancerStatus {
    let addresses = balancer.addresses.iter();
    let ingress = addresses.map(|ip| Ingress::address(ip.to_string(), None));
    LoadBalancerStatus {
        ingress: ingress.collect(),
    }
}
