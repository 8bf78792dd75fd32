//! Who logs in, how, and to what (Identity API v3, "Authentication and token management").

use bowline_cloud_http::Secret;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// What a configuration says about the login, as it stands there: an empty text is nothing.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// The name of the user.
    pub username: String,
    /// The id of the user.
    pub user_id: String,
    /// The password.
    pub password: Option<Secret>,
    /// The id of the project.
    pub tenant_id: String,
    /// The name of the project.
    pub tenant_name: String,
    /// The id of the domain of user and project.
    pub domain_id: String,
    /// The name of the domain of user and project.
    pub domain_name: String,
    /// The id of the user's domain.
    pub user_domain_id: String,
    /// The name of the user's domain.
    pub user_domain_name: String,
    /// The id of the project's domain.
    pub tenant_domain_id: String,
    /// The name of the project's domain.
    pub tenant_domain_name: String,
    /// The id of a trust.
    pub trust_id: String,
    /// The id of the user to whom the trust is given.
    pub trustee_id: String,
    /// The password of that user.
    pub trustee_password: Option<Secret>,
    /// The id of an application credential.
    pub application_credential_id: String,
    /// The name of an application credential.
    pub application_credential_name: String,
    /// The secret of an application credential.
    pub application_credential_secret: Option<Secret>,
    /// A token that was made before.
    pub token: Option<Secret>,
    /// What may be wrong with how these are written in their file, for when they are refused; mostly empty.
    pub doubt: String,
}

/// A login that can be tried: every part that it needs is there.
#[derive(Debug, Clone)]
pub struct Login {
    pub(crate) method: Method,
    pub(crate) scope: Option<Scope>,
    pub(crate) doubt: String,
}

/// The credentials cannot make a login. The text names what is missing or too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// There is no way to prove who logs in.
    #[error(
        "no password, application credential or token is given: set `password`, `application-credential-id` with its secret, \
         or `token`"
    )]
    NoMethod,
    /// Nobody is named.
    #[error("a user is needed: either username or user-id")]
    NoUser,
    /// Two users are named.
    #[error("only one of username and user-id may be set")]
    TwoUsers,
    /// A trustee and another user are named.
    #[error("only one of username and trustee-id may be set")]
    UserBesideTrustee,
    /// A user's id is unique, so no domain belongs to it.
    #[error(
        "a domain of the user cannot be given beside user-id or trustee-id (with a project, name the project's domain by \
         tenant-domain-id or tenant-domain-name)"
    )]
    DomainOfUserId,
    /// Two domains of the user are named.
    #[error("only one of the user's domain id and domain name may be set")]
    TwoUserDomains,
    /// Two domains are named, for the user or as the scope.
    #[error("only one of domain-id and domain-name may be set")]
    TwoDomains,
    /// A name is unique only within a domain.
    #[error("a username needs its domain: user-domain-id, user-domain-name, domain-id or domain-name")]
    NoUserDomain,
    /// A project's name is unique only within a domain.
    #[error("a tenant-name needs its domain: tenant-domain-id, tenant-domain-name, domain-id or domain-name")]
    NoProjectDomain,
    /// The proof of the application credential is missing.
    #[error("an application credential needs application-credential-secret")]
    NoApplicationCredentialSecret,
    /// A token alone says nothing about what it is for.
    #[error("a token needs a scope: tenant-id, tenant-name, domain-id or domain-name")]
    TokenWithoutScope,
}

/// How the login proves who it is.
#[derive(Debug, Clone)]
pub(crate) enum Method {
    Password {
        user: User,
        password: Secret,
    },
    ApplicationCredential {
        credential: ApplicationCredential,
        secret: Secret,
    },
    Token(Secret),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum User {
    Id(String),
    Name { name: String, domain: Domain },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApplicationCredential {
    Id(String),
    Name { name: String, user: User },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Domain {
    Id(String),
    Name(String),
}

/// What the login is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scope {
    ProjectId(String),
    Project { name: String, domain: Domain },
    Domain(Domain),
    Trust(String),
}

impl Login {
    /// Works out how to log in.
    ///
    /// 1. With an application credential no scope is sent: it brings its own. Domains are the user's.
    /// 2. With a project, that is the scope, and `domain-*` fills the domains of user and project that are empty.
    /// 3. With neither, `domain-*` is the scope, and fills nothing.
    ///
    /// A token comes before a password, a password before an application credential. A trust takes the place of any other
    /// scope, and the trustee that of the user.
    ///
    /// # Errors
    ///
    /// A part is missing, or two exclude each other.
    pub fn new(credentials: &Credentials) -> Result<Self, LoginError> {
        let given = Given::new(credentials);
        let scope = given.scope()?;
        let method = given.method()?;
        if matches!(method, Method::Token(_)) && scope.is_none() {
            return Err(LoginError::TokenWithoutScope);
        }
        Ok(Self {
            method,
            scope,
            doubt: credentials.doubt.clone(),
        })
    }

    /// Whether the login is made with a trust: then no version is looked for.
    pub(crate) fn has_trust(&self) -> bool {
        matches!(self.scope, Some(Scope::Trust(_)))
    }

    /// The options that prove who logs in, for messages.
    pub(crate) fn options(&self) -> &'static str {
        match &self.method {
            Method::Token(_) => "`token`",
            Method::Password { .. } if self.has_trust() => {
                "`trust-id`, `trustee-id` (or the user) and `trustee-password` (or `password`)"
            }
            Method::Password {
                user: User::Id(_), ..
            } => "`user-id` and `password`",
            Method::Password { .. } => "`username` and `password`",
            Method::ApplicationCredential { credential, .. } => match credential {
                ApplicationCredential::Id(_) => {
                    "`application-credential-id` and `application-credential-secret`"
                }
                ApplicationCredential::Name { .. } => {
                    "`application-credential-name`, its user and `application-credential-secret`"
                }
            },
        }
    }

    /// What no message may show.
    pub(crate) fn secret(&self) -> &Secret {
        match &self.method {
            Method::Password { password: secret, .. }
            | Method::ApplicationCredential { secret, .. }
            | Method::Token(secret) => secret,
        }
    }
}

/// The credentials, after the trustee took the user's place.
struct Given<'a> {
    credentials: &'a Credentials,
    user_id: &'a str,
    username: &'a str,
    password: Option<&'a Secret>,
}

fn present(secret: Option<&Secret>) -> Option<&Secret> {
    secret.filter(|secret| !secret.expose().is_empty())
}

/// The domain of two options, of which the id comes first.
fn domain(id: &str, name: &str) -> Option<Domain> {
    if !id.is_empty() {
        Some(Domain::Id(id.to_owned()))
    } else if !name.is_empty() {
        Some(Domain::Name(name.to_owned()))
    } else {
        None
    }
}

impl<'a> Given<'a> {
    fn new(credentials: &'a Credentials) -> Self {
        let mut given = Self {
            credentials,
            user_id: &credentials.user_id,
            username: &credentials.username,
            password: present(credentials.password.as_ref()),
        };
        if !credentials.trust_id.is_empty() {
            if !credentials.trustee_id.is_empty() {
                given.user_id = &credentials.trustee_id;
            }
            given.password = present(credentials.trustee_password.as_ref()).or(given.password);
        }
        given
    }

    fn has_application_credential(&self) -> bool {
        let credentials = self.credentials;
        !credentials.application_credential_id.is_empty()
            || !credentials.application_credential_name.is_empty()
            || present(credentials.application_credential_secret.as_ref()).is_some()
    }

    fn has_project(&self) -> bool {
        !self.credentials.tenant_id.is_empty() || !self.credentials.tenant_name.is_empty()
    }

    fn default_domain(&self) -> Option<Domain> {
        domain(&self.credentials.domain_id, &self.credentials.domain_name)
    }

    /// The default domain, where nothing may be left open: the Go manager takes neither of two.
    fn only_default_domain(&self) -> Result<Option<Domain>, LoginError> {
        let credentials = self.credentials;
        if !credentials.domain_id.is_empty() && !credentials.domain_name.is_empty() {
            return Err(LoginError::TwoDomains);
        }
        Ok(self.default_domain())
    }

    fn scope(&self) -> Result<Option<Scope>, LoginError> {
        let credentials = self.credentials;
        if !credentials.trust_id.is_empty() {
            return Ok(Some(Scope::Trust(credentials.trust_id.clone())));
        }
        if self.has_application_credential() {
            return Ok(None);
        }
        if !credentials.tenant_id.is_empty() {
            return Ok(Some(Scope::ProjectId(credentials.tenant_id.clone())));
        }
        if credentials.tenant_name.is_empty() {
            return Ok(self.only_default_domain()?.map(Scope::Domain));
        }
        let domain = domain(&credentials.tenant_domain_id, &credentials.tenant_domain_name)
            .or_else(|| self.default_domain())
            .ok_or(LoginError::NoProjectDomain)?;
        Ok(Some(Scope::Project {
            name: credentials.tenant_name.clone(),
            domain,
        }))
    }

    fn method(&self) -> Result<Method, LoginError> {
        let credentials = self.credentials;
        if let Some(token) = present(credentials.token.as_ref()) {
            return Ok(Method::Token(token.clone()));
        }
        if let Some(password) = self.password {
            return Ok(Method::Password {
                user: self.user()?,
                password: password.clone(),
            });
        }
        if !self.has_application_credential() {
            return Err(LoginError::NoMethod);
        }
        let secret = present(credentials.application_credential_secret.as_ref())
            .ok_or(LoginError::NoApplicationCredentialSecret)?
            .clone();
        let credential = if !credentials.application_credential_id.is_empty() {
            ApplicationCredential::Id(credentials.application_credential_id.clone())
        } else if !credentials.application_credential_name.is_empty() {
            ApplicationCredential::Name {
                name: credentials.application_credential_name.clone(),
                user: match self.user() {
                    // A domain beside the id is passed over here, as the Go manager does it with these credentials only.
                    Err(LoginError::DomainOfUserId) => User::Id(self.user_id.to_owned()),
                    user => user?,
                },
            }
        } else {
            return Err(LoginError::NoMethod);
        };
        Ok(Method::ApplicationCredential { credential, secret })
    }

    fn user(&self) -> Result<User, LoginError> {
        let credentials = self.credentials;
        let (id, name) = (&credentials.user_domain_id, &credentials.user_domain_name);
        // A user's domain of its own, or the default one where that does not become the scope.
        let fills = self.has_application_credential() || self.has_project();
        let own = domain(id, name);
        let filled = match own {
            None if fills => self.only_default_domain()?,
            own => own,
        };
        match (self.user_id.is_empty(), self.username.is_empty()) {
            (true, true) => Err(LoginError::NoUser),
            (false, false) if self.user_id != credentials.user_id => Err(LoginError::UserBesideTrustee),
            (false, false) => Err(LoginError::TwoUsers),
            (false, true) if filled.is_some() => Err(LoginError::DomainOfUserId),
            (false, true) => Ok(User::Id(self.user_id.to_owned())),
            (true, false) if !id.is_empty() && !name.is_empty() => Err(LoginError::TwoUserDomains),
            (true, false) => Ok(User::Name {
                name: self.username.to_owned(),
                domain: filled.ok_or(LoginError::NoUserDomain)?,
            }),
        }
    }
}

/// The body of the request for a token. It holds a secret: it is serialised for the wire and nothing else.
pub(crate) struct LoginBody<'a>(pub(crate) &'a Login);

/// An object with one field.
struct Field<'a, T>(&'static str, &'a T);

impl<T: Serialize> Serialize for Field<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.0, self.1)?;
        map.end()
    }
}

impl Serialize for Domain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Id(id) => Field("id", id).serialize(serializer),
            Self::Name(name) => Field("name", name).serialize(serializer),
        }
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Project<'a> {
            name: &'a str,
            domain: &'a Domain,
        }
        match self {
            Self::ProjectId(id) => Field("project", &Field("id", id)).serialize(serializer),
            Self::Project { name, domain } => {
                Field("project", &Project { name, domain }).serialize(serializer)
            }
            Self::Domain(domain) => Field("domain", domain).serialize(serializer),
            Self::Trust(id) => Field("OS-TRUST:trust", &Field("id", id)).serialize(serializer),
        }
    }
}

#[derive(Serialize)]
struct UserBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<&'a Domain>,
    #[serde(skip_serializing_if = "Option::is_none")]
    password: Option<&'a str>,
}

impl<'a> UserBody<'a> {
    fn new(user: &'a User, password: Option<&'a Secret>) -> Self {
        let (id, name, domain) = match user {
            User::Id(id) => (Some(id.as_str()), None, None),
            User::Name { name, domain } => (None, Some(name.as_str()), Some(domain)),
        };
        Self {
            id,
            name,
            domain,
            password: password.map(Secret::expose),
        }
    }
}

impl Serialize for LoginBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Auth<'a> {
            identity: Identity<'a>,
            #[serde(skip_serializing_if = "Option::is_none")]
            scope: Option<&'a Scope>,
        }
        #[derive(Serialize)]
        struct Identity<'a> {
            methods: [&'static str; 1],
            #[serde(skip_serializing_if = "Option::is_none")]
            password: Option<Password<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            application_credential: Option<Application<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            token: Option<Token<'a>>,
        }
        #[derive(Serialize)]
        struct Password<'a> {
            user: UserBody<'a>,
        }
        #[derive(Serialize)]
        struct Application<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            name: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            user: Option<UserBody<'a>>,
            secret: &'a str,
        }
        #[derive(Serialize)]
        struct Token<'a> {
            id: &'a str,
        }

        let mut identity = Identity {
            methods: [""],
            password: None,
            application_credential: None,
            token: None,
        };
        match &self.0.method {
            Method::Password { user, password } => {
                identity.methods = ["password"];
                let user = UserBody::new(user, Some(password));
                identity.password = Some(Password { user });
            }
            Method::ApplicationCredential { credential, secret } => {
                identity.methods = ["application_credential"];
                let (id, name, user) = match credential {
                    ApplicationCredential::Id(id) => (Some(id.as_str()), None, None),
                    ApplicationCredential::Name { name, user } => {
                        (None, Some(name.as_str()), Some(UserBody::new(user, None)))
                    }
                };
                identity.application_credential = Some(Application {
                    id,
                    name,
                    user,
                    secret: secret.expose(),
                });
            }
            Method::Token(token) => {
                identity.methods = ["token"];
                identity.token = Some(Token { id: token.expose() });
            }
        }
        let auth = Auth {
            identity,
            scope: self.0.scope.as_ref(),
        };
        Field("auth", &auth).serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
