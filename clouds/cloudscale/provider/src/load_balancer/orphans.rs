//! Whose the load balancers of the project are, for the command `orphans`.

use bowline_cloud_provider::ServiceKey;
use bowline_cloud_provider::orphans::{Found, Judge, OfCluster, OrphanFacts, Owner};
use bowline_cloudscale_client::LoadBalancer;

use crate::load_balancer::evidence;
use crate::load_balancer::intent::read;
use crate::load_balancer::names::{
    self, TAG_CLUSTER_NAME, TAG_CLUSTER_UID, TAG_SERVICE_NAME, TAG_SERVICE_UID,
};

/// All load balancers that bear a tag of a manager, or the name that managers give. `cluster_name` is the one that tags tell.
pub(crate) fn marked(
    balancers: &[LoadBalancer],
    facts: &OrphanFacts,
    cluster_name: Option<String>,
) -> Vec<Found> {
    let former: Vec<String> = cluster_name.into_iter().collect();
    let judge = Judge::new(facts, facts.services.cluster_uid(), &former, |service| {
        read::annotated(service).map(|id| id.to_string())
    });
    let found = |balancer: &LoadBalancer| {
        let tag = |key| balancer.tags.text(key);
        let (cluster_uid, in_name) = (tag(TAG_CLUSTER_UID), names::service_uid(&balancer.name));
        let uid = tag(TAG_SERVICE_UID).or(in_name);
        uid.or(cluster_uid)?; // else nothing of a manager is on it
        let key = tag(TAG_SERVICE_NAME).and_then(|key| key.split_once('/'));
        let owner = Owner {
            uid: uid.unwrap_or_default().to_owned(),
            key: key.map(|(namespace, name)| ServiceKey::new(namespace, name)),
            ..Owner::default()
        };
        let id = balancer.uuid.to_string();
        let cluster = match tag(TAG_SERVICE_UID) {
            Some(_) => OfCluster::Marks(cluster_uid, tag(TAG_CLUSTER_NAME)),
            None => OfCluster::Nothing("its name holds the UID of a Service, and no tag names the cluster"),
        };
        let traces = evidence::traces(&id, balancer);
        let (standing, why) = judge.judge(&traces, &owner, false, cluster, "its tags");
        Some(Found {
            kind: "load balancer",
            name: balancer.name.clone(),
            made: balancer.created_at.as_deref().and_then(|time| time.parse().ok()),
            cluster_uid: cluster_uid.map(str::to_owned),
            id,
            owner,
            standing,
            why,
        })
    };
    balancers.iter().filter_map(found).collect()
}
