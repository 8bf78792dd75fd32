//! One program: where it is kept, and how it is built.

use std::fs;
use std::path::PathBuf;

use crate::server::{cache_directory, key, lock_cache};

use crate::go::module::{Module, module};
use crate::go::toolchain::{BuildError, go_build};
use crate::go::version::Version;

/// Stands for everything in this crate that decides what comes out, but for tags; part of the cache's keys.
const RECIPE: &str = "1: static, trimmed, stripped, with version";

/// Without the discovery of the clouds' services, which is most of Prometheus.
const NO_CLOUDS: &str = "remove_all_sd";

const HELM: Module = module!("helm");
const PROMTOOL: Module = module!("promtool");

/// A program that the Go toolchain builds from a published module.
#[derive(Debug, Clone)]
pub struct GoProgram {
    /// Where in the cache it is.
    directory: PathBuf,
    file: String,
    module: Module,
    package: &'static str,
    linker_flags: String,
    tags: &'static str,
}

impl GoProgram {
    /// The API server of this version.
    #[must_use]
    pub fn kube_apiserver(version: Version) -> Self {
        let package = "k8s.io/kubernetes/cmd/kube-apiserver";
        Self::of_kubernetes(version, "kube-apiserver", package)
    }

    /// The store of this version's API server.
    #[must_use]
    pub fn etcd(version: Version) -> Self {
        Self::of_kubernetes(version, "etcd", "go.etcd.io/etcd/server/v3")
    }

    fn of_kubernetes(version: Version, file: &str, package: &'static str) -> Self {
        let module = version.module();
        let directory = format!("{}-{}", version.release(), module.key(RECIPE));
        Self {
            directory: cache_directory("control-plane").join(directory),
            file: file.to_owned(),
            module,
            package,
            linker_flags: version.linker_flags(),
            tags: "",
        }
    }

    /// A manager of the framework beside which ours runs: `go/peer/main.go` of this crate, with the modules of this version.
    #[must_use]
    pub fn peer(version: Version) -> Self {
        const SOURCE: &str = include_str!("../../go/peer/main.go");
        let program = Self::of_kubernetes(version, "", "../../peer/main.go");
        let key = key([&*program.module.key(RECIPE), SOURCE]);
        Self {
            directory: cache_directory("peer"),
            file: format!("peer-{}-{key}", version.minor()),
            ..program
        }
    }

    /// Helm.
    #[must_use]
    pub fn helm() -> Self {
        let release = HELM.release("helm.sh/helm/v4");
        Self {
            directory: cache_directory("helm").join(format!("{release}-{}", HELM.key(RECIPE))),
            file: "helm".to_owned(),
            module: HELM,
            package: "helm.sh/helm/v4/cmd/helm",
            // The variable is the one that Helm's own Makefile sets.
            linker_flags: format!("-X helm.sh/helm/v4/internal/version.version={release}"),
            tags: "",
        }
    }

    /// Prometheus' checker of rules.
    #[must_use]
    pub fn promtool() -> Self {
        Self {
            directory: cache_directory("promtool"),
            file: format!("promtool-{}", PROMTOOL.key(NO_CLOUDS)),
            module: PROMTOOL,
            package: "github.com/prometheus/prometheus/cmd/promtool",
            linker_flags: String::new(),
            tags: NO_CLOUDS,
        }
    }

    /// The folder in the cache, which is this release's alone but for promtool's. Nothing is created here.
    #[must_use]
    pub fn directory(&self) -> &std::path::Path {
        &self.directory
    }

    /// Where it is, once it is built.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.directory.join(&self.file)
    }

    /// Whether the cache has it.
    #[must_use]
    pub fn is_built(&self) -> bool {
        self.path().is_file()
    }

    /// Builds it unless the cache has it: minutes the first time, then nothing. Answers where it is.
    ///
    /// # Errors
    ///
    /// When there is no Go, no network for the modules, or no room.
    ///
    /// # Repeatability
    ///
    /// Of two at once one builds, and the other says that it waits. A build works beside the cache and moves its result into place.
    pub fn build(&self) -> Result<PathBuf, BuildError> {
        let (directory, path) = (&self.directory, self.path());
        if path.is_file() {
            return Ok(path);
        }
        let at = |error| BuildError::Cache(directory.clone(), error);
        let _lock = lock_cache(directory).map_err(at)?;
        if path.is_file() {
            return Ok(path);
        }
        let beside = tempfile::tempdir_in(directory).map_err(at)?;
        let fresh = beside.path().join(&self.file);
        go_build(
            &self.module.directory(),
            self.package,
            &self.linker_flags,
            self.tags,
            &fresh,
        )?;
        fs::rename(&fresh, &path).map_err(at)?;
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The modules that a module requires, with their versions. Kubernetes' own are at `v0.0.0` where they are replaced.
    fn required(module: Module) -> BTreeMap<&'static str, &'static str> {
        let lines = module
            .go_mod
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
        let control_plane = required(Version::default().module());
        let shared = required(HELM).into_iter();
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
        let directory = GoProgram::helm().directory;
        let name = directory.file_name().unwrap().to_string_lossy();
        assert!(name.starts_with("v4."), "{name}");
    }

    #[test]
    fn a_new_recipe_gets_a_new_place_in_the_cache() {
        assert_eq!(HELM.key("a"), HELM.key("a"));
        assert_ne!(HELM.key("a"), HELM.key("b"));
    }

    #[test]
    fn the_programs_of_each_version_have_a_place_of_their_own() {
        let mut places: Vec<PathBuf> = Version::ALL
            .into_iter()
            .flat_map(|version| {
                let peer = GoProgram::peer(version);
                [GoProgram::kube_apiserver(version), GoProgram::etcd(version), peer]
            })
            .chain([GoProgram::helm(), GoProgram::promtool()])
            .map(|program| program.path())
            .collect();
        let count = places.len();
        places.sort();
        places.dedup();
        assert_eq!(places.len(), count);
    }
}
