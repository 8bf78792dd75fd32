//! The controllers as this provider and this configuration have them.

use std::sync::Arc;

use bowline_cloud_provider::{CloudProvider, ClusterFacts, InstancesV2};
use bowline_controllers::node::{NodeController, NodeSettings};
use bowline_controllers::node_ipam::NodeIpamController;
use bowline_controllers::node_lifecycle::NodeLifecycleController;
use bowline_controllers::ownership::OwnedInstances;
use bowline_controllers::route::RouteController;
use bowline_controllers::service::{ServiceController, ServiceProvider};
use bowline_controllers::{Context, Controller};
use bowline_kube_io::rbac::Account;
use bowline_kube_io::{EventSink, LeaseNote, NodeCache, ServiceCache};
use bowline_transport::Silences;

use crate::config::Config;
use crate::controllers::ControllerName;
use crate::identities::Identities;
use crate::metrics::Metrics;
use crate::migration::Assignment;

/// One of the two leases that controllers can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lease {
    Main,
    Migration,
}

/// What the controllers are built from.
pub(crate) struct Parts<'a> {
    pub(crate) config: &'a Config,
    pub(crate) identities: &'a Identities,
    pub(crate) provider: &'a dyn CloudProvider,
    pub(crate) silences: &'a Silences,
    pub(crate) nodes: &'a Arc<NodeCache>,
    pub(crate) services: &'a Arc<ServiceCache>,
    pub(crate) cluster: &'a Arc<ClusterFacts>,
    pub(crate) events: &'a EventSink,
    pub(crate) metrics: &'a Metrics,
    /// What is noted on the lease that they wait for; `None` without an election.
    pub(crate) note: Option<&'a Arc<LeaseNote>>,
    pub(crate) seed: u64,
}

impl Parts<'_> {
    /// Builds the controllers of a lease that are selected and that the provider supports, in their fixed order.
    pub(crate) fn controllers(&self, lease: Lease) -> Vec<(ControllerName, Arc<dyn Controller>)> {
        let mut built = Vec::new();
        for name in ControllerName::ALL {
            let controller = name.name();
            let assignment = match &self.config.migration {
                Some(migration) if self.config.election.is_some() => migration.of(name),
                _ => Assignment::Main,
            };
            match (assignment, lease) {
                (Assignment::Main, Lease::Main) | (Assignment::Migrated, Lease::Migration) => {}
                (Assignment::Main | Assignment::Migrated, _)
                | (Assignment::Elsewhere(_), Lease::Migration) => continue,
                (Assignment::Elsewhere(component), Lease::Main) => {
                    tracing::info!(
                        controller,
                        component,
                        "Controller is not started, it is assigned to another component"
                    );
                    continue;
                }
            }
            if !self.config.controllers.includes(name) {
                tracing::info!(controller, "Controller is disabled");
                continue;
            }
            if name == ControllerName::NodeIpam
                && self.provider.leaves_node_networks()
                && !self.config.controllers.names(name)
            {
                tracing::info!(
                    controller,
                    provider = self.provider.name(),
                    "Controller is not started, for this provider --controllers has to name it"
                );
                continue;
            }
            match self.controller(name) {
                Some(one) => built.push((name, one)),
                None if name == ControllerName::NodeIpam => {
                    tracing::info!(
                        controller,
                        "Controller is switched off, --allocate-node-cidrs switches it on"
                    );
                }
                None if name == ControllerName::Route && !self.config.settings.routes.is_wanted => {
                    tracing::info!(
                        controller,
                        "Controller is switched off by --configure-cloud-routes"
                    );
                }
                None => tracing::info!(
                    controller,
                    provider = self.provider.name(),
                    "Controller is not started, the provider does not support it"
                ),
            }
        }
        built
    }

    fn controller(&self, name: ControllerName) -> Option<Arc<dyn Controller>> {
        let (provider, settings, ctx) = (self.provider, &self.config.settings, || self.context(name));
        Some(match name {
            ControllerName::Node => {
                let settings = NodeSettings {
                    ownership: settings.ownership.clone(),
                    ..settings.node.clone()
                };
                NodeController::new(ctx(), self.instances("node")?, settings)
            }
            ControllerName::NodeLifecycle => {
                let instances = self.instances("nodelifecycle")?;
                let ctx = ctx().noting_on(self.note.cloned());
                NodeLifecycleController::new(ctx, instances, &settings.node_lifecycle)
            }
            ControllerName::Service => {
                let provider = ServiceProvider {
                    load_balancer: provider.load_balancer()?,
                    background: provider.background_work(),
                    kube: self.identities.of(Account::Provider),
                    classes: self.config.service_classes.clone(),
                    silences: self.silences.clone(),
                };
                ServiceController::new(ctx(), Arc::clone(self.services), provider)
            }
            ControllerName::Route if !settings.routes.is_wanted => return None,
            ControllerName::Route => RouteController::new(ctx(), provider.routes()?, &settings.routes),
            ControllerName::NodeIpam => {
                let ranges = settings.node_networks.as_ref()?.as_ref();
                NodeIpamController::new(ctx(), ranges.ok()?) // what is wrong was told at the start
            }
        })
    }

    /// The instances of the Nodes that are this manager's, for a controller by the name that upstream counts under.
    fn instances(&self, controller: &'static str) -> Option<Arc<dyn InstancesV2>> {
        let instances = self.provider.instances()?;
        let Some(ownership) = &self.config.settings.ownership else {
            return Some(instances);
        };
        let ownership = ownership.with_default(&self.provider.platforms());
        let metrics = self.metrics.controllers().clone();
        let clock = Arc::clone(self.identities.process().clock());
        Some(OwnedInstances::of(
            instances, ownership, controller, metrics, clock,
        ))
    }

    /// What a controller works with: the API server under the name of its account, and events under the name of its
    /// component. Each controller draws from a sequence of its own, all of them from one seed.
    fn context(&self, name: ControllerName) -> Context {
        let kube = self.identities.of(name.account());
        let recorder = self.identities.recorder(self.events, name.component(), &kube);
        Context::new(
            name.name(),
            kube,
            Arc::clone(self.nodes),
            Arc::clone(self.cluster),
            recorder,
            self.metrics.controllers().clone(),
            self.seed.wrapping_add(name as u64),
        )
    }
}
