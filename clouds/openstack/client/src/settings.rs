//! Where the cloud is and what opens it.

use std::time::Duration;

use bowline_cloud_http::{CloudHttpConfig, Url};

use crate::login::Login;

/// How the APIs are reached.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where Keystone is, with or without a version at the end of its path.
    pub auth_url: Url,
    /// Who logs in, how, and to what.
    pub login: Login,
    /// Where the login is written, for messages.
    pub source: String,
    /// The region whose endpoints are used; empty is any.
    pub region: String,
    /// Which of a service's endpoints are used.
    pub interface: Interface,
    /// How long one exchange may take.
    pub request_timeout: Duration,
}

impl Settings {
    /// Puts the timeouts into the configuration of the HTTP stack.
    pub fn configure(&self, config: &mut CloudHttpConfig) {
        config.read_timeout = self.request_timeout;
        config.write_timeout = self.request_timeout;
    }
}

/// For whom an endpoint of the catalog is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Interface {
    /// For everyone.
    #[default]
    Public,
    /// For the cloud's own networks.
    Internal,
    /// For its operators.
    Admin,
}

impl Interface {
    /// The word of the catalog.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Admin => "admin",
        }
    }
}
