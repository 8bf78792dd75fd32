//! Field numbers of the API's protobuf messages, as the `protobuf` tags of `k8s.io/api` 0.36 declare them.

use super::Shape::{Bool, BytesMap, Int, IntOrText, Message, MicroTime, QuantityMap, Text, TextMap, Time};
use super::{Field, kept, many, plain};

/// Messages of the kinds that come in as protobuf.
pub(super) const ROOTS: &[(&str, &[Field])] = &[
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

const OWNER_REFERENCE: &[Field] = &[
    kept(1, "kind", Text),
    kept(3, "name", Text),
    kept(4, "uid", Text),
    kept(5, "apiVersion", Text),
    kept(6, "controller", Bool),
    kept(7, "blockOwnerDeletion", Bool),
];

const OBJECT_META: &[Field] = &[
    plain(1, "name", Text),
    plain(2, "generateName", Text),
    plain(3, "namespace", Text),
    plain(4, "selfLink", Text),
    plain(5, "uid", Text),
    plain(6, "resourceVersion", Text),
    plain(7, "generation", Int),
    plain(8, "creationTimestamp", Time),
    kept(9, "deletionTimestamp", Time),
    kept(10, "deletionGracePeriodSeconds", Int),
    plain(11, "labels", TextMap),
    plain(12, "annotations", TextMap),
    many(13, "ownerReferences", Message(OWNER_REFERENCE)),
    many(14, "finalizers", Text),
];

const TAINT: &[Field] = &[
    kept(1, "key", Text),
    plain(2, "value", Text),
    kept(3, "effect", Text),
    kept(4, "timeAdded", Time),
];

const NODE_SPEC: &[Field] = &[
    plain(1, "podCIDR", Text),
    plain(2, "externalID", Text),
    plain(3, "providerID", Text),
    plain(4, "unschedulable", Bool),
    many(5, "taints", Message(TAINT)),
    many(7, "podCIDRs", Text),
];

const NODE_CONDITION: &[Field] = &[
    kept(1, "type", Text),
    kept(2, "status", Text),
    plain(3, "lastHeartbeatTime", Time),
    plain(4, "lastTransitionTime", Time),
    plain(5, "reason", Text),
    plain(6, "message", Text),
];

const NODE_ADDRESS: &[Field] = &[kept(1, "type", Text), kept(2, "address", Text)];

const DAEMON_ENDPOINT: &[Field] = &[kept(1, "Port", Int)];

const NODE_DAEMON_ENDPOINTS: &[Field] = &[plain(1, "kubeletEndpoint", Message(DAEMON_ENDPOINT))];

const NODE_SWAP_STATUS: &[Field] = &[kept(1, "capacity", Int)];

const NODE_SYSTEM_INFO: &[Field] = &[
    kept(1, "machineID", Text),
    kept(2, "systemUUID", Text),
    kept(3, "bootID", Text),
    kept(4, "kernelVersion", Text),
    kept(5, "osImage", Text),
    kept(6, "containerRuntimeVersion", Text),
    kept(7, "kubeletVersion", Text),
    kept(8, "kubeProxyVersion", Text),
    kept(9, "operatingSystem", Text),
    kept(10, "architecture", Text),
    kept(11, "swap", Message(NODE_SWAP_STATUS)),
];

const CONTAINER_IMAGE: &[Field] = &[many(1, "names", Text), plain(2, "sizeBytes", Int)];

const ATTACHED_VOLUME: &[Field] = &[kept(1, "name", Text), kept(2, "devicePath", Text)];

const NODE_RUNTIME_HANDLER_FEATURES: &[Field] = &[
    kept(1, "recursiveReadOnlyMounts", Bool),
    kept(2, "userNamespaces", Bool),
];

const NODE_RUNTIME_HANDLER: &[Field] = &[
    kept(1, "name", Text),
    kept(2, "features", Message(NODE_RUNTIME_HANDLER_FEATURES)),
];

const NODE_FEATURES: &[Field] = &[kept(1, "supplementalGroupsPolicy", Bool)];

const NODE_STATUS: &[Field] = &[
    plain(1, "capacity", QuantityMap),
    plain(2, "allocatable", QuantityMap),
    plain(3, "phase", Text),
    many(4, "conditions", Message(NODE_CONDITION)),
    many(5, "addresses", Message(NODE_ADDRESS)),
    plain(6, "daemonEndpoints", Message(NODE_DAEMON_ENDPOINTS)),
    plain(7, "nodeInfo", Message(NODE_SYSTEM_INFO)),
    many(8, "images", Message(CONTAINER_IMAGE)),
    many(9, "volumesInUse", Text),
    many(10, "volumesAttached", Message(ATTACHED_VOLUME)),
    many(12, "runtimeHandlers", Message(NODE_RUNTIME_HANDLER)),
    kept(13, "features", Message(NODE_FEATURES)),
    many(14, "declaredFeatures", Text),
];

const NODE: &[Field] = &[
    plain(1, "metadata", Message(OBJECT_META)),
    plain(2, "spec", Message(NODE_SPEC)),
    plain(3, "status", Message(NODE_STATUS)),
];

const SERVICE_PORT: &[Field] = &[
    plain(1, "name", Text),
    plain(2, "protocol", Text),
    kept(3, "port", Int),
    plain(4, "targetPort", IntOrText),
    plain(5, "nodePort", Int),
    kept(6, "appProtocol", Text),
];

const CLIENT_IP_CONFIG: &[Field] = &[kept(1, "timeoutSeconds", Int)];

const SESSION_AFFINITY_CONFIG: &[Field] = &[kept(1, "clientIP", Message(CLIENT_IP_CONFIG))];

const SERVICE_SPEC: &[Field] = &[
    many(1, "ports", Message(SERVICE_PORT)),
    plain(2, "selector", TextMap),
    plain(3, "clusterIP", Text),
    plain(4, "type", Text),
    many(5, "externalIPs", Text),
    plain(7, "sessionAffinity", Text),
    plain(8, "loadBalancerIP", Text),
    many(9, "loadBalancerSourceRanges", Text),
    plain(10, "externalName", Text),
    plain(11, "externalTrafficPolicy", Text),
    plain(12, "healthCheckNodePort", Int),
    plain(13, "publishNotReadyAddresses", Bool),
    kept(14, "sessionAffinityConfig", Message(SESSION_AFFINITY_CONFIG)),
    kept(17, "ipFamilyPolicy", Text),
    many(18, "clusterIPs", Text),
    many(19, "ipFamilies", Text),
    kept(20, "allocateLoadBalancerNodePorts", Bool),
    kept(21, "loadBalancerClass", Text),
    kept(22, "internalTrafficPolicy", Text),
    kept(23, "trafficDistribution", Text),
];

const PORT_STATUS: &[Field] = &[
    kept(1, "port", Int),
    kept(2, "protocol", Text),
    kept(3, "error", Text),
];

const LOAD_BALANCER_INGRESS: &[Field] = &[
    plain(1, "ip", Text),
    plain(2, "hostname", Text),
    kept(3, "ipMode", Text),
    many(4, "ports", Message(PORT_STATUS)),
];

const LOAD_BALANCER_STATUS: &[Field] = &[many(1, "ingress", Message(LOAD_BALANCER_INGRESS))];

const CONDITION: &[Field] = &[
    kept(1, "type", Text),
    kept(2, "status", Text),
    plain(3, "observedGeneration", Int),
    kept(4, "lastTransitionTime", Time),
    kept(5, "reason", Text),
    kept(6, "message", Text),
];

const SERVICE_STATUS: &[Field] = &[
    plain(1, "loadBalancer", Message(LOAD_BALANCER_STATUS)),
    many(2, "conditions", Message(CONDITION)),
];

const SERVICE: &[Field] = &[
    plain(1, "metadata", Message(OBJECT_META)),
    plain(2, "spec", Message(SERVICE_SPEC)),
    plain(3, "status", Message(SERVICE_STATUS)),
];

const OBJECT_REFERENCE: &[Field] = &[
    plain(1, "kind", Text),
    plain(2, "namespace", Text),
    plain(3, "name", Text),
    plain(4, "uid", Text),
    plain(5, "apiVersion", Text),
    plain(6, "resourceVersion", Text),
    plain(7, "fieldPath", Text),
];

const EVENT_SOURCE: &[Field] = &[plain(1, "component", Text), plain(2, "host", Text)];

const EVENT_SERIES: &[Field] = &[plain(1, "count", Int), plain(2, "lastObservedTime", MicroTime)];

const EVENT: &[Field] = &[
    kept(1, "metadata", Message(OBJECT_META)),
    kept(2, "involvedObject", Message(OBJECT_REFERENCE)),
    plain(3, "reason", Text),
    plain(4, "message", Text),
    plain(5, "source", Message(EVENT_SOURCE)),
    plain(6, "firstTimestamp", Time),
    plain(7, "lastTimestamp", Time),
    plain(8, "count", Int),
    plain(9, "type", Text),
    plain(10, "eventTime", MicroTime),
    kept(11, "series", Message(EVENT_SERIES)),
    plain(12, "action", Text),
    kept(13, "related", Message(OBJECT_REFERENCE)),
    kept(14, "reportingComponent", Text),
    kept(15, "reportingInstance", Text),
];

const NAMESPACE_SPEC: &[Field] = &[many(1, "finalizers", Text)];

const NAMESPACE_CONDITION: &[Field] = &[
    kept(1, "type", Text),
    kept(2, "status", Text),
    plain(4, "lastTransitionTime", Time),
    plain(5, "reason", Text),
    plain(6, "message", Text),
];

const NAMESPACE_STATUS: &[Field] = &[
    plain(1, "phase", Text),
    many(2, "conditions", Message(NAMESPACE_CONDITION)),
];

const NAMESPACE: &[Field] = &[
    plain(1, "metadata", Message(OBJECT_META)),
    plain(2, "spec", Message(NAMESPACE_SPEC)),
    plain(3, "status", Message(NAMESPACE_STATUS)),
];

const CONFIG_MAP: &[Field] = &[
    plain(1, "metadata", Message(OBJECT_META)),
    plain(2, "data", TextMap),
    plain(3, "binaryData", BytesMap),
    kept(4, "immutable", Bool),
];

const LOCAL_OBJECT_REFERENCE: &[Field] = &[plain(1, "name", Text)];

const SERVICE_ACCOUNT: &[Field] = &[
    plain(1, "metadata", Message(OBJECT_META)),
    many(2, "secrets", Message(OBJECT_REFERENCE)),
    many(3, "imagePullSecrets", Message(LOCAL_OBJECT_REFERENCE)),
    kept(4, "automountServiceAccountToken", Bool),
];

const LEASE_SPEC: &[Field] = &[
    kept(1, "holderIdentity", Text),
    kept(2, "leaseDurationSeconds", Int),
    kept(3, "acquireTime", MicroTime),
    kept(4, "renewTime", MicroTime),
    kept(5, "leaseTransitions", Int),
    kept(6, "strategy", Text),
    kept(7, "preferredHolder", Text),
];

const LEASE: &[Field] = &[
    plain(1, "metadata", Message(OBJECT_META)),
    plain(2, "spec", Message(LEASE_SPEC)),
];

const TOKEN_REVIEW_SPEC: &[Field] = &[plain(1, "token", Text), many(2, "audiences", Text)];

const USER_INFO: &[Field] = &[
    plain(1, "username", Text),
    plain(2, "uid", Text),
    many(3, "groups", Text),
];

const TOKEN_REVIEW_STATUS: &[Field] = &[
    plain(1, "authenticated", Bool),
    plain(2, "user", Message(USER_INFO)),
    plain(3, "error", Text),
    many(4, "audiences", Text),
];

const TOKEN_REVIEW: &[Field] = &[
    plain(1, "metadata", Message(OBJECT_META)),
    kept(2, "spec", Message(TOKEN_REVIEW_SPEC)),
    plain(3, "status", Message(TOKEN_REVIEW_STATUS)),
];

const BOUND_OBJECT_REFERENCE: &[Field] = &[
    plain(1, "kind", Text),
    plain(2, "apiVersion", Text),
    plain(3, "name", Text),
    plain(4, "uid", Text),
];

const TOKEN_REQUEST_SPEC: &[Field] = &[
    many(1, "audiences", Text),
    kept(3, "boundObjectRef", Message(BOUND_OBJECT_REFERENCE)),
    kept(4, "expirationSeconds", Int),
];

const TOKEN_REQUEST_STATUS: &[Field] = &[kept(1, "token", Text), kept(2, "expirationTimestamp", Time)];

const TOKEN_REQUEST: &[Field] = &[
    plain(1, "metadata", Message(OBJECT_META)),
    kept(2, "spec", Message(TOKEN_REQUEST_SPEC)),
    plain(3, "status", Message(TOKEN_REQUEST_STATUS)),
];

const FIELD_SELECTOR_REQUIREMENT: &[Field] = &[
    kept(1, "key", Text),
    kept(2, "operator", Text),
    many(3, "values", Text),
];

const FIELD_SELECTOR_ATTRIBUTES: &[Field] = &[
    plain(1, "rawSelector", Text),
    many(2, "requirements", Message(FIELD_SELECTOR_REQUIREMENT)),
];

const LABEL_SELECTOR_REQUIREMENT: &[Field] = &[
    kept(1, "key", Text),
    kept(2, "operator", Text),
    many(3, "values", Text),
];

const LABEL_SELECTOR_ATTRIBUTES: &[Field] = &[
    plain(1, "rawSelector", Text),
    many(2, "requirements", Message(LABEL_SELECTOR_REQUIREMENT)),
];

const RESOURCE_ATTRIBUTES: &[Field] = &[
    plain(1, "namespace", Text),
    plain(2, "verb", Text),
    plain(3, "group", Text),
    plain(4, "version", Text),
    plain(5, "resource", Text),
    plain(6, "subresource", Text),
    plain(7, "name", Text),
    kept(8, "fieldSelector", Message(FIELD_SELECTOR_ATTRIBUTES)),
    kept(9, "labelSelector", Message(LABEL_SELECTOR_ATTRIBUTES)),
];

const NON_RESOURCE_ATTRIBUTES: &[Field] = &[plain(1, "path", Text), plain(2, "verb", Text)];

const SUBJECT_ACCESS_REVIEW_SPEC: &[Field] = &[
    kept(1, "resourceAttributes", Message(RESOURCE_ATTRIBUTES)),
    kept(2, "nonResourceAttributes", Message(NON_RESOURCE_ATTRIBUTES)),
    plain(3, "user", Text),
    many(4, "groups", Text),
    plain(6, "uid", Text),
];

const SUBJECT_ACCESS_REVIEW_STATUS: &[Field] = &[
    kept(1, "allowed", Bool),
    plain(2, "reason", Text),
    plain(3, "evaluationError", Text),
    plain(4, "denied", Bool),
];

const SUBJECT_ACCESS_REVIEW: &[Field] = &[
    plain(1, "metadata", Message(OBJECT_META)),
    kept(2, "spec", Message(SUBJECT_ACCESS_REVIEW_SPEC)),
    plain(3, "status", Message(SUBJECT_ACCESS_REVIEW_STATUS)),
];

const SELF_SUBJECT_ACCESS_REVIEW_SPEC: &[Field] = &[
    kept(1, "resourceAttributes", Message(RESOURCE_ATTRIBUTES)),
    kept(2, "nonResourceAttributes", Message(NON_RESOURCE_ATTRIBUTES)),
];

const SELF_SUBJECT_ACCESS_REVIEW: &[Field] = &[
    plain(1, "metadata", Message(OBJECT_META)),
    kept(2, "spec", Message(SELF_SUBJECT_ACCESS_REVIEW_SPEC)),
    plain(3, "status", Message(SUBJECT_ACCESS_REVIEW_STATUS)),
];

const PRECONDITIONS: &[Field] = &[kept(1, "uid", Text), kept(2, "resourceVersion", Text)];

const DELETE_OPTIONS: &[Field] = &[
    kept(1, "gracePeriodSeconds", Int),
    kept(2, "preconditions", Message(PRECONDITIONS)),
    kept(3, "orphanDependents", Bool),
    kept(4, "propagationPolicy", Text),
    many(5, "dryRun", Text),
    kept(6, "ignoreStoreReadErrorWithClusterBreakingPotential", Bool),
];
