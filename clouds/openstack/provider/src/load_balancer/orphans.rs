//! Whose the load balancers of the project are, and the floating IPs and security groups that came with them, for the command
//! `orphans`.

use std::collections::BTreeSet;

use bowline_cloud_provider::evidence::Traces;
use bowline_cloud_provider::orphans::{Found, Judge, OfCluster, OrphanFacts, Owner, Standing};
use bowline_cloud_provider::{CloudError, ServiceKey, facts};
use bowline_openstack_client::{Client, FloatingIp, LoadBalancer, Pool, ProvisioningStatus, SecurityGroup};
use futures::try_join;
use jiff::Timestamp;

use crate::config::LoadBalancerOptions;
use crate::load_balancer::annotations as keys;
use crate::load_balancer::evidence::other_cluster;
use crate::load_balancer::names::{self, PREFIX, PoolMark};

/// What was read of a project.
struct Project {
    balancers: Vec<LoadBalancer>,
    pools: Vec<Pool>,
    floating_ips: Vec<FloatingIp>,
    groups: Vec<SecurityGroup>,
}

/// All that bears the name of a Service of some cluster.
pub(crate) async fn marked(
    client: &Client,
    options: &LoadBalancerOptions,
    facts: &OrphanFacts,
) -> Result<Vec<Found>, CloudError> {
    let (balancers, pools, floating_ips, groups) = try_join!(
        client.load_balancers(),
        client.pools(),
        client.floating_ips(),
        client.security_groups(),
    )?;
    let project = Project {
        balancers,
        pools,
        floating_ips,
        groups,
    };
    Ok(project.marked(options, facts))
}

impl Project {
    fn marked(&self, options: &LoadBalancerOptions, facts: &OrphanFacts) -> Vec<Found> {
        let judge = Judge::new(
            facts,
            facts.services.cluster_uid(),
            &options.former_clusters,
            |service| facts::annotation(service, keys::ID.key).map(str::to_owned),
        );
        let is_there = |it: &&LoadBalancer| it.provisioning_status != ProvisioningStatus::Deleted;
        let balancers = self.balancers.iter().filter(is_there);
        let balancers = balancers.filter_map(|it| self.balancer(options, &judge, it));
        let mut found: Vec<Found> = balancers.collect();
        let is_shared = |it: &&Found| it.standing == Standing::InUse && it.owner == Owner::default();
        let shared: BTreeSet<String> = found.iter().filter(is_shared).map(|it| it.id.clone()).collect();
        let stays = found.iter().filter(|it| it.standing != Standing::Deleting);
        let with_balancer: BTreeSet<ServiceKey> = stays.filter_map(|it| it.owner.key.clone()).collect();
        let is_left = |it: &Found| {
            it.owner
                .key
                .as_ref()
                .is_some_and(|key| !with_balancer.contains(key))
        };
        let floating_ips = self
            .floating_ips
            .iter()
            .filter(|it| !it.is_foreign && it.port_id.is_none());
        let groups = self.groups.iter();
        let rest = floating_ips
            .filter_map(|it| floating_ip(&judge, it))
            .chain(groups.filter_map(|it| group(&judge, it)));
        let is_on_shared = |pool: &&Pool| {
            pool.loadbalancers
                .iter()
                .any(|it| shared.contains(it.id.as_str()))
        };
        let of_guests = self
            .pools
            .iter()
            .filter(is_on_shared)
            .filter_map(|it| pool(&judge, it));
        // What belongs to a load balancer goes with it, or stays with it.
        let rest: Vec<Found> = rest.filter(is_left).chain(of_guests).collect();
        found.extend(rest);
        found
    }

    fn balancer(
        &self,
        options: &LoadBalancerOptions,
        judge: &Judge,
        balancer: &LoadBalancer,
    ) -> Option<Found> {
        let others = |it: &&String| it.starts_with(PREFIX) && **it != balancer.name;
        let other = balancer.tags.iter().find(others);
        let is_made = balancer.name.starts_with(PREFIX);
        if !is_made && other.is_none() {
            return None;
        }
        let id = balancer.id.to_string();
        let named = service_of(&balancer.name);
        let key = named.as_ref().map(|(_, key)| key.clone());
        let marks = key
            .as_ref()
            .map(|key| self.marks(balancer, key))
            .unwrap_or_default();
        let of_pools = marks.iter().filter_map(|mark| mark.cluster);
        let uids: BTreeSet<&str> = of_pools.chain(other_cluster(options, balancer)).collect();
        let cluster_uid = uids.first().copied();
        let uid = marks.first().map(|mark| mark.uid);
        let owner = Owner {
            uid: uid
                .or_else(|| self.uid_on_group(named.as_ref()?))
                .unwrap_or_default()
                .to_owned(),
            key,
            ..Owner::default()
        };
        let at_port = |it: &&FloatingIp| it.port_id.is_some() && it.port_id == balancer.vip_port_id;
        let floating = self.floating_ips.iter().filter(at_port);
        let own = [balancer.vip_address.as_str()].into_iter();
        let traces = Traces {
            id: &id,
            addresses: own.chain(floating.map(|it| &*it.floating_ip_address)).collect(),
            ..Traces::default()
        };
        let cluster = match (&named, other) {
            (_, Some(_)) => OfCluster::Nothing("tags say that other Services use it too"),
            (None, None) => OfCluster::Nothing("its name was cut, or is none that a manager gives"),
            _ if uids.len() > 1 => OfCluster::Nothing("its pools were made by several clusters"),
            (Some((cluster, _)), None) => OfCluster::Marks(cluster_uid, Some(cluster)),
        };
        let is_described = named
            .as_ref()
            .is_some_and(|(cluster, key)| balancer.description == names::balancer_description(cluster, key));
        let by = match (marks.is_empty(), is_described) {
            (false, _) => "its name and its pools",
            (true, true) => "its name and its description",
            (true, false) => "the words of its name",
        };
        let (mut standing, mut why) = judge.judge(&traces, &owner, true, cluster, by);
        if let (false, true, Some(tag)) = (is_made, standing == Standing::Unclear, other) {
            (standing, why) = (
                Standing::Persons,
                format!("no manager made it; its tag {tag} says that a Service uses it"),
            );
        }
        let is_removed = standing.is_orphan() || matches!(standing, Standing::Held | Standing::Unclear);
        if is_removed && balancer.provisioning_status == ProvisioningStatus::PendingDelete {
            standing = Standing::Deleting;
            why.push_str(
                "; Octavia is deleting it (PENDING_DELETE). If it stays so, ask the operator of the cloud to look at Octavia's workers",
            );
        }
        // What its Service left on it beside those that use it goes by itself.
        let owner = match (standing, other) {
            (Standing::InUse, Some(_)) => Owner::default(),
            _ => owner,
        };
        Some(Found {
            kind: "load balancer",
            name: balancer.name.clone(),
            made: made(balancer.created_at.as_deref()),
            cluster_uid: cluster_uid.map(str::to_owned),
            id,
            owner,
            standing,
            why,
        })
    }

    /// The UID of a Service by the name of its security group. One by one, the pools go before the load balancer and the group, and an
    /// earlier run may have come so far.
    fn uid_on_group(&self, (cluster, key): &(&str, ServiceKey)) -> Option<&str> {
        let of_service = |it| service_of_group(it).filter(|(theirs, at, _)| theirs == key && at == cluster);
        let mut uids = self.groups.iter().filter_map(of_service).map(|(.., uid)| uid);
        uids.next().filter(|uid| uids.all(|other| other == *uid))
    }

    /// What is written on the pools of a load balancer about the Service that it has in its name.
    fn marks(&self, balancer: &LoadBalancer, key: &ServiceKey) -> Vec<PoolMark<'_>> {
        let is_of = |pool: &&Pool| pool.loadbalancers.iter().any(|it| it.id == balancer.id);
        let pools = self.pools.iter().filter(is_of);
        pools
            .filter_map(|pool| names::mark_on_pool(&pool.description, key))
            .collect()
    }
}

/// A pool on a load balancer that several Services use, by what is written on it.
fn pool(judge: &Judge, there: &Pool) -> Option<Found> {
    let (key, mark) = names::service_on_pool(&there.description)?;
    let (id, cluster) = (there.id.to_string(), OfCluster::Marks(mark.cluster, None));
    let (what, by) = (("pool", id, &there.name), "the words on it");
    Some(part(judge, what, (mark.uid, key), cluster, by))
}

fn floating_ip(judge: &Judge, there: &FloatingIp) -> Option<Found> {
    let rest = there.description.strip_prefix(names::FLOATING_IP_MARK)?;
    let (key, cluster) = rest.trim().split_once(" from cluster ")?;
    let key = key_of(key)?;
    let what = ("floating IP", there.id.to_string(), &there.floating_ip_address);
    (there.description == names::floating_ip_description(cluster, &key)).then(|| {
        part(
            judge,
            what,
            ("", key),
            OfCluster::Marks(None, Some(cluster)),
            DESCRIBED,
        )
    })
}

/// Service, cluster and UID of the Service that a security group was made for.
fn service_of_group(there: &SecurityGroup) -> Option<(ServiceKey, &str, &str)> {
    let rest = there.description.strip_prefix("Security Group for ")?;
    let (key, cluster) = rest.split_once(" Service LoadBalancer in cluster ")?;
    let key = key_of(key)?;
    let uid = there.name.strip_prefix("lb-sg-")?;
    let uid = uid.strip_suffix(&format!("-{}-{}", key.namespace, key.name))?;
    Some((key, cluster, uid))
}

fn group(judge: &Judge, there: &SecurityGroup) -> Option<Found> {
    let (key, cluster, uid) = service_of_group(there)?;
    let what = ("security group", there.id.to_string(), &there.name);
    let found = part(
        judge,
        what,
        (uid, key),
        OfCluster::Marks(None, Some(cluster)),
        DESCRIBED,
    );
    Some(Found {
        made: made(there.created_at.as_deref()),
        ..found
    })
}

/// How it is told whose something is.
const DESCRIBED: &str = "its description";

/// Something that is no load balancer, made for the Service of this UID and name, as `by` tells.
fn part(
    judge: &Judge,
    (kind, id, name): (&'static str, String, &String),
    (uid, key): (&str, ServiceKey),
    cluster: OfCluster<'_>,
    by: &str,
) -> Found {
    let owner = Owner {
        uid: uid.to_owned(),
        key: Some(key),
        ..Owner::default()
    };
    let traces = Traces {
        id: &id,
        addresses: vec![name],
        ..Traces::default()
    };
    let (standing, why) = judge.judge(&traces, &owner, true, cluster, by);
    let cluster_uid = match cluster {
        OfCluster::Marks(uid, _) => uid.map(str::to_owned),
        OfCluster::This(_) | OfCluster::Nothing(_) => None,
    };
    Found {
        kind,
        made: None,
        cluster_uid,
        name: name.clone(),
        id,
        owner,
        standing,
        why,
    }
}

fn key_of(text: &str) -> Option<ServiceKey> {
    let (namespace, name) = text.split_once('/')?;
    Some(ServiceKey::new(namespace, name))
}

/// Cluster and Service in the name of a load balancer, if nothing of it was cut.
fn service_of(name: &str) -> Option<(&str, ServiceKey)> {
    let cluster = names::cluster_of(name)?;
    let rest = name
        .strip_prefix(PREFIX)?
        .strip_prefix(cluster)?
        .strip_prefix('_')?;
    let (namespace, service) = rest.split_once('_')?;
    let key = ServiceKey::new(namespace, service);
    let is_whole = names::whole_balancer(cluster, &key) == name && names::balancer(cluster, &key) == name;
    is_whole.then_some((cluster, key))
}

/// Octavia writes UTC, and does not say so.
fn made(text: Option<&str>) -> Option<Timestamp> {
    format!("{}Z", text?.trim_end_matches('Z')).parse().ok()
}
