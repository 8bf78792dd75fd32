//! Where kube-apiserver and etcd are found.

use std::env;
use std::path::PathBuf;

use bowline_base::go::{GoProgram, Version};
use bowline_base::server::{in_ci, or_skip};

/// The two programs of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    /// The API server.
    pub kube_apiserver: PathBuf,
    /// Its store.
    pub etcd: PathBuf,
}

/// The programs are not where they should be.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    /// The environment names a directory that does not hold both.
    #[error("KUBEBUILDER_ASSETS is {0}, and that holds no kube-apiserver or no etcd")]
    Assets(PathBuf),
    /// Nobody has built them yet.
    #[error(
        "kube-apiserver {version} and etcd are not built; run `cargo run -p bowline-control-plane -- build --version {version}` (needs Go)"
    )]
    Unbuilt {
        /// The minor that was asked for.
        version: Version,
    },
}

impl Binaries {
    /// These, if both are there.
    fn found(self) -> Option<Self> {
        (self.kube_apiserver.is_file() && self.etcd.is_file()).then_some(self)
    }
}

/// Finds the programs: in the directory that `KUBEBUILDER_ASSETS` names, whatever their version, else in the cache.
///
/// # Errors
///
/// When they are not there. Nothing is built here: that takes minutes, and a test should not.
pub fn binaries(version: Version) -> Result<Binaries, Missing> {
    if let Some(assets) = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from) {
        let in_assets = Binaries {
            kube_apiserver: assets.join("kube-apiserver"),
            etcd: assets.join("etcd"),
        };
        return in_assets.found().ok_or(Missing::Assets(assets));
    }
    let in_cache = Binaries {
        kube_apiserver: GoProgram::kube_apiserver(version).path(),
        etcd: GoProgram::etcd(version).path(),
    };
    in_cache.found().ok_or(Missing::Unbuilt { version })
}

/// What a test calls that needs the real API server: the programs, or nothing and a line that says what was left out.
///
/// # Panics
///
/// In continuous integration, where leaving out is a failure.
#[must_use]
pub fn binaries_or_skip(version: Version) -> Option<Binaries> {
    or_skip(binaries(version), in_ci())
}
