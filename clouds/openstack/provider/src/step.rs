//! The writes to the cloud, as data.

use bowline_openstack_client::{
    FloatingIpId, ListenerId, ListenerUpdate, LoadBalancerId, LoadBalancerUpdate, MemberId, MonitorId,
    MonitorUpdate, NewFloatingIp, NewListener, NewLoadBalancer, NewMember, NewMonitor, NewPool,
    NewSecurityGroup, NewSecurityGroupRule, Pool, PoolId, PoolUpdate, Port, PortId, SecurityGroupId,
    SecurityGroupRuleId,
};
use bowline_plan::{Impact, Lane, Step};

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
    DeleteMonitor {
        id: MonitorId,
        pool: PoolId,
        name: String,
    },
}

/// A write to a floating IP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FloatingIpChange {
    /// Creates one on a port: from the first of these places that has an address left.
    Create { attempts: Vec<NewFloatingIp> },
    /// Leads one to a port; `None` leads it nowhere.
    Attach {
        id: FloatingIpId,
        address: String,
        port: Option<PortId>,
    },
    /// Deletes one.
    Delete { id: FloatingIpId, address: String },
}

/// A write to the Service's security group or to a port that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GroupChange {
    /// Creates the group.
    Create { new: NewSecurityGroup },
    /// Creates a rule.
    CreateRule { new: NewSecurityGroupRule },
    /// Deletes a rule.
    DeleteRule {
        group: SecurityGroupId,
        id: SecurityGroupRuleId,
        text: String,
    },
    /// Gives the group to a port, which is as it was read.
    Join { group: SecurityGroupId, port: Box<Port> },
    /// Takes the group off a port, which is as it was read, and the tag that old controllers left.
    Leave { group: SecurityGroupId, port: Box<Port> },
    /// Deletes the group.
    Delete { group: SecurityGroupId, name: String },
}

/// The write that takes a pool away.
pub(crate) fn delete_pool(pool: &Pool) -> PartChange {
    PartChange::DeletePool {
        id: pool.id.clone(),
        name: pool.name.clone(),
    }
}

impl CloudStep {
    /// The load balancer that the step writes to; `None` if it does not exist yet, or if it is none.
    pub(crate) fn balancer(&self) -> Option<&LoadBalancerId> {
        match self {
            Self::DeleteBalancer { balancer, .. } | Self::Part { balancer, .. } => Some(balancer),
            Self::CreateBalancer { .. } | Self::FloatingIp(_) | Self::Group(_) => None,
        }
    }
}

impl Step for CloudStep {
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
            Self::FloatingIp(change) => change.label(),
            Self::Group(change) => change.label(),
        }
    }

    fn object(&self) -> String {
        match self {
            Self::CreateBalancer { new } => format!("load balancer {}", new.name),
            Self::DeleteBalancer { name, .. } => format!("load balancer {name}"),
            Self::Part { change, .. } => change.object(),
            Self::FloatingIp(change) => change.object(),
            Self::Group(change) => change.object(),
        }
    }

    fn impact(&self) -> Impact {
        match self {
            Self::CreateBalancer { .. } => Impact::None,
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
            Self::FloatingIp(change) => change.lanes(),
            Self::Group(change) => vec![change.lane()],
        }
    }
}

impl PartChange {
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
                format!("update-listener({id}: {})", fields_of_listener(update).join(", "))
            }
            Self::DeleteListener { id, .. } => format!("delete-listener({id})"),
            Self::CreatePool { new } => format!("create-pool({balancer}/{}/{})", new.name, new.protocol),
            Self::UpdatePool { id, update, .. } => {
                let fields = [
                    ("name", update.name.is_some()),
                    ("lb_algorithm", update.lb_algorithm.is_some()),
                    ("session_persistence", update.session_persistence.is_some()),
                ];
                format!("update-pool({id}: {})", changed(&fields).join(", "))
            }
            Self::DeletePool { id, .. } => format!("delete-pool({id})"),
            Self::SetMembers { pool, members, .. } => {
                let members: Vec<String> = members
                    .iter()
                    .map(|member| format!("{}:{}", member.address, member.protocol_port))
                    .collect();
                format!("set-members({pool}: {})", members.join(", "))
            }
            Self::AddMember { pool, new } => {
                format!("create-member({pool}/{}:{})", new.address, new.protocol_port)
            }
            Self::RemoveMember { pool, id, .. } => format!("delete-member({pool}/{id})"),
            Self::CreateMonitor { new } => format!("create-monitor({balancer}/{}/{})", new.name, new.kind),
            Self::UpdateMonitor { id, .. } => format!("update-monitor({id})"),
            Self::DeleteMonitor { id, .. } => format!("delete-monitor({id})"),
        }
    }

    fn object(&self) -> String {
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

fn changed(fields: &[(&'static str, bool)]) -> Vec<&'static str> {
    let changed = fields.iter().filter(|(_, is_changed)| *is_changed);
    changed.map(|(field, _)| *field).collect()
}

fn fields_of_listener(update: &ListenerUpdate) -> Vec<&'static str> {
    let attributes = &update.attributes;
    changed(&[
        ("name", update.name.is_some()),
        ("tags", attributes.tags.is_some()),
        ("connection_limit", attributes.connection_limit.is_some()),
        ("insert_headers", attributes.insert_headers.is_some()),
        (
            "default_tls_container_ref",
            attributes.default_tls_container_ref.is_some(),
        ),
        ("timeout_client_data", attributes.timeout_client_data.is_some()),
        (
            "timeout_member_connect",
            attributes.timeout_member_connect.is_some(),
        ),
        ("timeout_member_data", attributes.timeout_member_data.is_some()),
        ("timeout_tcp_inspect", attributes.timeout_tcp_inspect.is_some()),
        ("allowed_cidrs", attributes.allowed_cidrs.is_some()),
    ])
}

impl FloatingIpChange {
    fn label(&self) -> String {
        match self {
            Self::Create { attempts } => {
                let first = attempts.first();
                let network = first.map_or("", |first| first.floating_network_id.as_str());
                format!("create-floating-ip({network})")
            }
            Self::Attach {
                address,
                port: Some(port),
                ..
            } => format!("attach-floating-ip({address} -> {port})"),
            Self::Attach { address, .. } => format!("detach-floating-ip({address})"),
            Self::Delete { address, .. } => format!("delete-floating-ip({address})"),
        }
    }

    fn object(&self) -> String {
        match self {
            Self::Create { .. } => "floating IP".to_owned(),
            Self::Attach { address, .. } | Self::Delete { address, .. } => format!("floating IP {address}"),
        }
    }

    fn impact(&self) -> Impact {
        match self {
            Self::Create { .. } | Self::Attach { port: Some(_), .. } => Impact::None,
            Self::Attach { port: None, .. } | Self::Delete { .. } => Impact::Major,
        }
    }

    fn lanes(&self) -> Vec<Lane> {
        let port = |id: &PortId| Lane::new(format!("openstack/floating-port/{id}"));
        let floating = |id: &FloatingIpId| Lane::new(format!("openstack/floating-ip/{id}"));
        match self {
            Self::Create { attempts } => attempts
                .iter()
                .take(1)
                .filter_map(|new| new.port_id.as_ref().map(port))
                .collect(),
            Self::Attach { id, port: to, .. } => {
                [floating(id)].into_iter().chain(to.as_ref().map(port)).collect()
            }
            Self::Delete { id, .. } => vec![floating(id)],
        }
    }
}

impl GroupChange {
    fn label(&self) -> String {
        match self {
            Self::Create { new } => format!("create-security-group({})", new.name),
            Self::CreateRule { new } => format!(
                "create-security-group-rule({}: {} {} from {})",
                new.security_group_id, new.protocol, new.port_range_min, new.remote_ip_prefix
            ),
            Self::DeleteRule { group, text, .. } => format!("delete-security-group-rule({group}: {text})"),
            Self::Join { group, port } => format!("add-security-group({}: {group})", port.id),
            Self::Leave { group, port } => format!("remove-security-group({}: {group})", port.id),
            Self::Delete { group, .. } => format!("delete-security-group({group})"),
        }
    }

    fn object(&self) -> String {
        match self {
            Self::Create { new } => format!("security group {}", new.name),
            Self::CreateRule { new } => format!("security group {}", new.security_group_id),
            Self::DeleteRule { group, .. } => format!("security group {group}"),
            Self::Join { port, .. } | Self::Leave { port, .. } => format!("port {}", port.id),
            Self::Delete { name, .. } => format!("security group {name}"),
        }
    }

    fn impact(&self) -> Impact {
        match self {
            Self::Create { .. } | Self::CreateRule { .. } | Self::Join { .. } => Impact::None,
            Self::DeleteRule { .. } | Self::Leave { .. } | Self::Delete { .. } => Impact::Minimal,
        }
    }

    fn lane(&self) -> Lane {
        match self {
            Self::Create { new } => Lane::new(format!("openstack/security-group-name/{}", new.name)),
            Self::CreateRule { new } => {
                Lane::new(format!("openstack/security-group/{}", new.security_group_id))
            }
            Self::DeleteRule { group, .. } | Self::Delete { group, .. } => {
                Lane::new(format!("openstack/security-group/{group}"))
            }
            // The groups of a port are written as a whole, by every Service that has it as a member.
            Self::Join { port, .. } | Self::Leave { port, .. } => {
                Lane::new(format!("openstack/port/{}", port.id))
            }
        }
    }
}
