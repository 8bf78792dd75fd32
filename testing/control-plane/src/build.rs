//! Compiles kube-apiserver and etcd with the Go toolchain.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::binaries::{Binaries, binaries, cache_directory};
use crate::version::Version;

/// Stands for everything below that decides what comes out; part of the cache's key.
pub(crate) const RECIPE: &str = "1: static, trimmed, stripped, with version";

/// Why the programs could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No Go toolchain could be started.
    #[error("cannot start go")]
    NoGo(#[source] io::Error),
    /// The compiler said no; what it said is on stderr.
    #[error("go build of {package} failed: {status}")]
    Failed {
        /// The Go package.
        package: &'static str,
        /// How the compiler ended.
        status: ExitStatus,
    },
    /// The cache could not be written.
    #[error("cannot write {0}")]
    Cache(PathBuf, #[source] io::Error),
}

/// The programs of this version, built if the cache does not have them: minutes the first time, then nothing.
///
/// # Errors
///
/// When there is no Go, no network for the modules, or no room.
///
/// # Repeatability
///
/// Two builds at once waste time and nothing else: each works beside the cache and moves its result into place.
pub fn build(version: Version) -> Result<Binaries, BuildError> {
    if let Ok(found) = binaries(version) {
        return Ok(found);
    }
    let directory = cache_directory(version);
    let at = |error| BuildError::Cache(directory.clone(), error);
    std::fs::create_dir_all(&directory).map_err(at)?;
    let beside = tempfile::tempdir_in(&directory).map_err(at)?;
    let fresh = Binaries::expected_in(beside.path());
    let kept = Binaries::expected_in(&directory);
    go_build(version, "go.etcd.io/etcd/server/v3", &fresh.etcd)?;
    go_build(
        version,
        "k8s.io/kubernetes/cmd/kube-apiserver",
        &fresh.kube_apiserver,
    )?;
    std::fs::rename(&fresh.etcd, &kept.etcd).map_err(at)?;
    std::fs::rename(&fresh.kube_apiserver, &kept.kube_apiserver).map_err(at)?;
    Ok(kept)
}

fn go_build(version: Version, package: &'static str, output: &Path) -> Result<(), BuildError> {
    let status = Command::new("go")
        .current_dir(version.module_directory())
        .args([
            "build",
            "-mod=readonly",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            &linker_flags(version),
            "-o",
        ])
        .arg(output)
        .arg(package)
        .env("CGO_ENABLED", "0")
        // A workspace file or flags of the person who builds must not decide what comes out.
        .env("GOWORK", "off")
        .env("GOFLAGS", "")
        .stdin(Stdio::null())
        .status()
        .map_err(BuildError::NoGo)?;
    if status.success() {
        Ok(())
    } else {
        Err(BuildError::Failed { package, status })
    }
}

/// Strips the program and tells it its version, which a plain build leaves at `v0.0.0-master`.
///
/// The variables are those that Kubernetes' own build sets (`hack/lib/version.sh`).
fn linker_flags(version: Version) -> String {
    let (major, minor) = version.minor().split_once('.').unwrap_or((version.minor(), ""));
    let mut flags = vec!["-s".to_owned(), "-w".to_owned()];
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
