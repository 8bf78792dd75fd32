//! The provider as a whole.

use std::sync::Arc;

use bowline_cloud_http::CloudHttp;
use bowline_cloud_provider::{
    CloudProvider, DynBackgroundWork, DynLoadBalancer, InstancesV2, erase, erased_background,
};
use bowline_phoenixnap_client::{Client, Credentials};

use crate::balancers::Balancers;
use crate::instances::Servers;
use crate::observe::reads::Reads;
use crate::options::{LoadBalancing, Options};
use crate::provider_id::PROVIDER_NAME;
use crate::sweeper::Sweeper;

/// The phoenixNAP provider.
pub struct PhoenixNap {
    client: Client,
    servers: Arc<Servers>,
    balancing: Option<Balancing>,
}

struct Balancing {
    balancers: Arc<dyn DynLoadBalancer>,
    sweeper: Arc<dyn DynBackgroundWork>,
}

impl PhoenixNap {
    /// The provider over an HTTP stack. Makes no call.
    #[must_use]
    pub fn new(http: CloudHttp, options: &Options) -> Self {
        let client = Client::new(http, &options.settings);
        let network = match &options.load_balancing {
            LoadBalancing::KubeVip { network } => Some(network.clone()),
            LoadBalancing::Off | LoadBalancing::UnknownType(_) => None,
        };
        let reads = Arc::new(Reads::new(&client, network.clone()));
        let annotated = network.is_some().then(|| options.nodes.clone());
        let balancing = network.map(|network| Balancing {
            balancers: erase(Arc::new(Balancers {
                client: client.clone(),
                reads: Arc::clone(&reads),
                network: network.clone(),
                location: options.location.clone(),
                location_annotation: options.location_annotation.clone(),
            })),
            sweeper: erased_background(Arc::new(Sweeper {
                client: client.clone(),
                reads: Arc::clone(&reads),
                network,
            })),
        });
        Self {
            servers: Arc::new(Servers::new(reads, annotated)),
            client,
            balancing,
        }
    }

    /// Uses other credentials from now on.
    pub fn replace_credentials(&self, credentials: Credentials) {
        self.client.replace_credentials(credentials);
    }
}

impl CloudProvider for PhoenixNap {
    fn name(&self) -> &'static str {
        PROVIDER_NAME
    }

    fn has_cluster_id(&self) -> bool {
        true
    }

    fn needs_cluster_uid(&self) -> bool {
        self.balancing.is_some()
    }

    fn instances(&self) -> Option<Arc<dyn InstancesV2>> {
        Some(Arc::clone(&self.servers) as Arc<dyn InstancesV2>)
    }

    fn load_balancer(&self) -> Option<Arc<dyn DynLoadBalancer>> {
        Some(Arc::clone(&self.balancing.as_ref()?.balancers))
    }

    fn background_work(&self) -> Vec<Arc<dyn DynBackgroundWork>> {
        self.balancing
            .iter()
            .map(|balancing| Arc::clone(&balancing.sweeper))
            .collect()
    }
}
