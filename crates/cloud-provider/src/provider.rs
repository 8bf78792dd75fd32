//! A cloud as a whole, and what it is built from.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{BackgroundFacts, BackgroundWork, InstancesV2, LoadBalancer, Question, Routes};

/// A cloud.
///
/// Built on every replica before leader election: building one makes no change in the cloud, and being unreachable is no
/// error then unless the cloud's specification says so.
pub trait CloudProvider: Send + Sync + 'static {
    /// The name: the value of `--cloud-provider` and the scheme of provider IDs.
    fn name(&self) -> &'static str;

    /// The schemes of the provider IDs that its Nodes bear: what stands before `://`.
    fn platforms(&self) -> Vec<&'static str> {
        vec![self.name()]
    }

    /// Whether a provider ID without a scheme has the form of this cloud's IDs, which it takes for one of its own.
    fn has_bare_id(&self, id: &str) -> bool {
        let _ = id;
        false
    }

    /// Whether the cloud marks what belongs to a cluster. If not, `--allow-untagged-cloud` must be given.
    fn has_cluster_id(&self) -> bool;

    /// Instances. `None`: the two node controllers are not started.
    fn instances(&self) -> Option<Arc<dyn InstancesV2>>;

    /// Load balancers. `None`: the service controller is not started.
    fn load_balancer(&self) -> Option<Arc<dyn LoadBalancer>>;

    /// Routes. `None`: the route controller is not started.
    fn routes(&self) -> Option<Arc<dyn Routes>> {
        None
    }

    /// Whether its Go manager leaves the pod networks of Nodes to others, whatever `--allocate-node-cidrs` says. Manifests then
    /// have that flag for the routes alone, and node IPAM runs only where `--controllers` names it: two allocators would give
    /// one network to two Nodes.
    fn leaves_node_networks(&self) -> bool {
        false
    }

    /// What the provider does with the cluster's UID.
    fn cluster_uid(&self) -> ClusterUid {
        ClusterUid::Unused
    }

    /// The ServiceAccount in `kube-system` with which the [writes to Kubernetes](crate::KubeWrite) of the provider's own
    /// plans are made under `--use-service-account-credentials`. `None`: with that of the controller that runs the plan.
    fn service_account(&self) -> Option<&'static str> {
        None
    }

    /// Reads what is billed for this cluster and belongs to no Service, a line for each: what the provider's own background work does
    /// not give back. No question: it gives back all, or does not look. What changes meanwhile may look so for a moment.
    fn left_over(&self, facts: BackgroundFacts) -> Vec<Question<'_, String>> {
        drop(facts);
        Vec::new()
    }

    /// Fetches what every other call needs first, such as a token, for a person who is to hear once that there is none. No question: the
    /// credentials go with each call, or were taken when this was built.
    fn sign_in(&self) -> Vec<Question<'_, ()>> {
        Vec::new()
    }

    /// Reads what the credentials may do and what is left of quotas, for a person before the installation. No question: the cloud
    /// tells neither.
    fn allowance(&self) -> Vec<Question<'_, Allowance>> {
        Vec::new()
    }

    /// Compares the configuration with what the cloud has, for a person: what does not fit, before a Service meets it. No question:
    /// there is nothing to compare.
    fn misfits(&self) -> Vec<Question<'_, Misfit>> {
        Vec::new()
    }

    /// Work that belongs to no single Service.
    fn background_work(&self) -> Vec<Arc<dyn BackgroundWork>> {
        Vec::new()
    }
}

/// One thing that a cloud tells of what its credentials may do, or of what is left of a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    /// In words, with the numbers.
    pub text: String,
    /// Whether a manager cannot do its work for that.
    pub is_lacking: bool,
}

/// Something of the configuration that does not fit what the cloud has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// In words, with both values.
    pub text: String,
    /// Who has to do what.
    pub remedy: String,
}

/// What a provider does with the UID of the cluster, which is that of the namespace `kube-system`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterUid {
    /// Nothing: it is not read.
    Unused,
    /// What it makes is marked with it. It is read before the controllers start, which needs `get` on the namespace; without it
    /// they do not start, because nothing could be told from what other clusters made.
    Required,
}

/// The environment variables of the process, as an argument: nothing below reads the process's own.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The value of a variable. Set and empty is not the same as not set.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All variables.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// With these variables where it has none of that name.
    #[must_use]
    pub fn or(mut self, more: impl IntoIterator<Item = (String, String)>) -> Self {
        for (name, value) in more {
            self.0.entry(name).or_insert(value);
        }
        self
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(
            variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

/// The file named by `--cloud-config`.
#[derive(Clone, Default)]
pub enum CloudConfig {
    /// The flag was not given.
    #[default]
    Absent,
    /// The file's contents; may hold secrets.
    Given {
        /// The path, for messages.
        path: String,
        /// The bytes as read.
        contents: Vec<u8>,
    },
}

impl std::fmt::Debug for CloudConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Absent => f.write_str("Absent"),
            Self::Given { path, contents } => write!(f, "Given({path}, {} bytes)", contents.len()),
        }
    }
}

/// What is known of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterFacts {
    /// The value of `--cluster-name`.
    pub name: String,
    /// The UID of the namespace `kube-system`, where the provider [requires](ClusterUid::Required) it.
    pub uid: Option<String>,
    /// The API server's version.
    pub server_version: Option<ServerVersion>,
    /// Who this process is: the identity in the leader election lease. Different for every process.
    pub holder: String,
}

/// Major and minor version of an API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerVersion {
    /// The major version.
    pub major: u32,
    /// The minor version.
    pub minor: u32,
}

impl ServerVersion {
    /// Reads the two fields of `/version`. A minor version may end in something that is no digit, such as `30+`.
    #[must_use]
    pub fn parse(major: &str, minor: &str) -> Option<Self> {
        let leading = |text: &str| {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            text[..end].parse().ok()
        };
        Some(Self {
            major: leading(major)?,
            minor: leading(minor)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minor_version_may_carry_a_plus() {
        assert_eq!(
            ServerVersion::parse("1", "30+"),
            Some(ServerVersion { major: 1, minor: 30 })
        );
        assert_eq!(ServerVersion::parse("1", "eks"), None);
        assert!(ServerVersion::parse("1", "9") < ServerVersion::parse("1", "30"));
    }

    #[test]
    fn a_cloud_config_never_prints_its_contents() {
        let config = CloudConfig::Given {
            path: "/etc/cloud.conf".into(),
            contents: b"secret".to_vec(),
        };
        assert_eq!(format!("{config:?}"), "Given(/etc/cloud.conf, 6 bytes)");
    }
}
