//! The writes to the cloud, as data.

use bowline_cloud_provider::Creation;
use bowline_openstack_client::{
    Listener, ListenerId, ListenerProtocol, ListenerUpdate, LoadBalancer, LoadBalancerId, LoadBalancerUpdate,
    Member, MemberId, MemberUpdate, Monitor, MonitorId, MonitorUpdate, NewListener, NewLoadBalancer,
    NewMember, NewMonitor, NewPool, Pool, PoolId, PoolUpdate, Port, PortId, SessionPersistence,
};
use bowline_plan::{Impact, Lane, Step};
use serde::Serialize;

mod floating_ip;
mod group;

pub(crate) use floating_ip::FloatingIpChange;
pub(crate) use group::GroupChange;

/// One write to the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CloudStep {
    /// Creates the load balancer, with all its parts unless the cloud wants them one by one.
    CreateBalancer {
        /// What is created.
        new: Box<NewLoadBalancer>,
    },
    /// Deletes a load balancer.
    DeleteBalancer {
        /// Which one.
        balancer: LoadBalancerId,
        /// Its name.
        name: String,
        /// Whether its parts go with it.
        cascade: bool,
        /// Whether traffic may flow through it.
        is_live: bool,
    },
    /// A write to a load balancer or a part of it. Octavia takes one at a time.
    Part {
        /// The load balancer.
        balancer: LoadBalancerId,
        /// What is written.
        change: PartChange,
    },
    /// Deletes a port that a refused creation left behind.
    DeletePort {
        /// Which one.
        port: PortId,
        /// Its name.
        name: String,
    },
    /// A write to a floating IP.
    FloatingIp(FloatingIpChange),
    /// A write to the Service's security group or to a port that has it.
    Group(GroupChange),
}

/// A write to a load balancer or a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PartChange {
    /// Changes the name or the tags of the load balancer.
    UpdateBalancer {
        name: String,
        update: LoadBalancerUpdate,
    },
    /// Creates a listener without a pool.
    CreateListener { new: Box<NewListener> },
    /// Changes a listener.
    UpdateListener {
        id: ListenerId,
        name: String,
        update: Box<ListenerUpdate>,
    },
    /// Deletes a listener.
    DeleteListener { id: ListenerId, name: String },
    /// Creates the pool of a listener, without members.
    CreatePool { new: Box<NewPool> },
    /// Changes a pool.
    UpdatePool {
        id: PoolId,
        name: String,
        update: PoolUpdate,
    },
    /// Deletes a pool with its members and its monitor.
    DeletePool { id: PoolId, name: String },
    /// Replaces the members of a pool in one write.
    SetMembers {
        pool: PoolId,
        name: String,
        members: Vec<NewMember>,
        /// How many of the present members go.
        removed: usize,
    },
    /// Adds one member.
    AddMember { pool: PoolId, new: NewMember },
    /// Changes one member in place.
    UpdateMember {
        pool: PoolId,
        id: MemberId,
        update: MemberUpdate,
    },
    /// Removes one member.
    RemoveMember {
        pool: PoolId,
        id: MemberId,
        name: String,
    },
    /// Creates the monitor of a pool.
    CreateMonitor { new: Box<NewMonitor> },
    /// Changes a monitor.
    UpdateMonitor {
        id: MonitorId,
        name: String,
        update: MonitorUpdate,
    },
    /// Deletes the monitor of a pool.
    DeleteMonitor { id: MonitorId, name: String },
}

/// What is asked of a pool, and may be refused by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PoolSetting {
    /// How it chooses a member.
    Method(String),
    /// How it keeps a client at a member.
    Persistence(Option<SessionPersistence>),
}

impl PoolSetting {
    /// The setting that an update changes; `None` if it changes something else.
    pub(crate) fn of(update: &PoolUpdate) -> Option<Self> {
        let method = update.lb_algorithm.clone().map(Self::Method);
        method.or_else(|| update.session_persistence.clone().map(Self::Persistence))
    }
}

/// What a quota of the project limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// Listeners and pools: one is of no use without the other.
    Port,
    Member,
    Monitor,
}

/// The listeners that cannot stand side by side on one port (Octavia, "Listener port conflict").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PortSpace {
    Tcp,
    Udp,
    Sctp,
}

pub(crate) fn port_space(protocol: &ListenerProtocol) -> PortSpace {
    match protocol {
        ListenerProtocol::Udp => PortSpace::Udp,
        ListenerProtocol::Sctp => PortSpace::Sctp,
        _ => PortSpace::Tcp,
    }
}

/// The write that takes away a port that was left behind.
pub(crate) fn delete_port(port: &Port) -> CloudStep {
    CloudStep::DeletePort {
        port: port.id.clone(),
        name: port.name.clone(),
    }
}

impl CloudStep {
    /// Whether two writes ask the cloud for the same: a port or a floating IP may have changed otherwise meanwhile, and a load balancer
    /// that was refused with its parts is worth no other try because Nodes came or left.
    pub(crate) fn asks_the_same(&self, other: &Self) -> bool {
        use FloatingIpChange::Attach;
        use GroupChange::{Join, Leave};
        match (self, other) {
            (
                Self::DeleteBalancer {
                    balancer, cascade, ..
                },
                Self::DeleteBalancer {
                    balancer: other,
                    cascade: with_parts,
                    ..
                },
            ) => (balancer, cascade) == (other, with_parts),
            (Self::CreateBalancer { new }, Self::CreateBalancer { new: other }) => {
                let alone = |new: &NewLoadBalancer| NewLoadBalancer {
                    listeners: Vec::new(),
                    ..new.clone()
                };
                new.listeners.is_empty() == other.listeners.is_empty() && alone(new) == alone(other)
            }
            (Self::Group(Join { group, port }), Self::Group(Join { group: of, port: at }))
            | (Self::Group(Leave { group, port }), Self::Group(Leave { group: of, port: at })) => {
                (group, &port.id) == (of, &at.id)
            }
            (Self::FloatingIp(a @ Attach { id, .. }), Self::FloatingIp(b @ Attach { id: other, .. })) => {
                id == other && a.place() == b.place()
            }
            _ => self == other,
        }
    }

    /// The load balancer that the step creates, which all else belongs to. All other creations are found by what they are for.
    pub(crate) fn creation(&self) -> Option<Creation> {
        match self {
            Self::CreateBalancer { new } => Some(Creation::of(&new.name).of_root(true)),
            _ => None,
        }
    }

    /// The load balancer that the step writes to; `None` if it does not exist yet, or if it is none.
    pub(crate) fn balancer(&self) -> Option<&LoadBalancerId> {
        match self {
            Self::DeleteBalancer { balancer, .. } | Self::Part { balancer, .. } => Some(balancer),
            Self::CreateBalancer { .. } | Self::DeletePort { .. } | Self::FloatingIp(_) | Self::Group(_) => {
                None
            }
        }
    }
}

impl Step for CloudStep {
    fn removes(&self) -> bool {
        match self {
            Self::Part { change, .. } => {
                // A list may add others too: to a pool that has members, so nothing leans on it either.
                let removes_members = matches!(
                    change,
                    PartChange::RemoveMember { .. } | PartChange::SetMembers { removed: 1.., .. }
                );
                change.takes_part() || removes_members
            }
            _ => false,
        }
    }

    fn label(&self) -> String {
        match self {
            Self::CreateBalancer { new } => format!("create-lb({})", new.name),
            Self::DeleteBalancer {
                balancer, cascade, ..
            } => {
                let with = if *cascade { ", with its parts" } else { "" };
                format!("delete-lb({balancer}{with})")
            }
            Self::Part { balancer, change } => change.label(balancer),
            Self::DeletePort { port, .. } => format!("delete-port({port})"),
            Self::FloatingIp(change) => change.label(),
            Self::Group(change) => change.label(),
        }
    }

    fn object(&self) -> String {
        match self {
            Self::CreateBalancer { new } => format!("load balancer {}", new.name),
            Self::DeleteBalancer { name, .. } => format!("load balancer {name}"),
            Self::Part { change, .. } => change.object(),
            Self::DeletePort { name, .. } => format!("port {name}"),
            Self::FloatingIp(change) => change.object(),
            Self::Group(change) => change.object(),
        }
    }

    fn impact(&self) -> Impact {
        match self {
            Self::CreateBalancer { .. } | Self::DeletePort { .. } => Impact::None,
            Self::DeleteBalancer { is_live: true, .. } => Impact::Major,
            Self::DeleteBalancer { is_live: false, .. } => Impact::None,
            Self::Part { change, .. } => change.impact(),
            Self::FloatingIp(change) => change.impact(),
            Self::Group(change) => change.impact(),
        }
    }

    fn lanes(&self) -> Vec<Lane> {
        match self {
            Self::CreateBalancer { new } => {
                vec![Lane::new(format!("openstack/load-balancer-name/{}", new.name))]
            }
            Self::DeleteBalancer { balancer, .. } | Self::Part { balancer, .. } => {
                vec![Lane::new(format!("openstack/load-balancer/{balancer}"))]
            }
            Self::DeletePort { port, .. } => vec![Lane::new(format!("openstack/port/{port}"))],
            Self::FloatingIp(change) => change.lanes(),
            Self::Group(change) => vec![change.lane()],
        }
    }

    /// A floating IP leads to the port that asked for it last. Services that share a load balancer write its tags as a whole.
    fn concerns_others(&self) -> bool {
        match self {
            Self::DeleteBalancer { .. } => true,
            Self::Part { change, .. } => matches!(change, PartChange::UpdateBalancer { .. }),
            Self::FloatingIp(change) => !matches!(change, FloatingIpChange::Create { .. }),
            Self::Group(change) => change.may_undo_others(),
            Self::CreateBalancer { .. } | Self::DeletePort { .. } => false,
        }
    }

    /// A load balancer may be shared, and stay. All else is of a part of it, and refused where that is gone.
    fn may_be_left(&self) -> bool {
        match self {
            Self::DeleteBalancer { .. } | Self::DeletePort { .. } => false,
            Self::Part { change, .. } => matches!(
                change,
                PartChange::UpdateBalancer { .. }
                    | PartChange::CreateListener { .. }
                    | PartChange::CreatePool { .. }
            ),
            Self::CreateBalancer { .. } | Self::FloatingIp(_) | Self::Group(_) => true,
        }
    }
}

/// The writes to what is there.
impl PartChange {
    /// Whether new members lead to a node port, or are probed at one, that this rule opens.
    pub(crate) fn leads_through(&self, rule: &GroupChange) -> bool {
        let members = match self {
            Self::SetMembers { members, .. } => members.as_slice(),
            Self::AddMember { new, .. } => std::slice::from_ref(new),
            _ => return false,
        };
        let GroupChange::CreateRule { new: rule } = rule else {
            return false;
        };
        let opened = rule.port_range_min..=rule.port_range_max;
        let mut ports = members
            .iter()
            .flat_map(|it| [Some(it.protocol_port), it.monitor_port]);
        ports.any(|port| port.is_some_and(|port| opened.contains(&port)))
    }

    pub(crate) fn update_balancer(there: &LoadBalancer, update: LoadBalancerUpdate) -> Self {
        let name = there.name.clone();
        Self::UpdateBalancer { name, update }
    }

    pub(crate) fn update_listener(there: &Listener, update: ListenerUpdate) -> Self {
        let (id, name, update) = (there.id.clone(), there.name.clone(), Box::new(update));
        Self::UpdateListener { id, name, update }
    }

    pub(crate) fn delete_listener(there: &Listener) -> Self {
        let (id, name) = (there.id.clone(), there.name.clone());
        Self::DeleteListener { id, name }
    }

    pub(crate) fn update_pool(there: &Pool, update: PoolUpdate) -> Self {
        let (id, name) = (there.id.clone(), there.name.clone());
        Self::UpdatePool { id, name, update }
    }

    pub(crate) fn delete_pool(there: &Pool) -> Self {
        let (id, name) = (there.id.clone(), there.name.clone());
        Self::DeletePool { id, name }
    }

    pub(crate) fn update_member(pool: &Pool, there: &Member, name: &str, monitor_port: Option<u16>) -> Self {
        let (pool, id, name) = (pool.id.clone(), there.id.clone(), name.to_owned());
        let update = MemberUpdate { name, monitor_port };
        Self::UpdateMember { pool, id, update }
    }

    pub(crate) fn update_monitor(there: &Monitor, update: MonitorUpdate) -> Self {
        let (id, name) = (there.id.clone(), there.name.clone());
        Self::UpdateMonitor { id, name, update }
    }

    /// The step that makes it.
    pub(crate) fn of(self, balancer: &LoadBalancer) -> CloudStep {
        let (balancer, change) = (balancer.id.clone(), self);
        CloudStep::Part { balancer, change }
    }
}

impl PartChange {
    /// Whether two creations are of what only one can be of: the listener of a port, the monitor of a pool.
    pub(crate) fn has_place_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::CreateListener { new: a }, Self::CreateListener { new: b }) => {
                let of = |new: &NewListener| (new.protocol_port, port_space(&new.protocol));
                a.loadbalancer_id == b.loadbalancer_id && of(a) == of(b)
            }
            (Self::CreateMonitor { new: a }, Self::CreateMonitor { new: b }) => a.pool_id == b.pool_id,
            _ => false,
        }
    }

    /// Whether it takes a part away.
    pub(crate) fn takes_part(&self) -> bool {
        matches!(
            self,
            Self::DeleteListener { .. } | Self::DeletePool { .. } | Self::DeleteMonitor { .. }
        )
    }

    /// What it needs room for and makes one of.
    pub(crate) fn room(&self) -> Option<Room> {
        match self {
            Self::CreateListener { .. } | Self::CreatePool { .. } => Some(Room::Port),
            Self::AddMember { .. } => Some(Room::Member),
            Self::CreateMonitor { .. } => Some(Room::Monitor),
            _ => None,
        }
    }

    fn label(&self, balancer: &LoadBalancerId) -> String {
        match self {
            Self::UpdateBalancer { update, .. } => match (&update.name, &update.tags) {
                (Some(name), _) => format!("rename-lb({balancer} -> {name})"),
                (None, tags) => format!(
                    "update-lb-tags({balancer}: {})",
                    tags.as_deref().unwrap_or_default().join(", ")
                ),
            },
            Self::CreateListener { new } => {
                format!(
                    "create-listener({balancer}/{}/{})",
                    new.protocol, new.protocol_port
                )
            }
            Self::UpdateListener { id, update, .. } => {
                format!("update-listener({id}: {})", fields(update))
            }
            Self::DeleteListener { id, .. } => format!("delete-listener({id})"),
            Self::CreatePool { new } => format!("create-pool({balancer}/{}/{})", new.name, new.protocol),
            Self::UpdatePool { id, update, .. } => {
                format!("update-pool({id}: {})", fields(update))
            }
            Self::DeletePool { id, .. } => format!("delete-pool({id})"),
            Self::SetMembers { pool, members, .. } => {
                let members: Vec<String> = members
                    .iter()
                    .map(|member| {
                        let weight = if member.settings.weight == Some(0) {
                            " weight 0"
                        } else {
                            ""
                        };
                        format!("{}:{}{weight}", member.address, member.protocol_port)
                    })
                    .collect();
                format!("set-members({pool}: {})", members.join(", "))
            }
            Self::AddMember { pool, new } => {
                format!("create-member({pool}/{}:{})", new.address, new.protocol_port)
            }
            Self::UpdateMember { pool, id, .. } => format!("update-member({pool}/{id}: monitor_port)"),
            Self::RemoveMember { pool, id, .. } => format!("delete-member({pool}/{id})"),
            Self::CreateMonitor { new } => format!("create-monitor({balancer}/{}/{})", new.name, new.kind),
            Self::UpdateMonitor { id, .. } => format!("update-monitor({id})"),
            Self::DeleteMonitor { id, .. } => format!("delete-monitor({id})"),
        }
    }

    pub(crate) fn object(&self) -> String {
        match self {
            Self::UpdateBalancer { name, .. } => format!("load balancer {name}"),
            Self::CreateListener { new } => format!("listener {}", new.name),
            Self::UpdateListener { name, .. } | Self::DeleteListener { name, .. } => {
                format!("listener {name}")
            }
            Self::CreatePool { new } => format!("pool {}", new.name),
            Self::UpdatePool { name, .. } | Self::DeletePool { name, .. } => format!("pool {name}"),
            Self::SetMembers { name, .. } => format!("members of pool {name}"),
            Self::AddMember { new, .. } => format!("member {}", new.name),
            Self::UpdateMember { update, .. } => format!("member {}", update.name),
            Self::RemoveMember { name, .. } => format!("member {name}"),
            Self::CreateMonitor { new } => format!("health monitor {}", new.name),
            Self::UpdateMonitor { name, .. } | Self::DeleteMonitor { name, .. } => {
                format!("health monitor {name}")
            }
        }
    }

    fn impact(&self) -> Impact {
        match self {
            Self::DeleteListener { .. } | Self::DeletePool { .. } => Impact::Considerable,
            Self::SetMembers { removed: 1.., .. }
            | Self::UpdateMember { .. }
            | Self::RemoveMember { .. }
            | Self::CreateMonitor { .. }
            | Self::UpdateMonitor { .. }
            | Self::DeleteMonitor { .. } => Impact::Minimal,
            Self::UpdateListener { update, .. } if update.attributes.allowed_cidrs.is_some() => {
                Impact::Minimal
            }
            Self::UpdateBalancer { .. }
            | Self::CreateListener { .. }
            | Self::UpdateListener { .. }
            | Self::CreatePool { .. }
            | Self::UpdatePool { .. }
            | Self::SetMembers { .. }
            | Self::AddMember { .. } => Impact::None,
        }
    }
}

/// The fields that an update holds.
fn fields(update: &impl Serialize) -> String {
    let update = serde_json::to_value(update).unwrap_or_default();
    let fields = update.as_object().into_iter().flat_map(|fields| fields.keys());
    fields.map(String::as_str).collect::<Vec<_>>().join(", ")
}
