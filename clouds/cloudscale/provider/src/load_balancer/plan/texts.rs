//! What people are told of a load balancer that is not the Service's, and of nodes that are no members.

use bowline_cloudscale_client::LoadBalancer;
use bowline_plan::{Note, Refusal};

use crate::load_balancer::annotations as keys;
use crate::load_balancer::evidence::{self, Owner};
use crate::load_balancer::intent::{Identity, Membership};
use crate::load_balancer::names::TAG_CLUSTER_NAME;
use crate::load_balancer::plan::desired::Desired;
use crate::messages::{NO_MEMBERS, NODES_LEFT_OUT, NODES_SHARE_ADDRESS};

fn failed_to_find(identity: &Identity, why: &str) -> String {
    format!("unable to get load balancer for {}: {why}", identity.service)
}

/// More than one balancer could be a Service's. Even if its annotation names one of them: a Go manager refuses that too.
pub(super) fn several(identity: &Identity, candidates: &[&LoadBalancer]) -> Refusal {
    let (recorded, namesakes): (Vec<&LoadBalancer>, Vec<&LoadBalancer>) = candidates
        .iter()
        .copied()
        .partition(|balancer| evidence::is_recorded(identity, balancer));
    let remedy = match recorded.as_slice() {
        [own] if own.name.trim() == identity.name.trim() => format!(
            "load balancer {} is recorded for the service: delete or rename {}",
            own.uuid,
            evidence::ids(&namesakes)
        ),
        [own] => format!(
            "load balancer {} is recorded for the service, and {} has the name that it asks for: delete or rename that one, or correct {} or {}",
            own.uuid,
            evidence::ids(&namesakes),
            keys::NAME.key,
            keys::UUID.key
        ),
        _ => format!(
            "delete or rename all but one of the load balancers {}",
            evidence::ids(candidates)
        ),
    };
    Refusal::new(failed_to_find(identity, "found more than one")).with_remedy(remedy)
}

/// Whose a balancer is that is not the Service's, in words.
pub(super) fn whose(identity: &Identity, balancer: &LoadBalancer, owner: Owner<'_>) -> String {
    match (owner, evidence::holder(identity, balancer)) {
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

pub(super) fn foreign(identity: &Identity, balancer: &LoadBalancer, owner: Owner<'_>) -> Refusal {
    let why = format!(
        "load balancer {} ({}) belongs to another service or cluster: {}",
        balancer.name,
        balancer.uuid,
        whose(identity, balancer, owner)
    );
    if owner == Owner::Service && evidence::is_left_behind(identity, balancer) {
        return Refusal::new(failed_to_find(identity, &why)).with_remedy(format!(
            "no service here has that UID: to take the load balancer over with its addresses, set {} to {}, unless another copy of this \
             cluster uses it",
            keys::UUID.key,
            balancer.uuid
        ));
    }
    // Whatever leads to it has to be changed.
    let name = (balancer.name.trim() == identity.name.trim())
        .then(|| format!("choose another name ({})", keys::NAME.key));
    let uuid = (identity.annotated == Some(balancer.uuid)).then(|| format!("remove {}", keys::UUID.key));
    let leads: Vec<String> = name.into_iter().chain(uuid).collect();
    let if_own = match owner {
        Owner::Service => None,
        Owner::Cluster { .. } => Some(format!(
            "if it was restored under a new cluster name, change its tag {TAG_CLUSTER_NAME} to {} by hand",
            own_cluster(identity)
        )),
        Owner::PerhapsCluster { theirs } => Some(format!(
            "if this is the cluster {theirs}, say so with --cluster-name"
        )),
    };
    let leads = Some(leads.join(" and ")).filter(|leads| !leads.is_empty());
    let remedies: Vec<String> = leads.into_iter().chain(if_own).collect();
    Refusal {
        remedy: (!remedies.is_empty()).then(|| remedies.join("; ")),
        ..Refusal::new(failed_to_find(identity, &why))
    }
}

/// What is told of nodes that are no members.
pub(super) fn member_notes(membership: &Membership, desired: &Desired<'_>) -> Vec<Note> {
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

pub(super) fn nodes_note(desired: &Desired<'_>) -> Option<Note> {
    let left_out = &desired.left_out;
    (!left_out.is_empty())
        .then(|| NODES_LEFT_OUT.note(format!("nodes are not balanced over: {}", left_out.join(", "))))
}
