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
    use super::*;

    #[test]
    fn the_release_is_the_one_of_the_module_file() {
        assert!(release().starts_with("v4."), "{}", release());
    }
}
