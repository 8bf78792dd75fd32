//! `/configz`: the configuration in effect, in the shape of `CloudControllerManagerConfiguration`.

use serde_json::{Value, json};

use super::parse::Flags;
use bowline_gcfg::duration;

/// The configuration as the Go managers show it. Lists that are empty are `null` there.
pub(super) fn page(flags: &Flags) -> Value {
    let time = |name: &str| duration::format(flags.duration(name));
    json!({
        "kind": "CloudControllerManagerConfiguration",
        "apiVersion": "cloudcontrollermanager.config.k8s.io/v1alpha1",
        "Generic": {
            "Port": flags.int("secure-port"),
            "Address": flags.ip("bind-address"),
            "MinResyncPeriod": time("min-resync-period"),
            "ClientConnection": {
                "kubeconfig": flags.text("kubeconfig"),
                "acceptContentTypes": "",
                "contentType": flags.text("kube-api-content-type"),
                "qps": flags.float("kube-api-qps"),
                "burst": flags.int("kube-api-burst"),
            },
            "ControllerStartInterval": time("controller-start-interval"),
            "LeaderElection": {
                "leaderElect": flags.switch("leader-elect"),
                "leaseDuration": time("leader-elect-lease-duration"),
                "renewDeadline": time("leader-elect-renew-deadline"),
                "retryPeriod": time("leader-elect-retry-period"),
                "resourceLock": flags.text("leader-elect-resource-lock"),
                "resourceName": flags.text("leader-elect-resource-name"),
                "resourceNamespace": flags.text("leader-elect-resource-namespace"),
            },
            "Controllers": flags.list("controllers"),
            "Debugging": {
                "enableProfiling": flags.switch("profiling"),
                "enableContentionProfiling": flags.switch("contention-profiling"),
            },
            "LeaderMigrationEnabled": flags.switch("enable-leader-migration"),
            "LeaderMigration": { "leaderName": "", "resourceLock": "", "controllerLeaders": null },
        },
        "KubeCloudShared": {
            "CloudProvider": {
                "Name": flags.text("cloud-provider"),
                "CloudConfigFile": flags.text("cloud-config"),
            },
            "ExternalCloudVolumePlugin": flags.text("external-cloud-volume-plugin"),
            "UseServiceAccountCredentials": flags.switch("use-service-account-credentials"),
            "AllowUntaggedCloud": flags.switch("allow-untagged-cloud"),
            "RouteReconciliationPeriod": time("route-reconciliation-period"),
            "ClusterName": flags.text("cluster-name"),
            "ClusterCIDR": flags.text("cluster-cidr"),
            "AllocateNodeCIDRs": flags.switch("allocate-node-cidrs"),
            "CIDRAllocatorType": flags.text("cidr-allocator-type"),
            "ConfigureCloudRoutes": flags.switch("configure-cloud-routes"),
            "NodeSyncPeriod": time("node-sync-period"),
        },
        "NodeController": {
            "ConcurrentNodeSyncs": flags.int("concurrent-node-syncs"),
            "ConcurrentNodeStatusUpdates": flags.int("concurrent-node-status-updates"),
        },
        "NodeLifecycleController": {
            "NodeMonitorPeriod": time("node-monitor-period"),
            "ConcurrentNodeLifecycleSyncs": flags.int("concurrent-node-lifecycle-syncs"),
        },
        "ServiceController": { "ConcurrentServiceSyncs": flags.int("concurrent-service-syncs") },
        "NodeStatusUpdateFrequency": time("node-status-update-frequency"),
        "Webhook": { "Webhooks": some(flags.list("webhooks")) },
    })
}

fn some(list: Vec<String>) -> Option<Vec<String>> {
    Some(list).filter(|list| !list.is_empty())
}
