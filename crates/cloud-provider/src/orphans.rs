//! What a cloud has that bears marks or names such as managers give, and whose it is: for the command `orphans`.
//!
//! A provider lists what it has, each object as a [`Found`]. Whose an object is, is decided here, once for all clouds. The living
//! Services are asked as in a reconcile ([`Claims`]):
//!
//! | what is seen | standing |
//! | --- | --- |
//! | the name of another cluster where names count, and a Service that lives here; no Service names it or shows its address | another cluster's |
//! | a Service that asks for a load balancer has its UID on it, or its name where names count; or it names it | in use |
//! | a Service that asks for its removal has its UID on it, or its name where names count | held |
//! | the status of a living Service shows its address, or one that asks for no load balancer names it | unclear |
//! | the UID or the name of another cluster | another cluster's |
//! | the UID of this cluster, or a name that somebody chose for it and no UID | an orphan |
//! | the name `kubernetes`, which every cluster has that was given none; no cluster at all | unclear |
//! | a part of it is not an orphan, or clusters of several UIDs have the name | unclear |
//!
//! Only an orphan is removed: by the plan for a Service of its name and UID that is being deleted, with all that this plan spares.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::k8s::ServiceSpec;
use bowline_plan::Refusal;
use jiff::Timestamp;

use crate::evidence::{Claims, Traces};
use crate::{ClusterFacts, Node, Service, ServiceFacts, ServiceKey, ServicesView};

/// The name of every cluster that was given none: it tells nothing.
const NO_NAME: &str = "kubernetes";

/// What is known of the cluster whose orphans are looked for.
#[derive(Clone)]
pub struct OrphanFacts {
    /// All Services of the cluster; none of a cluster that is gone.
    pub services: Arc<dyn ServicesView>,
    /// All Nodes of the cluster; none of a cluster that is gone.
    pub nodes: Arc<[Arc<Node>]>,
    /// The cluster.
    pub cluster: Arc<ClusterFacts>,
    /// The wall time at which the facts were gathered.
    pub now: Timestamp,
}

/// An object of the cloud that bears marks or names such as managers give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What it is, such as `load balancer`.
    pub kind: &'static str,
    /// Its ID.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// When it was made, if the cloud says so.
    pub made: Option<Timestamp>,
    /// The Service that it was made for.
    pub owner: Owner,
    /// The UID of the cluster on it.
    pub cluster_uid: Option<String>,
    /// Whose it is.
    pub standing: Standing,
    /// Why it is taken for that, for people.
    pub why: String,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name.as_str() {
            "" => write!(f, "{} {}", self.kind, self.id),
            name => write!(f, "{} {name} ({})", self.kind, self.id),
        }
    }
}

/// The Service that an object was made for, as far as the object tells. What was made for one Service is removed together.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// Its UID; empty if nothing tells it.
    pub uid: String,
    /// Its name.
    pub key: Option<ServiceKey>,
    /// The annotations that it has to have for the removal.
    pub annotations: BTreeMap<String, String>,
}

impl Owner {
    /// Whether this Service is the owner, by its UID if that is told.
    pub(crate) fn is(&self, service: &Service) -> bool {
        match self.uid.as_str() {
            "" => self.key.as_ref() == Some(&ServiceKey::of(service)),
            uid => service.metadata.uid.as_deref() == Some(uid),
        }
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.key, self.uid.as_str()) {
            (Some(key), "") => write!(f, "Service {key}"),
            (Some(key), uid) => write!(f, "Service {key}, uid {uid}"),
            (None, "") => f.write_str("a Service"),
            (None, uid) => write!(f, "a Service with the uid {uid}"),
        }
    }
}

/// Whose an object is. See the [table](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// A Service of this cluster has it.
    InUse,
    /// Its Service is being removed, and waits until a manager has removed this.
    Held,
    /// It was made for this cluster, and no Service of it asks for it.
    Orphan,
    /// The same, and a manager that leads gives it back by itself.
    Going,
    /// The cloud is deleting it.
    Deleting,
    /// It is a person's.
    Persons,
    /// It is another cluster's.
    AnotherClusters,
    /// Nothing tells for certain.
    Unclear,
}

/// What tells which cluster an object is of.
#[derive(Debug, Clone, Copy)]
pub enum OfCluster<'a> {
    /// What is written on it: the UID of a cluster and a cluster's name.
    Marks(Option<&'a str>, Option<&'a str>),
    /// Something else proves that it is of this cluster; in words.
    This(&'a str),
    /// Nothing; in words, and what somebody can do.
    Nothing(&'a str),
}

impl Standing {
    /// Whether it may be removed.
    #[must_use]
    pub fn is_orphan(self) -> bool {
        matches!(self, Self::Orphan | Self::Going)
    }
}

/// Decides whose objects are.
pub struct Judge {
    claims: Claims,
    /// The UIDs of Services that ask for a load balancer or for its removal.
    uids: BTreeSet<String>,
    /// Their names.
    names: BTreeSet<ServiceKey>,
    /// Those that ask for its removal, by their UID.
    leaving: BTreeMap<String, Arc<Service>>,
    existing: BTreeSet<String>,
    /// Those of Services whose class another cloud serves.
    of_others: BTreeSet<String>,
    cluster_uid: Option<String>,
    /// The names of this cluster that somebody chose.
    cluster_names: Vec<String>,
}

impl Judge {
    /// Asks these Services. `cluster_uid` is the UID of this cluster, as this cloud's marks have it; `former` are names that the
    /// cluster had before; `recorded` is the ID of the object that a Service names.
    pub fn new(
        facts: &OrphanFacts,
        cluster_uid: Option<String>,
        former: &[String],
        recorded: impl Fn(&Service) -> Option<String>,
    ) -> Self {
        let services = facts.services.services();
        let classes = facts.services.classes();
        let speaking = || services.iter().filter(|it| classes.may_concern(it));
        let names = std::iter::once(&facts.cluster.name).chain(former);
        let of_others = services.iter().filter(|it| classes.leaves_to_others(it));
        let leaving = services
            .iter()
            .filter(|it| classes.concern(it) && !classes.is_wanted(it));
        Self {
            claims: Claims::of(&*facts.services, recorded),
            uids: speaking().filter_map(|it| it.metadata.uid.clone()).collect(),
            names: speaking().map(|it| ServiceKey::of(it)).collect(),
            leaving: leaving
                .filter_map(|it| Some((it.metadata.uid.clone()?, Arc::clone(it))))
                .collect(),
            existing: services.iter().filter_map(|it| it.metadata.uid.clone()).collect(),
            of_others: of_others.filter_map(|it| it.metadata.uid.clone()).collect(),
            cluster_uid,
            cluster_names: names.filter(|name| !name.is_empty()).cloned().collect(),
        }
    }

    /// The name on an object that this cluster does not have.
    fn another_name<'a>(&self, cluster: OfCluster<'a>) -> Option<&'a str> {
        match cluster {
            OfCluster::Marks(_, name) => name.filter(|name| !self.cluster_names.iter().any(|it| it == name)),
            OfCluster::This(_) | OfCluster::Nothing(_) => None,
        }
    }

    /// The owner, if it asks for the removal of what it has.
    fn leaving(&self, owner: &Owner, is_named: Option<&ServiceKey>) -> Option<&Service> {
        let named = || {
            self.leaving
                .values()
                .find(|it| Some(&ServiceKey::of(it)) == is_named)
        };
        let service = match self.uids.contains(&owner.uid) {
            true => self.leaving.get(&owner.uid),
            false => named(),
        };
        service.map(|it| &**it)
    }

    /// Whose an object is, and why: made for `owner`, as `by` tells, such as `its tags`. `by_name`: a Service of this name has it
    /// whatever its UID.
    #[must_use]
    pub fn judge(
        &self,
        traces: &Traces<'_>,
        owner: &Owner,
        by_name: bool,
        cluster: OfCluster<'_>,
        by: &str,
    ) -> (Standing, String) {
        let is_named = owner
            .key
            .as_ref()
            .filter(|key| by_name && self.names.contains(key));
        let is_asked_for = self.uids.contains(&owner.uid) || is_named.is_some();
        let users = self.claims.users(traces);
        let is_shown = users.asking.is_some() || users.showing.is_some() || users.naming.is_some();
        // A cloud that finds what it made by the cluster's name as well finds nothing of another name.
        let other = by_name.then(|| self.another_name(cluster)).flatten();
        if let Some(other) = other.filter(|_| is_asked_for && !is_shown) {
            let why = format!(
                "{by} name another cluster, of the name {other}, and {owner}, which lives here, too: unless both clusters have such a Service, \
                 --cluster-name was {other} before"
            );
            return (Standing::AnotherClusters, why);
        }
        if is_asked_for {
            return match self.leaving(owner, is_named) {
                Some(service) => (Standing::Held, holds(service)),
                None => (Standing::InUse, format!("{owner} asks for it")),
            };
        }
        if let Some(user) = users.asking {
            return (Standing::InUse, format!("Service {user} names it"));
        }
        // Whatever is spared for another reason is told, and until when.
        if let Some(user) = users.showing {
            let shown = traces.addresses.join(" or ");
            let why = format!(
                "{by} name {owner}, and Service {user} shows its address {shown}: bring that Service up to date; it is an orphan when no Service \
                 shows the address"
            );
            return (Standing::Unclear, why);
        }
        if let Some(user) = users.naming {
            let why = format!(
                "{by} name {owner}, and Service {user}, which asks for no load balancer, names it in an annotation: it is an orphan when that \
                 annotation is gone"
            );
            return (Standing::Unclear, why);
        }
        let orphan = |proof: &str| {
            let missing = match self.existing.contains(&owner.uid) {
                _ if self.of_others.contains(&owner.uid) => "which another cloud serves by now",
                true => "which asks for no load balancer any more",
                false => "which does not exist",
            };
            (
                Standing::Orphan,
                format!("{by} name {owner}, {missing}, and {proof}"),
            )
        };
        let (uid, name) = match cluster {
            OfCluster::This(proof) => return orphan(proof),
            OfCluster::Nothing(why) => return (Standing::Unclear, why.to_owned()),
            OfCluster::Marks(uid, name) => (uid, name),
        };
        let is_chosen = |name: &&String| *name != NO_NAME;
        let is_ours = |name: &str| {
            self.cluster_names
                .iter()
                .filter(is_chosen)
                .any(|ours| ours == name)
        };
        let has_name = self.cluster_names.iter().any(|name| name != NO_NAME);
        let another = |what: &str, theirs: &str| {
            let text = format!("{by} name another cluster, {what} {theirs}");
            (Standing::AnotherClusters, text)
        };
        // Of two clusters with copied data, the name tells which one made it.
        let others_name = name.filter(|name| *name != NO_NAME && !is_ours(name));
        match (uid, self.cluster_uid.as_deref(), name) {
            (_, _, Some(name)) if others_name.is_some() && has_name => another("of the name", name),
            (Some(theirs), Some(ours), _) if theirs != ours => another("with the UID", theirs),
            (Some(uid), Some(_), _) => orphan(&format!("this cluster, with the UID {uid}")),
            (_, _, Some(name)) if is_ours(name) => orphan(&format!("this cluster, {name}")),
            (_, _, Some(name)) if others_name.is_some() => another("of the name", name),
            (Some(uid), None, _) => {
                let text = format!(
                    "{by} name the cluster with the UID {uid}: --cluster-uid={uid} says that it is this one"
                );
                (Standing::Unclear, text)
            }
            (None, _, Some(name)) => {
                let text = format!(
                    "{by} name the cluster {name}, as every cluster is called that was given no name"
                );
                (Standing::Unclear, text)
            }
            (None, _, None) => (Standing::Unclear, format!("{by} name no cluster")),
        }
    }
}

/// Why what belongs to a Service that asks for its removal is there still.
fn holds(service: &Service) -> String {
    let key = ServiceKey::of(service);
    let state = match service.metadata.deletion_timestamp {
        Some(since) => format!("is being deleted since {since}"),
        None => "asks for no load balancer any more".to_owned(),
    };
    format!(
        "Service {key} {state}, and its finalizer stays until a manager has removed this: `explain service {key}` says what that waits for"
    )
}

/// What all objects of a cloud together tell: nothing is an orphan that only the cluster's name tells if clusters of several UIDs have that name,
/// nor what goes together with something else that is not.
pub fn compare(found: &mut [Found], facts: &OrphanFacts) {
    let cluster_uid = facts.cluster.uid.clone().or_else(|| facts.services.cluster_uid());
    let is_orphan = |it: &&Found| it.standing.is_orphan();
    let uids: BTreeSet<String> = found
        .iter()
        .filter(is_orphan)
        .filter_map(|it| it.cluster_uid.clone())
        .collect();
    let stays = |it: &&Found| !it.standing.is_orphan() && it.standing != Standing::Deleting;
    let others = found.iter().filter(stays);
    let spared: BTreeSet<String> = others.map(|it| it.owner.uid.clone()).collect();
    for it in found.iter_mut().filter(|it| it.standing.is_orphan()) {
        let why = if uids.len() > 1 && cluster_uid.is_none() {
            let uids: Vec<&str> = uids.iter().map(String::as_str).collect();
            format!(
                "clusters with the UIDs {} have this name: --cluster-uid says which one is meant",
                uids.join(" and ")
            )
        } else if !it.owner.uid.is_empty() && spared.contains(&it.owner.uid) {
            format!(
                "something else bears the mark of {}, and is not an orphan",
                it.owner
            )
        } else {
            continue;
        };
        (it.standing, it.why) = (Standing::Unclear, why);
    }
}

impl OrphanFacts {
    /// The facts by which an orphan is removed: a Service of its name and UID is being deleted.
    ///
    /// # Errors
    ///
    /// The object tells of no Service.
    pub fn removal(&self, owner: &Owner) -> Result<ServiceFacts, Refusal> {
        if owner.key.is_none() && owner.uid.is_empty() {
            return Err(Refusal::new("nothing tells for which Service it was made"));
        }
        let mut service = Service::default();
        service.metadata.namespace = owner.key.as_ref().map(|key| key.namespace.to_string());
        service.metadata.name = owner.key.as_ref().map(|key| key.name.to_string());
        service.metadata.uid = Some(owner.uid.clone());
        service.metadata.annotations = Some(owner.annotations.clone().into_iter().collect());
        service.metadata.deletion_timestamp = Some(self.now);
        service.spec = Some(ServiceSpec {
            type_: Some("LoadBalancer".to_owned()),
            ..ServiceSpec::default()
        });
        Ok(ServiceFacts {
            service: Arc::new(service),
            is_wanted: false,
            has_begun: true,
            nodes: Arc::clone(&self.nodes),
            services: Arc::clone(&self.services),
            cluster: Arc::clone(&self.cluster),
            now: self.now,
        })
    }
}

/// The Services of a cluster that is gone: none. Its UID is what somebody says.
pub struct GoneCluster(pub Option<String>);

impl ServicesView for GoneCluster {
    fn services(&self) -> Vec<Arc<Service>> {
        Vec::new()
    }

    fn cluster_uid(&self) -> Option<String> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ServiceClasses, ServiceList};

    /// The manager was started with another `--cluster-name`, and a cloud that goes by it finds nothing of what it made before.
    #[test]
    fn what_bears_another_cluster_name_and_a_service_that_lives_here_is_told_and_is_never_an_orphan() {
        let service = |name: &str, id: &str| -> Arc<Service> {
            let metadata = serde_json::json!({
                "namespace": "default", "name": name, "uid": format!("uid-{name}"), "annotations": { "id": id },
            });
            let service = serde_json::json!({ "metadata": metadata, "spec": { "type": "LoadBalancer" } });
            Arc::new(serde_json::from_value(service).unwrap())
        };
        let services = vec![service("web", "lb-1"), service("api", "lb-2")];
        let facts = OrphanFacts {
            services: Arc::new(ServiceList {
                classes: ServiceClasses::all_of(&services),
                services,
            }),
            nodes: Arc::new([]),
            cluster: Arc::new(ClusterFacts {
                name: "staging".to_owned(),
                uid: None,
                server_version: None,
                holder: String::new(),
            }),
            now: Timestamp::UNIX_EPOCH,
        };
        let judge = Judge::new(&facts, None, &[], |service| {
            crate::facts::annotation(service, "id").map(str::to_owned)
        });
        let judged = |id: &str, name: &str, uid: &str, cluster: &str, by_name| {
            let owner = Owner {
                uid: uid.to_owned(),
                key: Some(ServiceKey::new("default", name)),
                ..Owner::default()
            };
            let traces = Traces {
                id,
                ..Traces::default()
            };
            judge.judge(
                &traces,
                &owner,
                by_name,
                OfCluster::Marks(None, Some(cluster)),
                "its name",
            )
        };
        let (standing, why) = judged("old", "web", "uid-web", "prod", true);
        assert_eq!(standing, Standing::AnotherClusters, "{why}");
        assert!(
            why.contains("of the name prod") && why.contains("lives here, too"),
            "{why}"
        );
        let (standing, why) = judged("old", "web", "", "prod", true);
        assert_eq!(standing, Standing::AnotherClusters, "{why}");
        for (id, name, cluster, by_name) in [
            ("lb-1", "web", "prod", true),
            ("old", "web", "staging", true),
            ("old", "web", "prod", false),
        ] {
            assert_eq!(
                judged(id, name, "uid-web", cluster, by_name).0,
                Standing::InUse,
                "{id} {name} {cluster}"
            );
        }
        assert!(!judged("old", "gone", "", "prod", true).1.contains("lives here"));
    }
}
