//! The fields of the API's messages: their names, Go types and protobuf numbers, and when they are left out, as the tags
//! of `k8s.io/api` 0.36 declare them.

use Shape::{Bool, BytesMap, Int, IntOrText, Long, Message, MicroTime, QuantityMap, Text, TextMap, Time};

/// What stands in a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    Text,
    /// `int32`.
    Int,
    /// `int64`.
    Long,
    Bool,
    Time,
    MicroTime,
    IntOrText,
    TextMap,
    BytesMap,
    QuantityMap,
    Message(&'static Fields),
}

/// When a field is written to JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Whenever it is sent: pointers and fields without `omitempty`.
    Kept,
    /// Unless it is zero: `omitempty` on a plain Go type.
    Plain,
    /// As an element of a list.
    Many,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) number: u64,
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) presence: Presence,
}

/// A message.
#[derive(Debug)]
pub(crate) struct Fields {
    /// Its Go type in capitals: `SERVICE_PORT`.
    name: &'static str,
    pub(crate) fields: &'static [Field],
}

impl Fields {
    /// Its Go type: `ServicePort`.
    pub(crate) fn go_name(&self) -> String {
        let words = self.name.split('_').map(|word| match word {
            "IP" => word.to_owned(),
            _ => format!("{}{}", &word[..1], word[1..].to_lowercase()),
        });
        words.collect()
    }
}

/// An object of a kind; metadata alone where no more is declared.
pub(crate) fn of(kind: &str) -> Shape {
    root(kind).unwrap_or(OBJECT)
}

/// An object of a kind that may come in as protobuf.
pub(crate) fn root(kind: &str) -> Option<Shape> {
    let found = ROOTS.iter().find(|(name, _)| *name == kind);
    found.map(|(_, shape)| *shape)
}

/// Messages of the kinds that come in as protobuf.
const ROOTS: &[(&str, Shape)] = &[
    ("Node", NODE),
    ("Service", SERVICE),
    ("Event", EVENT),
    ("Namespace", NAMESPACE),
    ("ConfigMap", CONFIG_MAP),
    ("ServiceAccount", SERVICE_ACCOUNT),
    ("Lease", LEASE),
    ("TokenReview", TOKEN_REVIEW),
    ("TokenRequest", TOKEN_REQUEST),
    ("SubjectAccessReview", SUBJECT_ACCESS_REVIEW),
    ("SelfSubjectAccessReview", SELF_SUBJECT_ACCESS_REVIEW),
    ("DeleteOptions", DELETE_OPTIONS),
];

/// Declares messages: of each field the number, the name, and what stands in it. In round brackets stands what is
/// [plain](Presence::Plain), in square ones what is in a [list](Presence::Many); all else is [kept](Presence::Kept).
macro_rules! messages {
    ($($message:ident { $($number:literal $name:tt: $shape:tt),+ $(,)? })+) => {
        $(const $message: Shape = Message(&Fields {
            name: stringify!($message),
            fields: &[$(field!($number $name $shape)),+],
        });)+
    };
}

macro_rules! field {
    ($number:literal $name:tt ($shape:ident)) => { field!($number $name $shape Plain) };
    ($number:literal $name:tt [$shape:ident]) => { field!($number $name $shape Many) };
    ($number:literal $name:tt $shape:ident) => { field!($number $name $shape Kept) };
    ($number:literal $name:tt $shape:ident $presence:ident) => {
        Field { number: $number, name: stringify!($name), shape: $shape, presence: Presence::$presence }
    };
}

messages! {
    OWNER_REFERENCE {
        1 kind: Text, 3 name: Text, 4 uid: Text, 5 apiVersion: Text, 6 controller: Bool,
        7 blockOwnerDeletion: Bool,
    }
    OBJECT_META {
        1 name: (Text), 2 generateName: (Text), 3 namespace: (Text), 4 selfLink: (Text), 5 uid: (Text),
        6 resourceVersion: (Text), 7 generation: (Long), 8 creationTimestamp: (Time),
        9 deletionTimestamp: Time, 10 deletionGracePeriodSeconds: Long, 11 labels: (TextMap),
        12 annotations: (TextMap), 13 ownerReferences: [OWNER_REFERENCE], 14 finalizers: [Text],
    }
    OBJECT { 1 metadata: (OBJECT_META) }
    TAINT { 1 key: Text, 2 value: (Text), 3 effect: Text, 4 timeAdded: Time }
    NODE_SPEC {
        1 podCIDR: (Text), 2 externalID: (Text), 3 providerID: (Text), 4 unschedulable: (Bool),
        5 taints: [TAINT], 7 podCIDRs: [Text],
    }
    NODE_CONDITION {
        1 type: Text, 2 status: Text, 3 lastHeartbeatTime: (Time), 4 lastTransitionTime: (Time),
        5 reason: (Text), 6 message: (Text),
    }
    NODE_ADDRESS { 1 type: Text, 2 address: Text }
    DAEMON_ENDPOINT { 1 Port: Int }
    NODE_DAEMON_ENDPOINTS { 1 kubeletEndpoint: (DAEMON_ENDPOINT) }
    NODE_SWAP_STATUS { 1 capacity: Long }
    NODE_SYSTEM_INFO {
        1 machineID: Text, 2 systemUUID: Text, 3 bootID: Text, 4 kernelVersion: Text, 5 osImage: Text,
        6 containerRuntimeVersion: Text, 7 kubeletVersion: Text, 8 kubeProxyVersion: Text,
        9 operatingSystem: Text, 10 architecture: Text, 11 swap: NODE_SWAP_STATUS,
    }
    CONTAINER_IMAGE { 1 names: [Text], 2 sizeBytes: (Long) }
    ATTACHED_VOLUME { 1 name: Text, 2 devicePath: Text }
    NODE_RUNTIME_HANDLER_FEATURES { 1 recursiveReadOnlyMounts: Bool, 2 userNamespaces: Bool }
    NODE_RUNTIME_HANDLER { 1 name: Text, 2 features: NODE_RUNTIME_HANDLER_FEATURES }
    NODE_FEATURES { 1 supplementalGroupsPolicy: Bool }
    NODE_STATUS {
        1 capacity: (QuantityMap), 2 allocatable: (QuantityMap), 3 phase: (Text),
        4 conditions: [NODE_CONDITION], 5 addresses: [NODE_ADDRESS],
        6 daemonEndpoints: (NODE_DAEMON_ENDPOINTS), 7 nodeInfo: (NODE_SYSTEM_INFO),
        8 images: [CONTAINER_IMAGE], 9 volumesInUse: [Text], 10 volumesAttached: [ATTACHED_VOLUME],
        12 runtimeHandlers: [NODE_RUNTIME_HANDLER], 13 features: NODE_FEATURES, 14 declaredFeatures: [Text],
    }
    NODE { 1 metadata: (OBJECT_META), 2 spec: (NODE_SPEC), 3 status: (NODE_STATUS) }
    SERVICE_PORT {
        1 name: (Text), 2 protocol: (Text), 3 port: Int, 4 targetPort: (IntOrText), 5 nodePort: (Int),
        6 appProtocol: Text,
    }
    CLIENT_IP_CONFIG { 1 timeoutSeconds: Int }
    SESSION_AFFINITY_CONFIG { 1 clientIP: CLIENT_IP_CONFIG }
    SERVICE_SPEC {
        1 ports: [SERVICE_PORT], 2 selector: (TextMap), 3 clusterIP: (Text), 4 type: (Text),
        5 externalIPs: [Text], 7 sessionAffinity: (Text), 8 loadBalancerIP: (Text),
        9 loadBalancerSourceRanges: [Text], 10 externalName: (Text), 11 externalTrafficPolicy: (Text),
        12 healthCheckNodePort: (Int), 13 publishNotReadyAddresses: (Bool),
        14 sessionAffinityConfig: SESSION_AFFINITY_CONFIG, 17 ipFamilyPolicy: Text, 18 clusterIPs: [Text],
        19 ipFamilies: [Text], 20 allocateLoadBalancerNodePorts: Bool, 21 loadBalancerClass: Text,
        22 internalTrafficPolicy: Text, 23 trafficDistribution: Text,
    }
    PORT_STATUS { 1 port: Int, 2 protocol: Text, 3 error: Text }
    LOAD_BALANCER_INGRESS { 1 ip: (Text), 2 hostname: (Text), 3 ipMode: Text, 4 ports: [PORT_STATUS] }
    LOAD_BALANCER_STATUS { 1 ingress: [LOAD_BALANCER_INGRESS] }
    CONDITION {
        1 type: Text, 2 status: Text, 3 observedGeneration: (Long), 4 lastTransitionTime: Time, 5 reason: Text,
        6 message: Text,
    }
    SERVICE_STATUS { 1 loadBalancer: (LOAD_BALANCER_STATUS), 2 conditions: [CONDITION] }
    SERVICE { 1 metadata: (OBJECT_META), 2 spec: (SERVICE_SPEC), 3 status: (SERVICE_STATUS) }
    OBJECT_REFERENCE {
        1 kind: (Text), 2 namespace: (Text), 3 name: (Text), 4 uid: (Text), 5 apiVersion: (Text),
        6 resourceVersion: (Text), 7 fieldPath: (Text),
    }
    EVENT_SOURCE { 1 component: (Text), 2 host: (Text) }
    EVENT_SERIES { 1 count: (Int), 2 lastObservedTime: (MicroTime) }
    EVENT {
        1 metadata: OBJECT_META, 2 involvedObject: OBJECT_REFERENCE, 3 reason: (Text), 4 message: (Text),
        5 source: (EVENT_SOURCE), 6 firstTimestamp: (Time), 7 lastTimestamp: (Time), 8 count: (Int),
        9 type: (Text), 10 eventTime: (MicroTime), 11 series: EVENT_SERIES, 12 action: (Text),
        13 related: OBJECT_REFERENCE, 14 reportingComponent: Text, 15 reportingInstance: Text,
    }
    NAMESPACE_SPEC { 1 finalizers: [Text] }
    NAMESPACE_CONDITION {
        1 type: Text, 2 status: Text, 4 lastTransitionTime: (Time), 5 reason: (Text), 6 message: (Text),
    }
    NAMESPACE_STATUS { 1 phase: (Text), 2 conditions: [NAMESPACE_CONDITION] }
    NAMESPACE { 1 metadata: (OBJECT_META), 2 spec: (NAMESPACE_SPEC), 3 status: (NAMESPACE_STATUS) }
    CONFIG_MAP { 1 metadata: (OBJECT_META), 2 data: (TextMap), 3 binaryData: (BytesMap), 4 immutable: Bool }
    LOCAL_OBJECT_REFERENCE { 1 name: (Text) }
    SERVICE_ACCOUNT {
        1 metadata: (OBJECT_META), 2 secrets: [OBJECT_REFERENCE],
        3 imagePullSecrets: [LOCAL_OBJECT_REFERENCE], 4 automountServiceAccountToken: Bool,
    }
    LEASE_SPEC {
        1 holderIdentity: Text, 2 leaseDurationSeconds: Int, 3 acquireTime: MicroTime, 4 renewTime: MicroTime,
        5 leaseTransitions: Int, 6 strategy: Text, 7 preferredHolder: Text,
    }
    LEASE { 1 metadata: (OBJECT_META), 2 spec: (LEASE_SPEC) }
    TOKEN_REVIEW_SPEC { 1 token: (Text), 2 audiences: [Text] }
    USER_INFO { 1 username: (Text), 2 uid: (Text), 3 groups: [Text] }
    TOKEN_REVIEW_STATUS { 1 authenticated: (Bool), 2 user: (USER_INFO), 3 error: (Text), 4 audiences: [Text] }
    TOKEN_REVIEW { 1 metadata: (OBJECT_META), 2 spec: TOKEN_REVIEW_SPEC, 3 status: (TOKEN_REVIEW_STATUS) }
    BOUND_OBJECT_REFERENCE { 1 kind: (Text), 2 apiVersion: (Text), 3 name: (Text), 4 uid: (Text) }
    TOKEN_REQUEST_SPEC {
        1 audiences: [Text], 3 boundObjectRef: BOUND_OBJECT_REFERENCE, 4 expirationSeconds: Long,
    }
    TOKEN_REQUEST_STATUS { 1 token: Text, 2 expirationTimestamp: Time }
    TOKEN_REQUEST { 1 metadata: (OBJECT_META), 2 spec: TOKEN_REQUEST_SPEC, 3 status: (TOKEN_REQUEST_STATUS) }
    SELECTOR_REQUIREMENT { 1 key: Text, 2 operator: Text, 3 values: [Text] }
    SELECTOR_ATTRIBUTES { 1 rawSelector: (Text), 2 requirements: [SELECTOR_REQUIREMENT] }
    RESOURCE_ATTRIBUTES {
        1 namespace: (Text), 2 verb: (Text), 3 group: (Text), 4 version: (Text), 5 resource: (Text),
        6 subresource: (Text), 7 name: (Text), 8 fieldSelector: SELECTOR_ATTRIBUTES,
        9 labelSelector: SELECTOR_ATTRIBUTES,
    }
    NON_RESOURCE_ATTRIBUTES { 1 path: (Text), 2 verb: (Text) }
    SUBJECT_ACCESS_REVIEW_SPEC {
        1 resourceAttributes: RESOURCE_ATTRIBUTES, 2 nonResourceAttributes: NON_RESOURCE_ATTRIBUTES,
        3 user: (Text), 4 groups: [Text], 6 uid: (Text),
    }
    SUBJECT_ACCESS_REVIEW_STATUS {
        1 allowed: Bool, 2 reason: (Text), 3 evaluationError: (Text), 4 denied: (Bool),
    }
    SUBJECT_ACCESS_REVIEW {
        1 metadata: (OBJECT_META), 2 spec: SUBJECT_ACCESS_REVIEW_SPEC,
        3 status: (SUBJECT_ACCESS_REVIEW_STATUS),
    }
    SELF_SUBJECT_ACCESS_REVIEW_SPEC {
        1 resourceAttributes: RESOURCE_ATTRIBUTES, 2 nonResourceAttributes: NON_RESOURCE_ATTRIBUTES,
    }
    SELF_SUBJECT_ACCESS_REVIEW {
        1 metadata: (OBJECT_META), 2 spec: SELF_SUBJECT_ACCESS_REVIEW_SPEC,
        3 status: (SUBJECT_ACCESS_REVIEW_STATUS),
    }
    PRECONDITIONS { 1 uid: Text, 2 resourceVersion: Text }
    DELETE_OPTIONS {
        1 gracePeriodSeconds: Long, 2 preconditions: PRECONDITIONS, 3 orphanDependents: Bool,
        4 propagationPolicy: Text, 5 dryRun: [Text], 6 ignoreStoreReadErrorWithClusterBreakingPotential: Bool,
    }
}
