//! Compiles Helm with the Go toolchain.

use std::path::Path;

use bowline_real_servers::{BuildError, go_build, lock_cache};

use crate::helm::{Helm, directory};

const PACKAGE: &str = "helm.sh/helm/v4/cmd/helm";

/// Stands for everything below that decides what comes out; part of the cache's key.
pub(crate) const RECIPE: &str = "1: static, trimmed, stripped, with version";

pub(crate) const GO_MOD: &str = include_str!("../go/go.mod");
pub(crate) const GO_SUM: &str = include_str!("../go/go.sum");

/// Helm, built if the cache does not have it: minutes the first time, then nothing.
///
/// # Errors
///
/// When there is no Go, no network for the modules, or no room.
///
/// # Repeatability
///
/// Of two at once one builds, and the other says that it waits. A build works beside the cache and moves its result into place.
pub fn build() -> Result<Helm, BuildError> {
    if let Ok(found) = Helm::find() {
        return Ok(found);
    }
    let directory = directory();
    let at = |error| BuildError::Cache(directory.clone(), error);
    let _lock = lock_cache(&directory).map_err(at)?;
    if let Ok(found) = Helm::find() {
        return Ok(found);
    }
    let beside = tempfile::tempdir_in(&directory).map_err(at)?;
    let fresh = beside.path().join("helm");
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("go");
    // The variable is the one that Helm's own Makefile sets.
    let version = format!("-X helm.sh/helm/v4/internal/version.version={}", release());
    go_build(&module, PACKAGE, &version, "", &fresh)?;
    let kept = Helm::expected();
    std::fs::rename(&fresh, kept.program()).map_err(at)?;
    Ok(kept)
}

/// The release that is built: `v4.3.1`. The Go module file is where it is written.
pub(crate) fn release() -> &'static str {
    GO_MOD
        .lines()
        .find_map(|line| {
            let mut words = line.split_whitespace().skip_while(|word| *word == "require");
            (words.next() == Some("helm.sh/helm/v4"))
                .then(|| words.next())
                .flatten()
        })
        .unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The modules that a module file requires, with their versions. Kubernetes' own are at `v0.0.0` where they are replaced.
    fn required(file: &str) -> BTreeMap<&str, &str> {
        let lines = file
            .lines()
            .map(|line| line.trim().trim_end_matches(" // indirect"));
        let modules = lines.filter_map(|line| line.split_once(" v"));
        modules
            .filter(|(module, version)| {
                !module.contains(' ') && !version.contains(' ') && *version != "0.0.0"
            })
            .collect()
    }

    /// What both programs are made of is compiled once then: a minute and a half of a first run on two cores.
    #[test]
    fn helm_and_kube_apiserver_share_their_modules() {
        let control_plane = required(include_str!("../../control-plane/go/1.37/go.mod"));
        let shared = required(GO_MOD).into_iter();
        let shared = shared.filter_map(|(module, ours)| Some((module, ours, *control_plane.get(module)?)));
        let (same, different): (Vec<_>, Vec<_>) = shared.partition(|(_, ours, theirs)| ours == theirs);
        assert!(same.len() > 30, "{same:?}");
        assert!(
            different.is_empty(),
            "set both to the newer version: {different:?}"
        );
    }

    #[test]
    fn the_release_is_the_one_of_the_module_file() {
        assert!(release().starts_with("v4."), "{}", release());
    }
}
