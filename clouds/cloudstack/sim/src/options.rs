//! What is fixed when a simulator is built, and the users it knows.

use std::collections::BTreeMap;
use std::fmt;

use bowline_cloud_kit::addresses::v4_range;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// Where the API is.
pub(crate) const PATH: &str = "/client/api";

/// The API key of the user who is there if none is named.
pub(crate) const API_KEY: &str = "simulated-api-key";

/// The secret key of that user.
pub(crate) const SECRET_KEY: &str = "simulated-secret-key";

/// What a user may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// What belongs to the own account and its projects.
    #[default]
    User,
    /// Everything.
    Admin,
}

/// A user with keys. Never shows the secret one.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserSpec {
    /// The key that names the user.
    pub api_key: String,
    /// The key that signs.
    pub secret_key: String,
    /// The account's name.
    #[serde(default = "default_account")]
    pub account: String,
    /// What the user may do.
    #[serde(default)]
    pub role: Role,
}

impl fmt::Debug for UserSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserSpec")
            .field("account", &self.account)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

pub(crate) fn default_account() -> String {
    "team".to_owned()
}

impl UserSpec {
    /// An ordinary user of the account `team`.
    pub fn new(api_key: impl Into<String>, secret_key: impl Into<String>) -> Self {
        Self {
            api_key: api_key.into(),
            secret_key: secret_key.into(),
            account: default_account(),
            role: Role::User,
        }
    }

    /// Of another account.
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.account = account.into();
        self
    }

    /// A root admin.
    pub fn admin(mut self) -> Self {
        self.role = Role::Admin;
        self
    }
}

/// The users that are known, by API key, each with an id.
#[derive(Clone, Default)]
pub(crate) struct Users(BTreeMap<String, (String, UserSpec)>);

impl Users {
    pub(crate) fn set(&mut self, id: String, user: UserSpec) {
        self.0.insert(user.api_key.clone(), (id, user));
    }

    pub(crate) fn remove(&mut self, api_key: &str) -> bool {
        self.0.remove(api_key).is_some()
    }

    /// The id and the rest of a user.
    pub(crate) fn find(&self, api_key: &str) -> Option<&(String, UserSpec)> {
        self.0.get(api_key)
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Users({})", self.0.len())
    }
}

/// What is fixed when a simulator is built.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Name of the first zone.
    pub(crate) zone: String,
    /// Range of the first network.
    pub(crate) guest: IpNet,
    /// Range of the pool of public addresses.
    pub(crate) public: IpNet,
    /// Users to begin with; a default one if there is none.
    pub(crate) users: Vec<UserSpec>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            zone: "Zurich-1".to_owned(),
            guest: v4_range([10, 1, 0, 0], 16),
            public: v4_range([203, 0, 113, 0], 24),
            users: Vec::new(),
        }
    }
}
