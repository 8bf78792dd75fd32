//! Whose the load balancer rules of the account or project are, for the command `orphans`.
//!
//! The name of a rule holds the UID of a Service and of no cluster. So a rule is this cluster's if virtual machines of this cluster's
//! Nodes are its members, and no others. Addresses bear no mark at all, and what was noted about them is gone with the Service: they
//! stay. At the address of another Service that lives a rule may be what that one lives by, as after a restore: a person decides.

use std::collections::{BTreeMap, BTreeSet};

use bowline_cloud_provider::evidence::Traces;
use bowline_cloud_provider::orphans::{Found, Judge, OfCluster, OrphanFacts, Owner, Standing};
use bowline_cloud_provider::{CloudError, Service, ServiceKey, facts};
use bowline_cloudstack_client::{Client, LoadBalancerRule, PublicIpId, RuleQuery, VirtualMachineId};
use futures::future::try_join_all;

use super::annotations::KEEP_IP;
use super::claim::Claim;
use super::names;
use super::observe::lists::members_of;
use crate::provider_id;

/// All rules with a name such as managers give.
pub(crate) async fn marked(client: &Client, facts: &OrphanFacts) -> Result<Vec<Found>, CloudError> {
    let rules = client.load_balancer_rules(&RuleQuery::All).await?;
    let nodes = facts.nodes.iter().filter_map(|node| node.provider_id.as_deref());
    let nodes: BTreeSet<VirtualMachineId> = nodes.filter_map(provider_id::instance_id).collect();
    let judge = Judge::new(facts, None, &[], |_| None);
    // A rule has a UID without its last digit.
    let services = facts.services.services();
    let uids = services.iter().filter_map(|it| it.metadata.uid.as_deref());
    let uids: BTreeMap<String, &str> = uids.map(|uid| (names::balancer(uid), uid)).collect();
    let named = rules
        .iter()
        .filter_map(|rule| Some((rule, names::balancer_of(&rule.name)?)));
    let named: Vec<(&LoadBalancerRule, &str)> = named.collect();
    // The client bounds the calls under way.
    let members = try_join_all(named.iter().map(|(rule, _)| members_of(client, &rule.id))).await?;
    let found = named.iter().zip(members).map(|((rule, balancer), members)| {
        let uid = uids
            .get(*balancer)
            .map_or_else(|| names::uid_of(balancer), |uid| (*uid).to_owned());
        let members = members.iter().map(|id| id.as_str().to_ascii_lowercase().into());
        let other = services.iter().find(|service| has_address(service, rule));
        one(
            &judge,
            rule,
            uid,
            &members.collect(),
            &nodes,
            other.map(|it| ServiceKey::of(it)),
        )
    });
    Ok(found.collect())
}

/// Whether a Service shows the address of a rule, or notes that it holds it.
fn has_address(service: &Service, rule: &LoadBalancerRule) -> bool {
    let holds = |id: &PublicIpId| {
        let claim = Claim::of(service);
        claim.names(id) || claim.shares(id)
    };
    facts::published_addresses(service).contains(&rule.public_ip)
        || rule.public_ip_id.as_ref().is_some_and(holds)
}

fn one(
    judge: &Judge,
    rule: &LoadBalancerRule,
    uid: String,
    members: &BTreeSet<VirtualMachineId>,
    nodes: &BTreeSet<VirtualMachineId>,
    other: Option<ServiceKey>,
) -> Found {
    let owner = Owner {
        uid,
        key: None,
        annotations: BTreeMap::from([(KEEP_IP.key.to_owned(), "true".to_owned())]),
    };
    let id = rule.id.to_string();
    let traces = Traces {
        id: &id,
        ..Traces::default()
    };
    let cluster = if members.is_empty() {
        OfCluster::Nothing(
            "it has no member, so nothing says which cluster it is of; if nobody needs it, delete it by hand",
        )
    } else if members.is_subset(nodes) {
        OfCluster::This("its members are Nodes of this cluster; its address stays")
    } else {
        OfCluster::Nothing("virtual machines that are no Nodes of this cluster are its members")
    };
    let (mut standing, mut why) = judge.judge(&traces, &owner, false, cluster, "the digits of its name");
    if let Some(other) = other.filter(|_| standing == Standing::Orphan) {
        standing = Standing::Unclear;
        why = format!(
            "{why}; but service {other} has its address, and may live by this rule: if it does not, delete the rule by hand"
        );
    }
    Found {
        kind: "load balancer rule",
        name: format!("{} ({})", rule.name, rule.public_ip),
        made: None,
        cluster_uid: None,
        id,
        owner,
        standing,
        why,
    }
}
