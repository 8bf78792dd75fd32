//! Who we are to the API server and whom we believe to be it, as files say it while the program runs.
//!
//! Certificates are replaced and tokens rotated on disk, by the kubelet or by whoever issues them; the old ones end. So
//! nothing that came from a file is read only once: [`CredentialsFile`] looks at it again when it is asked for, at most
//! every ten seconds and at once after a refusal. What is half written leaves the last good one in force.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bowline_transport::{
    Authorities, CredentialsFile, Malformed, basic_auth, client_tls, end_of_certificate, end_of_token, pem,
};
use http::HeaderValue;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, Error};

use super::forms::{bearer, pair};
use super::plugin::Plugin;
use crate::clock::Clock;

/// What is read from the outside: given as it is, or followed in files.
pub(super) enum Source<T> {
    Given(Arc<T>),
    Followed(CredentialsFile<T>),
}

impl<T> Source<T> {
    pub(super) fn given(it: T) -> Self {
        Self::Given(Arc::new(it))
    }

    fn current(&self) -> Arc<T> {
        match self {
            Self::Given(it) => Arc::clone(it),
            Self::Followed(file) => file.current(),
        }
    }

    fn distrust(&self) {
        if let Self::Followed(file) = self {
            file.distrust();
        }
    }
}

/// A part of the credentials, in the kubeconfig itself or in a file of its own.
pub(super) enum Place {
    Contents(Vec<u8>),
    File(PathBuf),
}

/// All credentials of a connection.
#[derive(Default)]
pub(crate) struct Credentials {
    /// The header with a token, or with a user and a password.
    pub(super) token: Option<Source<HeaderValue>>,
    pub(super) identity: Option<Source<CertifiedKey>>,
    /// Who says what the two above do not.
    pub(super) plugin: Option<Plugin>,
    /// None: whoever answers is believed.
    pub(super) authorities: Option<Source<Authorities>>,
}

/// The credentials of one moment. Others are other ones, whatever they contain.
#[derive(Clone)]
pub(crate) struct Presented {
    token: Option<Arc<HeaderValue>>,
    pub(super) keys: Keys,
}

/// What TLS needs of them.
#[derive(Clone)]
pub(super) struct Keys {
    identity: Option<Arc<CertifiedKey>>,
    authorities: Option<Arc<Authorities>>,
}

fn is_same<T>(one: Option<&Arc<T>>, other: Option<&Arc<T>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

impl Credentials {
    /// Sees to it that there is something to present.
    ///
    /// # Errors
    ///
    /// The plugin has failed.
    pub(crate) async fn refresh(&self, clock: &Arc<dyn Clock>) -> Result<(), String> {
        match &self.plugin {
            Some(plugin) => plugin.refresh(clock).await,
            None => Ok(()),
        }
    }

    /// The header of the present token, if there is one.
    pub(super) fn authorization(&self) -> Option<HeaderValue> {
        self.token().map(|token| HeaderValue::clone(&token))
    }

    fn token(&self) -> Option<Arc<HeaderValue>> {
        let of_plugin = || self.plugin.as_ref()?.current()?.token;
        self.token.as_ref().map(Source::current).or_else(of_plugin)
    }

    pub(super) fn keys(&self) -> Keys {
        let of_plugin = || self.plugin.as_ref()?.current()?.identity;
        Keys {
            identity: self.identity.as_ref().map(Source::current).or_else(of_plugin),
            authorities: self.authorities.as_ref().map(Source::current),
        }
    }

    /// When the ones of now end, by their names, in seconds since 1970. Left out are those that do not tell, and those of the
    /// plugin: it is run again shortly before they end, so that a short time left is no news.
    pub(crate) fn ends(&self) -> Vec<(&'static str, i64)> {
        let token = self.token.as_ref().map(Source::current);
        let token = token.and_then(|header| {
            let text = header.to_str().ok()?.strip_prefix("Bearer ")?;
            end_of_token(text)
        });
        let identity = self.identity.as_ref().map(Source::current);
        let certificate = identity.and_then(|identity| end_of_certificate(identity.cert.first()?));
        let named = [
            ("kubernetes-token", token),
            ("kubernetes-client-certificate", certificate),
        ];
        named
            .into_iter()
            .filter_map(|(name, end)| Some((name, end?)))
            .collect()
    }

    /// What a request that is sent now is sent with.
    pub(crate) fn presented(&self) -> Presented {
        Presented {
            token: self.token(),
            keys: self.keys(),
        }
    }

    /// Something was refused: the next request looks at the files, but no more often than once a second.
    pub(crate) fn distrust(&self) {
        if let Some(token) = &self.token {
            token.distrust();
        }
        if let Some(identity) = &self.identity {
            identity.distrust();
        }
        if let Some(authorities) = &self.authorities {
            authorities.distrust();
        }
    }

    /// Whether there are other ones by now than these, which the API server has refused. It looks, and asks the plugin.
    pub(crate) async fn are_renewed(&self, refused: &Presented, clock: &Arc<dyn Clock>) -> bool {
        self.distrust();
        if let Some(plugin) = &self.plugin
            && self.presented().is_same(refused)
        {
            plugin.refuse();
            if plugin.refresh(clock).await.is_err() {
                return false;
            }
        }
        !self.presented().is_same(refused)
    }
}

impl Presented {
    fn is_same(&self, other: &Self) -> bool {
        is_same(self.token.as_ref(), other.token.as_ref()) && self.keys.is_same(&other.keys)
    }
}

impl Keys {
    pub(super) fn is_same(&self, other: &Self) -> bool {
        is_same(self.identity.as_ref(), other.identity.as_ref())
            && is_same(self.authorities.as_ref(), other.authorities.as_ref())
    }

    /// The same for requests that bring their own credentials.
    pub(super) fn anonymous(mut self) -> Self {
        self.identity = None;
        self
    }

    /// How TLS is spoken to the API server. It begins anew with no sessions to resume: those were opened with the
    /// certificates of before.
    pub(super) fn to_server(&self) -> Result<ClientConfig, Error> {
        let tls = client_tls(self.authorities.as_deref().cloned())?;
        Ok(match &self.identity {
            None => tls.with_no_client_auth(),
            Some(key) => tls.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(key)))),
        })
    }

    /// How TLS is spoken to a proxy: the cluster's authorities vouch for it, as with the Go managers, and the system's.
    pub(super) fn to_proxy(&self, system: Option<&Authorities>) -> Result<ClientConfig, Error> {
        let mut authorities = self.authorities.as_deref().cloned();
        if let (Some(authorities), Some(system)) = (&mut authorities, system) {
            authorities.extend(system);
        }
        Ok(client_tls(authorities)?.with_no_client_auth())
    }
}

/// A token in a file.
pub(super) fn token_file(path: &Path) -> Result<Source<HeaderValue>, String> {
    CredentialsFile::open(path, bearer)
        .map(Source::Followed)
        .map_err(|error| error.to_string())
}

/// A token in the kubeconfig.
pub(super) fn token(text: &str) -> Result<Source<HeaderValue>, String> {
    bearer(text.as_bytes())
        .map(Source::given)
        .map_err(|reason| format!("`token`: {reason}"))
}

/// A user and a password.
pub(super) fn password(user: &str, password: &str) -> Source<HeaderValue> {
    Source::given(basic_auth(user.as_bytes(), password.as_bytes()))
}

/// A client certificate and its key.
pub(super) fn identity(certificate: Place, key: Place) -> Result<Source<CertifiedKey>, String> {
    let place = |which| match which {
        0 => "client-certificate-data",
        _ => "client-key-data",
    };
    let mut paths = Vec::new();
    // Which of the files each half is; those in the kubeconfig stay what they are.
    let mut half = |place| match place {
        Place::Contents(contents) => Half::Fixed(contents),
        Place::File(path) => {
            paths.push(path);
            Half::File(paths.len() - 1)
        }
    };
    let (certificate, key) = (half(certificate), half(key));
    let parse = move |contents: &[&[u8]]| pair(certificate.of(contents), key.of(contents));
    if paths.is_empty() {
        return parse(&[])
            .map(|key| Source::Given(Arc::new(key)))
            .map_err(|(which, reason)| format!("`{}`: {reason}", place(which)));
    }
    let last = paths.len() - 1;
    CredentialsFile::open_all(paths, move |contents| {
        parse(contents).map_err(|(which, reason)| (which.min(last), reason))
    })
    .map(Source::Followed)
    .map_err(|error| error.to_string())
}

enum Half {
    Fixed(Vec<u8>),
    File(usize),
}

impl Half {
    fn of<'a>(&'a self, files: &[&'a [u8]]) -> &'a [u8] {
        match self {
            Self::Fixed(contents) => contents,
            Self::File(which) => files.get(*which).copied().unwrap_or_default(),
        }
    }
}

/// The authorities of the cluster.
pub(super) fn authorities(place: Place) -> Result<Source<Authorities>, String> {
    match place {
        Place::Contents(contents) => parse_authorities(&contents)
            .map(|authorities| Source::Given(Arc::new(authorities)))
            .map_err(|reason| format!("`certificate-authority-data`: {reason}")),
        Place::File(path) => CredentialsFile::open(path, parse_authorities)
            .map(Source::Followed)
            .map_err(|error| error.to_string()),
    }
}

fn parse_authorities(contents: &[u8]) -> Result<Authorities, Malformed> {
    let mut authorities = Authorities::default();
    authorities.add(&pem::certificates(contents)?);
    if authorities.is_empty() {
        return Err(Malformed::because("no certificate in it can be read"));
    }
    Ok(authorities)
}

#[cfg(test)]
mod tests;
