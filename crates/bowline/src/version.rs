//! Which version this is.

use bowline_cloud_provider::ServerVersion;

/// The line of the framework whose flags, metrics and behaviour this program keeps to.
const FRAMEWORK: (&str, &str, &str) = ("1", "37", "0");

/// The commit of a build that does not know it.
pub const UNKNOWN: &str = "unknown";

/// What is known of the build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The major version of the framework's line.
    pub major: String,
    /// The minor version of the framework's line.
    pub minor: String,
    /// The version as reported, such as `v1.37.0+bowline.0.1.0`.
    pub git_version: String,
    /// The commit it was built from; [`UNKNOWN`] if the build was not of a checkout, or one for tests.
    pub git_commit: &'static str,
    /// `clean` or `dirty`; empty if the build did not say.
    pub git_tree_state: &'static str,
    /// When it was built; empty if the build did not say, so that two builds of one commit are equal.
    pub build_date: &'static str,
    /// The compiler.
    pub compiler: &'static str,
    /// Operating system and architecture in Go's words, such as `linux/amd64`.
    pub platform: String,
}

impl Version {
    /// The version of this program.
    pub fn current() -> Self {
        let (major, minor, patch) = FRAMEWORK;
        Self {
            major: major.to_owned(),
            minor: minor.to_owned(),
            git_version: format!("v{major}.{minor}.{patch}+bowline.{}", env!("CARGO_PKG_VERSION")),
            git_commit: env!("BOWLINE_COMMIT"),
            git_tree_state: option_env!("BOWLINE_GIT_TREE_STATE").unwrap_or_default(),
            build_date: option_env!("BOWLINE_BUILD_DATE").unwrap_or_default(),
            compiler: "rustc",
            platform: platform(),
        }
    }

    /// The same build under another version, such as `v1.37.2`.
    ///
    /// # Errors
    ///
    /// The text is not a version of the same line.
    pub fn reported_as(mut self, text: &str) -> Result<Self, String> {
        let core = text
            .strip_prefix('v')
            .and_then(|rest| rest.split(['-', '+']).next())
            .map(|core| core.split('.').collect::<Vec<_>>());
        let is_version =
            |core: &[&str]| core.len() == 3 && core.iter().all(|part| part.parse::<u32>().is_ok());
        match core {
            Some(core) if is_version(&core) => {
                self.major = core[0].to_owned();
                self.minor = core[1].to_owned();
                self.git_version = text.to_owned();
                Ok(self)
            }
            _ => Err(format!("invalid version {text:?}: must be like v1.2.3")),
        }
    }

    /// The version of Kubernetes that it keeps to.
    pub(crate) fn follows(&self) -> Option<ServerVersion> {
        ServerVersion::parse(&self.major, &self.minor)
    }

    /// The line that `--version` prints, in the words of the Go manager that the program is called by the name of.
    pub fn line(&self, program: &str) -> String {
        let name = match program {
            "cloud-provider-phoenixnap" => "Cloud Provider PhoenixNAP",
            _ => "Kubernetes",
        };
        format!("{name} {}", self.git_version)
    }

    /// The lines that `--version=raw` prints.
    pub fn raw(&self) -> String {
        format!(
            "version.Info{{Major:{:?}, Minor:{:?}, GitVersion:{:?}, GitCommit:{:?}, GitTreeState:{:?}, \
             BuildDate:{:?}, Compiler:{:?}, Platform:{:?}}}",
            self.major,
            self.minor,
            self.git_version,
            self.git_commit,
            self.git_tree_state,
            self.build_date,
            self.compiler,
            self.platform
        )
    }

    /// What `version` prints: the line of `--version`, and what is known of the build.
    pub fn lines(&self, program: &str) -> String {
        let known = [
            ("commit", self.git_commit),
            ("tree", self.git_tree_state),
            ("built", self.build_date),
            ("platform", &self.platform),
        ];
        let lines = known.iter().filter(|(_, value)| !value.is_empty());
        let lines = lines.map(|(name, value)| format!("{name}: {value}\n"));
        format!("{}\n{}", self.line(program), lines.collect::<String>())
    }

    /// The same for programs, with the names of `kubectl version --output=json`.
    pub fn json(&self) -> String {
        let value = serde_json::json!({
            "major": self.major,
            "minor": self.minor,
            "gitVersion": self.git_version,
            "gitCommit": self.git_commit,
            "gitTreeState": self.git_tree_state,
            "buildDate": self.build_date,
            "compiler": self.compiler,
            "platform": self.platform,
        });
        format!("{value:#}\n")
    }

    /// The `User-Agent` of requests: `name/version (os/arch) kubernetes/commit`.
    pub fn user_agent(&self, name: &str) -> String {
        let commit = self.git_commit.get(..7).unwrap_or(UNKNOWN);
        format!(
            "{name}/{} ({}) kubernetes/{commit}",
            self.git_version, self.platform
        )
    }
}

fn platform() -> String {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    format!("{}/{architecture}", std::env::consts::OS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_line_has_the_framework_s_form() {
        let line = |program| Version::current().line(program);
        assert!(line("cloud-controller-manager").starts_with("Kubernetes v1.37."));
        assert!(line("cloud-provider-phoenixnap").starts_with("Cloud Provider PhoenixNAP v1.37."));
    }

    #[test]
    fn the_reported_version_can_be_changed_to_another_version_only() {
        let version = Version::current().reported_as("v1.35.4-test").unwrap();
        assert_eq!(
            (
                version.minor.as_str(),
                version.line("cloud-controller-manager").as_str()
            ),
            ("35", "Kubernetes v1.35.4-test")
        );
        for text in ["1.2.3", "v1.2", "v1.2.x", "yes"] {
            assert!(Version::current().reported_as(text).is_err(), "{text}");
        }
    }
}
