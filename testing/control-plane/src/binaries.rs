//! Where kube-apiserver and etcd are found.

use std::env;
use std::path::{Path, PathBuf};

use bowline_real_servers::in_ci;

use crate::build::RECIPE;
use crate::version::Version;

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
    /// The programs in a directory, if it has both.
    pub(crate) fn in_directory(directory: &Path) -> Option<Self> {
        let found = Self::expected_in(directory);
        (found.kube_apiserver.is_file() && found.etcd.is_file()).then_some(found)
    }

    /// Where the programs are in a directory, once it has them.
    pub(crate) fn expected_in(directory: &Path) -> Self {
        Self {
            kube_apiserver: directory.join("kube-apiserver"),
            etcd: directory.join("etcd"),
        }
    }
}

/// Finds the programs: in the directory that `KUBEBUILDER_ASSETS` names, whatever their version, else in the cache.
///
/// # Errors
///
/// When they are not there. Nothing is built here: that takes minutes, and a test should not.
pub fn binaries(version: Version) -> Result<Binaries, Missing> {
    if let Some(assets) = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from) {
        return Binaries::in_directory(&assets).ok_or(Missing::Assets(assets));
    }
    Binaries::in_directory(&cache_directory(version)).ok_or(Missing::Unbuilt { version })
}

/// What a test calls that needs the real API server: the programs, or nothing and a line that says what was left out.
///
/// # Panics
///
/// In continuous integration, where leaving out is a failure.
#[expect(
    clippy::print_stderr,
    clippy::panic,
    reason = "speaks to whoever runs the tests"
)]
pub fn binaries_or_leave_out(version: Version, what: &str) -> Option<Binaries> {
    match binaries(version) {
        Ok(binaries) => Some(binaries),
        Err(missing) if in_ci() => panic!("{what}: {missing}"),
        Err(missing) => {
            eprintln!("left out: {what}: {missing}");
            None
        }
    }
}

/// The directory of one version in the cache, which git ignores.
pub(crate) fn cache_directory(version: Version) -> PathBuf {
    bowline_real_servers::cache_directory("control-plane").join(version.cache_key(RECIPE))
}
