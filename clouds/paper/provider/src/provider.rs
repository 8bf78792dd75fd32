//! The provider as a whole.

use std::sync::Arc;

use bowline_cloud_http::CloudHttp;
use bowline_cloud_provider::{
    CloudConfig, CloudProvider, Environment, InstancesV2, LoadBalancer, RefusalBook, Routes,
};
use bowline_paper_client::{Client, Settings, SettingsError};

use crate::balancers::Balancers;
use crate::instances::Instances;
use crate::observe::Reads;
use crate::provider_id::PROVIDER_NAME;
use crate::routes::RouteTable;

/// The Paper provider.
pub struct Paper {
    instances: Arc<Instances>,
    balancers: Arc<dyn LoadBalancer>,
    routes: Arc<RouteTable>,
}

impl Paper {
    // guide: new
    /// The provider over an HTTP stack. Makes no call: a follower must not need the cloud.
    #[must_use]
    pub fn new(http: CloudHttp, settings: &Settings) -> Self {
        let client = Client::new(http, settings);
        let reads = Arc::new(Reads::new(&client));
        let (client, reads) = (|| client.clone(), || Arc::clone(&reads));
        Self {
            instances: Arc::new(Instances {
                client: client(),
                reads: reads(),
            }),
            balancers: Arc::new(Balancers {
                client: client(),
                reads: reads(),
                refusals: RefusalBook::default(),
            }),
            routes: Arc::new(RouteTable {
                client: client(),
                reads: reads(),
                by_address: settings.routes_by_address,
            }),
        }
    }
    // guide: end

    /// The settings out of what the process was given.
    ///
    /// # Errors
    ///
    /// Something is missing or wrong; see [`Settings`].
    pub fn settings(environment: &Environment, config: &CloudConfig) -> Result<Settings, SettingsError> {
        let file = match config {
            CloudConfig::Absent => None,
            CloudConfig::Given { contents, .. } => Some(contents.as_slice()),
        };
        Settings::read(|name| environment.value(name).map(str::to_owned), file)
    }
}

// guide: provider
impl CloudProvider for Paper {
    fn name(&self) -> &'static str {
        PROVIDER_NAME
    }

    /// Balancers bear the UID of their Service, routes the name of their cluster.
    fn has_cluster_id(&self) -> bool {
        true
    }

    fn instances(&self) -> Option<Arc<dyn InstancesV2>> {
        Some(Arc::clone(&self.instances) as Arc<dyn InstancesV2>)
    }

    fn load_balancer(&self) -> Option<Arc<dyn LoadBalancer>> {
        Some(Arc::clone(&self.balancers))
    }

    fn routes(&self) -> Option<Arc<dyn Routes>> {
        Some(Arc::clone(&self.routes) as Arc<dyn Routes>)
    }
}
// guide: end
