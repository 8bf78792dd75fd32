//! What a Service asks for. Pure, and checked as a whole before anything is read or written.

use bowline_cloud_provider::{Node, Service, ServiceFacts, ServiceKey, facts};
use bowline_paper_client::{NewBalancer, Port, Protocol};
use bowline_plan::Refusal;
use std::sync::Arc;

/// What is asked for.
pub(crate) enum Intent {
    /// A balancer like this.
    Wanted(Wanted),
    /// No balancer of this owner.
    Absent(String),
}

/// A wanted balancer.
pub(crate) struct Wanted {
    /// What is created if there is none.
    pub(crate) new: NewBalancer,
    pub(crate) ports: Vec<Port>,
    pub(crate) nodes: Arc<[Arc<Node>]>,
}

impl Intent {
    /// The mark of what belongs to the Service: its UID, which no other Service has, here or in another cluster.
    pub(crate) fn owner(&self) -> &String {
        match self {
            Self::Wanted(wanted) => &wanted.new.owner,
            Self::Absent(owner) => owner,
        }
    }
}

// guide: intent
/// Reads what is asked for; everything that is wrong is in one text.
pub(crate) fn read(facts: &ServiceFacts) -> Result<Intent, Refusal> {
    let service = &*facts.service;
    let owner = service.metadata.uid.clone().filter(|uid| !uid.is_empty());
    let owner = owner.ok_or_else(|| Refusal::new("the Service has no UID"))?;
    if !facts.is_wanted {
        // Nothing but the owner is looked at: a mistake in the Service must not keep its balancer alive.
        return Ok(Intent::Absent(owner));
    }
    let mut problems = Vec::new();
    let ports = ports(service, &mut problems);
    let spec = service.spec.as_ref();
    if spec.is_some_and(|spec| {
        spec.load_balancer_source_ranges
            .as_ref()
            .is_some_and(|list| !list.is_empty())
    }) {
        problems
            .push("spec.loadBalancerSourceRanges: the balancers of this cloud admit everybody".to_owned());
    }
    if spec.is_some_and(|spec| spec.load_balancer_ip.as_deref().is_some_and(|ip| !ip.is_empty())) {
        problems.push("spec.loadBalancerIP: the cloud chooses the addresses".to_owned());
    }
    if !problems.is_empty() {
        return Err(Refusal::new(problems.join("; ")));
    }
    let new = NewBalancer {
        name: ServiceKey::of(service).to_string(),
        owner,
        cluster: facts.cluster.name.clone(),
    };
    Ok(Intent::Wanted(Wanted {
        new,
        ports,
        nodes: Arc::clone(&facts.nodes),
    }))
}
// guide: end

fn ports(service: &Service, problems: &mut Vec<String>) -> Vec<Port> {
    let mut ports = Vec::new();
    for port in service.spec.iter().flat_map(|spec| spec.ports.iter().flatten()) {
        let protocol = match port.protocol.as_deref() {
            None | Some("TCP") => Some(Protocol::Tcp),
            Some("UDP") => Some(Protocol::Udp),
            Some(_) => None,
        };
        let node_port = port.node_port.and_then(|number| u16::try_from(number).ok());
        match (
            protocol,
            u16::try_from(port.port),
            node_port.filter(|number| *number != 0),
        ) {
            (Some(protocol), Ok(number), Some(node_port)) => ports.push(Port {
                protocol,
                port: number,
                node_port,
                // With local traffic only, a node without endpoints drops what it gets: kube-proxy says which ones.
                check_port: facts::health_check_node_port(service),
            }),
            (None, ..) => problems.push(format!("port {}: only TCP and UDP are balanced", port.port)),
            _ => problems.push(format!("port {}: it has no node port", port.port)),
        }
    }
    ports
}
