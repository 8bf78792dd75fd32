//! Who may do what: a table of tokens and a table of permits. Both are empty at first, and then everybody may do
//! everything.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::HeaderValue;
use jiff::Timestamp;

use crate::status::Status;

/// An authenticated user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Name, e.g. `system:serviceaccount:kube-system:cloud-controller-manager`.
    pub name: String,
    /// UID; empty if the user has none.
    pub uid: String,
    /// Groups, without `system:authenticated`.
    pub groups: Vec<String>,
}

impl User {
    /// A user without UID.
    pub fn new(name: impl Into<String>, groups: &[&str]) -> Self {
        Self {
            name: name.into(),
            uid: String::new(),
            groups: groups.iter().map(|&group| group.to_owned()).collect(),
        }
    }

    /// A service account as its tokens name it.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            uid: uid.to_owned(),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
            ],
        }
    }

    pub(crate) fn anonymous() -> Self {
        Self::new("system:anonymous", &["system:unauthenticated"])
    }
}

/// What somebody wants to do: the attributes of an access review.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Verb, e.g. `patch`.
    pub verb: String,
    /// API group; empty for core.
    pub group: String,
    /// Resource, e.g. `nodes`; empty for paths that are no resource.
    pub resource: String,
    /// Subresource, e.g. `status`.
    pub subresource: String,
    /// Namespace; empty for cluster scope.
    pub namespace: String,
    /// Name; empty for collections.
    pub name: String,
    /// URL path, if it is no resource.
    pub path: String,
}

/// One permit, in the manner of an RBAC rule with its subject. `*` stands for everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    /// User name or group.
    pub subject: String,
    /// Verbs.
    pub verbs: Vec<String>,
    /// API groups; the empty text is core.
    pub groups: Vec<String>,
    /// Resources, with a subresource as in `nodes/status`; a permit for paths starts with a slash.
    pub resources: Vec<String>,
    /// Names of objects; empty means all.
    pub names: Vec<String>,
    /// The one namespace the permit holds in; `None` means everywhere.
    pub namespace: Option<String>,
}

impl Permit {
    /// A permit in all namespaces.
    pub fn new(subject: &str, verbs: &[&str], group: &str, resources: &[&str]) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        Self {
            subject: subject.to_owned(),
            verbs: owned(verbs),
            groups: vec![group.to_owned()],
            resources: owned(resources),
            names: Vec::new(),
            namespace: None,
        }
    }

    /// Narrows the permit to one namespace.
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Narrows the permit to some objects.
    pub fn named(mut self, names: &[&str]) -> Self {
        self.names = names.iter().map(|&name| name.to_owned()).collect();
        self
    }

    fn allows(&self, user: &User, asked: &Attributes) -> bool {
        let any = |list: &[String], wanted: &str| list.iter().any(|entry| entry == "*" || entry == wanted);
        let subject = self.subject == user.name || user.groups.contains(&self.subject);
        if !subject || !any(&self.verbs, &asked.verb) {
            return false;
        }
        if asked.resource.is_empty() {
            return self.resources.iter().any(|path| match path.strip_suffix('*') {
                Some(prefix) => asked.path.starts_with(prefix),
                None => *path == asked.path,
            });
        }
        let resource = match asked.subresource.as_str() {
            "" => asked.resource.clone(),
            subresource => format!("{}/{subresource}", asked.resource),
        };
        any(&self.groups, &asked.group)
            && any(&self.resources, &resource)
            && (self.names.is_empty() || self.names.contains(&asked.name))
            && self
                .namespace
                .as_ref()
                .is_none_or(|namespace| *namespace == asked.namespace)
    }
}

#[derive(Default)]
struct Tables {
    tokens: BTreeMap<String, (User, Option<Timestamp>)>,
    permits: Option<Vec<Permit>>,
    require_auth: bool,
}

/// The tables of one server. Tokens can be put in and asked about, never read out.
#[derive(Clone, Default)]
pub struct Access(Arc<Mutex<Tables>>);

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

impl Access {
    /// Makes a bearer token known.
    pub fn add_token(&self, token: &str, user: User) {
        self.lock().tokens.insert(token.to_owned(), (user, None));
    }

    /// Makes a bearer token unknown again.
    pub fn revoke_token(&self, token: &str) {
        self.lock().tokens.remove(token);
    }

    /// Whether requests without a known token are refused. Off at first.
    pub fn require_auth(&self, on: bool) {
        self.lock().require_auth = on;
    }

    /// Adds a permit. From the first one on, what no permit allows is forbidden; only the group `system:masters` may
    /// still do everything.
    pub fn permit(&self, permit: Permit) {
        self.lock().permits.get_or_insert_default().push(permit);
    }

    /// Takes all permits away: with an empty table nobody may do anything.
    pub fn forbid_everything(&self) {
        self.lock().permits = Some(Vec::new());
    }

    /// Takes the whole table of permits away: everybody may do everything.
    pub fn allow_everything(&self) {
        self.lock().permits = None;
    }

    pub(crate) fn add_expiring_token(&self, token: &str, user: User, expires: Timestamp) {
        self.lock().tokens.insert(token.to_owned(), (user, Some(expires)));
    }

    /// The user to whom a token belongs.
    pub(crate) fn user_of(&self, token: &str, now: Timestamp) -> Option<User> {
        let tables = self.lock();
        let (user, expires) = tables.tokens.get(token)?;
        expires.is_none_or(|expires| now < expires).then(|| user.clone())
    }

    /// The user of a request with this `Authorization` header.
    pub(crate) fn authenticate(&self, header: Option<&str>, now: Timestamp) -> Result<User, Status> {
        let token = header.and_then(|header| header.strip_prefix("Bearer "));
        if let Some(user) = token.and_then(|token| self.user_of(token.trim(), now)) {
            return Ok(user);
        }
        if self.lock().require_auth {
            Err(Status::unauthorized())
        } else {
            Ok(User::anonymous())
        }
    }

    /// In whose name a user asks: that of a ServiceAccount, if the user may.
    pub(crate) fn acting(&self, user: User, header: Option<&HeaderValue>) -> Result<User, Status> {
        let Some(wanted) = header.and_then(|header| header.to_str().ok()) else {
            return Ok(user);
        };
        let account = wanted.strip_prefix("system:serviceaccount:");
        let Some((namespace, name)) = account.and_then(|account| account.split_once(':')) else {
            return Err(Status::forbidden(
                "",
                "users",
                wanted,
                "only ServiceAccounts are impersonated here",
            ));
        };
        let asked = Attributes {
            verb: "impersonate".to_owned(),
            resource: "serviceaccounts".to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
        self.authorize(&user, &asked)?;
        Ok(User::service_account(namespace, name, ""))
    }

    pub(crate) fn allows(&self, user: &User, asked: &Attributes) -> bool {
        match &self.lock().permits {
            None => true,
            Some(_) if user.groups.iter().any(|group| group == "system:masters") => true,
            Some(permits) => permits.iter().any(|permit| permit.allows(user, asked)),
        }
    }

    /// Refuses what is not allowed.
    pub(crate) fn authorize(&self, user: &User, asked: &Attributes) -> Result<(), Status> {
        if self.allows(user, asked) {
            return Ok(());
        }
        let Attributes {
            verb,
            group,
            resource,
            subresource,
            namespace,
            name,
            path,
        } = asked;
        let why = if resource.is_empty() {
            format!("User {:?} cannot {verb} path {path:?}", user.name)
        } else {
            let what = if subresource.is_empty() {
                resource.clone()
            } else {
                format!("{resource}/{subresource}")
            };
            let scope = match namespace.as_str() {
                "" => "at the cluster scope".to_owned(),
                _ => format!("in the namespace {namespace:?}"),
            };
            format!(
                "User {:?} cannot {verb} resource {what:?} in API group {group:?} {scope}",
                user.name
            )
        };
        Err(Status::forbidden(group, resource, name, &why))
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
