//! The load balancer setting, in the form of a URL: `kube-vip://<public network ID>`.

use std::fmt;

use bowline_cloud_http::{glimpse, is_url_text, is_word};
use percent_encoding::percent_decode_str;

/// Whether Services get blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadBalancing {
    /// They do not.
    Off,
    /// They do, on this network, and kube-vip announces their addresses.
    KubeVip {
        /// The ID of the public network.
        network: String,
    },
    /// They do not, because nobody knows this type: as much of its name as may be shown.
    UnknownType(String),
}

impl LoadBalancing {
    /// Reads the setting. The scheme is read in any letter case, the network's ID is not changed; it stands in the host's
    /// place, or with three slashes in that of the first path segment. What follows it has no effect.
    ///
    /// # Errors
    ///
    /// The text is no such URL, or names no network.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_ascii();
        if text.is_empty() {
            return Ok(Self::Off);
        }
        let no_url = || "not a URL, the form is kube-vip://<public network ID>".to_owned();
        let no_network =
            || "the public network ID is missing, the form is kube-vip://<public network ID>".to_owned();
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(if text.eq_ignore_ascii_case("kube-vip") {
                no_network()
            } else {
                no_url()
            });
        };
        let mut letters = scheme.chars();
        let is_scheme = letters.next().is_some_and(|first| first.is_ascii_alphabetic())
            && letters.all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
        if !is_scheme || !is_url_text(rest) {
            return Err(no_url());
        }
        if !scheme.eq_ignore_ascii_case("kube-vip") {
            // It may be the first half of a secret that stands in the wrong place.
            let shown = if is_word(scheme) {
                scheme.to_owned()
            } else {
                glimpse(scheme)
            };
            return Ok(Self::UnknownType(shown));
        }
        let rest = rest.strip_prefix("//").ok_or_else(no_network)?;
        let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let network = if host.is_empty() {
            path.split('/').next().unwrap_or_default()
        } else {
            host
        };
        if network.contains(':') {
            return Err("a public network ID has no port".to_owned());
        }
        let network = percent_decode_str(network)
            .decode_utf8()
            .map_err(|_| "the public network ID is not readable".to_owned())?;
        if network.is_empty() {
            return Err(no_network());
        }
        // It becomes a segment of paths, where these two stand for something else.
        if matches!(&*network, "." | "..") {
            return Err("no public network has such an ID".to_owned());
        }
        Ok(Self::KubeVip {
            network: network.into_owned(),
        })
    }
}

impl fmt::Display for LoadBalancing {
    // What the setting had beside of this may be a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => Ok(()),
            Self::KubeVip { network } => write!(f, "kube-vip://{network}"),
            Self::UnknownType(kind) => write!(f, "{kind}://..."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_setting_is_read() {
        let network = |network: &str| {
            Ok(LoadBalancing::KubeVip {
                network: network.to_owned(),
            })
        };
        let unknown = |kind: &str| Ok(LoadBalancing::UnknownType(kind.to_owned()));
        for (text, expected) in [
            ("", Ok(LoadBalancing::Off)),
            ("  ", Ok(LoadBalancing::Off)),
            (
                "kube-vip://6598f7c2d2a94b6e0f1c1234",
                network("6598f7c2d2a94b6e0f1c1234"),
            ),
            ("KUBE-VIP://AbC", network("AbC")),
            ("kube-vip://N/anything?x=y", network("N")),
            ("kube-vip:///N", network("N")),
            ("kube-vip:///N/more", network("N")),
            ("kube-vip://u@N", network("N")),
            ("kube-vip://a%2Fb", network("a/b")),
            ("kube-vip://u:p@N", network("N")),
            ("metallb://N", unknown("metallb")),
            ("metallb:///", unknown("metallb")),
            ("empty://", unknown("empty")),
        ] {
            assert_eq!(LoadBalancing::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn what_names_no_network_is_refused() {
        for text in [
            "kube-vip://",
            "kube-vip",
            "kube-vip:///",
            "kube-vip://?x",
            "kube-vip:N",
        ] {
            let error = LoadBalancing::parse(text).unwrap_err();
            assert!(error.contains("network ID is missing"), "{text}: {error}");
        }
        for text in [
            "disabled",
            "60f0c2a9be11d37a5c90e1b4",
            "kube-vip://a b",
            "kube-vip://a%zz",
            "kube-vip://a%2",
            "kube-vip://N/a%zz",
            "kube-vip://<network>",
            "kube-vip://a\\b",
            "metallb://a b",
            "://x",
            "1x://y",
        ] {
            let error = LoadBalancing::parse(text).unwrap_err();
            assert!(error.starts_with("not a URL"), "{text}: {error}");
        }
        assert!(LoadBalancing::parse("kube-vip://..").is_err());
        assert!(
            LoadBalancing::parse("kube-vip://N:99")
                .unwrap_err()
                .contains("port")
        );
    }
}
