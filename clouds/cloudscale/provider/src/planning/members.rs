//! Members: who is missing, who is surplus, and in which order they change.

use std::sync::Arc;

use bowline_cloudscale_client::{LoadBalancer, Member, MemberId, MonitorType, PoolId, Tags};
use bowline_plan::{Answer, Note, Refusal, diff};

use super::{Hrefs, Next, apply, attributes, unkept, wait_for};
use crate::desired::{Desired, DesiredMember, MemberKey};
use crate::intent::Backend;
use crate::names;
use crate::observe::refused::Place;
use crate::observe::{ObservedPool, Seen, is_changing};
use crate::step::{CloudStep, Meanwhile, Old, PartChange};

/// Whether members may be probed on another port from now on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Checks {
    /// Each one as it is wished.
    Move,
    /// Those that are there stay as they are, if nothing else is wrong with them.
    Stay,
}

/// A balancer that is there, and who the members of its pools shall be.
#[derive(Clone, Copy)]
pub(super) struct Served<'a> {
    pub(super) hrefs: &'a Hrefs,
    pub(super) seen: &'a Seen,
    pub(super) balancer: &'a LoadBalancer,
    pub(super) desired: &'a Desired<'a>,
    /// The tags of the balancer's parts.
    pub(super) tags: &'a Arc<Tags>,
}

impl Served<'_> {
    pub(super) fn step(&self, change: PartChange) -> CloudStep {
        CloudStep::Part {
            balancer: self.balancer.uuid,
            change,
        }
    }

    /// Begins steps, if the balancer takes any.
    pub(super) fn write(&self, mut steps: Vec<CloudStep>, notes: &mut Vec<Note>) -> Next {
        if is_changing(self.balancer) {
            return wait_for(self.balancer, self.seen, notes);
        }
        if self.seen.memory.own.busy.was_once {
            steps.truncate(1);
        }
        apply(steps)
    }

    /// Refuses everything but that members follow the nodes: what is refused must not keep traffic on nodes that are gone.
    pub(super) fn only_members(
        &self,
        backends: &[&Backend],
        refusal: Refusal,
        notes: &mut Vec<Note>,
    ) -> Next {
        if self.seen.memory.own.busy.is_now {
            return wait_for(self.balancer, self.seen, notes);
        }
        // Whatever else is wrong with them: of two pools of one name, either may be the one that a listener leads to.
        let pools: Vec<(Backend, &ObservedPool)> = backends
            .iter()
            .flat_map(|backend| {
                let pools = self.seen.pools.iter();
                pools
                    .filter(|there| there.pool.name == backend.pool_name)
                    .map(|there| (as_monitored(backend, there), there))
            })
            .collect();
        let pools = pools
            .iter()
            .map(|(backend, there)| (backend, *there, Checks::Move));
        let mut steps = self.members(pools);
        unkept::split_off(self.seen, &mut steps);
        if !steps.is_empty() {
            return self.write(steps, notes);
        }
        Answer::Refused(match self.seen.memory.own.refused.of_members() {
            None => refusal,
            Some(why) => Refusal {
                reason: format!("{}; {}", refusal.reason, why.reason),
                ..refusal
            },
        })
    }

    /// Creates members; when none is missing in any pool, deletes surplus ones. In a pool without room, each one that goes makes
    /// room for one that comes, unless that was tried in vain.
    pub(super) fn members<'p>(
        &self,
        pools: impl Iterator<Item = (&'p Backend, &'p ObservedPool, Checks)>,
    ) -> Vec<CloudStep> {
        let refused = &self.seen.memory.own.refused;
        let mut creations = Vec::new();
        let mut deletions = Vec::new();
        for (backend, there, checks) in pools {
            let pool = there.pool.uuid;
            let wished = self.desired.members(backend);
            let members = diff(&wished, &there.members, DesiredMember::key, member_key);
            let mut surplus = members.surplus;
            let mut is_one_kept = !members.kept.is_empty();
            let (mut additions, mut replacements) = (Vec::new(), Vec::new());
            let (mut is_any_refused, mut is_one_missing) = (false, false);
            for missing in members.missing {
                // The API may refuse a second member with this address and port.
                let twin = surplus.iter().position(|old| {
                    names::spelling(&old.address) == names::spelling(&missing.address)
                        && old.protocol_port == missing.protocol_port
                });
                let addition = self.member(pool, missing, None, Meanwhile::Others);
                is_one_missing |= twin.is_none();
                match twin.map(|index| surplus.remove(index)) {
                    Some(old) if checks == Checks::Stay && moves_check(missing, old) => is_one_kept = true,
                    Some(old) => replacements.push((missing, old)),
                    None if refused.has(&addition) => is_any_refused = true,
                    None => additions.push(addition),
                }
            }
            let is_only = there.members.len() == 1 && additions.is_empty();
            let surplus = surplus.into_iter().map(|old| {
                let old = self.old_member(pool, old);
                self.step(PartChange::DeleteMember { pool, old })
            });
            let mut surplus = surplus.collect::<Vec<_>>();
            if refused.has_no(Place::Member(pool)) {
                let pairs = match self.seen.memory.own.is_room_vain {
                    true => 0,
                    false => surplus.len().min(additions.len()),
                };
                is_any_refused |= pairs < additions.len();
                let room = surplus.drain(..pairs);
                creations.extend(room.zip(additions).flat_map(<[_; 2]>::from));
            } else {
                creations.extend(additions);
            }
            // After the others, so that somebody is there while a member is away; and none is taken for it while one that was wished
            // for cannot come: the API may have refused that one when the old one was gone.
            is_one_kept |= is_one_missing && !replacements.is_empty();
            let replacements = Some(replacements).filter(|_| !is_one_missing);
            creations.extend(replacements.into_iter().flatten().map(|(missing, old)| {
                let meanwhile = match moves_check(missing, old) {
                    true => Meanwhile::CheckMoves,
                    false if is_only => Meanwhile::Nobody,
                    false => Meanwhile::Others,
                };
                let old = self.old_member(pool, old);
                self.member(pool, missing, Some(old), meanwhile)
            }));
            // While nobody can come, the last ones stay.
            if !is_any_refused || is_one_kept {
                deletions.extend(surplus);
            }
        }
        if creations.is_empty() {
            deletions
        } else {
            creations
        }
    }

    fn member(
        &self,
        pool: PoolId,
        missing: &DesiredMember,
        old: Option<Old<MemberId>>,
        meanwhile: Meanwhile,
    ) -> CloudStep {
        let new = missing.create(self.tags);
        self.step(PartChange::Member {
            pool,
            new,
            old,
            meanwhile,
        })
    }

    fn old_member(&self, pool: PoolId, member: &Member) -> Old<MemberId> {
        Old {
            id: member.uuid,
            name: member.name.clone(),
            href: self.hrefs.member(pool, member.uuid),
        }
    }
}

/// Whether a member is probed elsewhere from now on.
fn moves_check(missing: &DesiredMember, old: &Member) -> bool {
    missing.monitor_port != old.monitor_port.unwrap_or(old.protocol_port)
}

/// Where members are probed as long as a pool keeps its monitor. One that asks the nodes' health check port gets its answer there
/// only; any other one does not get it there. Of one that speaks HTTP it may be unknown which it is: then the oldest member tells.
pub(super) fn as_monitored(backend: &Backend, there: &ObservedPool) -> Backend {
    let Some(oldest) = there.members.first() else {
        return backend.clone();
    };
    let elsewhere = |member: &Member| {
        let monitor_port = member.monitor_port?;
        (monitor_port != member.protocol_port).then_some(monitor_port)
    };
    let is_elsewhere = match there.monitors.first() {
        Some(monitor) if attributes::asks_kube_proxy(monitor) => true,
        Some(monitor) if monitor.kind != MonitorType::Http => false,
        _ => elsewhere(oldest).is_some(),
    };
    let monitor_port = match is_elsewhere == (backend.monitor_port != backend.node_port) {
        true => backend.monitor_port,
        false if is_elsewhere => there
            .members
            .iter()
            .find_map(elsewhere)
            .unwrap_or(backend.monitor_port),
        false => backend.node_port,
    };
    Backend {
        monitor_port,
        ..backend.clone()
    }
}

fn member_key(member: &Member) -> MemberKey<'_> {
    (
        names::spelling(&member.name),
        member.enabled.unwrap_or(true),
        member.monitor_port.unwrap_or(member.protocol_port),
        member.protocol_port,
        names::spelling(&member.address),
        member
            .subnet
            .as_ref()
            .map_or_else(String::new, |subnet| subnet.uuid.to_ascii_lowercase()),
    )
}
