//! Keystone's versions and tokens.

use serde_json::{Value, json};

use super::Wire;
use crate::model::identity::{Domain, Scope, Token};
use crate::options::{INTERFACES, Service};

fn domain(domain: &Domain) -> Value {
    json!({ "id": domain.id, "name": domain.name })
}

/// An id that is always the same for the same thing. The real ones are random.
fn stable_id(words: &[&str]) -> String {
    words.join("-")
}

impl Wire<'_> {
    pub(crate) fn identity_version(&self) -> Value {
        json!({
            "id": "v3.14",
            "status": "stable",
            "updated": "2020-04-07T00:00:00Z",
            "links": [{ "rel": "self", "href": format!("{}/v3/", self.root(Service::Identity)) }],
            "media-types": [
                { "base": "application/json", "type": "application/vnd.openstack.identity-v3+json" },
            ],
        })
    }

    pub(crate) fn token(&self, token: &Token) -> Value {
        let identity = &self.state.identity;
        let user = identity.users.get(&token.user);
        let mut shown = json!({
            "methods": token.methods,
            "user": {
                "domain": user.map(|user| domain(&user.domain)),
                "id": token.user,
                "name": user.map(|user| user.name.as_str()),
                "password_expires_at": null,
            },
            "audit_ids": [stable_id(&["audit", &token.user, &token.issued_at])],
            "expires_at": token.expires_at,
            "issued_at": token.issued_at,
        });
        match &token.scope {
            Scope::Unscoped => return shown,
            Scope::Domain(scope) => shown["domain"] = domain(scope),
            Scope::Project(id) => {
                if let Some(project) = identity.projects.get(id) {
                    let domain = domain(&project.domain);
                    shown["project"] = json!({ "domain": domain, "id": project.id, "name": project.name });
                }
                shown["is_domain"] = Value::from(false);
            }
        }
        let roles: &[&str] = match token.is_admin {
            true => &["admin", "manager", "member", "reader"],
            false => &["member", "load-balancer_member", "reader", "creator"],
        };
        let role = |name: &&str| json!({ "id": stable_id(&["role", name]), "name": name });
        shown["roles"] = roles.iter().map(role).collect();
        shown["catalog"] = self.catalog();
        if let Some(trust) = token.trust.as_ref().and_then(|id| identity.trusts.get(id)) {
            shown["OS-TRUST:trust"] = json!({
                "id": trust.id,
                "impersonation": trust.impersonation,
                "trustor_user": { "id": trust.trustor },
                "trustee_user": { "id": trust.trustee },
            });
        }
        shown
    }

    fn catalog(&self) -> Value {
        let options = &self.state.options;
        let services = Service::ALL.into_iter();
        let entry = |service: Service| {
            let (kind, name) = service.names();
            let mut endpoints = Vec::new();
            for region in &options.regions {
                for interface in INTERFACES {
                    endpoints.push(json!({
                        "id": stable_id(&[kind, interface, region]),
                        "interface": interface,
                        "region": region,
                        "region_id": region,
                        "url": format!("{}{}", self.base, options.endpoint(service, interface, region)),
                    }));
                }
            }
            json!({ "id": stable_id(&[kind]), "type": kind, "name": name, "endpoints": endpoints })
        };
        services
            .filter(|service| !options.missing.contains(service))
            .map(entry)
            .collect()
    }
}
