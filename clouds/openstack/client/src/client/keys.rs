//! Calls to Barbican.

use bowline_cloud_http::Class;

use super::{Client, read};
use crate::error::ApiError;
use crate::operation;

/// What a certificate is kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// A container of certificate, key and chain.
    Container,
    /// A secret that holds all of them.
    Secret,
}

impl Client {
    /// Whether there is such a container or secret. What it holds is not read.
    ///
    /// # Errors
    ///
    /// See [`Class`], as for every call.
    pub async fn has_key(&self, kind: KeyKind, id: &str) -> Result<bool, ApiError> {
        let operation = match kind {
            KeyKind::Container => operation::CONTAINERS_GET,
            KeyKind::Secret => operation::SECRETS_GET,
        };
        match self.send(&read(operation, &[id]), |request| request).await {
            Ok(_) => Ok(true),
            Err(error) if error.class == Class::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}
