//! Decides what comes next. Pure.
//!
//! The order of waves is the order in which traffic suffers least: a balancer that is ready, members of what is served, pools,
//! members (missing ones before surplus ones go), listeners, monitors, pools that nobody leads to any more, attributes, floating IPs, and last
//! what is written to the Service. A wave is planned only when nothing is left to do in the waves before it, so a member
//! is never removed while another one that shall take over could not be created. Where members are probed elsewhere from now on, the
//! monitor of each pool and then its members change right after the members of what is served, pool by pool.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{KubeWrite, LoadBalancerPlan, LoadBalancerStatus, LoadBalancerStep, Pauses};
use bowline_cloudscale_client::{LoadBalancer, NewLoadBalancer, NewVipAddress};
use bowline_plan::{Answer, Note, Plan, Refusal};

use crate::annotations as keys;
use crate::desired::Desired;
use crate::events::{
    DUPLICATE_REMOVED, FOREIGN_KEPT, NO_MEMBERS, NODES_LEFT_OUT, NODES_SHARE_ADDRESS, STILL_CHANGING,
};
use crate::intent::{Identity, Intent, Membership, Wanted};
use crate::names::TAG_CLUSTER_NAME;
use crate::observe::{Seen, refused};
use crate::ownership::{self, Found, Owner};
use crate::status;
use crate::step::CloudStep;

mod absent;
mod attributes;
mod exchange;
mod floating;
mod following;
mod guards;
mod hrefs;
mod members;
mod parts;
mod unkept;

pub(crate) use attributes::{are_codes, http_of};
pub(crate) use floating::remember as remember_move;
pub(crate) use hrefs::Hrefs;
use members::Served;
use parts::Parts;
pub(crate) use unkept::remember;

/// How long a balancer may be changing before somebody is told.
const PATIENCE: Duration = Duration::from_secs(180);

/// The time before each look at a balancer that is changing.
const POLLS: Pauses = Pauses::of_micros(&[1_000_000, 1_000_000, 2_000_000, 3_000_000, 5_000_000]);

/// The same for a balancer that was deleted: usually it is gone at once.
const CONFIRMATIONS: Pauses = Pauses::of_micros(&[100_000, 1_000_000, 2_000_000, 3_000_000, 5_000_000]);

type Next = Answer<LoadBalancerStep<CloudStep>, LoadBalancerStatus>;

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
    let answer = match ownership::resolve(identity, &seen.balancers) {
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
                    ownership::ids(&surplus)
                )));
            }
            let there = There {
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

fn failed_to_find(identity: &Identity, why: &str) -> String {
    format!("unable to get load balancer for {}: {why}", identity.service)
}

/// More than one balancer could be a Service's. Even if its annotation names one of them: a Go manager refuses that too.
fn several(identity: &Identity, candidates: &[&LoadBalancer]) -> Refusal {
    let (recorded, namesakes): (Vec<&LoadBalancer>, Vec<&LoadBalancer>) = candidates
        .iter()
        .copied()
        .partition(|balancer| ownership::is_recorded(identity, balancer));
    let remedy = match recorded.as_slice() {
        [own] if own.name.trim() == identity.name.trim() => format!(
            "load balancer {} is recorded for the service: delete or rename {}",
            own.uuid,
            ownership::ids(&namesakes)
        ),
        [own] => format!(
            "load balancer {} is recorded for the service, and {} has the name that it asks for: delete or rename that one, or correct {} or {}",
            own.uuid,
            ownership::ids(&namesakes),
            keys::NAME.key,
            keys::UUID.key
        ),
        _ => format!(
            "delete or rename all but one of the load balancers {}",
            ownership::ids(candidates)
        ),
    };
    Refusal::new(failed_to_find(identity, "found more than one")).with_remedy(remedy)
}

/// Whose a balancer is that is not the Service's, in words.
fn whose(identity: &Identity, balancer: &LoadBalancer, owner: Owner<'_>) -> String {
    match (owner, ownership::holder(identity, balancer)) {
        (Owner::Service, Some(holder)) => format!("it serves {holder}"),
        (Owner::Service, None) => "its tag k8s-service-uid names another service".to_owned(),
        (Owner::Cluster { theirs }, _) => format!(
            "its tag {TAG_CLUSTER_NAME} says {theirs}, and this cluster is {}",
            own_cluster(identity)
        ),
        (Owner::PerhapsCluster { theirs }, _) => {
            format!("its tag {TAG_CLUSTER_NAME} says {theirs}, and the name of this cluster is not known")
        }
    }
}

fn own_cluster(identity: &Identity) -> &str {
    identity.cluster_name.as_deref().unwrap_or_default()
}

fn foreign(identity: &Identity, balancer: &LoadBalancer, owner: Owner<'_>) -> Refusal {
    let why = format!(
        "load balancer {} ({}) belongs to another service or cluster: {}",
        balancer.name,
        balancer.uuid,
        whose(identity, balancer, owner)
    );
    if owner == Owner::Service && ownership::is_left_behind(identity, balancer) {
        return Refusal::new(failed_to_find(identity, &why)).with_remedy(format!(
            "no service here has that UID: to take the load balancer over with its addresses, set {} to {}, unless another copy of this \
             cluster uses it",
            keys::UUID.key,
            balancer.uuid
        ));
    }
    let other_one = format!(
        "choose another name ({}) or remove {}",
        keys::NAME.key,
        keys::UUID.key
    );
    let if_own = match owner {
        Owner::Service => String::new(),
        Owner::Cluster { .. } => format!(
            "; if it was restored under a new cluster name, change its tag {TAG_CLUSTER_NAME} to {} by hand",
            own_cluster(identity)
        ),
        Owner::PerhapsCluster { theirs } => {
            format!("; if this is the cluster {theirs}, say so with --cluster-name")
        }
    };
    Refusal::new(failed_to_find(identity, &why)).with_remedy(other_one + &if_own)
}

/// What is told of nodes that are no members.
fn member_notes(membership: &Membership, desired: &Desired<'_>) -> Vec<Note> {
    let mut notes = Vec::from_iter(nodes_note(desired));
    let sharing = &desired.sharing;
    notes.extend(
        (!sharing.is_empty()).then(|| {
            NODES_SHARE_ADDRESS.note(format!("nodes share a private address: {}", sharing.join("; ")))
        }),
    );
    if !membership.nodes.is_empty() && !desired.has_members() {
        notes.push(NO_MEMBERS.note(if membership.allowed_subnets.is_empty() {
            "no node has a private address with a subnet, so the load balancer has no members".to_owned()
        } else {
            format!(
                "no node has a private address in the subnets of {}, so the load balancer has no members",
                keys::LISTENER_ALLOWED_SUBNETS.key
            )
        }));
    }
    notes
}

fn nodes_note(desired: &Desired<'_>) -> Option<Note> {
    let left_out = &desired.left_out;
    (!left_out.is_empty())
        .then(|| NODES_LEFT_OUT.note(format!("nodes are not balanced over: {}", left_out.join(", "))))
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
            return Answer::Refused(
                Refusal::new("no loadbalancer zone set and no nodes to take it from").with_remedy(format!(
                    "set {}, or find out why no node may become a member",
                    keys::ZONE.key
                )),
            );
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
    let unkept = unkept::split_off(seen, &mut steps);
    match unkept::refusal(seen, &unkept) {
        Some(_) if unkept::may_be_late(seen) => wait_to_see(),
        Some(refusal) => Answer::Refused(refusal),
        None => apply(steps),
    }
}

/// A balancer that is there, and everything that its plan is made from.
struct There<'a> {
    served: Served<'a>,
    wanted: &'a Wanted,
    surplus: &'a [&'a LoadBalancer],
}

/// What comes next, and what came to nothing before.
#[derive(Default)]
struct NextSteps {
    steps: Vec<CloudStep>,
    unkept: Vec<CloudStep>,
}

impl NextSteps {
    /// Adds a wave, if none before it has a step or stands in its way. Returns whether to go on.
    fn add(&mut self, seen: &Seen, mut wave: Vec<CloudStep>) -> bool {
        self.unkept.extend(unkept::split_off(seen, &mut wave));
        self.steps = wave;
        // What cannot be created is not stood in for: later waves lean on it, and none may delete its forerunner.
        self.steps.is_empty() && !self.unkept.iter().any(CloudStep::creates)
    }
}

impl There<'_> {
    fn next(&self, notes: &mut Vec<Note>, publishes: &mut Option<LoadBalancerStatus>) -> Next {
        let Served {
            hrefs,
            seen,
            balancer,
            desired,
            ..
        } = self.served;
        let wanted = self.wanted;
        let href = hrefs.balancer(balancer.uuid);
        if let Some(refusal) = guards::before_change(wanted, desired, balancer, &href) {
            let (backends, monitor) = (wanted.backends(), Some(&wanted.monitor));
            return self.served.only_members(&backends, monitor, refusal, notes);
        }
        if seen.memory.own.busy.is_now {
            return wait_for(balancer, seen, notes);
        }
        let NextSteps { steps, unkept } = self.next_steps(notes);
        if !steps.is_empty() {
            return self.served.write(steps, notes);
        }
        if !unkept.is_empty() && unkept::may_be_late(seen) {
            return wait_to_see();
        }
        let refusals = &seen.memory.refusals;
        let of_ports = refused::of_ports(refusals);
        let is_served = of_ports.is_none() || seen.serves_a_port();
        let refused = [
            of_ports,
            unkept::refusal(seen, &unkept),
            refused::of_members(refusals),
            refused::of_attributes(refusals),
            floating::refusal(wanted, seen),
        ];
        let refusal = Refusal::all(refused.iter().flatten());
        if let Some(refusal) = &refusal
            && (!is_served || unkept.iter().any(CloudStep::creates))
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
    fn next_steps(&self, notes: &mut Vec<Note>) -> NextSteps {
        let Served {
            hrefs,
            seen,
            balancer,
            ..
        } = self.served;
        let wanted = self.wanted;
        let parts = Parts::new(self.served, wanted);
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
        if !next.add(seen, parts.members_of_served()) {
            return next;
        }
        if !next.add(seen, parts.moved_monitors()) {
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
        if !next.add(seen, first) {
            return next;
        }
        for wave in waves {
            if !next.add(seen, wave()) {
                return next;
            }
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

fn apply(steps: Vec<CloudStep>) -> Next {
    let steps = steps.into_iter().map(LoadBalancerStep::Cloud).collect();
    Answer::apply_or(steps, || Answer::Settled(LoadBalancerStatus::empty()))
}

fn wait(after: Duration, reason: String) -> Next {
    Answer::Wait { after, reason }
}

/// What was written is not shown yet.
fn wait_to_see() -> Next {
    wait(unkept::LAG, "the API does not show the last write yet".to_owned())
}

/// The API is at work on the balancer.
fn wait_for(balancer: &LoadBalancer, seen: &Seen, notes: &mut Vec<Note>) -> Next {
    if seen.memory.waited() >= PATIENCE {
        notes.push(STILL_CHANGING.note(format!(
            "load balancer {} ({}) has been {} for more than {} minutes",
            balancer.name,
            balancer.uuid,
            balancer.status,
            PATIENCE.as_secs() / 60
        )));
    }
    wait(
        seen.memory.pause(POLLS),
        format!("await-lb({} is {})", balancer.name, balancer.status),
    )
}
