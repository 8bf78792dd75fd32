//! The provider as a whole.

use std::sync::Arc;

use bowline_cloud_http::CloudHttp;
use bowline_cloud_provider::{CloudConfig, CloudProvider, Environment, InstancesV2, LoadBalancer};
use bowline_cloudscale_client::{Client, Settings, SettingsError};

use crate::config::Options;
use crate::load_balancer::Balancers;
use crate::nodes::Servers;
use crate::nodes::provider_id::PROVIDER_NAME;
use crate::nodes::servers::ServerReads;

/// The ServiceAccount with which the vendor's manager annotates Services under `--use-service-account-credentials`.
pub const SERVICE_ACCOUNT: &str = "cloudscale-cloud-controller-manager";

/// The cloudscale.ch provider.
pub struct Cloudscale {
    servers: Arc<Servers>,
    balancers: Arc<dyn LoadBalancer>,
}

impl Cloudscale {
    /// The provider over an HTTP stack. Makes no call.
    #[must_use]
    pub fn new(http: CloudHttp, settings: &Settings, options: Options) -> Self {
        let client = Client::from_settings(http, settings);
        let servers = Arc::new(ServerReads::new(&client));
        let annotation = options.cluster_name_annotation;
        let balancers = Balancers::new(client, Arc::clone(&servers), &settings.url, annotation);
        Self {
            servers: Arc::new(Servers::new(servers)),
            balancers: Arc::new(balancers),
        }
    }

    /// The provider as the binary builds it: everything comes from the environment, and `http` builds the HTTP stack with
    /// the time-outs of the settings.
    ///
    /// # Errors
    ///
    /// The environment has no token or a bad URL, or the stack cannot be built.
    pub fn from_environment<E: From<SettingsError>>(
        environment: &Environment,
        config: &CloudConfig,
        http: impl FnOnce(&Settings, &Options) -> Result<CloudHttp, E>,
    ) -> Result<Self, E> {
        let settings = Settings::from_env(|name| environment.value(name).map(ToOwned::to_owned))?;
        settings.log();
        let options = Options::read(environment, config);
        Ok(Self::new(http(&settings, &options)?, &settings, options))
    }
}

impl CloudProvider for Cloudscale {
    fn name(&self) -> &'static str {
        PROVIDER_NAME
    }

    fn has_cluster_id(&self) -> bool {
        false
    }

    fn instances(&self) -> Option<Arc<dyn InstancesV2>> {
        Some(Arc::clone(&self.servers) as Arc<dyn InstancesV2>)
    }

    fn load_balancer(&self) -> Option<Arc<dyn LoadBalancer>> {
        Some(Arc::clone(&self.balancers))
    }

    fn service_account(&self) -> Option<&'static str> {
        Some(SERVICE_ACCOUNT)
    }
}
