//! The provider as a whole.

use std::sync::Arc;

use bowline_cloud_provider::{
    Allowance, BackgroundWork, CloudProvider, InstancesV2, LoadBalancer, Question, Routes,
};
use bowline_openstack_client::Client;

use crate::allowance;
use crate::config::Options;
use crate::load_balancer::reconciler::load_balancers;
use crate::metrics::Metrics;
use crate::nodes::instances::Instances;
use crate::provider_id::PROVIDER_NAME;
use crate::routes::RouteTable;
use crate::start::Offer;

/// The ServiceAccount that annotations of Services are written with, where each controller has one of its own: the Go
/// manager's, which is the process's, too.
pub const SERVICE_ACCOUNT: &str = "cloud-controller-manager";

/// The OpenStack provider.
pub struct OpenStack {
    client: Client,
    instances: Option<Arc<Instances>>,
    balancers: Option<(Arc<dyn LoadBalancer>, Arc<dyn BackgroundWork>)>,
    routes: Option<Arc<RouteTable>>,
}

impl OpenStack {
    /// The provider over a client. Makes no call.
    #[must_use]
    pub fn new(client: Client, options: &Options, offer: Offer, metrics: &Metrics) -> Self {
        let client = client.observed_by(Arc::new(metrics.clone()));
        let router = options.router.clone().filter(|_| offer.has_routes);
        Self {
            client: client.clone(),
            balancers: options
                .load_balancer
                .clone()
                .map(|options| load_balancers(client.clone(), options, metrics.clone())),
            routes: router.map(|router| Arc::new(RouteTable::new(&client, router))),
            instances: offer
                .has_instances
                .then(|| Arc::new(Instances::new(&client, &options.nodes))),
        }
    }
}

impl CloudProvider for OpenStack {
    fn name(&self) -> &'static str {
        PROVIDER_NAME
    }

    fn has_cluster_id(&self) -> bool {
        true
    }

    fn instances(&self) -> Option<Arc<dyn InstancesV2>> {
        let instances = self.instances.as_ref()?;
        Some(Arc::clone(instances) as Arc<dyn InstancesV2>)
    }

    fn load_balancer(&self) -> Option<Arc<dyn LoadBalancer>> {
        let (balancers, _) = self.balancers.as_ref()?;
        Some(Arc::clone(balancers))
    }

    fn allowance(&self) -> Vec<Question<'_, Allowance>> {
        let read = allowance::read(self.client.clone(), self.balancers.is_some());
        vec![Question::new(read)]
    }

    fn background_work(&self) -> Vec<Arc<dyn BackgroundWork>> {
        let works = self.balancers.iter().map(|(_, work)| Arc::clone(work));
        works.collect()
    }

    fn routes(&self) -> Option<Arc<dyn Routes>> {
        let routes = self.routes.as_ref()?;
        Some(Arc::clone(routes) as Arc<dyn Routes>)
    }

    fn leaves_node_networks(&self) -> bool {
        true
    }

    fn service_account(&self) -> Option<&'static str> {
        Some(SERVICE_ACCOUNT)
    }
}
