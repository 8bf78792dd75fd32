//! The Kubernetes minors that are supported, and the releases that stand for them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A Kubernetes minor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Kubernetes 1.35.
    V1_35,
    /// Kubernetes 1.36.
    V1_36,
    /// Kubernetes 1.37.
    #[default]
    V1_37,
}

/// The text names no supported minor.
#[derive(Debug, thiserror::Error)]
#[error("unknown Kubernetes version {0:?}; known are 1.35, 1.36 and 1.37")]
pub struct UnknownVersion(String);

impl Version {
    /// All of them, oldest first.
    pub const ALL: [Self; 3] = [Self::V1_35, Self::V1_36, Self::V1_37];

    /// The environment variable by which `cargo xtask test --kubernetes` chooses for all tests.
    pub const VARIABLE: &str = "BOWLINE_KUBERNETES";

    /// The minor that the environment asks for, else the newest.
    ///
    /// # Errors
    ///
    /// When the variable holds something else than a supported minor.
    pub fn wanted() -> Result<Self, UnknownVersion> {
        match std::env::var(Self::VARIABLE) {
            Ok(text) if !text.is_empty() => text.parse(),
            _ => Ok(Self::default()),
        }
    }

    /// The minor as people write it: `1.37`.
    pub fn minor(self) -> &'static str {
        match self {
            Self::V1_35 => "1.35",
            Self::V1_36 => "1.36",
            Self::V1_37 => "1.37",
        }
    }

    /// The release that is built: `v1.37.1`. The Go module file is where it is written.
    pub fn release(self) -> &'static str {
        self.go_mod()
            .lines()
            .find_map(|line| {
                let mut words = line.split_whitespace();
                (words.next() == Some("k8s.io/kubernetes"))
                    .then(|| words.next())
                    .flatten()
            })
            .unwrap_or("unknown")
    }

    /// The name of this release's directory in the cache. It changes with the releases and with the recipe.
    pub(crate) fn cache_key(self, recipe: &str) -> String {
        let key = bowline_real_servers::key([self.go_mod(), self.go_sum(), recipe]);
        format!("{}-{key}", self.release())
    }

    /// Where the Go module of this minor lies in the source tree.
    pub(crate) fn module_directory(self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("go")
            .join(self.minor())
    }

    fn go_mod(self) -> &'static str {
        match self {
            Self::V1_35 => include_str!("../go/1.35/go.mod"),
            Self::V1_36 => include_str!("../go/1.36/go.mod"),
            Self::V1_37 => include_str!("../go/1.37/go.mod"),
        }
    }

    fn go_sum(self) -> &'static str {
        match self {
            Self::V1_35 => include_str!("../go/1.35/go.sum"),
            Self::V1_36 => include_str!("../go/1.36/go.sum"),
            Self::V1_37 => include_str!("../go/1.37/go.sum"),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.minor())
    }
}

impl FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let minor = text.strip_prefix('v').unwrap_or(text);
        Self::ALL
            .into_iter()
            .find(|version| version.minor() == minor)
            .ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_belongs_to_its_minor() {
        for version in Version::ALL {
            assert!(
                version.release().starts_with(&format!("v{version}.")),
                "{version}: {}",
                version.release()
            );
            assert_eq!(version.minor().parse::<Version>().unwrap(), version);
        }
    }

    #[test]
    fn every_staging_module_is_pinned_to_the_release() {
        for version in Version::ALL {
            let staging = version.release().replacen("v1.", "v0.", 1);
            let mut pinned = 0;
            for line in version.go_mod().lines().filter(|line| line.contains(" => ")) {
                assert!(line.ends_with(&staging), "{version}: {line}");
                pinned += 1;
            }
            assert!(pinned > 25, "{version} pins only {pinned} modules");
        }
    }

    #[test]
    fn a_new_recipe_gets_a_new_place_in_the_cache() {
        let version = Version::default();
        assert_eq!(version.cache_key("a"), version.cache_key("a"));
        assert_ne!(version.cache_key("a"), version.cache_key("b"));
    }

    #[test]
    fn an_unknown_minor_is_named_in_the_error() {
        let error = "1.12".parse::<Version>().unwrap_err();
        assert!(error.to_string().contains("1.12"), "{error}");
    }
}
