//! Where the installed services are found.

use std::fs;
use std::path::{Path, PathBuf};

use bowline_base::server::{cache_directory, key};

/// The names of the wanted Python packages.
pub(crate) const REQUIREMENTS: &str = include_str!("../python/requirements.txt");

/// The versions of all Python packages.
pub(crate) const CONSTRAINTS: &str = include_str!("../python/constraints.txt");

/// Stands for everything in [`crate::install`] and [`crate::seed`] that decides what comes out; part of the cache's key.
const RECIPE: &str = "1: virtual environment, databases after migration, users and catalog";

/// The services in the cache, ready to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    root: PathBuf,
}

/// The services are not installed.
#[derive(Debug, thiserror::Error)]
#[error(
    "the OpenStack services are not installed; run `cargo run -p bowline-openstack-services -- install` (needs the network and, for missing system packages, root)"
)]
pub struct Missing;

impl Installation {
    /// The installation that this source tree asks for.
    ///
    /// # Errors
    ///
    /// When it is not there, or not finished. Nothing is installed here: that takes minutes, and a test should not.
    pub fn find() -> Result<Self, Missing> {
        let wanted = Self::wanted();
        if wanted.is_finished() {
            Ok(wanted)
        } else {
            Err(Missing)
        }
    }

    /// Where the installation that this source tree asks for is, or will be.
    pub(crate) fn wanted() -> Self {
        let lines = REQUIREMENTS.lines().chain(CONSTRAINTS.lines());
        let key = key(lines.filter(|line| !line.starts_with('#')).chain([RECIPE]));
        Self {
            root: cache_directory("openstack-services").join(key),
        }
    }

    /// The version of a Python package, as it is pinned.
    pub fn version(package: &str) -> Option<&'static str> {
        CONSTRAINTS.lines().find_map(|line| {
            let (name, version) = line.split_once("==")?;
            name.eq_ignore_ascii_case(package).then_some(version)
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The virtual environment with the services.
    pub(crate) fn environment(&self) -> PathBuf {
        self.root.join("venv")
    }

    /// A program of the virtual environment.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.environment().join("bin").join(name)
    }

    /// The databases and keys with which every cloud begins.
    pub(crate) fn seed(&self) -> PathBuf {
        self.root.join("seed")
    }

    /// Whether all of it was installed, and for the place where it is now: a virtual environment holds its own path.
    pub(crate) fn is_finished(&self) -> bool {
        self.is_marked("packages") && self.is_marked("databases")
    }

    /// Whether a part was finished.
    pub(crate) fn is_marked(&self, part: &str) -> bool {
        fs::read_to_string(self.marker(part)).is_ok_and(|text| Path::new(&text) == self.root)
    }

    /// Notes that a part is finished.
    pub(crate) fn mark(&self, part: &str) -> std::io::Result<()> {
        fs::write(self.marker(part), self.root.to_string_lossy().as_bytes())
    }

    fn marker(&self, part: &str) -> PathBuf {
        self.root.join(format!("{part}.finished"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wanted_package_has_a_pinned_version() {
        let wanted = REQUIREMENTS
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        for package in wanted {
            assert!(Installation::version(package).is_some(), "{package}");
        }
    }

    #[test]
    fn an_installation_that_was_moved_or_broken_off_is_not_finished() {
        let directory = tempfile::tempdir().unwrap();
        let here = Installation {
            root: directory.path().join("here"),
        };
        fs::create_dir(here.root()).unwrap();
        here.mark("packages").unwrap();
        assert!(!here.is_finished());
        here.mark("databases").unwrap();
        assert!(here.is_finished());

        let moved = Installation {
            root: directory.path().join("moved"),
        };
        fs::rename(here.root(), moved.root()).unwrap();
        assert!(!moved.is_finished());
    }
}
