//! Keystone's part of the state: projects, users and tokens.

use std::time::Duration;

use bowline_cloud_kit::{Clock, Seed};
use indexmap::IndexMap;
use tokio::time::Instant;

use crate::model::identity::{ApplicationCredential, Domain, Project, Scope, Token, Trust, User};

/// Projects, users, ways to log in, and logins.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    pub(crate) projects: IndexMap<String, Project>,
    pub(crate) users: IndexMap<String, User>,
    pub(crate) credentials: IndexMap<String, ApplicationCredential>,
    pub(crate) trusts: IndexMap<String, Trust>,
    tokens: IndexMap<String, Token>,
}

/// A login that is refused; never says why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// Who logs in, as the body names them: by id, or by name within a domain.
#[derive(Clone, Debug)]
pub(crate) enum Named {
    ById(String),
    ByName { name: String, domain: NamedDomain },
}

/// A domain by id or by name.
#[derive(Clone, Debug)]
pub(crate) enum NamedDomain {
    ById(String),
    ByName(String),
}

impl NamedDomain {
    fn is(&self, domain: &Domain) -> bool {
        match self {
            Self::ById(id) => *id == domain.id,
            Self::ByName(name) => *name == domain.name,
        }
    }
}

impl Identity {
    /// Adds a project of the default domain; answers its id.
    pub(crate) fn add_project(&mut self, seed: &Seed, name: &str) -> String {
        let id = hex(seed);
        let project = Project {
            id: id.clone(),
            name: name.to_owned(),
            domain: Domain::default(),
        };
        self.projects.insert(id.clone(), project);
        id
    }

    /// Adds a user of the default domain; answers its id.
    pub(crate) fn add_user(
        &mut self,
        seed: &Seed,
        name: &str,
        password: &str,
        project: &str,
        is_admin: bool,
    ) -> String {
        let id = hex(seed);
        let user = User {
            id: id.clone(),
            name: name.to_owned(),
            domain: Domain::default(),
            password: password.to_owned(),
            projects: vec![project.to_owned()],
            is_admin,
        };
        self.users.insert(id.clone(), user);
        id
    }

    /// The user that a body names, if there is one.
    pub(crate) fn user(&self, named: &Named) -> Result<&User, Refused> {
        let user = match named {
            Named::ById(id) => self.users.get(id),
            Named::ByName { name, domain } => {
                let mut users = self.users.values();
                users.find(|user| user.name == *name && domain.is(&user.domain))
            }
        };
        user.ok_or(Refused)
    }

    /// The project that a body names, if there is one.
    pub(crate) fn project(&self, named: &Named) -> Result<&Project, Refused> {
        let project = match named {
            Named::ById(id) => self.projects.get(id),
            Named::ByName { name, domain } => {
                let mut projects = self.projects.values();
                projects.find(|it| it.name == *name && domain.is(&it.domain))
            }
        };
        project.ok_or(Refused)
    }

    /// The domain that a body names: there is only one.
    pub(crate) fn domain(named: &NamedDomain) -> Result<Domain, Refused> {
        let domain = Domain::default();
        named.is(&domain).then_some(domain).ok_or(Refused)
    }

    /// Gives out a token, which looks like one of Keystone's.
    pub(crate) fn issue(&mut self, seed: &Seed, token: Token) -> String {
        let text = format!("gAAAAAB{}{}", hex(seed), hex(seed));
        self.tokens.insert(text.clone(), token);
        text
    }

    /// A token that is still good.
    pub(crate) fn token(&self, text: &str) -> Option<&Token> {
        self.tokens.get(text)
    }

    /// Makes all tokens bad.
    pub(crate) fn revoke_all(&mut self) {
        self.tokens.clear();
    }

    /// The end of a token's life is the same as its revocation.
    pub(super) fn forget_expired(&mut self) {
        let now = Instant::now();
        self.tokens.retain(|_, token| token.ends > now);
    }
}

/// A new token of a user.
pub(crate) fn token(
    clock: &Clock,
    life: Duration,
    methods: Vec<&'static str>,
    user: &User,
    scope: Scope,
) -> Token {
    Token {
        methods,
        user: user.id.clone(),
        is_admin: user.is_admin && scope != Scope::Unscoped,
        scope,
        trust: None,
        issued_at: clock.rfc3339_micros_after(Duration::ZERO),
        expires_at: clock.rfc3339_micros_after(life),
        ends: Instant::now() + life,
    }
}

/// An id as Keystone makes them.
pub(crate) fn hex(seed: &Seed) -> String {
    seed.uuid().simple().to_string()
}
