//! Which balancer is a Service's own, and which must not be touched.
//!
//! What this provider creates bears a mark, the Service's UID, set inside the create call and never added later. What
//! bears no mark is found as upstream finds it: by the UUID annotation or by name. What bears the name of another cluster
//! is never a Service's own, whatever else says so; nor, where this cluster's name is not known, what bears any cluster's
//! name, unless it also bears the Service's UID.

use std::cell::OnceCell;

use bowline_cloud_provider::evidence::{Claims, OfCluster, Proof, Traces, Whose};
use bowline_cloud_provider::{MadeFor, ServiceKey, ServicesView};
use bowline_cloudscale_client::LoadBalancer;

use crate::load_balancer::intent::{Identity, read};
use crate::load_balancer::names::{
    self, TAG_CLUSTER_NAME, TAG_CLUSTER_UID, TAG_SERVICE_NAME, TAG_SERVICE_UID,
};

/// What was found for a Service.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// There is none.
    None,
    /// This one, and others that were made for the same Service by accident.
    One {
        balancer: &'a LoadBalancer,
        surplus: Vec<&'a LoadBalancer>,
    },
    /// Several could be meant; nobody but a person can tell.
    Several {
        /// The only one that was made for the Service, if there is one: it serves all the same.
        own: Option<&'a LoadBalancer>,
    },
    /// The one that is meant belongs to somebody else, or may.
    Foreign {
        balancer: &'a LoadBalancer,
        owner: Owner<'a>,
        /// The only one that was made for the Service, if there is one: it serves all the same.
        own: Option<&'a LoadBalancer>,
    },
}

/// Whose a balancer is that is not the Service's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner<'a> {
    /// It bears the mark of another Service, or a living one is served by it.
    Service,
    /// It bears the name of another cluster.
    Cluster {
        /// The name that it bears.
        theirs: &'a str,
    },
    /// It bears the name of a cluster, and nobody knows the name of this one.
    PerhapsCluster {
        /// The name that it bears.
        theirs: &'a str,
    },
}

/// Whether a balancer has anything to do with a Service: named by its annotation, by its name, or marked for it.
pub(crate) fn is_candidate(identity: &Identity, balancer: &LoadBalancer) -> bool {
    identity.annotated == Some(balancer.uuid) || is_marked(identity, balancer) || is_named(identity, balancer)
}

fn is_named(identity: &Identity, balancer: &LoadBalancer) -> bool {
    !identity.name.is_empty() && balancer.name.trim() == identity.name.trim()
}

/// Whether a balancer was made for the Service.
fn is_marked(identity: &Identity, balancer: &LoadBalancer) -> bool {
    !identity.uid.is_empty() && balancer.tags.text(TAG_SERVICE_UID) == Some(identity.uid.as_str())
}

/// Whether a balancer is known to serve the Service: recorded on it, or with its UID. Any other one is only asked for, by a name.
pub(crate) fn is_known(identity: &Identity, balancer: &LoadBalancer) -> bool {
    let is_named_after =
        !identity.uid.is_empty() && names::service_uid(&balancer.name) == Some(&identity.uid);
    is_recorded(identity, balancer) || is_named_after
}

/// Whether a balancer is recorded on the Service, or the Service on it. Anybody can give one the Service's name.
pub(crate) fn is_recorded(identity: &Identity, balancer: &LoadBalancer) -> bool {
    identity.annotated == Some(balancer.uuid) || is_marked(identity, balancer)
}

/// What tells whose balancers are, as a Service asks.
struct Evidence<'i> {
    identity: &'i Identity,
    /// What all Services say, once it is asked for.
    claims: OnceCell<Claims>,
}

impl<'i> Evidence<'i> {
    fn of(identity: &'i Identity) -> Self {
        let claims = OnceCell::new();
        Self { identity, claims }
    }

    fn claims(&self) -> &Claims {
        self.claims.get_or_init(|| claims(&*self.identity.services))
    }

    /// What tells that a balancer is the Service's, or whose it is.
    fn whose<'a>(&self, balancer: &'a LoadBalancer) -> Result<Proof, Owner<'a>> {
        let Identity { uid, services, .. } = self.identity;
        let id = balancer.uuid.to_string();
        let traces = Traces {
            is_named: is_named(self.identity, balancer),
            is_recorded: self.identity.annotated == Some(balancer.uuid),
            cluster: cluster(self.identity, balancer),
            ..traces(&id, balancer)
        };
        let is_of_another = matches!(traces.cluster, OfCluster::Another(_));
        if !is_of_another && is_marked(self.identity, balancer) && services.has_uid(uid) {
            // As most are: nobody else has to be asked.
            return Ok(Proof::Mark);
        }
        let theirs = balancer.tags.text(TAG_CLUSTER_NAME).unwrap_or_default();
        match self.claims().whose(&traces, uid) {
            Whose::Ours(proof) => Ok(proof),
            Whose::AnotherClusters(_) => Err(Owner::Cluster { theirs }),
            Whose::PerhapsAnotherClusters(_) => Err(Owner::PerhapsCluster { theirs }),
            Whose::AnotherServices | Whose::Persons | Whose::Unknown => Err(Owner::Service),
        }
    }

    /// Whether a balancer was made for the Service, by the Service's own cluster.
    fn is_made_for(&self, balancer: &LoadBalancer) -> bool {
        self.whose(balancer) == Ok(Proof::Mark)
    }
}

/// What the Services say of balancers.
fn claims(services: &dyn ServicesView) -> Claims {
    Claims::of(services, |service| {
        read::annotated(service).map(|id| id.to_string())
    })
}

/// What a balancer shows, whoever asks.
pub(crate) fn traces<'a>(id: &'a str, balancer: &'a LoadBalancer) -> Traces<'a> {
    Traces {
        id,
        addresses: balancer.vip_addresses.iter().map(|vip| &*vip.address).collect(),
        mark: balancer.tags.text(TAG_SERVICE_UID),
        named_after: names::service_uid(&balancer.name),
        ..Traces::default()
    }
}

/// The cluster's name decides first: two clusters of one project may know the same UUID, from a manifest that was exported, and even
/// the same Service UID, from a copy of the API server's data.
fn cluster<'a>(identity: &Identity, balancer: &'a LoadBalancer) -> OfCluster<'a> {
    let (theirs, ours) = (
        balancer.tags.text(TAG_CLUSTER_NAME),
        identity.cluster_name.as_deref(),
    );
    match (theirs, ours) {
        (None, _) => OfCluster::Untold,
        (Some(theirs), Some(ours)) if theirs == ours => OfCluster::This,
        (Some(theirs), Some(_)) => OfCluster::Another(theirs),
        (Some(theirs), None) => OfCluster::Perhaps(theirs),
    }
}

/// The living Service that is served by a balancer without a mark of its own there, as `namespace/name`.
pub(crate) fn holder(identity: &Identity, balancer: &LoadBalancer) -> Option<String> {
    let id = balancer.uuid.to_string();
    let claims = claims(&*identity.services);
    let uid = claims.holder(&traces(&id, balancer), &identity.uid)?;
    let services = identity.services.services();
    let mut all = services.iter();
    let service = all.find(|service| service.metadata.uid.as_deref() == Some(uid))?;
    Some(ServiceKey::of(service).to_string())
}

/// Whether this cluster made a balancer for a Service that is gone.
pub(crate) fn is_left_behind(identity: &Identity, balancer: &LoadBalancer) -> bool {
    let is_of_cluster = identity
        .services
        .cluster_uid()
        .is_some_and(|uid| balancer.tags.text(TAG_CLUSTER_UID) == Some(uid.as_str()));
    let made_for = balancer.tags.text(TAG_SERVICE_UID);
    is_of_cluster && made_for.is_some_and(|uid| !identity.services.has_uid(uid))
}

/// Oldest first; the order of ids where ages are equal.
pub(crate) fn by_age<Id: Ord + Copy>(created_at: Option<&str>, id: Id) -> (String, Id) {
    (created_at.unwrap_or_default().to_owned(), id)
}

/// Finds a Service's balancer among its candidates.
pub(crate) fn resolve<'a>(identity: &Identity, candidates: &'a [LoadBalancer]) -> Found<'a> {
    let evidence = Evidence::of(identity);
    let (mut marked, others): (Vec<&LoadBalancer>, Vec<&LoadBalancer>) = candidates
        .iter()
        .partition(|balancer| evidence.is_made_for(balancer));
    marked.sort_by_key(|balancer| {
        (
            identity.annotated != Some(balancer.uuid),
            by_age(balancer.created_at.as_deref(), balancer.uuid),
        )
    });
    let others: Vec<&LoadBalancer> = others
        .into_iter()
        .filter(|balancer| identity.adopts_unmarked && is_candidate(identity, balancer))
        .collect();
    if let Some(annotated) = others
        .iter()
        .find(|balancer| identity.annotated == Some(balancer.uuid))
        && let Err(owner) = evidence.whose(annotated)
    {
        return Found::Foreign {
            balancer: annotated,
            owner,
            own: only(&marked),
        };
    }
    match (marked.split_first(), others.as_slice()) {
        (None, []) => Found::None,
        (None, [other]) => match evidence.whose(other) {
            Err(owner) => Found::Foreign {
                balancer: other,
                owner,
                own: None,
            },
            Ok(_) => Found::One {
                balancer: other,
                surplus: Vec::new(),
            },
        },
        (Some((first, surplus)), []) => Found::One {
            balancer: first,
            surplus: surplus.to_vec(),
        },
        // Upstream refuses too: whichever it took, a Go manager after us might take the other.
        _ => Found::Several { own: only(&marked) },
    }
}

fn only<'a>(balancers: &[&'a LoadBalancer]) -> Option<&'a LoadBalancer> {
    match balancers {
        [only] => Some(*only),
        _ => None,
    }
}

/// What has to go when a Service's balancer is removed, and what stays although the Service names it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Doomed<'a> {
    pub(crate) own: Vec<&'a LoadBalancer>,
    pub(crate) foreign: Vec<&'a LoadBalancer>,
    /// Those of which only one can be meant; none goes.
    pub(crate) ambiguous: Vec<&'a LoadBalancer>,
}

/// The Services that balancers were made for by this cluster.
pub(crate) fn made_by_cluster(balancers: &[LoadBalancer], services: &dyn ServicesView) -> Vec<MadeFor> {
    let Some(cluster) = services.cluster_uid() else {
        return Vec::new();
    };
    let claims = claims(services);
    let is_held = |balancer: &LoadBalancer| {
        let id = balancer.uuid.to_string();
        claims.is_recorded(&id) || claims.is_held(&traces(&id, balancer), "")
    };
    let made_for = |balancer: &LoadBalancer| {
        let (namespace, name) = balancer.tags.text(TAG_SERVICE_NAME)?.split_once('/')?;
        Some(MadeFor {
            key: ServiceKey::new(namespace, name),
            uid: balancer.tags.text(TAG_SERVICE_UID)?.to_owned(),
            balancer: format!("load balancer {} ({})", balancer.name, balancer.uuid),
        })
    };
    balancers
        .iter()
        .filter(|balancer| balancer.tags.text(TAG_CLUSTER_UID) == Some(cluster.as_str()))
        .filter(|balancer| !is_held(balancer))
        .filter_map(made_for)
        .collect()
}

/// Finds what has to go. What belongs to somebody else never does, nor what a Service will take over from one that is gone.
pub(crate) fn doomed<'a>(identity: &Identity, candidates: &'a [LoadBalancer]) -> Doomed<'a> {
    let evidence = Evidence::of(identity);
    let is_gone = !identity.services.has_uid(&identity.uid);
    let candidates = candidates
        .iter()
        .filter(|balancer| is_candidate(identity, balancer))
        .filter(|balancer| !is_gone || !evidence.claims().is_recorded(&balancer.uuid.to_string()));
    let (marked, others): (Vec<&LoadBalancer>, Vec<&LoadBalancer>) =
        candidates.partition(|balancer| evidence.is_made_for(balancer));
    // What was made for one that is gone may serve another one by now, and nobody will ask for it again.
    let others = others
        .into_iter()
        .filter(|balancer| identity.adopts_unmarked || is_gone && is_marked(identity, balancer));
    let (unmarked, foreign): (Vec<&LoadBalancer>, Vec<&LoadBalancer>) =
        others.partition(|balancer| evidence.whose(balancer).is_ok());
    let is_ambiguous = unmarked.len() + usize::from(!marked.is_empty()) > 1;
    let mut all = marked;
    all.extend(unmarked);
    all.sort_by_key(|balancer| by_age(balancer.created_at.as_deref(), balancer.uuid));
    let (own, ambiguous) = match is_ambiguous {
        true => (Vec::new(), all),
        false => (all, Vec::new()),
    };
    Doomed {
        own,
        foreign,
        ambiguous,
    }
}

/// The ids of balancers, for messages.
pub(crate) fn ids(balancers: &[&LoadBalancer]) -> String {
    let ids = balancers.iter().map(|balancer| balancer.uuid.to_string());
    Vec::from_iter(ids).join(", ")
}

#[cfg(test)]
mod tests;
