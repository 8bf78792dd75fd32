//! Flags of the controllers, the client and the process.

use super::super::flag::Flag;
use super::super::value::Kind;

pub(super) static GENERIC: &[Flag] = &[
    Flag::new("allocate-node-cidrs", Kind::Bool, "false", "Run node-ipam-controller, which gives pod networks to Nodes. Normally kube-controller-manager does that. Leave it off then: two of them give one network to two Nodes. For OpenStack it runs only where --controllers names it."),
    Flag::new("allow-untagged-cloud", Kind::Bool, "false", "Run with a provider that does not mark what belongs to a cluster. With the flag this is a warning, without it an error that ends the process.").deprecated().hidden(),
    Flag::new("cidr-allocator-type", Kind::Text, "RangeAllocator", "Which allocator gives pod networks to Nodes, with --allocate-node-cidrs. Only RangeAllocator is supported."),
    Flag::new("cloud-config", Kind::Text, "", "The configuration file of the provider. Empty for none. With several providers CLOUD=PATH, with commas between."),
    Flag::new("cloud-provider", Kind::Text, "", "The provider. Required. Several with commas between: a Node is of the cloud whose scheme its provider ID bears, and Services without a class are of the first one."),
    Flag::new("cloud-provider-platforms", Kind::List, "", "The schemes of the provider IDs of the Nodes that this manager looks after; '*' for all. If empty, those of the provider. Needs the feature gate CloudProviderNodeOwnership."),
    Flag::new("cluster-cidr", Kind::Text, "", "The pod network of the cluster, or two of them, one for IPv4 and one for IPv6. The route controller needs it: routes to other destinations are never deleted. node-ipam-controller gives networks from it."),
    Flag::new("cluster-name", Kind::Text, "kubernetes", "The name of the cluster. It becomes part of names and marks of objects in the cloud, so two clusters in one project need different names."),
    Flag::new("configure-cloud-routes", Kind::Bool, "true", "Run the route controller, if the provider has routes. It keeps a route to each Node's pod network in the cloud."),
    Flag::new("controller-start-interval", Kind::Duration, "0s", "The pause between the starts of two controllers: once to twice this duration.").accepted(),
    Flag::new("controllers", Kind::List, "*", "The controllers to run: 'NAME' this one, '-NAME' not this one, '*' all others, wherever it stands. Of two entries for one name the first decides. Names: cloud-node-controller (cloud-node), cloud-node-lifecycle-controller (cloud-node-lifecycle), service-lb-controller (service), node-route-controller (route), node-ipam-controller (nodeipam, only with --allocate-node-cidrs)."),
    Flag::new("external-cloud-volume-plugin", Kind::Text, "", "Belongs to kube-controller-manager.").accepted(),
    Flag::new("feature-gates", Kind::Gates, "", "Switches for experimental features, as Name=true or Name=false."),
    Flag::new("kube-api-burst", Kind::Int, "30", "How many requests to the API server may begin together after a pause. Has an effect only when this flag or --kube-api-qps is given. If neither is, at most 32 requests are in flight, and the API server's own limits are obeyed."),
    Flag::new("kube-api-content-type", Kind::Text, "application/vnd.kubernetes.protobuf", "The content type of requests to the API server. It is always JSON.").accepted(),
    Flag::new("kube-api-qps", Kind::Float, "20", "How many requests to the API server may begin per second. Has an effect only when this flag or --kube-api-burst is given."),
    Flag::new("leader-elect", Kind::Bool, "true", "Run the controllers only while holding a lease, so that one of several replicas leads. If false, run one replica only."),
    Flag::new("leader-elect-lease-duration", Kind::Duration, "15s", "How long other replicas wait after the leader's last renewal before they take the lease over."),
    Flag::new("leader-elect-renew-deadline", Kind::Duration, "10s", "How long the leader tries to renew the lease before it gives up. Must be shorter than --leader-elect-lease-duration."),
    Flag::new("leader-elect-resource-lock", Kind::Text, "leases", "The kind of object that serves as the lock. Only leases are supported."),
    Flag::new("leader-elect-resource-name", Kind::Text, "cloud-controller-manager", "The name of the lease."),
    Flag::new("leader-elect-resource-namespace", Kind::Text, "kube-system", "The namespace of the lease."),
    Flag::new("leader-elect-retry-period", Kind::Duration, "2s", "The time between two attempts to take or renew the lease."),
    Flag::new("leader-recovery-limit", Kind::Duration, "0s", "How long a leader that could not renew the lease in time goes on trying. It writes nothing until then, and leads again if the lease has been its own all the time. With 0s it ends at once and starts anew."),
    Flag::new("min-resync-period", Kind::Duration, "12h0m0s", "The time between two passes over all cached objects. These caches need no such passes.").accepted(),
    Flag::new("node-cidr-mask-size", Kind::Int, "0", "The prefix length of a Node's pod network, with --allocate-node-cidrs and one cluster CIDR. 0 is 24 for IPv4 and 64 for IPv6."),
    Flag::new("node-cidr-mask-size-ipv4", Kind::Int, "0", "The prefix length of a Node's IPv4 pod network, with --allocate-node-cidrs. 0 is 24."),
    Flag::new("node-cidr-mask-size-ipv6", Kind::Int, "0", "The prefix length of a Node's IPv6 pod network, with --allocate-node-cidrs. 0 is 64; at most 16 more than the cluster CIDR's."),
    Flag::new("node-sync-period", Kind::Duration, "0s", "Does nothing, as in the Go managers.").accepted().hidden(),
    Flag::new("route-reconciliation-period", Kind::Duration, "10s", "How often the route controller reads all routes when nothing changes. It follows changes of Nodes at once in any case, so the period may be long."),
    Flag::new("service-cluster-ip-range", Kind::Text, "", "The network of Services, or two of them, one for IPv4 and one for IPv6. node-ipam-controller gives no Node a network that overlaps with it."),
    Flag::new("use-service-account-credentials", Kind::Bool, "false", "Each controller uses a ServiceAccount of its own in kube-system: node-controller, service-controller, route-controller, and one that the provider names for what the provider itself writes. Missing ones are created."),
];

// The three that limit nothing are not marked as accepted: cloudscale.ch's manifest gives one of them, as its manager's did, and
// would warn at every start.
pub(super) static CLOUD_NODE: &[Flag] = &[
    Flag::new("concurrent-node-status-updates", Kind::Int, "0", "Accepted for compatibility. It limits nothing: the periodic check of node addresses asks the cloud for all Nodes together."),
    Flag::new("concurrent-node-syncs", Kind::Int, "1", "Accepted for compatibility. It limits nothing: a Node that waits for the cloud uses no worker."),
];

pub(super) static SERVICE_LB: &[Flag] = &[
    Flag::new("concurrent-service-syncs", Kind::Int, "1", "Accepted for compatibility. It limits nothing: a Service that waits for the cloud uses no worker."),
    Flag::new("load-balancer-class", Kind::Repeated, "", "Serve Services with this spec.loadBalancerClass. May be given several times. Services of any other class are left to other controllers. With several providers CLOUD=CLASS."),
    Flag::new("load-balancer-without-class", Kind::Bool, "true", "Serve Services without spec.loadBalancerClass. Only one controller of a cluster may do that."),
];

pub(super) static CLOUD_NODE_LIFECYCLE: &[Flag] = &[
    Flag::new("concurrent-node-lifecycle-syncs", Kind::Int, "1", "How many workers check Nodes that are not ready. All Nodes that are due are checked together in any case.").accepted(),
    Flag::new("node-deletion-confirmation", Kind::Duration, "5s", "The least time between the two proofs that a Node's instance does not exist. With 0s the Node is deleted at the first proof."),
    Flag::new("node-deletion-share", Kind::Float, "0.2", "Within --node-deletion-window fewer Nodes than this share of all are deleted, but up to three in any case. 0 means no limit."),
    Flag::new("node-deletion-window", Kind::Duration, "10m0s", "The time over which --node-deletion-share counts deleted Nodes."),
    Flag::new("node-lifecycle-wait-timeout", Kind::Duration, "30s", "With the feature gate CloudProviderNodeOwnership: how long after its creation a Node without provider ID is left to whichever manager it belongs to."),
    Flag::new("node-monitor-period", Kind::Duration, "5s", "How often the cloud is asked for the instances of Nodes that are not ready."),
];

pub(super) static PHOENIXNAP: &[Flag] = &[Flag::new("base-url", Kind::Text, "", "The base URL of the phoenixNAP APIs. If empty, PNAP_BASE_URL counts, then `base-url` in the file of --cloud-config, then the vendor's URL.")];

pub(super) static OPENSTACK: &[Flag] = &[Flag::new("user-agent", Kind::Repeated, "", "A word that is put in front of the User-Agent of requests to OpenStack. May be given several times; the last one stands first.")];

pub(super) static MISC: &[Flag] = &[
    Flag::new("kubeconfig", Kind::Text, "", "The kubeconfig file. If empty, the service account of the pod is used."),
    Flag::new("master", Kind::Text, "", "The address of the API server. It overrides the one in the kubeconfig."),
    Flag::new("node-status-update-frequency", Kind::Duration, "5m0s", "How often the addresses of all Nodes are compared with the cloud."),
];

pub(super) static LEADER_MIGRATION: &[Flag] = &[
    Flag::new("enable-leader-migration", Kind::Bool, "false", "Migrate controllers between kube-controller-manager and this program under a second lease."),
    Flag::new("leader-migration-config", Kind::Text, "", "The file that says which controllers migrate. If empty, the built-in list counts."),
];

pub(super) static DEBUGGING: &[Flag] = &[
    Flag::new("contention-profiling", Kind::Bool, "false", "Offer profiles of lock contention. This program has none to offer.").accepted(),
    Flag::new("profiling", Kind::Bool, "true", "Offer profiles on the secure port under /debug/pprof/, and the verbosity of the log under /debug/flags/."),
];

pub(super) static GLOBAL: &[Flag] = &[
    of_klog("add-dir-header", Kind::Bool, "false"),
    of_klog("alsologtostderr", Kind::Bool, "false"),
    Flag::new("help", Kind::Bool, "false", "Show a short help.").short('h'),
    Flag::new("help-all", Kind::Bool, "false", "Show all flags."),
    of_klog("log-backtrace-at", Kind::Text, ":0"),
    of_klog("log-dir", Kind::Text, ""),
    of_klog("log-file", Kind::Text, ""),
    of_klog("log-file-max-size", Kind::Int, "1800"),
    Flag::new("log-flush-frequency", Kind::Duration, "5s", "The longest time that an info line stays in the buffer of a split stream. Lines of other levels are written at once."),
    Flag::new("log-json-info-buffer-size", Kind::Quantity, "0", "The size of the buffer for info lines in JSON format, with --log-json-split-stream. 0 writes each line at once. Needs the feature gate LoggingAlphaOptions."),
    Flag::new("log-json-split-stream", Kind::Bool, "false", "Error lines to stderr and all others to stdout, in JSON format. Needs the feature gate LoggingAlphaOptions."),
    Flag::new("log-text-info-buffer-size", Kind::Quantity, "0", "The size of the buffer for info lines in text format, with --log-text-split-stream. 0 writes each line at once. Needs the feature gate LoggingAlphaOptions."),
    Flag::new("log-text-split-stream", Kind::Bool, "false", "Info lines to stdout and all others to stderr, in text format. Needs the feature gate LoggingAlphaOptions."),
    Flag::new("logging-format", Kind::Text, "text", "The format of log lines: text or json."),
    of_klog("logtostderr", Kind::Bool, "true"),
    of_klog("one-output", Kind::Bool, "false"),
    of_klog("skip-headers", Kind::Bool, "false"),
    of_klog("skip-log-headers", Kind::Bool, "false"),
    of_klog("stderrthreshold", Kind::Text, "2"),
    Flag::new("v", Kind::Int, "0", "How much is logged. From 4 on the log says why something is done; from 6 on it shows what is sent and received, without secrets.").short('v'),
    Flag::new("version", Kind::Version, "", "Show the version and end. --version=raw shows all that is known of the build; --version=vX.Y.Z changes the reported version."),
    Flag::new("vmodule", Kind::List, "", "The verbosity of single source files, as pattern=N. Works in text format only."),
];

/// A flag that every Go manager had from its log library until Kubernetes 1.26, as that of CloudStack still has.
const fn of_klog(name: &'static str, kind: Kind, default: &'static str) -> Flag {
    Flag::new(name, kind, default, "A flag of the log library of managers before Kubernetes 1.26. All lines go to stderr.").accepted().hidden()
}

const OUTPUT: Flag = Flag::new("output", Kind::Text, "text", "The format of what is printed: text or json.").short('o');

pub(super) static DOCTOR: &[Flag] = &[
    OUTPUT,
    Flag::new("pre", Kind::Bool, "false", "Check the cluster and the cloud before a manager is installed. Give the flags, variables and files that the manager will get."),
];

pub(super) static VERSION: &[Flag] = &[OUTPUT];

pub(super) static SUPPORT_BUNDLE: &[Flag] = &[Flag::new("file", Kind::Text, "", "Where the archive is written. Empty for a name with the time, in this folder.")];

pub(super) static ORPHANS: &[Flag] = &[
    Flag::new("cluster-uid", Kind::Text, "", "The UID of a cluster that is gone, as the listing shows it. Needed where objects bear no name of their cluster, as on phoenixNAP."),
    Flag::new("delete", Kind::Bool, "false", "Show the plan, ask, and delete the orphans."),
    Flag::new("gone", Kind::Bool, "false", "The cluster is gone: no API server is asked. All that bears its name or UID counts as an orphan."),
    OUTPUT,
    Flag::new("yes", Kind::Bool, "false", "Delete without a question.").short('y'),
];

pub(super) static CHECK: &[Flag] = &[
    Flag::new("annotation", Kind::Repeated, "", "An annotation of the Service, as KEY=VALUE, where the cloud needs one. May be repeated."),
    Flag::new("class", Kind::Text, "", "The loadBalancerClass of the Service. Empty for none."),
    Flag::new("exclude-node", Kind::Text, "", "Also keep this Node out of all load balancers for a while, with the label for that. Other Services lose it as a member, too."),
    Flag::new("image", Kind::Text, WORKLOAD_IMAGE, "The image of the workload. It answers with the lines `Hostname:` and `RemoteAddr:` at the port in WHOAMI_PORT_NUMBER, and may run as any user."),
    Flag::new("keep", Kind::Bool, "false", "Leave all that is made, and say how to remove it."),
    Flag::new("namespace", Kind::Text, "", "An existing namespace for the Service and its workload. Empty for a new one, which is deleted at the end.").short('n'),
    OUTPUT,
    Flag::new("port", Kind::Int, "80", "The port of the load balancer."),
    Flag::new("timeout", Kind::Duration, "5m0s", "How long each step may take, such as the address or the removal."),
    Flag::new("yes", Kind::Bool, "false", "Make the load balancer without a question; it may cost money.").short('y'),
];

/// There is one program in it and no shell: the world can reach it while the trial lasts.
const WORKLOAD_IMAGE: &str = "docker.io/traefik/whoami:v1.11.0";

/// Services that are not applied yet.
const FILENAME: Flag = Flag::new("filename", Kind::List, "", "Files with Services that are not applied yet, YAML or JSON; '-' for stdin. What the API server would choose, such as node ports, is made up.").short('f');

pub(super) static EXPLAIN: &[Flag] = &[
    FILENAME,
    Flag::new("namespace", Kind::Text, "default", "The namespace of Services that are named without one.").short('n'),
    OUTPUT,
];

pub(super) static PLAN: &[Flag] = &[
    FILENAME,
    OUTPUT,
    Flag::new("service", Kind::List, "", "Plan only for these Services, as namespace/name. Empty for all that ask for a load balancer."),
];
