//! Writes to floating IPs.

use bowline_openstack_client::{FloatingIp, FloatingIpId, NewFloatingIp, PortId, SubnetId};
use bowline_plan::{Impact, Lane};

/// A write to a floating IP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FloatingIpChange {
    /// Creates one on a port; from the first of the other subnets that has an address left, if its own has none.
    Create {
        new: NewFloatingIp,
        other_subnets: Vec<SubnetId>,
    },
    /// Leads one to a port; `None` leads it nowhere.
    Attach {
        id: FloatingIpId,
        address: String,
        port: Option<PortId>,
        /// Which address of the port.
        fixed: Option<String>,
        /// What it was read with: who was faster is not robbed of it.
        revision: Option<u64>,
    },
    /// Deletes one.
    Delete { id: FloatingIpId, address: String },
}

impl FloatingIpChange {
    pub(crate) fn attach(there: &FloatingIp, port: Option<PortId>, fixed: Option<String>) -> Self {
        Self::Attach {
            id: there.id.clone(),
            address: there.floating_ip_address.clone(),
            port,
            fixed,
            revision: there.revision_number,
        }
    }

    pub(crate) fn delete(there: &FloatingIp) -> Self {
        let (id, address) = (there.id.clone(), there.floating_ip_address.clone());
        Self::Delete { id, address }
    }

    /// The port that a floating IP is to lead to, and which address of it.
    pub(crate) fn place(&self) -> Option<(&PortId, Option<&str>)> {
        let (port, fixed) = match self {
            Self::Create { new, .. } => (&new.port_id, &new.fixed_ip_address),
            Self::Attach { port, fixed, .. } => (port, fixed),
            Self::Delete { .. } => return None,
        };
        Some((port.as_ref()?, fixed.as_deref()))
    }

    pub(super) fn label(&self) -> String {
        match self {
            Self::Create { new, .. } => format!("create-floating-ip({})", new.floating_network_id),
            Self::Attach {
                address,
                port: Some(port),
                ..
            } => format!("attach-floating-ip({address} -> {port})"),
            Self::Attach { address, .. } => format!("detach-floating-ip({address})"),
            Self::Delete { address, .. } => format!("delete-floating-ip({address})"),
        }
    }

    pub(super) fn object(&self) -> String {
        match self {
            Self::Create { .. } => "floating IP".to_owned(),
            Self::Attach { address, .. } | Self::Delete { address, .. } => format!("floating IP {address}"),
        }
    }

    pub(super) fn impact(&self) -> Impact {
        match self {
            Self::Create { .. } | Self::Attach { port: Some(_), .. } => Impact::None,
            Self::Attach { port: None, .. } | Self::Delete { .. } => Impact::Major,
        }
    }

    pub(super) fn lanes(&self) -> Vec<Lane> {
        let port = |id: &PortId| Lane::new(format!("openstack/floating-port/{id}"));
        let floating = |id: &FloatingIpId| Lane::new(format!("openstack/floating-ip/{id}"));
        match self {
            Self::Create { new, .. } => new.port_id.iter().map(port).collect(),
            Self::Attach { id, port: to, .. } => {
                [floating(id)].into_iter().chain(to.as_ref().map(port)).collect()
            }
            Self::Delete { id, .. } => vec![floating(id)],
        }
    }
}
