//! Whose the balancers of the project are, for the command `orphans`.

use bowline_cloud_provider::evidence::Traces;
use bowline_cloud_provider::orphans::{Found, Judge, OfCluster, OrphanFacts, Owner};
use bowline_cloud_provider::{CloudError, ServiceKey};

use crate::observe::Reads;

/// All balancers that a manager made: they bear the UID of a Service and the name of a cluster.
pub(crate) async fn marked(reads: &Reads, facts: &OrphanFacts) -> Result<Vec<Found>, CloudError> {
    let judge = Judge::new(facts, None, &[], |_| None);
    let balancers = reads.balancers().await?;
    let owned = balancers.iter().filter_map(|it| Some((it, it.owner.as_deref()?)));
    let found = owned.map(|(balancer, uid)| {
        let key = balancer.name.split_once('/');
        let owner = Owner {
            uid: uid.to_owned(),
            key: key.map(|(namespace, name)| ServiceKey::new(namespace, name)),
            ..Owner::default()
        };
        let (id, shown) = (
            balancer.id.to_string(),
            balancer.addresses.iter().map(ToString::to_string),
        );
        let shown: Vec<String> = shown.collect();
        let traces = Traces {
            id: &id,
            addresses: shown.iter().map(String::as_str).collect(),
            mark: Some(uid),
            ..Traces::default()
        };
        let cluster = OfCluster::Marks(None, balancer.cluster.as_deref());
        let (standing, why) = judge.judge(&traces, &owner, false, cluster, "its owner and its cluster");
        Found {
            kind: "balancer",
            name: balancer.name.clone(),
            made: balancer.created_at.parse().ok(),
            cluster_uid: None,
            id,
            owner,
            standing,
            why,
        }
    });
    Ok(found.collect())
}
