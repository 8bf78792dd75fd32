//! The loops as this provider and this configuration have them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bowline_cloud_provider::{CloudProvider, ClusterFacts};
use bowline_controllers::context::LoopContext;
use bowline_controllers::node::{self, NodeController, NodeSettings};
use bowline_controllers::node_ipam::{self, NodeIpamController};
use bowline_controllers::node_lifecycle::{self, NodeLifecycleController, NodeLifecycleSettings};
use bowline_controllers::queue::Heartbeat;
use bowline_controllers::route::{self, RouteController, RouteSettings};
use bowline_controllers::service::{self, ServiceController, ServiceProvider, ServiceSettings};
use bowline_kube_io::rbac::Account;
use bowline_kube_io::{EventSink, Kube, NodeCache, ServiceCache, Writes};

use crate::config::{Config, LoopSettings};
use crate::identities::Identities;
use crate::loops::Loop;
use crate::metrics::Metrics;
use crate::migration::Assignment;

/// One of the two leases that loops can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lease {
    Main,
    Migration,
}

/// What the loops share.
pub(crate) struct Shared<'a> {
    pub(crate) config: &'a Config,
    pub(crate) identities: &'a Identities,
    pub(crate) provider: &'a dyn CloudProvider,
    pub(crate) nodes: &'a Arc<NodeCache>,
    pub(crate) services: &'a Arc<ServiceCache>,
    pub(crate) cluster: &'a Arc<ClusterFacts>,
    pub(crate) events: &'a EventSink,
    pub(crate) metrics: &'a Metrics,
    pub(crate) seed: u64,
}

/// A loop, ready to be run.
pub(crate) struct Started {
    pub(crate) which: Loop,
    pub(crate) heartbeat: Arc<Heartbeat>,
    pub(crate) run: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Lets the loop come to its end: no write begins any more, what is under way is finished.
    pub(crate) stop: Box<dyn Fn() + Send + Sync>,
}

impl Started {
    /// A loop that has no end of its own. Its reads may be dropped at any time, so it is at its end as soon as none of
    /// its writes to the API server is under way.
    fn until_drained(
        which: Loop,
        heartbeat: &Arc<Heartbeat>,
        run: impl Future<Output = ()> + Send + 'static,
        writes: Writes,
    ) -> Self {
        let stopped = writes.clone();
        Self {
            which,
            heartbeat: Arc::clone(heartbeat),
            run: Box::pin(async move {
                tokio::select! {
                    biased;
                    () = writes.drained() => {}
                    () = run => {}
                }
            }),
            stop: Box::new(move || stopped.stop()),
        }
    }
}

/// Builds the loops of a lease that are selected and that the provider supports, in their fixed order.
pub(crate) fn loops(shared: &Shared<'_>, lease: Lease) -> Vec<Started> {
    let mut started = Vec::new();
    for which in Loop::ALL {
        let assignment = match &shared.config.migration {
            Some(migration) if shared.config.election.is_some() => migration.of(which),
            _ => Assignment::Main,
        };
        match (assignment, lease) {
            (Assignment::Main, Lease::Main) | (Assignment::Migrated, Lease::Migration) => {}
            (Assignment::Main | Assignment::Migrated, _) | (Assignment::Elsewhere(_), Lease::Migration) => {
                continue;
            }
            (Assignment::Elsewhere(component), Lease::Main) => {
                tracing::info!(
                    controller = which.name(),
                    component,
                    "Loop is not started, it is assigned to another component"
                );
                continue;
            }
        }
        if !shared.config.loops.includes(which) {
            tracing::info!(controller = which.name(), "Loop is disabled");
            continue;
        }
        match build(shared, which) {
            Some(one) => started.push(one),
            None if which == Loop::NodeIpam => {
                tracing::info!(
                    controller = which.name(),
                    "Loop is switched on by --allocate-node-cidrs"
                );
            }
            None if which == Loop::Route && !shared.config.settings.routes.is_wanted => {
                tracing::info!(
                    controller = which.name(),
                    "Loop is switched off by --configure-cloud-routes"
                );
            }
            None => tracing::info!(
                controller = which.name(),
                provider = shared.provider.name(),
                "Loop is not started, the provider does not support it"
            ),
        }
    }
    started
}

fn build(shared: &Shared<'_>, which: Loop) -> Option<Started> {
    match which {
        Loop::Node => node_loop(shared),
        Loop::NodeLifecycle => node_lifecycle_loop(shared),
        Loop::Service => service_loop(shared),
        Loop::Route => route_loop(shared),
        Loop::NodeIpam => node_ipam_loop(shared),
    }
}

/// What a loop works with: the API server under the name of an account, and events under the name of a component. Each
/// loop draws from a sequence of its own, all of them from one seed.
fn context(shared: &Shared<'_>, which: Loop, kube: Kube, component: &'static str) -> LoopContext {
    let sequence = match which {
        Loop::Node => 0,
        Loop::NodeLifecycle => 1,
        Loop::Route => 2,
        Loop::NodeIpam => 3,
        Loop::Service => 4,
    };
    LoopContext {
        recorder: shared.identities.recorder(shared.events, component, &kube),
        kube,
        nodes: Arc::clone(shared.nodes),
        metrics: shared.metrics.controllers().clone(),
        queue_metrics: shared.metrics.queues().clone(),
        seed: shared.seed.wrapping_add(sequence),
    }
}

fn node_loop(shared: &Shared<'_>) -> Option<Started> {
    let LoopSettings {
        node_workers,
        address_workers,
        address_period,
        ..
    } = shared.config.settings;
    let writes = Writes::default();
    let kube = shared.identities.of(Account::Node).with_writes(&writes);
    let controller = NodeController::new(
        context(shared, Loop::Node, kube, node::NAME),
        shared.provider.instances()?,
        NodeSettings {
            concurrent_node_syncs: bounded(node_workers),
            concurrent_node_status_updates: bounded(address_workers),
            node_status_update_frequency: address_period,
        },
    );
    let heartbeat = Arc::clone(controller.heartbeat());
    let run = controller.run();
    Some(Started::until_drained(Loop::Node, &heartbeat, run, writes))
}

fn node_lifecycle_loop(shared: &Shared<'_>) -> Option<Started> {
    let LoopSettings {
        monitor_period,
        deletion,
        ..
    } = shared.config.settings;
    let writes = Writes::default();
    let kube = shared.identities.of(Account::Node).with_writes(&writes);
    let controller = NodeLifecycleController::new(
        context(shared, Loop::NodeLifecycle, kube, node_lifecycle::NAME),
        shared.provider.instances()?,
        &NodeLifecycleSettings {
            node_monitor_period: monitor_period,
            node_deletion_confirmation: deletion.confirmation,
            node_deletion_share: deletion.share,
            node_deletion_window: deletion.window,
        },
    );
    let heartbeat = Arc::clone(controller.heartbeat());
    let run = controller.run();
    Some(Started::until_drained(
        Loop::NodeLifecycle,
        &heartbeat,
        run,
        writes,
    ))
}

fn service_loop(shared: &Shared<'_>) -> Option<Started> {
    let provider = ServiceProvider {
        load_balancer: shared.provider.load_balancer()?,
        background: shared.provider.background_work(),
        kube: shared.identities.of(Account::Provider),
    };
    let kube = shared.identities.of(Account::Service);
    let controller = ServiceController::new(
        context(shared, Loop::Service, kube, service::COMPONENT),
        Arc::clone(shared.services),
        provider,
        Arc::clone(shared.cluster),
        ServiceSettings::default(),
    );
    let stopped = Arc::clone(&controller);
    Some(Started {
        which: Loop::Service,
        heartbeat: Arc::clone(controller.heartbeat()),
        run: Box::pin(controller.run()),
        stop: Box::new(move || stopped.stop()),
    })
}

fn route_loop(shared: &Shared<'_>) -> Option<Started> {
    let config = &shared.config.settings.routes;
    let routes = shared.provider.routes().filter(|_| config.is_wanted)?;
    let cluster_cidrs = match &config.cluster_cidrs {
        Ok(networks) => networks.clone(),
        // Whoever starts a manager has checked this. Without networks no route counts as the cluster's: none is deleted.
        Err(fault) => {
            tracing::error!(controller = route::NAME, err = %fault, "--cluster-cidr cannot be used, routes are not deleted");
            Vec::new()
        }
    };
    let kube = shared.identities.of(Account::Route);
    let controller = RouteController::new(
        context(shared, Loop::Route, kube, route::COMPONENT),
        routes,
        RouteSettings {
            cluster_name: shared.config.cluster_name.clone(),
            cluster_cidrs,
            timing: config.timing,
        },
    );
    let stopped = Arc::clone(&controller);
    Some(Started {
        which: Loop::Route,
        heartbeat: Arc::clone(controller.heartbeat()),
        run: Box::pin(controller.run()),
        stop: Box::new(move || stopped.stop()),
    })
}

fn node_ipam_loop(shared: &Shared<'_>) -> Option<Started> {
    let ranges = shared.config.settings.node_networks.as_ref()?;
    let kube = shared.identities.of(Account::Node);
    let ctx = context(shared, Loop::NodeIpam, kube, node_ipam::COMPONENT);
    let controller = NodeIpamController::new(ctx, ranges);
    let stopped = Arc::clone(&controller);
    Some(Started {
        which: Loop::NodeIpam,
        heartbeat: Arc::clone(controller.heartbeat()),
        run: Box::pin(controller.run()),
        stop: Box::new(move || stopped.stop()),
    })
}

fn bounded(workers: usize) -> u32 {
    u32::try_from(workers).unwrap_or(u32::MAX)
}
