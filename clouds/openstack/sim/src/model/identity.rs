//! Keystone: who may do what where.

use std::fmt;

use tokio::time::Instant;

/// A domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

impl Default for Domain {
    /// The one that every cloud has.
    fn default() -> Self {
        Self {
            id: "default".to_owned(),
            name: "Default".to_owned(),
        }
    }
}

/// A project.
#[derive(Clone, Debug)]
pub struct Project {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Where its name is unique.
    pub domain: Domain,
}

/// A user. Never shows the password.
#[derive(Clone)]
pub struct User {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Where its name is unique.
    pub domain: Domain,
    /// How it logs in.
    pub(crate) password: String,
    /// The ids of the projects it may work in.
    pub projects: Vec<String>,
    /// Whether it may do everything everywhere.
    pub is_admin: bool,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "User({})", self.name)
    }
}

/// A way for a program to log in as a user of one project. Never shows the secret.
#[derive(Clone)]
pub struct ApplicationCredential {
    /// Its id.
    pub id: String,
    /// Its name, unique for the user.
    pub name: String,
    /// How it logs in.
    pub(crate) secret: String,
    /// The user's id.
    pub user: String,
    /// The project's id.
    pub project: String,
}

impl fmt::Debug for ApplicationCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApplicationCredential({})", self.name)
    }
}

/// What one user lets another do in a project.
#[derive(Clone, Debug)]
pub struct Trust {
    /// Its id.
    pub id: String,
    /// The id of the user who trusts.
    pub trustor: String,
    /// The id of the user who is trusted.
    pub trustee: String,
    /// The project's id.
    pub project: String,
    /// Whether the trustee acts in the trustor's name.
    pub impersonation: bool,
}

/// What a token is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A project, by id.
    Project(String),
    /// A domain.
    Domain(Domain),
    /// Nothing but asking for other tokens.
    Unscoped,
}

/// A login that is still good.
#[derive(Clone, Debug)]
pub struct Token {
    /// The methods by which it was got.
    pub methods: Vec<&'static str>,
    /// The user's id.
    pub user: String,
    /// What it is good for.
    pub scope: Scope,
    /// Of the trust it comes from, the id.
    pub trust: Option<String>,
    /// Whether it may do everything everywhere.
    pub is_admin: bool,
    /// RFC 3339.
    pub issued_at: String,
    /// RFC 3339.
    pub expires_at: String,
    /// The end of its life.
    pub(crate) ends: Instant,
}
