//! The writes to the cloud, as data.

use bowline_cloud_provider::Creation;
use bowline_cloudscale_client::{
    HttpChange, ListenerChange, ListenerId, LoadBalancerId, MemberId, MonitorChange, MonitorId, NewListener,
    NewLoadBalancer, NewMember, NewMonitor, NewPool, PoolId,
};
use bowline_plan::{Impact, Lane, Step};
use uuid::Uuid;

use crate::load_balancer::floating_ips::FloatingAddress;

/// One write to the cloud. A replacement is one step, so that nothing comes between its two halves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CloudStep {
    /// Creates the balancer.
    CreateBalancer {
        /// What is created.
        new: NewLoadBalancer,
    },
    /// Renames the balancer.
    RenameBalancer {
        /// Which one.
        balancer: LoadBalancerId,
        /// Its new name.
        name: String,
    },
    /// Deletes a balancer with all its parts.
    DeleteBalancer {
        /// Which one.
        balancer: LoadBalancerId,
        /// Its name.
        name: String,
        /// Its address in the API, for messages.
        href: String,
        /// Whether traffic may flow through it; not if it is a duplicate that nobody was told of.
        is_live: bool,
    },
    /// A write to a part of a balancer.
    Part {
        /// The balancer.
        balancer: LoadBalancerId,
        /// What is written.
        change: PartChange,
    },
    /// Leads a floating IP to the balancer.
    AssignFloatingIp {
        /// The floating IP.
        address: FloatingAddress,
        /// The balancer.
        balancer: LoadBalancerId,
        /// The balancer that it led to.
        from: Option<LoadBalancerId>,
    },
}

/// What a step asks the API for, whatever goes for it.
#[derive(Debug, PartialEq)]
enum Asked<'a> {
    Balancer(&'a NewLoadBalancer),
    Pool(&'a NewPool),
    Member(PoolId, &'a NewMember),
    Listener(&'a NewListener),
    Monitor(&'a NewMonitor),
    Removal(Uuid),
    FloatingIp(FloatingAddress, LoadBalancerId),
    Change(&'a CloudStep),
}

/// Something of a balancer that goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Old<Id> {
    /// Its id.
    pub id: Id,
    /// Its name, or for a monitor its type.
    pub name: String,
    /// Its address in the API, for messages.
    pub href: String,
}

/// Who serves while a member is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meanwhile {
    /// The other members of the pool.
    Others,
    /// The other members of the pool, of which one went to make room.
    Fewer,
    /// Nobody: the pool has no other member.
    Nobody,
    /// Perhaps nobody: this one, and the others after it, are probed elsewhere from now on. The monitor, which was replaced before, does
    /// not find its answer where they were probed until now, and after some checks counts them as down until they are replaced.
    CheckMoves,
}

impl<Id> Old<Id> {
    pub(crate) fn new(id: Id, name: impl Into<String>, href: String) -> Self {
        let name = name.into();
        Self { id, name, href }
    }
}

/// A write to a part of a balancer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PartChange {
    /// Creates a pool; in place of another one, if the API wants no two of one name.
    Pool {
        /// What is created.
        new: NewPool,
        /// The pool that goes first.
        old: Option<Old<PoolId>>,
    },
    /// Deletes a pool with all that hangs on it.
    DeletePool {
        /// Which one.
        old: Old<PoolId>,
        /// Whether a listener leads to it.
        is_live: bool,
    },
    /// Creates a member; in place of another one with the same address and port, if there is one.
    Member {
        /// The pool.
        pool: PoolId,
        /// What is created.
        new: NewMember,
        /// The member that goes.
        old: Option<Old<MemberId>>,
        /// Who serves meanwhile, if one goes.
        meanwhile: Meanwhile,
    },
    /// Deletes a member.
    DeleteMember {
        /// The pool.
        pool: PoolId,
        /// Which one.
        old: Old<MemberId>,
    },
    /// Creates a listener; in place of another one on the same port, if there is one.
    Listener {
        /// What is created.
        new: NewListener,
        /// The pool's name.
        pool_name: String,
        /// The listener that goes.
        old: Option<Old<ListenerId>>,
        /// Whether the port's traffic goes to another pool from now on.
        changes_pool: bool,
        /// Whether the old one goes first, because a quota leaves no room beside it. It is on another port then.
        makes_room: bool,
    },
    /// Deletes a listener.
    DeleteListener {
        /// Which one.
        old: Old<ListenerId>,
    },
    /// Changes an attribute of a listener.
    UpdateListener {
        /// Which one.
        id: ListenerId,
        /// Its name.
        name: String,
        /// The attribute.
        change: ListenerChange,
    },
    /// Creates a monitor; in place of another one of the same pool, if there is one.
    Monitor {
        /// What is created.
        new: Box<NewMonitor>,
        /// The pool's name.
        pool_name: String,
        /// The monitor that goes.
        old: Option<Old<MonitorId>>,
        /// Whether the pool's members are probed elsewhere than now as soon as they follow.
        moves_checks: bool,
    },
    /// Deletes a monitor.
    DeleteMonitor {
        /// The pool's name.
        pool_name: String,
        /// Which one.
        old: Old<MonitorId>,
    },
    /// Changes an attribute of a monitor.
    UpdateMonitor {
        /// Which one.
        id: MonitorId,
        /// The pool's name.
        pool_name: String,
        /// The attribute.
        change: MonitorChange,
    },
}

impl CloudStep {
    /// Whether the step creates something.
    pub(crate) fn creates(&self) -> bool {
        let asked = self.asked();
        let creates = |asked| {
            !matches!(
                asked,
                Asked::Removal(_) | Asked::FloatingIp(..) | Asked::Change(_)
            )
        };
        asked.is_some_and(creates)
    }

    /// What the step creates.
    pub(crate) fn creation(&self) -> Option<Creation> {
        let asked = self.asked().filter(|_| self.creates())?;
        Some(Creation::of(&asked).of_root(matches!(self, Self::CreateBalancer { .. })))
    }

    /// What is written to a part of a balancer.
    pub(crate) fn part(&self) -> Option<&PartChange> {
        match self {
            Self::Part { change, .. } => Some(change),
            _ => None,
        }
    }

    /// Whether something goes for what the step creates.
    pub(crate) fn replaces(&self) -> bool {
        self.creates() && self.part().is_some_and(|change| change.old().is_some())
    }

    /// Whether something goes for what the step creates, or went before it.
    pub(crate) fn has_room_made(&self) -> bool {
        let meanwhile = match self.part() {
            Some(PartChange::Member { meanwhile, .. }) => Some(meanwhile),
            _ => None,
        };
        meanwhile == Some(&Meanwhile::Fewer) || self.replaces()
    }

    /// Whether a listener goes to make room for one on another port.
    pub(crate) fn makes_room(&self) -> bool {
        matches!(self.part(), Some(PartChange::Listener { makes_room: true, .. }))
    }

    /// Whether the step changes one attribute of a part where it stands.
    pub(crate) fn changes_attribute(&self) -> bool {
        use PartChange::{UpdateListener, UpdateMonitor};
        matches!(self.part(), Some(UpdateListener { .. } | UpdateMonitor { .. }))
    }

    /// Whether the step creates a monitor for a pool that has none.
    pub(crate) fn is_first_monitor(&self) -> bool {
        matches!(self.part(), Some(PartChange::Monitor { old: None, .. }))
    }

    /// Whether the step creates what serves or checks one port, or a member, and nothing goes for it; or removes such a part.
    pub(crate) fn is_of_one_port(&self) -> bool {
        use PartChange::{Listener, Monitor, Pool};
        let part = self.part().filter(|change| change.old().is_none());
        self.is_of_member()
            || self.removes()
            || matches!(part, Some(Pool { .. } | Listener { .. } | Monitor { .. }))
    }

    /// Whether the step creates a member, and nothing goes for it, or removes one.
    pub(crate) fn is_of_member(&self) -> bool {
        use PartChange::{DeleteMember, Member};
        matches!(self.part(), Some(Member { old: None, .. } | DeleteMember { .. }))
    }

    /// Whether another step asks the API for the same, or for the same member probed on another port.
    pub(crate) fn asks_for_the_same(&self, other: &Self) -> bool {
        let probed_as = |new: &NewMember, monitor_port| NewMember {
            monitor_port,
            ..new.clone()
        };
        match (self.asked(), other.asked()) {
            (Some(Asked::Member(pool, new)), Some(Asked::Member(there, other))) => {
                pool == there && probed_as(new, other.monitor_port) == *other
            }
            (asked, other) => asked.is_some() && asked == other,
        }
    }

    /// Whether another step asks the API for the same object or the same value, whatever goes for it.
    pub(crate) fn asks_the_same(&self, other: &Self) -> bool {
        let asked = self.asked();
        asked.is_some() && asked == other.asked()
    }

    /// What the API is asked for; `None` if a balancer goes.
    fn asked(&self) -> Option<Asked<'_>> {
        Some(match self {
            Self::CreateBalancer { new } => Asked::Balancer(new),
            Self::AssignFloatingIp {
                address, balancer, ..
            } => Asked::FloatingIp(*address, *balancer),
            Self::RenameBalancer { .. } => Asked::Change(self),
            Self::DeleteBalancer { .. } => return None,
            Self::Part { change, .. } => match change {
                PartChange::Pool { new, .. } => Asked::Pool(new),
                PartChange::Member { pool, new, .. } => Asked::Member(*pool, new),
                PartChange::Listener { new, .. } => Asked::Listener(new),
                PartChange::Monitor { new, .. } => Asked::Monitor(new),
                PartChange::UpdateListener { .. } | PartChange::UpdateMonitor { .. } => Asked::Change(self),
                PartChange::DeletePool { .. }
                | PartChange::DeleteMember { .. }
                | PartChange::DeleteListener { .. }
                | PartChange::DeleteMonitor { .. } => Asked::Removal(change.old()?),
            },
        })
    }

    /// The balancer that the step writes to; `None` if it does not exist yet.
    pub(crate) fn balancer(&self) -> Option<LoadBalancerId> {
        match self {
            Self::CreateBalancer { .. } => None,
            Self::RenameBalancer { balancer, .. }
            | Self::DeleteBalancer { balancer, .. }
            | Self::Part { balancer, .. }
            | Self::AssignFloatingIp { balancer, .. } => Some(*balancer),
        }
    }
}

impl Step for CloudStep {
    fn removes(&self) -> bool {
        use PartChange::{DeleteListener, DeleteMember, DeleteMonitor, DeletePool};
        let part = self.part();
        matches!(
            part,
            Some(DeletePool { .. } | DeleteMember { .. } | DeleteListener { .. } | DeleteMonitor { .. })
        )
    }

    fn label(&self) -> String {
        match self {
            Self::CreateBalancer { new } => format!("create-lb({})", new.name),
            Self::RenameBalancer { balancer, name } => format!("rename-lb({balancer} -> {name})"),
            Self::DeleteBalancer { href, .. } => delete(href),
            Self::Part { change, balancer } => change.label(*balancer),
            Self::AssignFloatingIp {
                address, balancer, ..
            } => {
                format!("assign-floating-ip({address} -> {balancer})")
            }
        }
    }

    fn object(&self) -> String {
        match self {
            Self::CreateBalancer { new } => format!("load balancer {}", new.name),
            Self::RenameBalancer { name, .. } | Self::DeleteBalancer { name, .. } => {
                format!("load balancer {name}")
            }
            Self::Part { change, .. } => change.object(),
            Self::AssignFloatingIp { address, .. } => format!("floating IP {address}"),
        }
    }

    fn impact(&self) -> Impact {
        match self {
            Self::CreateBalancer { .. } | Self::RenameBalancer { .. } => Impact::None,
            Self::DeleteBalancer { is_live: true, .. } => Impact::Major,
            Self::DeleteBalancer { is_live: false, .. } => Impact::None,
            Self::Part { change, .. } => change.impact(),
            Self::AssignFloatingIp { .. } => Impact::Minimal,
        }
    }

    fn lanes(&self) -> Vec<Lane> {
        let lane = |id: &LoadBalancerId| Lane::new(format!("cloudscale/load-balancer/{id}"));
        match self {
            Self::CreateBalancer { new } => {
                vec![Lane::new(format!("cloudscale/load-balancer-name/{}", new.name))]
            }
            Self::RenameBalancer { balancer, .. }
            | Self::DeleteBalancer { balancer, .. }
            | Self::Part { balancer, .. } => vec![lane(balancer)],
            Self::AssignFloatingIp { balancer, from, .. } => {
                [Some(balancer), from.as_ref().filter(|from| *from != balancer)]
                    .into_iter()
                    .flatten()
                    .map(lane)
                    .collect()
            }
        }
    }

    /// A floating IP leads to the load balancer that asked for it last.
    fn concerns_others(&self) -> bool {
        matches!(self, Self::AssignFloatingIp { .. })
    }

    /// All else is of a balancer, and refused where that is gone.
    fn may_be_left(&self) -> bool {
        matches!(self, Self::CreateBalancer { .. })
    }
}

fn delete(href: &str) -> String {
    format!("delete-resource({href})")
}

/// `<verb>-<kind>(<place>)`, or, if something goes for it, `replace-<kind>(<href> -> <place>)`.
fn create<Id>(kind: &str, old: Option<&Old<Id>>, place: &str) -> String {
    match old {
        None => format!("create-{kind}({place})"),
        Some(old) => format!("replace-{kind}({} -> {place})", old.href),
    }
}

impl PartChange {
    /// The id of the object that goes, by itself or for another one.
    pub(crate) fn old(&self) -> Option<Uuid> {
        Some(match self {
            Self::Pool { old, .. } => old.as_ref()?.id.0,
            Self::Member { old, .. } => old.as_ref()?.id.0,
            Self::Listener { old, .. } => old.as_ref()?.id.0,
            Self::Monitor { old, .. } => old.as_ref()?.id.0,
            Self::DeletePool { old, .. } => old.id.0,
            Self::DeleteMember { old, .. } => old.id.0,
            Self::DeleteListener { old } => old.id.0,
            Self::DeleteMonitor { old, .. } => old.id.0,
            Self::UpdateListener { .. } | Self::UpdateMonitor { .. } => return None,
        })
    }

    fn label(&self, balancer: LoadBalancerId) -> String {
        match self {
            Self::Pool { new, old } => create("pool", old.as_ref(), &format!("{balancer}/{}", new.name)),
            Self::Member { pool, new, old, .. } => {
                create("pool-member", old.as_ref(), &format!("{pool}/{}", new.name))
            }
            Self::Listener { new, old, .. } => {
                create("listener", old.as_ref(), &format!("{}/{}", new.pool, new.name))
            }
            Self::Monitor { new, old, .. } => {
                create("monitor", old.as_ref(), &format!("{}/{}", new.pool, new.kind))
            }
            Self::DeletePool { old, .. } => delete(&old.href),
            Self::DeleteMember { old, .. } => delete(&old.href),
            Self::DeleteListener { old } => delete(&old.href),
            Self::DeleteMonitor { old, .. } => delete(&old.href),
            Self::UpdateListener { id, change, .. } => match change {
                ListenerChange::AllowedCidrs(cidrs) => format!("update-cidrs({id}/{})", cidrs.join(",")),
                ListenerChange::TimeoutClientDataMs(ms) => timeout("client-data-ms", *id, *ms),
                ListenerChange::TimeoutMemberConnectMs(ms) => timeout("member-connect-ms", *id, *ms),
                ListenerChange::TimeoutMemberDataMs(ms) => timeout("member-data-ms", *id, *ms),
            },
            Self::UpdateMonitor { id, change, .. } => match change {
                MonitorChange::DelayS(n) => format!("update-monitor-delay-s({id}: {n})"),
                MonitorChange::TimeoutS(n) => format!("update-monitor-timeout-s({id}: {n})"),
                MonitorChange::UpThreshold(n) => format!("update-monitor-up-threshold({id}: {n})"),
                MonitorChange::DownThreshold(n) => format!("update-monitor-down-threshold({id}: {n})"),
                MonitorChange::Http(change) => {
                    let (attribute, value) = match change {
                        HttpChange::Method(text) => ("method", text.clone()),
                        HttpChange::UrlPath(text) => ("path", text.clone()),
                        HttpChange::Host(text) => ("host", text.clone().unwrap_or_default()),
                        HttpChange::ExpectedCodes(codes) => ("expected-codes", codes.join(",")),
                    };
                    format!("update-monitor-http-{attribute}({id}: {value})")
                }
            },
        }
    }

    /// What the write costs those whose traffic goes through the part.
    fn impact(&self) -> Impact {
        use Meanwhile::{CheckMoves, Nobody};
        match self {
            Self::Pool { old: Some(_), .. }
            | Self::DeletePool { is_live: true, .. }
            | Self::Member {
                old: Some(_),
                meanwhile: Nobody | CheckMoves,
                ..
            }
            | Self::Listener {
                old: Some(_),
                changes_pool: true,
                ..
            }
            | Self::Monitor {
                moves_checks: true, ..
            } => Impact::Considerable,
            Self::Pool { old: None, .. }
            | Self::DeletePool { is_live: false, .. }
            | Self::Member { old: None, .. }
            | Self::Listener { old: None, .. }
            | Self::Monitor { old: None, .. } => Impact::None,
            Self::UpdateListener { change, .. } if !matches!(change, ListenerChange::AllowedCidrs(_)) => {
                Impact::None
            }
            _ => Impact::Minimal,
        }
    }

    pub(crate) fn object(&self) -> String {
        match self {
            Self::Pool { new, .. } => format!("pool {}", new.name),
            Self::DeletePool { old, .. } => format!("pool {}", old.name),
            Self::Member { new, .. } => format!("member {}", new.name),
            Self::DeleteMember { old, .. } => format!("member {}", old.name),
            Self::Listener { new, .. } => format!("listener {}", new.name),
            Self::DeleteListener { old } => format!("listener {}", old.name),
            Self::UpdateListener { name, .. } => format!("listener {name}"),
            Self::Monitor { pool_name, .. }
            | Self::DeleteMonitor { pool_name, .. }
            | Self::UpdateMonitor { pool_name, .. } => format!("health monitor of pool {pool_name}"),
        }
    }
}

fn timeout(which: &str, id: ListenerId, ms: i64) -> String {
    format!("update-listener-timeout-{which}({id}: {ms}ms)")
}

#[cfg(test)]
mod tests;
