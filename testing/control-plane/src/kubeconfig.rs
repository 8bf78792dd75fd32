//! Kubeconfig files.

use std::path::{Path, PathBuf};
use std::{fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::certificates::Identity;

/// A kubeconfig as a file and as text. The file lives as long as its control plane.
#[derive(Debug, Clone)]
pub struct Kubeconfig {
    path: PathBuf,
    text: String,
    token: Option<String>,
}

/// Where a kubeconfig points.
pub(crate) struct Endpoint<'a> {
    pub(crate) url: &'a str,
    pub(crate) authority: &'a str,
}

impl Kubeconfig {
    /// The file, readable by its owner only.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file says. JSON, which every reader of YAML reads too.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The bearer token in it, if its user has one: what a pod would find in its service-account volume.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    pub(crate) fn with_certificate(
        path: PathBuf,
        endpoint: &Endpoint<'_>,
        identity: &Identity,
    ) -> io::Result<Self> {
        let user = json!({
            "client-certificate-data": BASE64.encode(&identity.certificate),
            "client-key-data": BASE64.encode(&identity.key),
        });
        Self::write(path, endpoint, user, None)
    }

    pub(crate) fn with_token(path: PathBuf, endpoint: &Endpoint<'_>, token: String) -> io::Result<Self> {
        Self::write(path, endpoint, json!({ "token": token }), Some(token))
    }

    fn write(path: PathBuf, endpoint: &Endpoint<'_>, user: Value, token: Option<String>) -> io::Result<Self> {
        let cluster = json!({
            "server": endpoint.url,
            "certificate-authority-data": BASE64.encode(endpoint.authority),
        });
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "test", "cluster": cluster }],
            "users": [{ "name": "test", "user": user }],
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test" } }],
            "current-context": "test",
        });
        let text = format!("{config:#}\n");
        write_private(&path, &text)?;
        Ok(Self { path, text, token })
    }
}

/// Writes a file that only its owner may read.
pub(crate) fn write_private(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}
