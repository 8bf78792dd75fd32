//! Names of load balancers and their parts. They carry ownership, so none may ever change.

use std::net::IpAddr;

use bowline_cloud_provider::ServiceKey;

/// What the names of all load balancers begin with that a controller of some cluster made. A tag that begins so names a
/// Service that uses the object.
pub(crate) const PREFIX: &str = "kube_service_";
/// What a tag begins with that says to which cluster a load balancer belongs: the UID of its namespace `kube-system` follows. Go managers
/// after v1.36.0 may write it (kubernetes/cloud-provider-openstack, pull request 3103).
const CLUSTER_MARK: &str = "kube_cluster_id_";
/// What the name of a drained member begins with.
const DRAINED: &str = "drained from weight ";
/// What the description of every floating IP holds that a controller made.
pub(crate) const FLOATING_IP_MARK: &str = "Floating IP for Kubernetes external service";
/// What the description of every pool begins with that this controller made.
const POOL_MARK: &str = "Kubernetes Service";
/// The greatest weight of a member (Octavia API, `weight` of a member).
const MAX_WEIGHT: u16 = 256;
/// The most bytes of a name (Octavia and Neutron APIs).
const MAX_NAME: usize = 255;
/// The characters of a name in the form that very old controllers used.
const LEGACY_NAME: usize = 32;

/// Whether a tag says whose an object is.
pub(crate) fn is_mark(tag: &str) -> bool {
    tag.starts_with(PREFIX) || tag.starts_with(CLUSTER_MARK)
}

/// The UID of the cluster that a tag of a load balancer names.
pub(crate) fn cluster_in_mark(tag: &str) -> Option<&str> {
    tag.strip_prefix(CLUSTER_MARK).filter(|uid| !uid.is_empty())
}

/// The name of a Service's load balancer. It is also the tag that marks what is used by the Service.
pub(crate) fn balancer(cluster: &str, service: &ServiceKey) -> String {
    cut(whole_balancer(cluster, service))
}

/// The same before it is cut: one that is longer is cut, and other Services may have what is left of it too.
pub(crate) fn whole_balancer(cluster: &str, service: &ServiceKey) -> String {
    format!("{PREFIX}{cluster}_{}_{}", service.namespace, service.name)
}

/// The name that very old controllers gave: load balancers are looked for by it, and never named so.
pub(crate) fn legacy_balancer(service_uid: &str) -> String {
    let name = format!("a{}", service_uid.replace('-', ""));
    name.chars().take(LEGACY_NAME).collect()
}

/// The name of the listener of the port at this position in the Service.
pub(crate) fn listener(index: usize, balancer: &str) -> String {
    cut(format!("listener_{index}_{balancer}"))
}

/// The name of a port's pool.
pub(crate) fn pool(index: usize, balancer: &str) -> String {
    cut(format!("pool_{index}_{balancer}"))
}

/// Whether a listener was named after a load balancer of this name, whatever its index is.
pub(crate) fn is_listener_of(name: &str, balancer: &str) -> bool {
    let index = name
        .strip_prefix("listener_")
        .and_then(|rest| rest.split_once('_'));
    let index = index.and_then(|(index, _)| index.parse().ok());
    index.is_some_and(|index| listener(index, balancer) == name)
}

/// The name of the load balancer that a pool's name was made from.
pub(crate) fn balancer_of_pool(pool: &str) -> Option<&str> {
    let (index, balancer) = pool.strip_prefix("pool_")?.split_once('_')?;
    let is_index = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    is_index.then_some(balancer)
}

/// Whether a pool was named after a load balancer of this name, whatever its index is.
pub(crate) fn is_pool_of(name: &str, balancer: &str) -> bool {
    let index = name.strip_prefix("pool_").and_then(|rest| rest.split_once('_'));
    let index = index.and_then(|(index, _)| index.parse().ok());
    index.is_some_and(|index| pool(index, balancer) == name)
}

/// Which Service a pool serves, as is written on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PoolMark<'a> {
    /// The Service's UID.
    pub(crate) uid: &'a str,
    /// The cluster's UID, if it was known.
    pub(crate) cluster: Option<&'a str>,
}

/// What is written on a pool. It is shorter than Octavia allows, however long the Service's names are.
pub(crate) fn pool_description(service: &ServiceKey, mark: PoolMark<'_>) -> String {
    let PoolMark { uid, cluster } = mark;
    let cluster = cluster.map_or(String::new(), |cluster| format!(", cluster {cluster}"));
    format!("{POOL_MARK} {service}, uid {uid}{cluster}")
}

/// What is written on a pool of a Service of this name.
pub(crate) fn mark_on_pool<'a>(description: &'a str, service: &ServiceKey) -> Option<PoolMark<'a>> {
    let text = description.strip_prefix(&format!("{POOL_MARK} {service}, uid "))?;
    let mut words = text.split([' ', ',']).filter(|word| !word.is_empty());
    let uid = words.next()?;
    // A person may have added something behind it.
    let cluster = words
        .next()
        .filter(|&word| word == "cluster")
        .and_then(|_| words.next());
    Some(PoolMark { uid, cluster })
}

/// The Service that is written on a pool, and what is written of it.
pub(crate) fn service_on_pool(description: &str) -> Option<(ServiceKey, PoolMark<'_>)> {
    let (key, _) = description.strip_prefix(POOL_MARK)?.split_once(", uid ")?;
    let (namespace, name) = key.trim().split_once('/')?;
    let key = ServiceKey::new(namespace, name);
    let mark = mark_on_pool(description, &key)?;
    Some((key, mark))
}

/// The name of a port's health monitor.
pub(crate) fn monitor(index: usize, balancer: &str) -> String {
    cut(format!("monitor_{index}_{balancer}"))
}

/// The name of a member where members are created one by one.
pub(crate) fn single_member(node: &str, address: IpAddr, port: u16) -> String {
    cut(format!("member_{node}_{address}_{port}"))
}

/// The name of a member that gets no new connections because its node is drained: with the weight that it gets back.
pub(crate) fn drained_member(name: &str, weight: u16) -> String {
    cut(format!("{DRAINED}{weight}: {name}"))
}

/// The weight that a member has when its node is drained no more; `None` for one that Bowline did not drain, as a weight tells that
/// Octavia does not take.
pub(crate) fn weight_before_drain(name: &str) -> Option<u16> {
    let (weight, _) = name.strip_prefix(DRAINED)?.split_once(": ")?;
    weight.parse().ok().filter(|weight| *weight <= MAX_WEIGHT)
}

/// What is written on a load balancer, internal ones too.
pub(crate) fn balancer_description(cluster: &str, service: &ServiceKey) -> String {
    cut(format!(
        "Kubernetes external service {service} from cluster {cluster}"
    ))
}

/// Whether a floating IP's description names the Service that a load balancer's does.
pub(crate) fn is_floating_ip_of(description: &str, balancer: &str) -> bool {
    !balancer.is_empty() && description.strip_prefix("Floating IP for ") == Some(balancer)
}

/// What is written on a floating IP.
pub(crate) fn floating_ip_description(cluster: &str, service: &ServiceKey) -> String {
    cut(format!("{FLOATING_IP_MARK} {service} from cluster {cluster}"))
}

/// The name of a Service's security group.
pub(crate) fn security_group(service_uid: &str, service: &ServiceKey) -> String {
    cut(format!(
        "lb-sg-{service_uid}-{}-{}",
        service.namespace, service.name
    ))
}

/// What is written on a security group.
pub(crate) fn security_group_description(cluster: &str, service: &ServiceKey) -> String {
    cut(format!(
        "Security Group for {service} Service LoadBalancer in cluster {cluster}"
    ))
}

/// Whether a description is that of a security group that was created for a Service, whatever its cluster was called then.
pub(crate) fn is_security_group_of(service: &ServiceKey, description: &str) -> bool {
    description.starts_with(&security_group_description("", service))
}

/// The cluster in a name or tag: `kube_service_CLUSTER_NAMESPACE_SERVICE`, for parts after their kind and index. Only
/// the cluster's name can hold an underscore.
pub(crate) fn cluster_of(name: &str) -> Option<&str> {
    let rest = after_kind(name).strip_prefix(PREFIX)?;
    let (front, service) = rest.rsplit_once('_')?;
    // A name that was cut may have lost its Service, and then its namespace stands last.
    let cluster = match front.rsplit_once('_') {
        Some((cluster, namespace)) if !namespace.is_empty() && !cluster.is_empty() => cluster,
        _ => front,
    };
    (!cluster.is_empty() && !service.is_empty()).then_some(cluster)
}

/// The same name with another cluster in it: namespace and Service stay as they are.
pub(crate) fn with_cluster(name: &str, former: &str, now: &str) -> String {
    let kind = name.len() - after_kind(name).len();
    match after_kind(name)
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_prefix(former))
    {
        Some(rest) if rest.starts_with('_') => cut(format!("{}{PREFIX}{now}{rest}", &name[..kind])),
        _ => name.to_owned(),
    }
}

/// A part's name without kind and index: `listener_0_kube_service_...` gives `kube_service_...`.
fn after_kind(name: &str) -> &str {
    let mut parts = name.splitn(3, '_');
    match (parts.next(), parts.next(), parts.next()) {
        (Some("listener" | "pool" | "monitor"), Some(index), Some(rest))
            if !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            rest
        }
        _ => name,
    }
}

fn cut(mut name: String) -> String {
    let end = (0..=MAX_NAME).rev().find(|end| name.is_char_boundary(*end));
    name.truncate(end.unwrap_or_default());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web() -> ServiceKey {
        ServiceKey::new("default", "web")
    }

    #[test]
    fn names_are_those_that_live_load_balancers_have() {
        let name = balancer("lab", &web());
        assert_eq!(name, "kube_service_lab_default_web");
        assert_eq!(listener(0, &name), "listener_0_kube_service_lab_default_web");
        assert_eq!(pool(1, &name), "pool_1_kube_service_lab_default_web");
        assert_eq!(monitor(2, &name), "monitor_2_kube_service_lab_default_web");
        assert_eq!(
            single_member("node-1", IpAddr::from([10, 0, 0, 11]), 30080),
            "member_node-1_10.0.0.11_30080"
        );
        assert_eq!(
            balancer_description("lab", &web()),
            "Kubernetes external service default/web from cluster lab"
        );
        assert_eq!(
            floating_ip_description("lab", &web()),
            "Floating IP for Kubernetes external service default/web from cluster lab"
        );
        assert_eq!(security_group("uid", &web()), "lb-sg-uid-default-web");
        assert_eq!(
            security_group_description("lab", &web()),
            "Security Group for default/web Service LoadBalancer in cluster lab"
        );
        assert_eq!(
            legacy_balancer("0f6f7f2c-3b1d-4f9a-8a7e-3c4f5a6b7c8d"),
            "a0f6f7f2c3b1d4f9a8a7e3c4f5a6b7c8"
        );
    }

    #[test]
    fn what_is_written_on_a_pool_tells_whose_it_is() {
        let mark = |uid, cluster| PoolMark { uid, cluster };
        let written = pool_description(&web(), mark("3f0c", Some("c0")));
        assert_eq!(written, "Kubernetes Service default/web, uid 3f0c, cluster c0");
        let without = pool_description(&web(), mark("3f0c", None));
        assert_eq!(without, "Kubernetes Service default/web, uid 3f0c");
        for (written, found) in [
            (written.as_str(), Some(mark("3f0c", Some("c0")))),
            (without.as_str(), Some(mark("3f0c", None))),
            (
                "Kubernetes Service default/web, uid 3f0c (see ticket 7)",
                Some(mark("3f0c", None)),
            ),
            (
                "Kubernetes Service default/web, uid 3f0c, cluster c0, see ticket 7",
                Some(mark("3f0c", Some("c0"))),
            ),
            (
                "Kubernetes Service default/web, uid 3f0c, cluster ",
                Some(mark("3f0c", None)),
            ),
            ("Kubernetes Service default/web, uid ", None),
            ("Kubernetes Service default/web2, uid 3f0c", None),
            ("Kubernetes Service kube-system/web, uid 3f0c", None),
            ("for something else", None),
            ("", None),
        ] {
            assert_eq!(mark_on_pool(written, &web()), found, "{written}");
        }
        let longest = ServiceKey::new("n".repeat(63), "s".repeat(63));
        let uid = "u".repeat(36);
        assert!(pool_description(&longest, mark(&uid, Some(&uid))).len() <= 255);
    }

    #[test]
    fn a_pool_is_known_by_the_load_balancer_that_it_is_named_after() {
        let name = balancer("lab", &web());
        for (pool, is_it) in [
            ("pool_0_kube_service_lab_default_web", true),
            ("pool_12_kube_service_lab_default_web", true),
            ("pool_0_kube_service_prod_default_web", false),
            ("pool_x_kube_service_lab_default_web", false),
            ("by-hand", false),
        ] {
            assert_eq!(is_pool_of(pool, &name), is_it, "{pool}");
        }
        let cut = balancer(&"c".repeat(250), &web());
        assert!(is_pool_of(&pool(3, &cut), &cut));
    }

    #[test]
    fn no_name_is_longer_than_the_api_takes() {
        let key = ServiceKey::new("n".repeat(63), "s".repeat(63));
        let name = balancer(&"ä".repeat(100), &key);
        assert_eq!(name.len(), 255);
        assert_eq!(listener(10, &name).len(), 255);
    }

    #[test]
    fn the_cluster_is_read_from_names_of_load_balancers_and_parts() {
        for (name, cluster) in [
            ("kube_service_lab_default_web", Some("lab")),
            ("kube_service_my_old_lab_default_web", Some("my_old_lab")),
            ("listener_12_kube_service_lab_default_web", Some("lab")),
            ("monitor_0_kube_service_lab_default_web", Some("lab")),
            ("listener_x_kube_service_lab_default_web", None),
            ("kube_service_lab_default", Some("lab")),
            ("kube_service_lab", None),
            ("by-hand", None),
        ] {
            assert_eq!(cluster_of(name), cluster, "{name}");
        }
    }

    #[test]
    fn a_renamed_part_keeps_namespace_service_and_index() {
        for (name, renamed) in [
            ("kube_service_old_default_web", "kube_service_lab_default_web"),
            (
                "pool_1_kube_service_old_default_old",
                "pool_1_kube_service_lab_default_old",
            ),
            ("kube_service_older_default_web", "kube_service_older_default_web"),
            ("by-hand", "by-hand"),
        ] {
            assert_eq!(with_cluster(name, "old", "lab"), renamed);
        }
    }
}
