//! The provider as a whole.

use std::sync::Arc;

use bowline_cloud_http::{CloudHttp, ShownSetting};
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
    /// Whether there is a configuration file, in which nobody looks.
    pub ignores_file: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            cluster_name_annotation: DEFAULT_NODE_ANNOTATION.to_owned(),
            ignores_file: false,
        }
    }
}

impl Options {
    /// Reads `CLOUDSCALE_CLUSTER_NAME_ANNOTATION`.
    #[must_use]
    pub fn read(environment: &Environment, config: &CloudConfig) -> Self {
        let annotation = environment.value(CLUSTER_NAME_ANNOTATION);
        let annotation = annotation.filter(|annotation| !annotation.is_empty());
        Self {
            cluster_name_annotation: annotation.unwrap_or(DEFAULT_NODE_ANNOTATION).to_owned(),
            ignores_file: matches!(config, CloudConfig::Given { .. }),
        }
    }

    /// The options in force, for people.
    #[must_use]
    pub fn shown(&self) -> Vec<ShownSetting> {
        let origin = match self.cluster_name_annotation == DEFAULT_NODE_ANNOTATION {
            true => "default",
            false => "environment",
        };
        vec![ShownSetting::new(
            CLUSTER_NAME_ANNOTATION,
            &self.cluster_name_annotation,
            origin,
        )]
    }

    /// What a person should look at, although the configuration can be used.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        // The first words are upstream's.
        let ignored = "--cloud-config received but ignored: only the environment is read";
        self.ignores_file
            .then(|| ignored.to_owned())
            .into_iter()
            .collect()
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
