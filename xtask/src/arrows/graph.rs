//! The dependency graph of the workspace, cut down to what the rules ask.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, MetadataCommand};

use crate::workspace::Workspace;

/// Programs are shipped for Linux only; what other platforms pull in does not count.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// One package, of ours or from outside.
#[derive(Debug, Default)]
pub(super) struct Package {
    pub(super) name: String,
    /// Relative to the root; nothing for a crate from outside.
    pub(super) folder: Option<String>,
    /// Keys of the packages that are linked into it or run to build it.
    pub(super) needs: BTreeSet<String>,
    /// Keys of the packages that only its tests need.
    pub(super) tests_need: BTreeSet<String>,
}

/// All packages by their key, which tells two versions of one crate apart.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) packages: BTreeMap<String, Package>,
}

impl Graph {
    /// Asks cargo.
    pub(super) fn read(workspace: &Workspace) -> Result<Self> {
        let metadata = MetadataCommand::new()
            .current_dir(workspace.root())
            .other_options(vec!["--filter-platform".to_owned(), PLATFORM.to_owned()])
            .exec()
            .context("cargo metadata")?;
        let mut packages: BTreeMap<String, Package> = metadata
            .packages
            .iter()
            .map(|package| {
                let folder = package
                    .source
                    .is_none()
                    .then(|| {
                        package
                            .manifest_path
                            .parent()?
                            .strip_prefix(&metadata.workspace_root)
                            .ok()
                    })
                    .flatten()
                    .map(ToString::to_string);
                let name = package.name.to_string();
                (
                    package.id.to_string(),
                    Package {
                        name,
                        folder,
                        ..Package::default()
                    },
                )
            })
            .collect();
        for node in &metadata.resolve.context("cargo metadata gave no graph")?.nodes {
            let Some(package) = packages.get_mut(&node.id.to_string()) else {
                continue;
            };
            for dependency in &node.deps {
                let linked = dependency
                    .dep_kinds
                    .iter()
                    .any(|kind| kind.kind != DependencyKind::Development);
                let list = if linked {
                    &mut package.needs
                } else {
                    &mut package.tests_need
                };
                list.insert(dependency.pkg.to_string());
            }
        }
        Ok(Self { packages })
    }

    /// Our own packages with their keys and folders.
    pub(super) fn ours(&self) -> impl Iterator<Item = (&str, &str, &Package)> {
        self.packages
            .iter()
            .filter_map(|(key, package)| Some((key.as_str(), package.folder.as_deref()?, package)))
    }

    /// The shortest way from a package to another that answers the question, by names, both ends included.
    pub(super) fn path_to(&self, from: &str, wanted: impl Fn(&Package) -> bool) -> Option<Vec<&str>> {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut queue = std::collections::VecDeque::from([self.packages.get_key_value(from)?.0.as_str()]);
        while let Some(key) = queue.pop_front() {
            let package = self.packages.get(key)?;
            if key != from && wanted(package) {
                let mut path = vec![package.name.as_str()];
                let mut at = key;
                while let Some(before) = came_from.get(at) {
                    path.push(self.packages.get(*before)?.name.as_str());
                    at = before;
                }
                path.reverse();
                return Some(path);
            }
            for next in &package.needs {
                if next != from && !came_from.contains_key(next.as_str()) {
                    came_from.insert(next, key);
                    queue.push_back(next);
                }
            }
        }
        None
    }
}
