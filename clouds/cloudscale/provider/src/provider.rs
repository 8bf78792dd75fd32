//! The provider as a whole.

use std::sync::Arc;

use bowline_cloud_http::CloudHttp;
use bowline_cloud_provider::{CloudConfig, CloudProvider, Environment, InstancesV2, LoadBalancer};
use bowline_cloudscale_client::{Client, Settings, SettingsError};

use crate::balancers::Balancers;
use crate::instances::Servers;
use crate::intent::DEFAULT_NODE_ANNOTATION;
use crate::observe::reads::Reads;
use crate::provider_id::PROVIDER_NAME;

/// The variable that names the annotation of Nodes that names their cluster.
const CLUSTER_NAME_ANNOTATION: &str = "CLOUDSCALE_CLUSTER_NAME_ANNOTATION";

/// The ServiceAccount with which the vendor's manager annotates Services under `--use-service-account-credentials`.
pub const SERVICE_ACCOUNT: &str = "cloudscale-cloud-controller-manager";

/// The cloudscale.ch provider.
pub struct Cloudscale {
    servers: Arc<Servers>,
    balancers: Arc<dyn LoadBalancer>,
}

/// What the provider is told besides how the API is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The annotation of Nodes that names their cluster, for a tag that people read.
    pub cluster_name_annotation: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cluster_name_annotation: DEFAULT_NODE_ANNOTATION.to_owned(),
        }
    }
}

impl Options {
    /// Reads `CLOUDSCALE_CLUSTER_NAME_ANNOTATION`.
    #[must_use]
    pub fn from_environment(environment: &Environment) -> Self {
        match environment.value(CLUSTER_NAME_ANNOTATION) {
            Some(annotation) if !annotation.is_empty() => Self {
                cluster_name_annotation: annotation.to_owned(),
            },
            _ => Self::default(),
        }
    }
}

impl Cloudscale {
    /// The provider over an HTTP stack. Makes no call.
    #[must_use]
    pub fn new(http: CloudHttp, settings: &Settings, options: Options) -> Self {
        let client = Client::from_settings(http, settings);
        let reads = Arc::new(Reads::new(&client));
        let balancers = Balancers::new(
            client,
            Arc::clone(&reads),
            &settings.url,
            options.cluster_name_annotation,
        );
        Self {
            servers: Arc::new(Servers::new(reads)),
            balancers: Arc::new(balancers),
        }
    }

    /// The provider as the binary builds it: settings come from the environment, and `http` builds the HTTP stack with
    /// the time-outs of the settings.
    ///
    /// # Errors
    ///
    /// The environment has no token or a bad URL, or the stack cannot be built.
    pub fn from_environment<E: From<SettingsError>>(
        environment: &Environment,
        config: &CloudConfig,
        http: impl FnOnce(&Settings) -> Result<CloudHttp, E>,
    ) -> Result<Self, E> {
        let settings = Settings::from_env(|name| environment.value(name).map(ToOwned::to_owned))?;
        settings.log();
        if matches!(config, CloudConfig::Given { .. }) {
            tracing::warn!("--cloud-config received but ignored");
        }
        Ok(Self::new(
            http(&settings)?,
            &settings,
            Options::from_environment(environment),
        ))
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
