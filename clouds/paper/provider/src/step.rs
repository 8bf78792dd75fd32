//! The writes to balancers, as data.

use bowline_cloud_provider::Told;
use bowline_cloud_provider::effects::{as_shown, put};
use bowline_paper_client::{Balancer, BalancerId, MachineId, NewBalancer, Port};
use bowline_plan::{Impact, Lane, Step};
use serde_json::json;

use crate::observe::Observed;

// guide: step
/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BalancerStep {
    /// Creates the balancer.
    Create(NewBalancer),
    /// Changes a part of a balancer.
    Change {
        balancer: BalancerId,
        name: String,
        change: Change,
    },
    /// Deletes a balancer; a duplicate, which nobody was told of, carries no traffic.
    Delete {
        balancer: BalancerId,
        name: String,
        is_duplicate: bool,
    },
}
// guide: end

/// A change of a balancer's part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    AddMember(MachineId),
    RemoveMember(MachineId),
    OpenPort(Port),
    MovePort(Port),
    ClosePort(Port),
}

impl Step for BalancerStep {
    fn label(&self) -> String {
        match self {
            Self::Create(new) => format!("create-balancer({})", new.name),
            Self::Delete { name, balancer, .. } => format!("delete-balancer({name}: {balancer})"),
            Self::Change { name, change, .. } => match change {
                Change::AddMember(machine) => format!("add-member({name}: {machine})"),
                Change::RemoveMember(machine) => format!("remove-member({name}: {machine})"),
                Change::OpenPort(port) => format!("open-port({name}: {port} -> {})", port.node_port),
                Change::MovePort(port) => format!("move-port({name}: {port} -> {})", port.node_port),
                Change::ClosePort(port) => format!("close-port({name}: {port})"),
            },
        }
    }

    fn object(&self) -> String {
        match self {
            Self::Create(NewBalancer { name, .. })
            | Self::Change { name, .. }
            | Self::Delete { name, .. } => {
                format!("balancer {name}")
            }
        }
    }

    fn impact(&self) -> Impact {
        match self {
            Self::Create(_)
            | Self::Delete {
                is_duplicate: true, ..
            } => Impact::None,
            Self::Delete { .. } => Impact::Major,
            Self::Change { change, .. } => match change {
                Change::AddMember(_) | Change::OpenPort(_) => Impact::None,
                Change::RemoveMember(_) | Change::MovePort(_) | Change::ClosePort(_) => Impact::Minimal,
            },
        }
    }

    fn removes(&self) -> bool {
        match self {
            Self::Change { change, .. } => matches!(change, Change::RemoveMember(_) | Change::ClosePort(_)),
            Self::Create(_) | Self::Delete { .. } => false,
        }
    }

    // guide: lanes
    /// The API refuses writes to a balancer while another one is under way, and two creations for one Service would be
    /// one too many.
    fn lanes(&self) -> Vec<Lane> {
        vec![match self {
            Self::Create(new) => Lane::new(format!("paper/owner/{}", new.owner)),
            Self::Change { balancer, .. } | Self::Delete { balancer, .. } => {
                Lane::new(format!("paper/balancer/{balancer}"))
            }
        }]
    }
    // guide: end
}

/// What the answer to a write told.
pub(crate) enum Learned {
    /// The balancer is like this now.
    Is(Box<Balancer>),
    /// It is gone, or on its way.
    Gone,
}

impl Told for Learned {}

// guide: learn
/// Puts an answer into the observation, so that what a write told need not be read again.
pub(crate) fn learn(observed: &mut Observed, step: &BalancerStep, learned: Learned) {
    match (learned, step) {
        (Learned::Is(balancer), _) => put(&mut observed.own, *balancer, |known| known.id.clone()),
        (Learned::Gone, BalancerStep::Delete { balancer, .. }) => {
            observed.own.retain(|known| known.id != *balancer)
        }
        (Learned::Gone, _) => {}
    }
}
// guide: end

/// Changes the observation as the write would, for the `plan` command: what the answer will show is learned.
pub(crate) fn predict(observed: &mut Observed, step: &BalancerStep) {
    let learned = match step {
        BalancerStep::Delete { .. } => Some(Learned::Gone),
        BalancerStep::Create(new) => created(new).map(|balancer| Learned::Is(Box::new(balancer))),
        BalancerStep::Change { balancer, change, .. } => {
            let there = observed.own.iter().find(|known| known.id == *balancer);
            there.map(|there| Learned::Is(Box::new(changed(there.clone(), change))))
        }
    };
    if let Some(learned) = learned {
        learn(observed, step, learned);
    }
}

/// The API shows of a balancer what was asked of it, and fills in the rest.
fn created(new: &NewBalancer) -> Option<Balancer> {
    let filled_in =
        json!({"id": "new", "created_at": "", "state": "ready", "addresses": [], "ports": [], "members": []});
    as_shown(&filled_in, new, 1)
}

fn changed(mut balancer: Balancer, change: &Change) -> Balancer {
    match change {
        Change::AddMember(machine) => balancer.members.push(machine.clone()),
        Change::RemoveMember(machine) => balancer.members.retain(|member| member != machine),
        Change::OpenPort(port) | Change::MovePort(port) => put(&mut balancer.ports, *port, Port::to_string),
        Change::ClosePort(port) => balancer.ports.retain(|open| open != port),
    }
    balancer
}
