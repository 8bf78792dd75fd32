//! Kubeconfig files.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::certificates::Identity;

/// A kubeconfig as a file and as text. The file lives as long as its control plane.
#[derive(Clone)]
pub struct Kubeconfig {
    path: PathBuf,
    text: String,
    token: Option<String>,
}

/// The path only: the text holds a key or a token.
impl fmt::Debug for Kubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubeconfig")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_in_the_file_and_cannot_be_printed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        let endpoint = Endpoint {
            url: "https://127.0.0.1:1",
            authority: "authority",
        };
        let kubeconfig = Kubeconfig::with_token(path.clone(), &endpoint, "open-sesame".to_owned()).unwrap();
        assert!(fs::read_to_string(&path).unwrap().contains("open-sesame"));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!format!("{kubeconfig:?}").contains("sesame"));
    }
}
