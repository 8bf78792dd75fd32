//! What the operator sets beyond how the API is reached: one variable. The [settings](bowline_cloudscale_client::Settings) of the client are the rest.

use bowline_cloud_http::ShownSetting;
use bowline_cloud_provider::{CloudConfig, Environment};

/// The annotation of Nodes that names their cluster, as Cluster API sets it.
pub(crate) const DEFAULT_NODE_ANNOTATION: &str = "cluster.x-k8s.io/cluster-name";

/// The variable that names the annotation of Nodes that names their cluster.
const CLUSTER_NAME_ANNOTATION: &str = "CLOUDSCALE_CLUSTER_NAME_ANNOTATION";

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
        let annotation = environment.value(CLUSTER_NAME_ANNOTATION).map(str::trim);
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
