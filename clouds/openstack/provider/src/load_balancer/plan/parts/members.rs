//! The members of a pool: one list that replaces them all, or one write each where the load balancer's provider needs that.

use bowline_cloud_provider::spelling;
use bowline_openstack_client::{Member, MemberSettings, NewMember, Pool};

use super::{PartsPlan, is_error};
use crate::load_balancer::members::is_at;
use crate::load_balancer::memory::PartRefusals as _;
use crate::load_balancer::names;
use crate::load_balancer::plan::desired::DesiredPort;
use crate::load_balancer::step::PartChange;

impl PartsPlan<'_> {
    /// Wanted members with what people set on those that are there, or went to come back in another subnet, or are in the pool whose
    /// place this one is to have: a list that leaves it out takes it back.
    fn with_settings(&self, port: &DesiredPort, pool: &Pool, there: &[Member]) -> Vec<NewMember> {
        let wanted = &port.members;
        let left = self.own.left.iter().rev().filter(|(of, _)| *of == pool.id);
        let serving = self.pool_of(port).filter(|serving| serving.id != pool.id);
        let serving = serving.and_then(|serving| self.there.members.get(&serving.id));
        let known = there.iter().chain(left.map(|(_, member)| member));
        let known = known.chain(serving.into_iter().flatten());
        let with = |wanted: &NewMember| {
            let there = known.clone().find(|there| is_at(there, wanted));
            NewMember {
                settings: there.map(undrained).unwrap_or_default(),
                ..wanted.clone()
            }
        };
        let mut members: Vec<NewMember> = wanted.iter().map(with).collect();
        // A member that still serves is better than none: what a person set to weight 0 does not.
        let serves = members.iter().any(|member| member.settings.weight != Some(0));
        let drained = port.drained.iter().filter(|_| self.weighs(pool));
        let drained = drained.filter_map(|drained| {
            let there = known.clone().find(|there| is_at(there, drained))?;
            Some(match serves {
                true => without_new_connections(there, drained),
                false => with(drained),
            })
        });
        members.extend(drained);
        members
    }

    /// Whether a member of weight 0 gets no new connections, as far as the load balancer's provider is known: `ovn` forwards to it as to any
    /// other one, and `HAProxy` in the amphora sends clients there that are kept at it.
    fn weighs(&self, pool: &Pool) -> bool {
        self.features.is_amphora && !self.identity.options.is_serial && pool.session_persistence.is_none()
    }

    /// The writes to the members that have a place now, if they are not as they shall be.
    pub(super) fn members(&self, port: &DesiredPort, pool: &Pool) -> Vec<PartChange> {
        let Some(there) = self.there.members.get(&pool.id) else {
            return Vec::new();
        };
        let mut failed = there.iter();
        let failed = failed.find(|member| is_error(&member.provisioning_status));
        let again = |failed: &Member| {
            let write = || match self.identity.options.is_serial {
                true => PartChange::update_member(pool, failed, &failed.name, failed.monitor_port),
                false => PartChange::SetMembers {
                    pool: pool.id.clone(),
                    name: pool.name.clone(),
                    members: self.with_settings(port, pool, there),
                    removed: 0,
                },
            };
            self.once_more(failed.id.as_str(), true, write)
        };
        let mut changes = match self.identity.options.is_serial {
            true => self.one_by_one(port, pool, there),
            false => self.as_a_list(port, pool, there),
        };
        if changes.is_empty() {
            changes.extend(failed.and_then(again));
        }
        changes
    }

    /// The list that replaces the members. Where Octavia refuses it, as for a quota, those that are there and stay are a list too: who left
    /// goes, which may make the room. The last ones stay until others serve.
    fn as_a_list(&self, port: &DesiredPort, pool: &Pool, there: &[Member]) -> Vec<PartChange> {
        let wanted = self.with_settings(port, pool, there);
        let shown: Vec<(NewMember, &Member)> = there
            .iter()
            .map(|member| (self.as_wanted(member, &wanted), member))
            .collect();
        let Some(whole) = self.member_list(&wanted, pool, &shown) else {
            return Vec::new();
        };
        if self.refusals.of_change(&whole).is_none() {
            return vec![whole];
        }
        let is_there = |wanted: &&NewMember| there.iter().any(|there| is_at(there, wanted));
        let staying: Vec<NewMember> = wanted.iter().filter(is_there).cloned().collect();
        let without_new = match staying.iter().all(|member| member.settings.weight == Some(0)) {
            true => None,
            false => self.member_list(&staying, pool, &shown),
        };
        without_new.into_iter().chain([whole]).collect()
    }

    /// One member each: first those that lack, then those that change in place, then those that have to go. The last ones stay until
    /// others serve.
    ///
    /// The Go manager tells its members apart by address and port, and gives them neither a monitor port nor a subnet. Such
    /// members stay as they are.
    fn one_by_one(&self, port: &DesiredPort, pool: &Pool, there: &[Member]) -> Vec<PartChange> {
        let is_there = |wanted: &&NewMember| there.iter().any(|there| is_at(there, wanted));
        let wanted = self.with_settings(port, pool, there);
        let (staying, lacking): (Vec<_>, Vec<_>) = wanted.iter().partition(is_there);
        let wanted_at = |there: &Member| port.members.iter().find(|wanted| is_at(there, wanted));
        // Bowline writes the members before the monitor: those without a port of their own under this monitor are the Go manager's.
        let is_unread = self.there.unread.monitors.is_some();
        let is_taken_over =
            |there: &Member| there.monitor_port.is_none() && (is_unread || self.has_monitor(port, pool));
        let probed_elsewhere = there.iter().filter_map(|there| {
            let wanted = wanted_at(there)?;
            (wanted.monitor_port != there.monitor_port && !is_taken_over(there)).then_some((there, wanted))
        });
        let is_misplaced = |there: &Member| {
            wanted_at(there).is_none_or(|wanted| {
                let shown = self.as_wanted(there, &port.members);
                there.subnet_id.is_some() && shown.subnet_id != wanted.subnet_id
            })
        };
        let is_last = staying.is_empty() && !lacking.is_empty();
        let surplus = there.iter().filter(|there| !is_last && is_misplaced(there));
        let lacking = lacking.into_iter().map(|new| PartChange::AddMember {
            pool: pool.id.clone(),
            new: new.clone(),
        });
        let probed_elsewhere = probed_elsewhere
            .map(|(there, wanted)| PartChange::update_member(pool, there, &wanted.name, wanted.monitor_port));
        let surplus = surplus.map(|there| PartChange::RemoveMember {
            pool: pool.id.clone(),
            id: there.id.clone(),
            name: there.name.clone(),
        });
        lacking.chain(probed_elsewhere).chain(surplus).collect()
    }

    /// Whether the monitor of a pool is there already, and of the type that it shall have.
    fn has_monitor(&self, port: &DesiredPort, pool: &Pool) -> bool {
        let both = self.there.monitor_of(pool).zip(port.monitor.as_ref());
        both.is_some_and(|(there, wanted)| there.kind == wanted.kind)
    }

    /// The list that replaces the members, if they are not as they shall be.
    ///
    /// A member keeps its subnet for life. One that shall have another is left out of one list and stands in the next one;
    /// half of such members at a time, so that the others serve.
    fn member_list(
        &self,
        members: &[NewMember],
        pool: &Pool,
        shown: &[(NewMember, &Member)],
    ) -> Option<PartChange> {
        fn place(member: &NewMember) -> (&str, u16) {
            (&member.address, member.protocol_port)
        }
        let list = |members: Vec<NewMember>| PartChange::SetMembers {
            pool: pool.id.clone(),
            name: pool.name.clone(),
            removed: shown
                .iter()
                .filter(|(there, _)| members.iter().all(|member| place(member) != place(there)))
                .count(),
            members,
        };
        let wanted_at = |there: &NewMember| members.iter().find(|wanted| place(wanted) == place(there));
        let is_moving =
            |there: &NewMember| wanted_at(there).is_some_and(|wanted| wanted.subnet_id != there.subnet_id);
        let is_as_wanted = |there: &NewMember| {
            wanted_at(there).is_some_and(|wanted| {
                let subnet_id = there.subnet_id.clone();
                *there
                    == NewMember {
                        subnet_id,
                        ..wanted.clone()
                    }
            })
        };
        let is_there = |wanted: &NewMember| shown.iter().any(|(there, _)| place(there) == place(wanted));
        let is_complete = members.iter().all(is_there);
        if !is_complete || !shown.iter().all(|(there, _)| is_as_wanted(there)) {
            return Some(list(members.to_vec()));
        }
        let mut moving: Vec<&NewMember> = shown
            .iter()
            .map(|(there, _)| there)
            .filter(|there| is_moving(there))
            .collect();
        // Those that serve nobody first, so that the half that stays serves.
        moving.sort_by_key(|there| there.settings.weight != Some(0));
        let (leaving, _) = moving.split_at(moving.len().div_ceil(2));
        let stays = |wanted: &&NewMember| leaving.iter().all(|there| place(there) != place(wanted));
        (!leaving.is_empty()).then(|| list(members.iter().filter(stays).cloned().collect()))
    }

    /// A member that is there, in the words in which it would be asked for.
    fn as_wanted(&self, member: &Member, wanted: &[NewMember]) -> NewMember {
        let address = spelling::of_address(&member.address).into_owned();
        let wanted = wanted.iter().find(|wanted| wanted.address == address);
        let is_right = |wanted: &&NewMember| {
            // Without a subnet, Octavia reaches a member through the subnet of its own address.
            let is_implied = member.subnet_id.is_none() && wanted.subnet_id == self.balancer.vip_subnet_id;
            self.keeps_subnets || is_implied
        };
        NewMember {
            name: member.name.clone(),
            protocol_port: member.protocol_port,
            subnet_id: match wanted.filter(is_right) {
                Some(wanted) => wanted.subnet_id.clone(),
                None => member.subnet_id.clone(),
            },
            monitor_port: member.monitor_port,
            settings: member.settings.clone(),
            address,
        }
    }
}

/// What a person set on a member whose node is not drained: its weight from before, if Bowline took that.
fn undrained(there: &Member) -> MemberSettings {
    let before = names::weight_before_drain(&there.name).filter(|_| there.settings.weight == Some(0));
    match before {
        None => there.settings.clone(),
        Some(before) => MemberSettings {
            weight: Some(before).filter(|weight| *weight != 1),
            ..there.settings.clone()
        },
    }
}

/// A member that is there, for a node that is drained. What a person did to its weight stays.
fn without_new_connections(there: &Member, wanted: &NewMember) -> NewMember {
    let is_ours = names::weight_before_drain(&there.name).is_some();
    let (name, weight) = match there.settings.weight {
        weight if is_ours => (there.name.clone(), weight),
        Some(0) => (wanted.name.clone(), Some(0)),
        weight => (names::drained_member(&wanted.name, weight.unwrap_or(1)), Some(0)),
    };
    NewMember {
        name,
        settings: MemberSettings {
            weight,
            ..there.settings.clone()
        },
        ..wanted.clone()
    }
}
