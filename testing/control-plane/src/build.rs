//! Compiles kube-apiserver and etcd with the Go toolchain.

use bowline_real_servers::{BuildError, go_build, lock_cache};

use crate::binaries::{Binaries, binaries, cache_directory};
use crate::version::Version;

/// Stands for everything below that decides what comes out; part of the cache's key.
pub(crate) const RECIPE: &str = "1: static, trimmed, stripped, with version";

/// The programs of this version, built if the cache does not have them: minutes the first time, then nothing.
///
/// # Errors
///
/// When there is no Go, no network for the modules, or no room.
///
/// # Repeatability
///
/// Of two at once one builds, and the other says that it waits. A build works beside the cache and moves its result into place.
pub fn build(version: Version) -> Result<Binaries, BuildError> {
    if let Ok(found) = binaries(version) {
        return Ok(found);
    }
    let directory = cache_directory(version);
    let at = |error| BuildError::Cache(directory.clone(), error);
    let _lock = lock_cache(&directory).map_err(at)?;
    if let Ok(found) = binaries(version) {
        return Ok(found);
    }
    let beside = tempfile::tempdir_in(&directory).map_err(at)?;
    let fresh = Binaries::expected_in(beside.path());
    let kept = Binaries::expected_in(&directory);
    let (module, flags) = (version.module_directory(), linker_flags(version));
    go_build(&module, "go.etcd.io/etcd/server/v3", &flags, "", &fresh.etcd)?;
    let server = "k8s.io/kubernetes/cmd/kube-apiserver";
    go_build(&module, server, &flags, "", &fresh.kube_apiserver)?;
    std::fs::rename(&fresh.etcd, &kept.etcd).map_err(at)?;
    std::fs::rename(&fresh.kube_apiserver, &kept.kube_apiserver).map_err(at)?;
    Ok(kept)
}

/// Tells the program its version, which a plain build leaves at `v0.0.0-master`.
///
/// The variables are those that Kubernetes' own build sets (`hack/lib/version.sh`).
fn linker_flags(version: Version) -> String {
    let (major, minor) = version.minor().split_once('.').unwrap_or((version.minor(), ""));
    let mut flags = Vec::new();
    for (name, value) in [
        ("gitVersion", version.release()),
        ("gitMajor", major),
        ("gitMinor", minor),
        ("gitTreeState", "clean"),
    ] {
        flags.push(format!("-X k8s.io/component-base/version.{name}={value}"));
    }
    flags.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_told_its_version() {
        let flags = linker_flags(Version::V1_37);
        assert!(flags.contains("version.gitVersion=v1.37."), "{flags}");
        assert!(flags.contains("version.gitMinor=37"), "{flags}");
    }
}
