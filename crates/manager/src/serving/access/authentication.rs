//! Who asks: the user that a front proxy names, the subject of a client certificate, the owner of a token, or nobody.
//!
//! The first that can tell wins. If none can and one of them found credentials that are wrong, the request is refused;
//! without any credentials it is anonymous. This is the order of Kubernetes' delegating authenticator.

use std::collections::BTreeMap;

use bowline_kube_io::UserInfo;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use rustls::pki_types::UnixTime;

use super::super::authorities::{Authority, Current, FrontProxy};
use super::super::subject::Subject;
use super::{Access, Client, Denial, Key, Unanswered};
use crate::config::FrontProxyHeaders;

pub(super) const ANONYMOUS: &str = "system:anonymous";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const AUTHENTICATED: &str = "system:authenticated";

/// Whoever shows no credentials.
pub(super) fn anonymous() -> UserInfo {
    UserInfo {
        name: ANONYMOUS.to_owned(),
        groups: vec![UNAUTHENTICATED.to_owned()],
        ..UserInfo::default()
    }
}

/// A user, or nobody as far as one kind of credentials can tell; or why the credentials are wrong.
type Found = Result<Option<UserInfo>, String>;

/// Who a request says it is from, as far as can be told without asking anybody.
pub(in super::super) enum Claim {
    /// Somebody vouches for this user.
    Vouched(UserInfo),
    /// Nobody does.
    Open {
        /// The bearer token; it is shown nowhere: this type has no Debug.
        token: Option<String>,
        /// Whether some other credentials are wrong.
        is_wrong: bool,
    },
}

impl Claim {
    /// What the bearer token is known by, if it is to be asked about.
    pub(super) fn token_key(&self) -> Option<Key> {
        match self {
            Self::Open {
                token: Some(token), ..
            } => Some(Key::of(&[token.as_bytes()])),
            _ => None,
        }
    }
}

impl Access {
    /// Reads who asks, so that the headers need not be kept.
    pub(in super::super) fn claim(&self, headers: &HeaderMap, client: &Client) -> Claim {
        let mut is_wrong = false;
        let mut settle = |found: Found, kind: &'static str| match found {
            Ok(user) => user.map(with_group),
            Err(reason) => {
                tracing::debug!(kind, reason, "Credentials are not accepted");
                is_wrong = true;
                None
            }
        };
        let Current {
            client: ca,
            front_proxy,
        } = self.authorities.current();
        if let Some(proxy) = &front_proxy
            && let Some(user) = settle(self.named_by_proxy(proxy, headers, client), "front proxy")
        {
            return Claim::Vouched(user);
        }
        if let Some(authority) = &ca
            && let Some(user) = settle(self.shown_by_certificate(authority, client), "client certificate")
        {
            return Claim::Vouched(user);
        }
        Claim::Open {
            token: bearer(headers).map(str::to_owned),
            is_wrong,
        }
    }

    /// Tells who asks.
    pub(super) async fn user(&self, claim: Claim, client: &Client) -> Result<UserInfo, Denial> {
        let (token, is_wrong) = match claim {
            Claim::Vouched(user) => return Ok(user),
            Claim::Open { token, is_wrong } => (token, is_wrong),
        };
        // Without anybody to ask, a token says nothing.
        if let Some(token) = token
            && self.reviews.is_some()
        {
            return match self.owner(token, client).await {
                Ok(Some(user)) => Ok(with_group(user)),
                Ok(None) => Err(Denial::Unknown),
                Err(Unanswered::Full) => Err(Denial::Full),
                Err(Unanswered::Failed(_)) => Err(Denial::Undecided),
            };
        }
        if is_wrong {
            Err(Denial::Unknown)
        } else {
            Ok(anonymous())
        }
    }

    fn named_by_proxy(
        &self,
        FrontProxy {
            authority,
            headers: names,
        }: &FrontProxy,
        headers: &HeaderMap,
        client: &Client,
    ) -> Found {
        let Some(subject) = self.verified(authority, client)? else {
            return Ok(None);
        };
        let is_allowed = names.allowed_names.is_empty() || names.allowed_names.contains(&subject.common_name);
        if !is_allowed {
            return Err(format!(
                "subject with cn={} is not in the allowed list",
                subject.common_name
            ));
        }
        Ok(named(names, headers))
    }

    fn shown_by_certificate(&self, authority: &Authority, client: &Client) -> Found {
        let Some(subject) = self.verified(authority, client)? else {
            return Ok(None);
        };
        let left = subject.not_after - self.clock.now().as_second();
        #[expect(clippy::cast_precision_loss, reason = "seconds for a histogram")]
        self.metrics.saw_certificate(left as f64);
        if subject.common_name.is_empty() {
            return Ok(None);
        }
        Ok(Some(UserInfo {
            name: subject.common_name,
            groups: subject.organizations,
            ..UserInfo::default()
        }))
    }

    /// The subject of the client's certificate, if it shows one and this authority vouches for it.
    fn verified(&self, authority: &Authority, client: &Client) -> Result<Option<Subject>, String> {
        client.vouched_by(authority, |certificate, chain| {
            let now = self.clock.now().as_second().max(0).unsigned_abs();
            let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(now));
            authority
                .verifier
                .verify_client_cert(certificate, chain, now)
                .map_err(|error| error.to_string())?;
            Subject::of(certificate)
        })
    }

    async fn owner(&self, token: String, client: &Client) -> Result<Option<UserInfo>, Unanswered> {
        let Some(reviews) = self.reviews.clone() else {
            return Ok(None);
        };
        let key = Key::of(&[token.as_bytes()]);
        if let Some(known) = self.tokens.recall(&key) {
            return Ok(known);
        }
        let _review = client.place().map(|place| place.under_review());
        let ttl = self.ttl.token;
        let review = Box::pin(async move {
            reviews
                .token(&token)
                .await
                .inspect_err(|error| tracing::warn!(error, "Reviewing a token failed"))
        });
        let lane = self.lane(&key);
        self.tokens
            .ask(key, lane, client.origin(), review, move |_| ttl)
            .await
    }
}

/// The user that the headers of a front proxy name.
fn named(names: &FrontProxyHeaders, headers: &HeaderMap) -> Option<UserInfo> {
    let values = |name: &String| headers.get_all(name.as_str()).into_iter();
    let texts = |name: &String| {
        values(name)
            .filter_map(|value| value.to_str().ok())
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let first = |list: &[String]| list.iter().find_map(|name| texts(name).into_iter().next());
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for prefix in &names.extra_prefix {
        let prefix = prefix.to_ascii_lowercase();
        for (name, value) in headers {
            if let Some(key) = name.as_str().strip_prefix(&prefix)
                && let Ok(value) = value.to_str()
            {
                let key = percent_encoding::percent_decode_str(key).decode_utf8_lossy();
                extra.entry(key.into_owned()).or_default().push(value.to_owned());
            }
        }
    }
    Some(UserInfo {
        name: first(&names.username)?,
        uid: first(&names.uid).unwrap_or_default(),
        groups: names.group.iter().flat_map(texts).collect(),
        extra,
    })
}

/// Whoever showed credentials is in the group of those who did, unless the groups speak of it already.
fn with_group(mut user: UserInfo) -> UserInfo {
    let is_told = user
        .groups
        .iter()
        .any(|group| group == AUTHENTICATED || group == UNAUTHENTICATED);
    if user.name != ANONYMOUS && !is_told {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}
