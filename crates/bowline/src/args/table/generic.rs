//! Flags of the loops, the client and the process.

use super::super::flag::Flag;
use super::super::value::Kind;

pub(super) static GENERIC: &[Flag] = &[
    Flag::new("allocate-node-cidrs", Kind::Bool, "false", "Give pod networks to Nodes here, by the loop node-ipam-controller. Normally kube-controller-manager does: two of them give networks twice."),
    Flag::new("allow-untagged-cloud", Kind::Bool, "false", "Run with a provider that does not mark what belongs to a cluster. This warns; without the flag it is fatal.").deprecated().hidden(),
    Flag::new("cidr-allocator-type", Kind::Text, "RangeAllocator", "Which allocator gives pod networks to Nodes, with --allocate-node-cidrs. Only RangeAllocator is supported."),
    Flag::new("cloud-config", Kind::Text, "", "The provider's configuration file. Empty for none."),
    Flag::new("cloud-provider", Kind::Text, "", "The provider. Required."),
    Flag::new("cluster-cidr", Kind::Text, "", "The pod network of the cluster, or one of each family. The route loop needs it: routes to other destinations are never deleted. Node IPAM gives networks from it."),
    Flag::new("cluster-name", Kind::Text, "kubernetes", "The cluster's name, for the names and marks of what is made in the cloud. Two clusters in one project need different names."),
    Flag::new("configure-cloud-routes", Kind::Bool, "true", "Whether routes to pod networks are kept in the cloud, where the provider has routes."),
    Flag::new("controller-start-interval", Kind::Duration, "0s", "A pause of once to twice this between the starts of two loops.").accepted(),
    Flag::new("controllers", Kind::List, "*", "The loops to run: '*' all, 'NAME' this one, '-NAME' not this one; the first entry that matches decides. Names: cloud-node-controller (cloud-node), cloud-node-lifecycle-controller (cloud-node-lifecycle), service-lb-controller (service), node-route-controller (route), node-ipam-controller (nodeipam, only with --allocate-node-cidrs)."),
    Flag::new("external-cloud-volume-plugin", Kind::Text, "", "Belongs to kube-controller-manager.").accepted(),
    Flag::new("feature-gates", Kind::Gates, "", "Switches for features in the making, as Name=true or Name=false."),
    Flag::new("kube-api-burst", Kind::Int, "30", "Requests to the API server that may begin at once after a pause. Paces only when this or --kube-api-qps is given; else requests in flight are bounded and the server's own limits are obeyed."),
    Flag::new("kube-api-content-type", Kind::Text, "application/vnd.kubernetes.protobuf", "The content type of requests to the API server. JSON is used whatever it says.").accepted(),
    Flag::new("kube-api-qps", Kind::Float, "20", "Requests to the API server per second. Paces only when this or --kube-api-burst is given."),
    Flag::new("leader-elect", Kind::Bool, "true", "Take a lease before the loops run, so that one of several replicas leads. Without it, run one replica only."),
    Flag::new("leader-elect-lease-duration", Kind::Duration, "15s", "How long others wait after the leader's last renewal before they take over."),
    Flag::new("leader-elect-renew-deadline", Kind::Duration, "10s", "How long the leader tries to renew before it gives up. Shorter than the lease duration."),
    Flag::new("leader-elect-resource-lock", Kind::Text, "leases", "The kind of the lock. Only leases are supported."),
    Flag::new("leader-elect-resource-name", Kind::Text, "cloud-controller-manager", "The name of the lease."),
    Flag::new("leader-elect-resource-namespace", Kind::Text, "kube-system", "The namespace of the lease."),
    Flag::new("leader-elect-retry-period", Kind::Duration, "2s", "The time between two tries to take or renew the lease."),
    Flag::new("min-resync-period", Kind::Duration, "12h0m0s", "Time between two full walks over the caches. The caches here need none.").accepted(),
    Flag::new("node-cidr-mask-size", Kind::Int, "0", "The prefix length of a Node's pod network, with --allocate-node-cidrs and one cluster CIDR. 0 is 24 for IPv4 and 64 for IPv6."),
    Flag::new("node-cidr-mask-size-ipv4", Kind::Int, "0", "The prefix length of a Node's IPv4 pod network, with --allocate-node-cidrs. 0 is 24."),
    Flag::new("node-cidr-mask-size-ipv6", Kind::Int, "0", "The prefix length of a Node's IPv6 pod network, with --allocate-node-cidrs. 0 is 64; at most 16 more than the cluster CIDR's."),
    Flag::new("node-sync-period", Kind::Duration, "0s", "Does nothing, as in the framework.").accepted().hidden(),
    Flag::new("route-reconciliation-period", Kind::Duration, "10s", "How often the route loop reads all routes when nothing changes. Changes of Nodes are acted on at once whatever it is, so it may be long."),
    Flag::new("service-cluster-ip-range", Kind::Text, "", "The network of Services, or one of each family. Node IPAM gives nothing from it."),
    Flag::new("use-service-account-credentials", Kind::Bool, "false", "Each loop works under a ServiceAccount of its own in kube-system, which is made where it is missing: node-controller, service-controller, route-controller, and one that the provider names for what it writes itself."),
];

pub(super) static CLOUD_NODE: &[Flag] = &[
    Flag::new(
        "concurrent-node-status-updates",
        Kind::Int,
        "0",
        "Workers of the periodic pass over node addresses. 0 takes --concurrent-node-syncs.",
    ),
    Flag::new(
        "concurrent-node-syncs",
        Kind::Int,
        "1",
        "Workers that decide about Nodes. Waiting for the cloud occupies none of them.",
    ),
];

pub(super) static SERVICE_LB: &[Flag] = &[Flag::new(
    "concurrent-service-syncs",
    Kind::Int,
    "1",
    "Workers that decide about Services. Waiting for the cloud occupies none of them.",
)];

pub(super) static CLOUD_NODE_LIFECYCLE: &[Flag] = &[
    Flag::new(
        "concurrent-node-lifecycle-syncs",
        Kind::Int,
        "1",
        "Workers that look after Nodes that are not ready. All Nodes that are due are asked for together, whatever it says.",
    )
    .accepted(),
    Flag::new(
        "node-deletion-confirmation",
        Kind::Duration,
        "5s",
        "The least time between the two proofs that a Node's instance is gone. 0s deletes at the first one.",
    ),
    Flag::new(
        "node-deletion-share",
        Kind::Float,
        "0.2",
        "Fewer Nodes than this share of all are deleted within --node-deletion-window, but up to three in any case. 1 lets all go, 0 is no limit.",
    ),
    Flag::new(
        "node-deletion-window",
        Kind::Duration,
        "10m0s",
        "The time that --node-deletion-share is counted over.",
    ),
    Flag::new(
        "node-monitor-period",
        Kind::Duration,
        "5s",
        "The period of the node lifecycle loop: how often Nodes that are not ready are looked for in the cloud.",
    ),
];

pub(super) static PHOENIXNAP: &[Flag] = &[Flag::new(
    "base-url",
    Kind::Text,
    "",
    "Where the phoenixNAP APIs are. Empty for PNAP_BASE_URL, then `base-url` in the file of --cloud-config, then the vendor's.",
)];

pub(super) static MISC: &[Flag] = &[
    Flag::new(
        "kubeconfig",
        Kind::Text,
        "",
        "The kubeconfig file. Empty for the service account of the pod.",
    ),
    Flag::new(
        "master",
        Kind::Text,
        "",
        "The address of the API server; overrides the one in the kubeconfig.",
    ),
    Flag::new(
        "node-status-update-frequency",
        Kind::Duration,
        "5m0s",
        "The period of the pass that keeps node addresses in step with the cloud.",
    ),
];

pub(super) static LEADER_MIGRATION: &[Flag] = &[
    Flag::new(
        "enable-leader-migration",
        Kind::Bool,
        "false",
        "Take over single loops from kube-controller-manager under a second lease.",
    ),
    Flag::new(
        "leader-migration-config",
        Kind::Text,
        "",
        "The file that says which loops move. Empty for the built-in list.",
    ),
];

pub(super) static DEBUGGING: &[Flag] = &[
    Flag::new(
        "contention-profiling",
        Kind::Bool,
        "false",
        "Offer profiles of lock contention. Work waits for no locks here.",
    )
    .accepted(),
    Flag::new(
        "profiling",
        Kind::Bool,
        "true",
        "Offer profiles on the secure port under /debug/pprof/, and the verbosity of the log under /debug/flags/.",
    ),
];

pub(super) static GLOBAL: &[Flag] = &[
    of_klog("add-dir-header", Kind::Bool, "false"),
    of_klog("alsologtostderr", Kind::Bool, "false"),
    Flag::new("help", Kind::Bool, "false", "Show this text.").short('h'),
    of_klog("log-backtrace-at", Kind::Text, ":0"),
    of_klog("log-dir", Kind::Text, ""),
    of_klog("log-file", Kind::Text, ""),
    of_klog("log-file-max-size", Kind::Int, "1800"),
    Flag::new("log-flush-frequency", Kind::Duration, "5s", "The longest time that an info line stays in the buffer of a split stream. All other lines are written at once."),
    Flag::new("log-json-info-buffer-size", Kind::Quantity, "0", "The size of the buffer for info lines in JSON format, with --log-json-split-stream. 0 writes each line at once. Needs the feature gate LoggingAlphaOptions."),
    Flag::new("log-json-split-stream", Kind::Bool, "false", "Error lines to stderr and all others to stdout, in JSON format. Needs the feature gate LoggingAlphaOptions."),
    Flag::new("log-text-info-buffer-size", Kind::Quantity, "0", "The size of the buffer for info lines in text format, with --log-text-split-stream. 0 writes each line at once. Needs the feature gate LoggingAlphaOptions."),
    Flag::new("log-text-split-stream", Kind::Bool, "false", "Info lines to stdout and all others to stderr, in text format. Needs the feature gate LoggingAlphaOptions."),
    Flag::new("logging-format", Kind::Text, "text", "The form of log lines: text or json."),
    of_klog("logtostderr", Kind::Bool, "true"),
    of_klog("one-output", Kind::Bool, "false"),
    of_klog("skip-headers", Kind::Bool, "false"),
    of_klog("skip-log-headers", Kind::Bool, "false"),
    of_klog("stderrthreshold", Kind::Text, "2"),
    Flag::new("v", Kind::Int, "0", "How much is logged: from 4 on why things are done, from 6 on what is sent and received, secrets left out.").short('v'),
    Flag::new("version", Kind::Version, "", "Show the version. --version=raw shows all that is known of the build; --version=vX.Y.Z changes the reported version."),
    Flag::new("vmodule", Kind::List, "", "Verbosity of single source files, as pattern=N. In text format only."),
];

/// A flag that every Go manager had from its log library until Kubernetes 1.26, as that of CloudStack still has.
const fn of_klog(name: &'static str, kind: Kind, default: &'static str) -> Flag {
    Flag::new(
        name,
        kind,
        default,
        "Where and how the log library of managers before Kubernetes 1.26 wrote. All lines go to stderr.",
    )
    .accepted()
    .hidden()
}

pub(super) static PLAN: &[Flag] = &[
    Flag::new(
        "output",
        Kind::Text,
        "text",
        "The form of the plan: text or json.",
    )
    .short('o'),
    Flag::new(
        "service",
        Kind::List,
        "",
        "Plan only for these Services, as namespace/name. Empty for all that ask for a load balancer.",
    ),
];
