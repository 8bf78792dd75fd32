//! The Kubernetes minors that are supported, and the releases that stand for them.

use std::fmt;
use std::str::FromStr;

use crate::go::module::{Module, module};

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
        self.module().release("k8s.io/kubernetes")
    }

    /// The Go module of this minor.
    pub(crate) fn module(self) -> Module {
        match self {
            Self::V1_35 => module!("kubernetes/1.35"),
            Self::V1_36 => module!("kubernetes/1.36"),
            Self::V1_37 => module!("kubernetes/1.37"),
        }
    }

    /// Tells the program its version, which a plain build leaves at `v0.0.0-master`.
    ///
    /// The variables are those that Kubernetes' own build sets (`hack/lib/version.sh`).
    pub(crate) fn linker_flags(self) -> String {
        let (major, minor) = self.minor().split_once('.').unwrap_or((self.minor(), ""));
        let mut flags = Vec::new();
        for (name, value) in [
            ("gitVersion", self.release()),
            ("gitMajor", major),
            ("gitMinor", minor),
            ("gitTreeState", "clean"),
        ] {
            flags.push(format!("-X k8s.io/component-base/version.{name}={value}"));
        }
        flags.join(" ")
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
            for line in version
                .module()
                .go_mod
                .lines()
                .filter(|line| line.contains(" => "))
            {
                assert!(line.ends_with(&staging), "{version}: {line}");
                pinned += 1;
            }
            assert!(pinned > 25, "{version} pins only {pinned} modules");
        }
    }

    #[test]
    fn the_server_is_told_its_version() {
        let flags = Version::V1_37.linker_flags();
        assert!(flags.contains("version.gitVersion=v1.37."), "{flags}");
        assert!(flags.contains("version.gitMinor=37"), "{flags}");
    }

    #[test]
    fn an_unknown_minor_is_named_in_the_error() {
        let error = "1.12".parse::<Version>().unwrap_err();
        assert!(error.to_string().contains("1.12"), "{error}");
    }
}
