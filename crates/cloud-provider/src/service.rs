//! A Service and everything around it that a balancer is decided from.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::{ClusterFacts, Node, ServiceClasses};

pub use crate::k8s::Service;

/// Namespace and name of a Service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceKey {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl ServiceKey {
    /// The key of these two.
    #[must_use]
    pub fn new(namespace: impl Into<Arc<str>>, name: impl Into<Arc<str>>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of a Service.
    #[must_use]
    pub fn of(service: &Service) -> Self {
        Self::new(
            service.metadata.namespace.as_deref().unwrap_or_default(),
            service.metadata.name.as_deref().unwrap_or_default(),
        )
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What Kubernetes says about one balancer: everything that a provider may decide from besides the cloud itself.
#[derive(Clone)]
pub struct ServiceFacts {
    /// The Service with its present status.
    pub service: Arc<Service>,
    /// Whether the balancer is wanted. If not, it is to be removed, whatever the Service says by now: its type, class,
    /// ports and annotations may have changed or may not parse.
    pub is_wanted: bool,
    /// Whether a sync began with it before this one, in this process or another one: its finalizer was on.
    pub has_begun: bool,
    /// The Nodes to balance over, by name. Where the balancer is not wanted, they only tell which cluster this is.
    pub nodes: Arc<[Arc<Node>]>,
    /// The other Services of the cluster.
    pub services: Arc<dyn ServicesView>,
    /// The cluster.
    pub cluster: Arc<ClusterFacts>,
    /// The wall time at which the facts were gathered.
    pub now: Timestamp,
}

impl ServiceFacts {
    /// The facts about this Service, for a balancer that is wanted if the Service says so.
    #[must_use]
    pub fn of(
        service: Arc<Service>,
        nodes: Arc<[Arc<Node>]>,
        services: Arc<dyn ServicesView>,
        cluster: Arc<ClusterFacts>,
        now: Timestamp,
    ) -> Self {
        Self {
            is_wanted: services.classes().is_wanted(&service),
            has_begun: facts::has_finalizer(&service),
            service,
            nodes,
            services,
            cluster,
            now,
        }
    }

    /// The facts about a Service that is looked at by itself: of its cluster nothing is known but one Node. For checks of what
    /// it says, before there is a cluster.
    #[must_use]
    pub fn alone(service: Arc<Service>) -> Self {
        let services: Arc<dyn ServicesView> = Arc::new(Vec::<Arc<Service>>::new());
        let cluster = ClusterFacts {
            name: "kubernetes".to_owned(),
            uid: Some("cluster".to_owned()),
            server_version: None,
            holder: String::new(),
        };
        let nodes = Arc::from([Arc::new(Node::named("node"))]);
        Self::of(service, nodes, services, Arc::new(cluster), Timestamp::UNIX_EPOCH)
    }

    /// The Service's key.
    #[must_use]
    pub fn key(&self) -> ServiceKey {
        ServiceKey::of(&self.service)
    }
}

impl fmt::Debug for ServiceFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceFacts")
            .field("service", &self.key())
            .field("is_wanted", &self.is_wanted)
            .field("nodes", &self.nodes.len())
            .finish_non_exhaustive()
    }
}

/// A read-only view of all Services of the cluster, in key order.
pub trait ServicesView: Send + Sync {
    /// All Services at this moment.
    fn services(&self) -> Vec<Arc<Service>>;

    /// Which of them are served here; all others are other controllers'.
    fn classes(&self) -> &ServiceClasses {
        ServiceClasses::upstream()
    }

    /// The Service that bears this name.
    fn service(&self, key: &ServiceKey) -> Option<Arc<Service>> {
        self.services()
            .into_iter()
            .find(|service| ServiceKey::of(service) == *key)
    }

    /// The UID of the Service `kubernetes` in the namespace `default`, which every API server keeps. It stays for as long as
    /// the cluster's data does, and no other cluster has it.
    fn cluster_uid(&self) -> Option<String> {
        let service = self.service(&ServiceKey::new("default", "kubernetes"))?;
        service.metadata.uid.clone()
    }

    /// Whether a Service with this UID exists.
    fn has_uid(&self, uid: &str) -> bool {
        self.services()
            .iter()
            .any(|service| service.metadata.uid.as_deref() == Some(uid))
    }
}

impl ServicesView for Vec<Arc<Service>> {
    fn services(&self) -> Vec<Arc<Service>> {
        self.clone()
    }
}

/// A list of Services as it was read, and which of them are served.
#[derive(Debug, Clone, Default)]
pub struct ServiceList {
    /// All Services, in key order.
    pub services: Vec<Arc<Service>>,
    /// Which of them are served.
    pub classes: ServiceClasses,
}

impl ServicesView for ServiceList {
    fn services(&self) -> Vec<Arc<Service>> {
        self.services.clone()
    }

    fn classes(&self) -> &ServiceClasses {
        &self.classes
    }
}

/// The framework's shared rules about a Service, as free functions.
pub mod facts {
    use std::net::IpAddr;
    use std::time::Duration;

    use jiff::Timestamp;

    use crate::k8s::Condition;

    use super::Service;
    use crate::AnnotationSpec;

    /// `spec.loadBalancerClass`; an empty one still counts as a class.
    #[must_use]
    pub fn class(service: &Service) -> Option<&str> {
        service.spec.as_ref()?.load_balancer_class.as_deref()
    }

    /// The class of the Service when its finalizer was put on, where it had one.
    #[must_use]
    pub fn noted_class(service: &Service) -> Option<&str> {
        annotation(service, crate::keys::ANNOTATION_CLASS)
    }

    /// Whether the finalizer that protects a balancer is there.
    #[must_use]
    pub fn has_finalizer(service: &Service) -> bool {
        service
            .metadata
            .finalizers
            .iter()
            .flatten()
            .any(|name| name == crate::keys::FINALIZER_LOAD_BALANCER)
    }

    /// The condition that tells of trouble with the balancer, if the Service shows it.
    #[must_use]
    pub fn trouble(service: &Service) -> Option<&Condition> {
        let conditions = service.status.as_ref()?.conditions.as_deref()?;
        let is_ours = |it: &&Condition| it.type_ == crate::keys::CONDITION_RECONCILED && it.status == "False";
        conditions.iter().find(is_ours)
    }

    /// What stands in that condition before the time until which calls without an answer may take effect, and the labels of their steps.
    pub const WITHOUT_ANSWER: &str = ". Without an answer until now, and may take effect until ";

    /// What stands between those labels.
    pub const BETWEEN_STEPS: &str = "; ";

    /// How long a call may take at most to take effect. Whoever may write the status can write a later time, or restore an old one.
    pub const LATEST: Duration = Duration::from_secs(300);

    /// The labels of the steps of which a call got no answer and may take effect yet, as this process or the one before it noted.
    pub fn unanswered_steps(service: &Service, now: Timestamp) -> impl Iterator<Item = &str> {
        let late = || {
            let (_, late) = trouble(service)?.message.rsplit_once(WITHOUT_ANSWER)?;
            let (until, steps) = late.split_once(": ")?;
            let left = Duration::try_from(until.parse::<Timestamp>().ok()?.duration_since(now)).ok()?;
            (left <= LATEST).then_some(steps)
        };
        late().into_iter().flat_map(|steps| steps.split(BETWEEN_STEPS))
    }

    /// The condition that tells of an address that the Service showed before.
    #[must_use]
    pub fn address_changed(service: &Service) -> Option<&Condition> {
        let conditions = service.status.as_ref()?.conditions.as_deref()?;
        let is_it = |it: &&Condition| it.type_ == crate::keys::CONDITION_ADDRESS_CHANGED;
        conditions.iter().find(is_it)
    }

    /// Whether a balancer has to be removed: the finalizer is there, and the Service is being deleted or is no longer
    /// of type `LoadBalancer`.
    #[must_use]
    pub fn needs_cleanup(service: &Service) -> bool {
        has_finalizer(service)
            && (service.metadata.deletion_timestamp.is_some() || !is_type(service, "LoadBalancer"))
    }

    /// Whether traffic stays on the node that receives it: type `LoadBalancer` or `NodePort` with
    /// `externalTrafficPolicy: Local`.
    #[must_use]
    pub fn is_local_traffic_only(service: &Service) -> bool {
        (is_type(service, "LoadBalancer") || is_type(service, "NodePort"))
            && service
                .spec
                .as_ref()
                .and_then(|spec| spec.external_traffic_policy.as_deref())
                == Some("Local")
    }

    /// The node port on which kube-proxy says whether the node has endpoints; `None` unless local traffic only.
    #[must_use]
    pub fn health_check_node_port(service: &Service) -> Option<u16> {
        let port = service.spec.as_ref()?.health_check_node_port?;
        (is_type(service, "LoadBalancer") && is_local_traffic_only(service))
            .then(|| u16::try_from(port).ok().filter(|port| *port != 0))
            .flatten()
    }

    /// An annotation's value, without blanks and line ends around it.
    #[must_use]
    pub fn annotation<'a>(service: &'a Service, key: &str) -> Option<&'a str> {
        service
            .metadata
            .annotations
            .as_ref()?
            .get(key)
            .map(|value| value.trim())
    }

    /// The annotations that begin as those of a provider do, and that it does not know. `near` finds the name that was probably meant.
    #[must_use]
    pub fn unknown_annotations<'a>(
        service: &'a Service,
        prefix: &str,
        known: &[AnnotationSpec],
        near: fn(&str, &[&'static str]) -> Option<&'static str>,
    ) -> Vec<UnknownAnnotation<'a>> {
        let ours = || {
            known
                .iter()
                .map(|spec| spec.key)
                .filter(|key| key.starts_with(prefix))
        };
        let common = ours().reduce(common_start).unwrap_or_default();
        let names: Vec<&'static str> = ours().map(|key| &key[common.len()..]).collect();
        let meant = |key: &str| {
            let name = near(key.strip_prefix(common).unwrap_or(&key[prefix.len()..]), &names)?;
            ours().find(|key| &key[common.len()..] == name)
        };
        let keys = service.metadata.annotations.iter().flatten().map(|(key, _)| key);
        keys.filter(|key| key.starts_with(prefix) && known.iter().all(|spec| spec.key != *key))
            .map(|key| UnknownAnnotation {
                key,
                meant: meant(key),
            })
            .collect()
    }

    /// An annotation that begins as those of a provider do, and that it does not know. It is shown with the one that was probably meant.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct UnknownAnnotation<'a> {
        /// As it is written.
        pub key: &'a str,
        /// The one that was probably meant.
        pub meant: Option<&'static str>,
    }

    impl std::fmt::Display for UnknownAnnotation<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            match self.meant {
                Some(meant) => write!(f, "{} (did you mean {meant}?)", self.key),
                None => f.write_str(self.key),
            }
        }
    }

    fn common_start(one: &'static str, other: &'static str) -> &'static str {
        let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
        &one[..same.count()]
    }

    /// Whether an annotation restricts who may connect that stood for `spec.loadBalancerSourceRanges` before that was a field, and
    /// counts where the field is empty. Not every cloud reads it.
    #[must_use]
    pub fn has_source_ranges_annotation(service: &Service) -> bool {
        let spec = service.spec.as_ref();
        let ranges = spec.and_then(|spec| spec.load_balancer_source_ranges.as_ref());
        ranges.is_none_or(Vec::is_empty)
            && annotation(service, crate::keys::ANNOTATION_LOAD_BALANCER_SOURCE_RANGES)
                .is_some_and(|text| !text.trim().is_empty())
    }

    /// The addresses and host names that the Service's status shows now.
    #[must_use]
    pub fn published_addresses(service: &Service) -> Vec<String> {
        let ingress = service
            .status
            .as_ref()
            .and_then(|status| status.load_balancer.as_ref());
        ingress
            .and_then(|balancer| balancer.ingress.as_deref())
            .unwrap_or_default()
            .iter()
            .filter_map(|entry| entry.ip.clone().or_else(|| entry.hostname.clone()))
            .collect()
    }

    /// Whether the API server takes a text as the host name of a status: a subdomain of RFC 1123, and no address.
    #[must_use]
    pub fn is_hostname(text: &str) -> bool {
        crate::classes::is_subdomain(text) && text.parse::<IpAddr>().is_err()
    }

    /// `spec.loadBalancerIP` as an address; `None` if it is empty.
    ///
    /// # Errors
    ///
    /// The text, if it is not an IP address.
    pub fn load_balancer_ip(service: &Service) -> Result<Option<IpAddr>, String> {
        match service
            .spec
            .as_ref()
            .and_then(|spec| spec.load_balancer_ip.as_deref())
            .unwrap_or_default()
        {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| text.to_owned()),
        }
    }

    /// Whether `spec.type` is this one.
    #[must_use]
    pub fn is_type(service: &Service, kind: &str) -> bool {
        service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some(kind)
    }
}
