//! Which requests go through a proxy, by the rules of Go's `net/http` (package `golang.org/x/net/http/httpproxy`), so
//! that a cluster's settings keep their meaning.

use std::fmt;
use std::net::IpAddr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderValue, Uri};
use ipnet::IpNet;
use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret as _, SecretSlice};
use url::Url;

/// The port of a SOCKS proxy that names none, as in Go.
const SOCKS_PORT: u16 = 1080;

/// `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, parsed.
#[derive(Debug, Clone, Default)]
pub struct ProxyRules {
    /// For everything, whatever else is said.
    always: Option<Proxy>,
    http: Option<Proxy>,
    https: Option<Proxy>,
    direct: Vec<Exception>,
}

/// One proxy.
#[derive(Clone)]
pub struct Proxy {
    uri: Uri,
    login: Option<Login>,
}

/// User and password of a proxy.
#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) user: Vec<u8>,
    pub(crate) password: SecretSlice<u8>,
}

/// How a proxy is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1, inside of TLS if the scheme is `https`.
    Http,
    /// SOCKS, version 5. Names are looked up by the proxy, as Go's library has it for both of the schemes.
    Socks,
}

/// A proxy's URL cannot be used. The URL itself is not shown, since it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// The value is not a URL with a host.
    #[error("{variable} is not a URL")]
    Url {
        /// The environment variable, or the key of the file.
        variable: &'static str,
    },
    /// Nobody speaks to a proxy of this kind.
    #[error(
        "{variable} has a scheme that is not supported; a proxy is http://, https://, socks5:// or socks5h://"
    )]
    Scheme {
        /// The environment variable, or the key of the file.
        variable: &'static str,
    },
    /// SOCKS has a byte for the length of each.
    #[error("{variable} has a user or password that SOCKS cannot carry: each has 1 to 255 bytes")]
    Login {
        /// The environment variable, or the key of the file.
        variable: &'static str,
    },
}

/// An entry of `NO_PROXY`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Exception {
    /// `*`: everything.
    All,
    /// An address, with or without a port.
    Address(IpAddr, Option<u16>),
    /// A network such as `10.0.0.0/8`.
    Network(IpNet),
    /// A domain: `example.com` holds for itself and all below; with a dot in front, only for all below.
    Domain {
        /// Lower case, with a dot in front.
        suffix: String,
        itself: bool,
        port: Option<u16>,
    },
}

impl ProxyRules {
    /// Reads the rules from an environment that is handed in; upper case wins over lower case.
    ///
    /// # Errors
    ///
    /// A proxy's URL does not parse, or names a scheme that is not supported.
    pub fn from_env(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ProxyError> {
        let value = |upper: &str| {
            [upper.to_owned(), upper.to_lowercase()]
                .iter()
                .find_map(|name| lookup(name).filter(|value| !value.is_empty()))
        };
        let proxy = |name: &'static str| value(name).map(|text| Proxy::parse(name, &text)).transpose();
        Ok(Self {
            always: None,
            http: proxy("HTTP_PROXY")?,
            https: proxy("HTTPS_PROXY")?,
            direct: value("NO_PROXY")
                .map(|text| exceptions(&text))
                .unwrap_or_default(),
        })
    }

    /// One proxy for everything, whatever the environment says; `origin` is where it is named.
    ///
    /// # Errors
    ///
    /// The proxy's URL does not parse, or names a scheme that is not supported.
    pub fn always(origin: &'static str, text: &str) -> Result<Self, ProxyError> {
        Ok(Self {
            always: Some(Proxy::parse(origin, text)?),
            ..Self::default()
        })
    }

    /// The credentials that go with a plain request, which the proxy itself reads. To all others they go when the
    /// connection is made.
    pub fn forward_auth(&self, target: &Uri) -> Option<HeaderValue> {
        if target.scheme_str() != Some("http") {
            return None;
        }
        let proxy = self.proxy_for(target)?;
        (proxy.protocol() == Protocol::Http).then(|| proxy.auth())?
    }

    /// The proxy for a request, or `None` where it goes to its host directly.
    pub fn proxy_for(&self, target: &Uri) -> Option<&Proxy> {
        if let Some(proxy) = &self.always {
            return Some(proxy);
        }
        let (proxy, port) = match target.scheme_str()? {
            "https" => (self.https.as_ref()?, 443),
            "http" => (self.http.as_ref()?, 80),
            _ => return None,
        };
        let host = target.host()?.trim_start_matches('[').trim_end_matches(']');
        let host = host.to_lowercase();
        let address = address(&host);
        // What is on this machine is never reached through a proxy, whatever the rules say.
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return None;
        }
        let port = target.port_u16().unwrap_or(port);
        let direct = self
            .direct
            .iter()
            .any(|exception| exception.holds(&host, address, port));
        (!direct).then_some(proxy)
    }
}

impl Proxy {
    fn parse(variable: &'static str, text: &str) -> Result<Self, ProxyError> {
        // `proxy.example:3128` has no scheme, though it parses as if `proxy.example` were one.
        let known = |url: &Url| matches!(url.scheme(), "http" | "https" | "socks5" | "socks5h");
        let url = match Url::parse(text) {
            Ok(url) if known(&url) => url,
            Ok(_) if text.contains("://") => return Err(ProxyError::Scheme { variable }),
            Err(_) if text.contains("://") => return Err(ProxyError::Url { variable }),
            _ => Url::parse(&format!("http://{text}")).map_err(|_| ProxyError::Url { variable })?,
        };
        let bad = ProxyError::Url { variable };
        let host = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or(bad.clone())?;
        let port = url.port_or_known_default().unwrap_or(SOCKS_PORT);
        let uri = Uri::builder()
            .scheme(url.scheme())
            .authority(format!("{host}:{port}"))
            .path_and_query("/")
            .build()
            .map_err(|_| bad)?;
        let proxy = Self {
            uri,
            login: login(&url),
        };
        let fits = |bytes: &[u8]| (1..=255).contains(&bytes.len());
        if proxy.protocol() == Protocol::Socks
            && let Some(login) = &proxy.login
            && !(fits(&login.user) && fits(login.password.expose_secret()))
        {
            return Err(ProxyError::Login { variable });
        }
        Ok(proxy)
    }

    /// Where the proxy listens.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    pub(crate) fn protocol(&self) -> Protocol {
        match self.uri.scheme_str() {
            Some("socks5" | "socks5h") => Protocol::Socks,
            _ => Protocol::Http,
        }
    }

    pub(crate) fn login(&self) -> Option<&Login> {
        self.login.as_ref()
    }

    /// The value of `Proxy-Authorization`, if the proxy's URL holds credentials.
    pub fn auth(&self) -> Option<HeaderValue> {
        let login = self.login.as_ref()?;
        Some(basic_auth(&login.user, login.password.expose_secret()))
    }
}

/// The value of `Authorization` or `Proxy-Authorization` that shows a user and a password (RFC 7617).
pub fn basic_auth(user: &[u8], password: &[u8]) -> HeaderValue {
    let plain = BASE64_STANDARD.encode([user, b":", password].concat());
    #[expect(
        clippy::expect_used,
        reason = "base64 is made of letters that a header may have"
    )]
    let mut value = HeaderValue::from_str(&format!("Basic {plain}")).expect("base64 in a header");
    value.set_sensitive(true);
    value
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("uri", &self.uri)
            .field("login", &self.login.is_some())
            .finish()
    }
}

fn login(url: &Url) -> Option<Login> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let password: Vec<u8> = percent_decode_str(url.password().unwrap_or_default()).collect();
    Some(Login {
        user: percent_decode_str(url.username()).collect(),
        password: password.into(),
    })
}

/// An address; one of IPv4 in the form of IPv6 is the same.
fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok().map(|address: IpAddr| address.to_canonical())
}

fn exceptions(text: &str) -> Vec<Exception> {
    text.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
        .filter_map(Exception::parse)
        .collect()
}

impl Exception {
    fn parse(entry: &str) -> Option<Self> {
        let entry = entry.to_lowercase();
        if entry == "*" {
            return Some(Self::All);
        }
        if let Ok(network) = entry.parse() {
            return Some(Self::Network(network));
        }
        if let Some(address) = address(&entry) {
            return Some(Self::Address(address, None));
        }
        let (host, port) = match entry.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (entry.as_str(), None),
        };
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        if let Some(address) = address(bare) {
            return Some(Self::Address(address, port));
        }
        let host = host
            .strip_prefix('*')
            .filter(|rest| rest.starts_with('.'))
            .unwrap_or(host);
        let itself = !host.starts_with('.');
        let name = host.trim_start_matches('.');
        (!name.is_empty()).then(|| Self::Domain {
            suffix: format!(".{name}"),
            itself,
            port,
        })
    }

    fn holds(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        match self {
            Self::All => true,
            Self::Network(network) => address.is_some_and(|address| network.contains(&address)),
            Self::Address(excepted, on) => address == Some(*excepted) && on.is_none_or(|on| on == port),
            Self::Domain {
                suffix,
                itself,
                port: on,
            } => {
                let is_below = host.ends_with(suffix) || *itself && host == &suffix[1..];
                address.is_none() && is_below && on.is_none_or(|on| on == port)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(environment: &[(&str, &str)]) -> Result<ProxyRules, ProxyError> {
        ProxyRules::from_env(|name| {
            environment
                .iter()
                .find(|(found, _)| *found == name)
                .map(|(_, value)| (*value).to_owned())
        })
    }

    fn proxy_for(environment: &[(&str, &str)], target: &str) -> Option<String> {
        rules(environment)
            .unwrap()
            .proxy_for(&target.parse().unwrap())
            .map(|proxy| proxy.uri().to_string())
    }

    #[test]
    fn the_scheme_of_the_target_chooses_the_proxy() {
        let both = [
            ("HTTPS_PROXY", "http://secure:3128"),
            ("HTTP_PROXY", "plain:8080"),
        ];
        assert_eq!(
            proxy_for(&both, "https://cloud.example/v1").unwrap(),
            "http://secure:3128/"
        );
        assert_eq!(
            proxy_for(&both, "http://cloud.example/v1").unwrap(),
            "http://plain:8080/"
        );
        assert_eq!(proxy_for(&both[1..], "https://cloud.example/v1"), None);
        assert_eq!(proxy_for(&[], "https://cloud.example/v1"), None);
    }

    #[test]
    fn upper_case_wins_over_lower_case_and_empty_is_not_set() {
        let target = "https://cloud.example/";
        let lower = ("https_proxy", "http://lower:1");
        assert_eq!(proxy_for(&[lower], target).unwrap(), "http://lower:1/");
        assert_eq!(
            proxy_for(&[lower, ("HTTPS_PROXY", "http://upper:1")], target).unwrap(),
            "http://upper:1/"
        );
        assert_eq!(
            proxy_for(&[lower, ("HTTPS_PROXY", "")], target).unwrap(),
            "http://lower:1/"
        );
        assert_eq!(proxy_for(&[lower, ("no_proxy", "cloud.example")], target), None);
    }

    #[test]
    fn no_proxy_follows_the_rules_of_go() {
        let table = [
            ("example.com", "https://example.com/", true),
            ("example.com", "https://api.example.com/", true),
            ("example.com", "https://notexample.com/", false),
            (".example.com", "https://api.example.com/", true),
            (".example.com", "https://example.com/", false),
            ("*.example.com", "https://api.example.com/", true),
            ("*.example.com", "https://example.com/", false),
            ("EXAMPLE.com", "https://API.Example.COM/", true),
            ("example.com:8443", "https://example.com:8443/", true),
            ("example.com:8443", "https://example.com/", false),
            ("example.com:443", "https://example.com/", true),
            ("example.com:80", "http://example.com/", true),
            ("*", "https://anything.example/", true),
            ("other.example, example.com", "https://example.com/", true),
            (" , ,", "https://example.com/", false),
            ("203.0.113.7", "https://203.0.113.7/", true),
            ("203.0.113.7", "https://203.0.113.8/", false),
            ("203.0.113.7:8443", "https://203.0.113.7/", false),
            ("203.0.113.7:443", "https://203.0.113.7/", true),
            ("203.0.113.0/24", "https://203.0.113.8/", true),
            ("203.0.113.0/24", "https://198.51.100.8/", false),
            ("203.0.113.0/24", "https://name.example/", false),
            ("2001:db8::/32", "https://[2001:db8::1]/", true),
            ("2001:db8::1", "https://[2001:db8::1]:8443/", true),
            ("[2001:db8::1]:8443", "https://[2001:db8::1]:8443/", true),
            ("[2001:db8::1]:8443", "https://[2001:db8::1]/", false),
            ("203.0.113.7", "https://[::ffff:203.0.113.7]/", true),
            // A name is no part of an address, and an absolute name is another one.
            (".7", "https://203.0.113.7/", false),
            ("example.com", "https://example.com./", false),
            ("", "https://localhost:6443/", true),
            ("", "https://127.0.0.9/", true),
            ("", "https://[::1]/", true),
        ];
        for (no_proxy, target, direct) in table {
            let environment = [
                ("HTTPS_PROXY", "http://proxy:3128"),
                ("HTTP_PROXY", "http://proxy:3128"),
                ("NO_PROXY", no_proxy),
            ];
            assert_eq!(
                proxy_for(&environment, target).is_none(),
                direct,
                "NO_PROXY={no_proxy} {target}"
            );
        }
    }

    #[test]
    fn a_proxys_password_is_sent_and_not_shown() {
        let rules = rules(&[("HTTPS_PROXY", "http://anna:p%40ss@proxy.example:3128")]).unwrap();
        let proxy = rules
            .proxy_for(&Uri::from_static("https://cloud.example/"))
            .unwrap();
        assert_eq!(proxy.uri(), "http://proxy.example:3128/");
        assert_eq!(
            proxy.auth().unwrap(),
            format!("Basic {}", BASE64_STANDARD.encode("anna:p@ss"))
        );
        let shown = format!("{rules:?}");
        assert!(!shown.contains("anna") && !shown.contains("ss@"), "{shown}");
    }

    #[test]
    fn each_kind_of_proxy_has_its_port_and_its_credentials() {
        let both = |text: &str| {
            let rules = ProxyRules::always("proxy-url", text).unwrap();
            let proxy = rules.proxy_for(&Uri::from_static("https://localhost/")).unwrap();
            let login = proxy.login().map(|login| {
                let password = login.password.expose_secret();
                [&*login.user, b" ", password].concat()
            });
            let login = login.map(|login| String::from_utf8(login).unwrap());
            (proxy.uri().to_string(), proxy.protocol(), login)
        };
        let table = [
            ("proxy:3128", "http://proxy:3128/", Protocol::Http, None),
            ("http://proxy", "http://proxy:80/", Protocol::Http, None),
            (
                "https://a:b@proxy",
                "https://proxy:443/",
                Protocol::Http,
                Some("a b"),
            ),
            ("socks5://proxy", "socks5://proxy:1080/", Protocol::Socks, None),
            (
                "socks5h://a%40c:b%3A@proxy:7",
                "socks5h://proxy:7/",
                Protocol::Socks,
                Some("a@c b:"),
            ),
            (
                "SOCKS5://[2001:db8::1]",
                "socks5://[2001:db8::1]:1080/",
                Protocol::Socks,
                None,
            ),
        ];
        for (text, uri, protocol, login) in table {
            assert_eq!(
                both(text),
                (uri.to_owned(), protocol, login.map(str::to_owned)),
                "{text}"
            );
        }
    }

    #[test]
    fn only_a_proxy_that_reads_plain_requests_is_shown_credentials_with_them() {
        let plain = Uri::from_static("http://cloud.example/");
        let auth = |text: &str, target: &Uri| {
            ProxyRules::always("proxy-url", text)
                .unwrap()
                .forward_auth(target)
                .is_some()
        };
        assert!(auth("http://a:b@proxy", &plain) && auth("https://a:b@proxy", &plain));
        assert!(!auth("socks5://a:b@proxy", &plain) && !auth("http://proxy", &plain));
        assert!(!auth(
            "http://a:b@proxy",
            &Uri::from_static("https://cloud.example/")
        ));
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_named_without_its_value() {
        let long = format!("socks5://{}:x@proxy", "a".repeat(256));
        for (text, expected) in [
            (
                "hunter2://anna:secret@proxy:1080",
                "HTTPS_PROXY has a scheme that is not supported; a proxy is http://, https://, socks5:// or socks5h://",
            ),
            ("http://", "HTTPS_PROXY is not a URL"),
            ("http://anna:secret@pro xy", "HTTPS_PROXY is not a URL"),
            ("http://anna:secret@", "HTTPS_PROXY is not a URL"),
            (
                "socks5://anna@proxy",
                "HTTPS_PROXY has a user or password that SOCKS cannot carry: each has 1 to 255 bytes",
            ),
            (
                &*long,
                "HTTPS_PROXY has a user or password that SOCKS cannot carry: each has 1 to 255 bytes",
            ),
        ] {
            let error = rules(&[("HTTPS_PROXY", text)]).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text}");
            assert!(!format!("{error:?}").contains("secret"), "{error:?}");
        }
    }
}
