//! Users and logins by hand. None of it is in the journal.

use super::{OpenstackSim, UserSpec};
use crate::model::Id;
use crate::model::identity::{ApplicationCredential, Trust};
use crate::model::keys::{Container, Secret};
use crate::state::hex;

impl OpenstackSim {
    /// Adds a project with its default security group; answers its id.
    pub fn add_project(&self, name: &str) -> String {
        self.write(|state| {
            let id = state.identity.add_project(&state.seed, name);
            state.insert_default_group(&id);
            id
        })
    }

    /// Adds a user; answers its id.
    pub fn add_user(&self, spec: UserSpec) -> String {
        self.write(|state| {
            let project = spec.project.unwrap_or_else(|| state.home.project.clone());
            let identity = &mut state.identity;
            identity.add_user(&state.seed, &spec.name, &spec.password, &project, spec.is_admin)
        })
    }

    /// The id of the user of a name.
    pub fn user_id(&self, name: &str) -> Option<String> {
        let state = self.read();
        let mut users = state.identity.users.values();
        users.find(|it| it.name == name).map(|it| it.id.clone())
    }

    /// Adds an application credential of a user for the first project; answers its id.
    pub fn add_application_credential(&self, user: &str, name: &str, secret: &str) -> String {
        self.write(|state| {
            let id = hex(&state.seed);
            let credential = ApplicationCredential {
                id: id.clone(),
                name: name.to_owned(),
                secret: secret.to_owned(),
                user: user.to_owned(),
                project: state.home.project.clone(),
            };
            state.identity.credentials.insert(id.clone(), credential);
            id
        })
    }

    /// Lets one user act in the first project in the name of another; answers the trust's id.
    pub fn add_trust(&self, trustor: &str, trustee: &str) -> String {
        self.write(|state| {
            let id = hex(&state.seed);
            let trust = Trust {
                id: id.clone(),
                trustor: trustor.to_owned(),
                trustee: trustee.to_owned(),
                project: state.home.project.clone(),
                impersonation: true,
            };
            state.identity.trusts.insert(id.clone(), trust);
            id
        })
    }

    /// Changes a user's password.
    pub fn set_password(&self, user: &str, password: &str) {
        self.write(|state| {
            if let Some(user) = state.identity.users.get_mut(user) {
                password.clone_into(&mut user.password);
            }
        });
    }

    /// Makes all tokens bad, as if each had come to its end.
    pub fn revoke_tokens(&self) {
        self.write(|state| state.identity.revoke_all());
    }

    /// Adds a secret to the first project; answers its id.
    pub fn add_secret(&self, name: &str) -> Id {
        self.write(|state| {
            let secret = Secret {
                id: state.seed.uuid(),
                name: name.to_owned(),
                project: state.home.project.clone(),
                created_at: state.clock.rfc3339_seconds(),
            };
            let id = secret.id;
            state.secrets.insert(id, secret);
            id
        })
    }

    /// Adds a certificate with its key to the first project; answers the container's id.
    pub fn add_certificate(&self, name: &str) -> Id {
        let secrets = ["certificate", "private_key"];
        let secrets = secrets.map(|part| (part.to_owned(), self.add_secret(&format!("{name}-{part}"))));
        self.write(|state| {
            let container = Container {
                id: state.seed.uuid(),
                name: name.to_owned(),
                project: state.home.project.clone(),
                secrets: secrets.into(),
                created_at: state.clock.rfc3339_seconds(),
            };
            let id = container.id;
            state.containers.insert(id, container);
            id
        })
    }
}
