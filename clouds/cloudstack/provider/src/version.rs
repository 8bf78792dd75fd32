//! The version of the management server, which decides what load balancer rules can do.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::{ApiError, Class, Client};
use tokio::time::Instant;

/// The shortest time between two questions for the version when the first failed.
const INTERVAL: Duration = Duration::from_secs(5);

/// How long the version of an older server is taken for granted.
const LIFE: Duration = Duration::from_secs(3600);

/// The first version whose rules take a list of networks.
const TAKES_CIDRS: Version = Version::new(4, 18, 0);

/// The first version that changes the list of networks of a rule. From this one on nothing depends on the version any more.
const CHANGES_CIDRS: Version = Version::new(4, 22, 0);

/// The id of no virtual machine.
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// A version: three numbers, and possibly a suffix that makes it older than the same one without.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    numbers: [u64; 3],
    release: Release,
}

/// What a version is of its three numbers, the older first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Release {
    /// What comes before it, such as `SNAPSHOT`.
    Before(String),
    Itself,
}

/// What the server can do with the list of networks that a rule takes connections from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// Whether it takes one when a rule is made: from 4.18 on. `None` if its version is not known.
    pub(crate) takes_cidrs: Option<bool>,
    /// Whether it changes that of a rule: from 4.22 on.
    pub(crate) changes_cidrs: bool,
}

/// A text is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no version of CloudStack: it begins with no number, or has a part that is none")]
pub struct VersionError(String);

impl Version {
    /// Older than every version that differs from another one here.
    pub(crate) const OLD: Self = Self::new(0, 0, 0);

    /// A version without a suffix.
    #[must_use]
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self {
            numbers: [major, minor, patch],
            release: Release::Itself,
        }
    }

    /// What a server of this version can do.
    pub(crate) fn abilities(&self) -> Abilities {
        Abilities {
            takes_cidrs: (*self != Self::OLD).then(|| *self >= TAKES_CIDRS),
            changes_cidrs: *self >= CHANGES_CIDRS,
        }
    }

    /// Reads a version as servers tell it, such as `4.22.0.0` or `4.20.0.0-SNAPSHOT`. Only the first three parts count;
    /// those that are missing are zero. Blanks around it, a `v` before it and zeros before numbers are forgiven.
    ///
    /// # Errors
    ///
    /// A part that counts is no number.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let trimmed = text.trim();
        let mut numbers = [0; 3];
        let mut release = Release::Itself;
        let parts = trimmed.strip_prefix('v').unwrap_or(trimmed).split('.');
        for (number, part) in numbers.iter_mut().zip(parts) {
            let (digits, suffix) = part.split_at(part.find(['-', '+']).unwrap_or(part.len()));
            *number = digits.parse().map_err(|_| VersionError(text.to_owned()))?;
            // What is behind a plus is a note of the build, and makes nothing older.
            if let Some(before) = suffix.strip_prefix('-') {
                release = Release::Before(before.to_owned());
            }
            if !suffix.is_empty() {
                break;
            }
        }
        Ok(Self { numbers, release })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        match &self.release {
            Release::Before(suffix) => write!(f, "-{suffix}"),
            Release::Itself => Ok(()),
        }
    }
}

/// The server's version for all who need it.
///
/// It is asked for at start, and again at the first need if the server could not be reached then. The version of an older
/// server is asked for again now and then, because an upgrade opens better ways; nothing is lost as long as it is not
/// noticed, since a newer server understands what an older one does.
pub(crate) struct ServerVersion {
    known: Mutex<Option<Known>>,
    ask: SharedRead<Result<Version, ApiError>>,
}

/// What the server said, and until when it is not asked again; `None`: ever.
type Known = (Version, Option<Instant>);

fn known_now(version: Version) -> Known {
    // Whoever may not ask is not let in by asking again.
    let may_rise = version < CHANGES_CIDRS && version != Version::OLD;
    (version, may_rise.then(|| Instant::now() + LIFE))
}

impl ServerVersion {
    /// `told` by the operator, in which case the server is never asked, or `heard` from the server at start.
    pub(crate) fn new(client: &Client, told: Option<Version>, heard: Option<Version>) -> Self {
        let told = told.map(|version| (version, None));
        Self {
            known: Mutex::new(told.or_else(|| heard.map(known_now))),
            ask: SharedRead::single(INTERVAL, client, |client| async move { ask(&client).await }),
        }
    }

    /// The version. Whoever asks when it is not known shares one question.
    pub(crate) async fn current(&self) -> Result<Version, CloudError> {
        let former = self.known().clone();
        if let Some((version, until)) = &former
            && until.is_none_or(|until| Instant::now() < until)
        {
            return Ok(version.clone());
        }
        let version = match (self.ask.ask().await, former) {
            (Ok(version), _) => version,
            (Err(error), Some((former, _))) => {
                tracing::debug!(err = %error, "The server's version could not be asked for again");
                former
            }
            (Err(error), None) => {
                return Err(
                    CloudError::from(error).context("could not learn the version of the CloudStack server")
                );
            }
        };
        *self.known() = Some(known_now(version.clone()));
        Ok(version)
    }

    fn known(&self) -> MutexGuard<'_, Option<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks for the version: of the management servers, which only administrators may; else with the capabilities, which
/// everybody may. Where both are refused, or tell nothing, an old server is assumed.
///
/// # Errors
///
/// The keys are no good, or there was no answer.
pub(crate) async fn ask(client: &Client) -> Result<Version, ApiError> {
    let refused = match client.management_servers().await {
        // One that tells none does not speak for the others.
        Ok(servers) => match servers.iter().find(|server| !server.version.is_empty()) {
            Some(server) => return Ok(read(&server.version)),
            None => None,
        },
        // Whatever is wrong with the one question, as long as it is the API that says so, the other one may be answered.
        Err(error) if error.said.is_some() => Some(error),
        Err(error) => return Err(error),
    };
    match client.capabilities().await {
        Ok(capabilities) => match capabilities.version {
            Some(version) => Ok(read(&version)),
            None => {
                tracing::warn!("The server does not tell its version, taking it for an old one");
                Ok(Version::OLD)
            }
        },
        Err(error) if never_answers(&error) => {
            let is_unauthorized = |error: &ApiError| error.class == Class::Unauthenticated;
            // Servers say the same of wrong keys and of commands that are not open to the account: what no manager can do
            // without tells them apart.
            if is_unauthorized(&error)
                && refused.as_ref().is_none_or(is_unauthorized)
                && let Err(other) = client.virtual_machine(&NOBODY.into()).await
            {
                return Err(if is_unauthorized(&other) { error } else { other });
            }
            tracing::warn!(
                err = %error,
                "These keys may not ask for the server's version, taking it for an old one"
            );
            Ok(Version::OLD)
        }
        Err(error) => Err(error),
    }
}

/// Whether the server does not answer the question, whatever its words, and would not do so later.
fn never_answers(error: &ApiError) -> bool {
    let is_in_trouble = matches!(error.class, Class::Throttled { .. } | Class::Unavailable { .. });
    error.said.is_some() && !is_in_trouble
}

fn read(text: &str) -> Version {
    Version::parse(text).unwrap_or_else(|error| {
        tracing::warn!(err = %error, "The server's version cannot be read, taking it for an old one");
        Version::OLD
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_are_read_as_upstream_reads_them_and_short_ones_padded() {
        for (text, expected) in [
            ("4.22.0.0", "4.22.0"),
            ("4.20.0.0-SNAPSHOT", "4.20.0"),
            ("4.22.0-SNAPSHOT", "4.22.0-SNAPSHOT"),
            (" v04.22.01 ", "4.22.1"),
            ("4.19.1.2+build.7", "4.19.1"),
            ("4.22", "4.22.0"),
            ("4", "4.0.0"),
            ("4.22-SNAPSHOT", "4.22.0-SNAPSHOT"),
        ] {
            assert_eq!(Version::parse(text).unwrap().to_string(), expected, "{text}");
        }
        for text in [
            "",
            "v",
            "x.y.z",
            "4..0",
            "4.22.x",
            "4.-1.0",
            "vv4.0.0",
            "99999999999999999999999.0.0",
        ] {
            let error = Version::parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }

    #[test]
    fn a_snapshot_of_three_parts_is_older_than_its_release() {
        let version = |text| Version::parse(text).unwrap();
        let change = Version::new(4, 22, 0);
        for newer in ["4.22.0.0", "4.22.0.0-SNAPSHOT", "4.22.1-SNAPSHOT", "4.23", "5"] {
            assert!(version(newer) >= change, "{newer}");
        }
        for older in ["4.22.0-SNAPSHOT", "4.21.9.9", "4.9.0.0", "3.99"] {
            assert!(version(older) < change, "{older}");
        }
        assert!(Version::OLD < version("0.0.1"));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,40}") {
            let _ = Version::parse(&text);
        }

        #[test]
        fn numbers_are_compared_as_numbers(a in any::<(u16, u16, u16)>(), b in any::<(u16, u16, u16)>()) {
            let version = |(major, minor, patch): (u16, u16, u16)| {
                Version::parse(&format!("{major}.{minor}.{patch}.0")).unwrap()
            };
            prop_assert_eq!(version(a).cmp(&version(b)), a.cmp(&b));
        }
    }
}
