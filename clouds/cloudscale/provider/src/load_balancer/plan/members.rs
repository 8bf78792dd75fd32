//! Members: who is missing, who is surplus, and in which order they change.

use std::sync::Arc;

use bowline_cloud_provider::spelling;
use bowline_cloudscale_client::{
    LoadBalancer, Member, MemberId, Monitor, MonitorId, MonitorType, NewMember, PoolId, Tags,
};
use bowline_plan::{Answer, Note, Refusal, diff};

use crate::load_balancer::intent::{Backend, MonitorSettings};
use crate::load_balancer::observe::{ObservedPool, Seen, is_changing};
use crate::load_balancer::plan::answer::{Next, apply, wait_for};
use crate::load_balancer::plan::desired::{self, Desired, MemberKey};
use crate::load_balancer::plan::exchange::{Exchange, Fit, Stead, Terms, Twins};
use crate::load_balancer::plan::hrefs::Hrefs;
use crate::load_balancer::plan::{attributes, persisted};
use crate::load_balancer::refused::{self, Place, Room};
use crate::load_balancer::step::{CloudStep, Meanwhile, Old, PartChange};

/// For how many members an answer is waited for in vain in one reconcile.
const UNHEARD: usize = 2;

/// Whether members may be probed on another port from now on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Checks {
    /// Each one as it is wished.
    Move,
    /// Those that are there stay as they are, if nothing else is wrong with them.
    Stay,
}

/// Whether members of a pool are to be probed elsewhere from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MovingChecks {
    /// All are probed where they are to be.
    None,
    /// They follow as soon as the monitor is there.
    Now,
    /// They cannot follow now. With another monitor, all of them would count as down.
    Later,
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

    /// What is known of the room there.
    pub(super) fn room(&self, place: Place) -> Room {
        let memory = &self.seen.memory;
        refused::room(&memory.refusals, &memory.own.still_full, place)
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

    /// Refuses everything but that members follow the nodes: what is refused must not keep traffic on nodes that are gone. And that
    /// they are checked where the nodes answer, if it can be read what `monitor` is to ask there.
    pub(super) fn only_members(
        &self,
        backends: &[&Backend],
        monitor: Option<&MonitorSettings>,
        refusal: Refusal,
        notes: &mut Vec<Note>,
    ) -> Next {
        if self.seen.memory.own.busy.is_now {
            return wait_for(self.balancer, self.seen, notes);
        }
        // Whatever else is wrong with them: of two pools of one name, either may be the one that a listener leads to.
        let (mut pools, mut forsaken) = (Vec::new(), Vec::new());
        for backend in backends {
            let named = self.seen.pools.iter();
            for there in named.filter(|there| there.pool.name == backend.pool_name) {
                let monitored = as_monitored(backend, there);
                // Of the traffic policy Local, which the Service has no more: no node answers there.
                let is_forsaken = !backend.is_checked_elsewhere() && monitored.is_checked_elsewhere();
                let is_as_wished = monitor.is_some_and(|monitor| asks_as_wished(there, monitor));
                match is_forsaken && is_as_wished {
                    true => pools.push(((*backend).clone(), there)),
                    false => pools.push((monitored, there)),
                }
                if is_forsaken && !is_as_wished {
                    forsaken.push((*backend, there));
                }
            }
        }
        let all = pools
            .iter()
            .map(|(backend, there)| (backend, *there, Checks::Move));
        let mut steps = self.members(all);
        if steps.is_empty() {
            let next = forsaken.iter().find_map(|(backend, there)| {
                let can_follow = self.moving_checks(backend, there) != MovingChecks::Later;
                self.wished_monitor(there, monitor.filter(|_| can_follow)?)
            });
            steps.extend(next);
        }
        persisted::split_off(self.seen, &mut steps);
        if !steps.is_empty() {
            return self.write(steps, notes);
        }
        let names: Vec<&str> = forsaken
            .iter()
            .map(|(_, there)| there.pool.name.as_str())
            .collect();
        let unanswered = (!names.is_empty()).then(|| {
            format!(
                "the members of {} are checked on the former health check node port, which no Node answers any more, and count as down until then",
                names.join(", ")
            )
        });
        let refused = refused::of_members(&self.seen.memory.refusals);
        let more = refused.map(|why| why.reason).into_iter().chain(unanswered);
        Answer::Refused(Refusal {
            reason: std::iter::once(refusal.reason)
                .chain(more)
                .collect::<Vec<_>>()
                .join("; "),
            ..refusal
        })
    }

    /// Replaces the monitor of a pool with one that asks what is wished, as often as that one did. `None` if there is none.
    fn wished_monitor(&self, there: &ObservedPool, wished: &MonitorSettings) -> Option<CloudStep> {
        let old = there.monitors.first()?;
        let settings = MonitorSettings {
            delay_s: old.delay_s,
            timeout_s: old.timeout_s,
            up_threshold: old.up_threshold,
            down_threshold: old.down_threshold,
            ..wished.clone()
        };
        Some(self.step(PartChange::Monitor {
            new: Box::new(desired::create_monitor(&settings, there.pool.uuid, self.tags)),
            pool_name: there.pool.name.clone(),
            old: Some(self.old_monitor(old)),
            moves_checks: true,
        }))
    }

    pub(super) fn old_monitor(&self, monitor: &Monitor) -> Old<MonitorId> {
        let href = self.hrefs.monitor(monitor.uuid);
        Old::new(monitor.uuid, monitor.kind.to_string(), href)
    }

    /// Creates members; when none is missing in any pool that can come, deletes surplus ones. Where something of a member fails, those whose
    /// pool keeps another one go first, and what failed before comes last: each may take as long as an answer is waited for.
    pub(super) fn members<'p>(
        &self,
        pools: impl Iterator<Item = (&'p Backend, &'p ObservedPool, Checks)>,
    ) -> Vec<CloudStep> {
        let (mut creations, mut deletions) = (Vec::new(), Vec::new());
        if self.is_unheard() {
            return creations;
        }
        for (backend, there, checks) in pools {
            let pool = there.pool.uuid;
            let wished = self.desired.members(backend, self.tags);
            let exchange = self.exchange(&wished, there, checks);
            let is_only = there.members.len() == 1;
            for (missing, old) in exchange.coming {
                let Some((old, fit)) = old else {
                    creations.push(self.member(pool, missing, None, Meanwhile::Others));
                    continue;
                };
                if fit != Fit::Twin {
                    creations.push(self.deletion(pool, old));
                    creations.push(self.member(pool, missing, None, Meanwhile::Fewer));
                    continue;
                }
                let meanwhile = match moves_check(missing, old) {
                    true => Meanwhile::CheckMoves,
                    false if is_only => Meanwhile::Nobody,
                    false => Meanwhile::Others,
                };
                let old = self.old_member(pool, old);
                creations.push(self.member(pool, missing, Some(old), meanwhile));
            }
            let keeps_one = there.members.len() > exchange.going.len();
            let going = exchange.going.into_iter();
            deletions.extend(going.map(|old| (keeps_one, self.deletion(pool, old))));
        }
        let refusals = &self.seen.memory.refusals;
        let (again, new): (Vec<_>, Vec<_>) = creations
            .into_iter()
            .partition(|step| refused::is_tried_again(refusals, step));
        let is_failing = refused::has_failed_member(refusals) || !again.is_empty();
        let is_first = |keeps_one: bool| new.is_empty() && again.is_empty() || is_failing && keeps_one;
        deletions.retain(|(keeps_one, _)| is_first(*keeps_one));
        match deletions.is_empty() {
            false => deletions.into_iter().map(|(_, deletion)| deletion).collect(),
            true if new.is_empty() => again,
            true => new,
        }
    }

    /// Whether the API is asked for no more members, because it answers none.
    fn is_unheard(&self) -> bool {
        self.seen.memory.unheard() >= UNHEARD
    }

    /// Whether members of a pool are to be probed elsewhere from now on.
    pub(super) fn moving_checks(&self, backend: &Backend, there: &ObservedPool) -> MovingChecks {
        let wished = self.desired.members(backend, self.tags);
        let exchange = self.exchange(&wished, there, Checks::Move);
        let mut held = exchange.held.iter();
        let mut coming = exchange.coming.iter();
        if held.any(|(missing, old)| moves_check(missing, old)) {
            MovingChecks::Later
        } else if coming
            .any(|(missing, old)| old.is_some_and(|(old, fit)| fit == Fit::Twin && moves_check(missing, old)))
        {
            MovingChecks::Now
        } else {
            MovingChecks::None
        }
    }

    /// Who comes to a pool, who goes for it, and who stays. All members serve the same. The API may refuse a second one with the same
    /// address and port.
    fn exchange<'w>(
        &self,
        wished: &'w [NewMember],
        there: &'w ObservedPool,
        checks: Checks,
    ) -> Exchange<&'w NewMember, &'w Member> {
        let refusals = &self.seen.memory.refusals;
        let pool = there.pool.uuid;
        let mut members = diff(wished, &there.members, desired::member_key, member_key);
        let is_twin = |missing: &NewMember, old: &Member| {
            spelling::of_address(&old.address) == spelling::of_address(&missing.address)
                && old.protocol_port == missing.protocol_port
        };
        let is_stuck = |old: &&Member| refused::has(refusals, &self.deletion(pool, old));
        members.surplus.retain(|old| !is_stuck(old));
        let mut is_one_kept = !members.kept.is_empty();
        if checks == Checks::Stay {
            members.missing.retain(|missing| {
                let twin = members.surplus.iter().position(|old| is_twin(missing, old));
                let stays = twin.filter(|index| moves_check(missing, members.surplus[*index]));
                is_one_kept |= stays.map(|index| members.surplus.remove(index)).is_some();
                stays.is_none()
            });
        }
        let terms = Terms {
            room: self.room(Place::Member(pool)),
            // What one pool does not get again would be lost to the next one too.
            twins: match refused::has_member(refusals) || self.is_unheard() {
                true => Twins::Never,
                false => Twins::Last,
            },
            stead: Stead::Anybody { is_one_kept },
        };
        Exchange::new(
            terms,
            &members.missing,
            &members.surplus,
            |missing| {
                let addition = self.member(pool, missing, None, Meanwhile::Others);
                !refused::has(refusals, &addition)
            },
            |missing, old| match is_twin(missing, old) {
                true => Some(Fit::Twin),
                false => Some(Fit::Forerunner),
            },
        )
    }

    fn member(
        &self,
        pool: PoolId,
        missing: &NewMember,
        old: Option<Old<MemberId>>,
        meanwhile: Meanwhile,
    ) -> CloudStep {
        let new = missing.clone();
        self.step(PartChange::Member {
            pool,
            new,
            old,
            meanwhile,
        })
    }

    pub(super) fn deletion(&self, pool: PoolId, old: &Member) -> CloudStep {
        let old = self.old_member(pool, old);
        self.step(PartChange::DeleteMember { pool, old })
    }

    fn old_member(&self, pool: PoolId, member: &Member) -> Old<MemberId> {
        let href = self.hrefs.member(pool, member.uuid);
        Old::new(member.uuid, &*member.name, href)
    }
}

/// Whether a member is probed elsewhere from now on.
fn moves_check(missing: &NewMember, old: &Member) -> bool {
    missing.monitor_port != old.monitor_port.unwrap_or(old.protocol_port)
}

/// Whether a monitor of a pool is of the wished kind.
fn asks_as_wished(there: &ObservedPool, wished: &MonitorSettings) -> bool {
    let http = wished.http.resolved();
    let wished = desired::monitor_key(&wished.kind, http.as_ref());
    let mut monitors = there.monitors.iter();
    monitors.any(|monitor| desired::monitor_key(&monitor.kind, monitor.http()) == wished)
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
    let monitor_port = match is_elsewhere == backend.is_checked_elsewhere() {
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
        spelling::of_address(&member.name),
        member.enabled.unwrap_or(true),
        member.monitor_port.unwrap_or(member.protocol_port),
        member.protocol_port,
        spelling::of_address(&member.address),
        member
            .subnet
            .as_ref()
            .map_or_else(String::new, |subnet| subnet.uuid.to_ascii_lowercase()),
    )
}
