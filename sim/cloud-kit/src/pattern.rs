//! Patterns over request paths.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A path whose segments may be wild: `*` stands for one segment, a final `**` for any number of them.
///
/// `/v1/pools/*/members` matches `/v1/pools/91/members` and not `/v1/pools/91/members/c4`. A slash at the end is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PathPattern(String);

impl PathPattern {
    /// Whether `path` (without its query) fits.
    pub fn matches(&self, path: &str) -> bool {
        let mut wanted = segments(&self.0);
        let mut given = segments(path);
        loop {
            match (wanted.next(), given.next()) {
                (Some("**"), _) | (None, None) => return true,
                (Some("*"), Some(_)) => {}
                (Some(want), Some(have)) if want == have => {}
                _ => return false,
            }
        }
    }
}

fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

impl From<&str> for PathPattern {
    fn from(pattern: &str) -> Self {
        Self(pattern.to_owned())
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_segment_by_segment() {
        for (pattern, path, fits) in [
            ("/v1/pools", "/v1/pools", true),
            ("/v1/pools", "/v1/pools/", true),
            ("/v1/pools", "/v1/pools/1", false),
            ("/v1/*", "/v1/pools", true),
            ("/v1/*", "/v1", false),
            ("/v1/pools/*/members", "/v1/pools/9/members", true),
            ("/v1/pools/*/members", "/v1/pools/9/members/3", false),
            ("/v1/**", "/v1/pools/9/members/3", true),
            ("/v1/**", "/v1", true),
            ("/v2/**", "/v1/pools", false),
        ] {
            assert_eq!(PathPattern::from(pattern).matches(path), fits, "{pattern} {path}");
        }
    }
}
