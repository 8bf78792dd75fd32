//! A running cloud, as tests see it.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use bowline_base::server::or_skip;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::deadline::{NotInTime, wait_for};
use crate::network::ExternalNetwork;
use crate::rest::{Answer, Login, RestError, Session};
use crate::service::{Mode, Service};
use crate::site::ADMIN_PASSWORD;

/// For an object to become what it was asked to be.
pub(crate) const CHANGE: Duration = Duration::from_secs(120);

/// Why something was not done in a cloud.
#[derive(Debug, thiserror::Error)]
pub enum CloudError {
    /// A call.
    #[error(transparent)]
    Rest(#[from] RestError),
    /// An object did not become what it was asked to be.
    #[error(transparent)]
    NotInTime(#[from] NotInTime),
    /// An object failed instead.
    #[error("{what} is in state {state}: {detail}")]
    Failed {
        /// Which.
        what: String,
        /// Its state.
        state: String,
        /// What the service says of it.
        detail: Value,
    },
    /// The file that describes a running cloud could not be read.
    #[error("cannot read {0}, which `{variable}` names", variable = Cloud::VARIABLE)]
    Description(String, #[source] io::Error),
    /// It does not describe one.
    #[error("{0} does not describe a running cloud")]
    NoDescription(String, #[source] serde_json::Error),
}

/// What one has to know of a cloud to speak to it. A program that started one hands it on as a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Keystone's URL, with the version.
    pub keystone_url: String,
    /// The one region.
    pub region: String,
    /// What runs.
    pub mode: Mode,
    /// The network on which floating IPs are allocated, with its subnets.
    pub external: ExternalNetwork,
    /// The flavor of servers; none without Nova.
    pub flavor_id: Option<String>,
    /// The image of servers; none without Nova.
    pub image_id: Option<String>,
}

impl Access {
    /// Writes it for other processes.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, serde_json::to_vec_pretty(self)?)
    }
}

/// A running cloud, through its administrator. Copies share the login.
#[derive(Debug, Clone)]
pub struct Cloud {
    access: Access,
    admin: Session,
}

impl Cloud {
    /// The environment variable that names the file of a running cloud: tests that want real services use that one.
    pub const VARIABLE: &str = "BOWLINE_OPENSTACK";

    /// The cloud that the environment names, if it names one.
    ///
    /// # Errors
    ///
    /// When the file is no description, or the cloud does not answer.
    pub async fn wanted() -> Result<Option<Self>, CloudError> {
        let Some(path) = std::env::var_os(Self::VARIABLE).filter(|path| !path.is_empty()) else {
            return Ok(None);
        };
        let name = path.to_string_lossy().into_owned();
        let text = fs::read(&path).map_err(|error| CloudError::Description(name.clone(), error))?;
        let access = serde_json::from_slice(&text).map_err(|error| CloudError::NoDescription(name, error))?;
        Ok(Some(Self::open(access).await?))
    }

    /// Logs in as the administrator.
    pub(crate) async fn open(access: Access) -> Result<Self, CloudError> {
        let login = Login::password("admin", ADMIN_PASSWORD, "admin");
        let admin = Session::open(&access.keystone_url, &login).await?;
        Ok(Self { access, admin })
    }

    /// How to speak to it.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Keystone's URL, with the version: `auth-url` of a manager's configuration.
    pub fn keystone_url(&self) -> &str {
        &self.access.keystone_url
    }

    /// The one region.
    pub fn region(&self) -> &str {
        &self.access.region
    }

    /// The administrator, for what an ordinary user cannot do.
    pub fn admin(&self) -> &Session {
        &self.admin
    }

    /// Makes another external network, with one subnet and no gateway address: a small one is soon exhausted.
    ///
    /// # Errors
    ///
    /// When Neutron refuses.
    pub async fn external_network(&self, name: &str, cidr: &str) -> Result<ExternalNetwork, CloudError> {
        ExternalNetwork::create(&self.admin, name, cidr)
            .await
            .map_err(Into::into)
    }

    /// Adds a subnet with tags to the external network.
    ///
    /// # Errors
    ///
    /// When Neutron refuses.
    pub async fn external_subnet(&self, name: &str, cidr: &str, tags: &[&str]) -> Result<String, CloudError> {
        let id = self.access.external.add_subnet(&self.admin, name, cidr).await?;
        let path = format!("/v2.0/subnets/{id}/tags");
        let body = json!({ "tags": tags });
        self.admin
            .call(Service::Network, Method::PUT, &path, Some(body))
            .await?
            .ok()?;
        Ok(id)
    }

    /// Limits what a project may have: names and numbers as the service has them, `floatingip` or `load_balancer`.
    ///
    /// # Errors
    ///
    /// When the service refuses.
    pub async fn limit(
        &self,
        service: Service,
        project_id: &str,
        quota: &str,
        limit: i64,
    ) -> Result<(), CloudError> {
        let (path, body) = match service {
            Service::Compute => (
                format!("/os-quota-sets/{project_id}"),
                json!({ "quota_set": { quota: limit } }),
            ),
            Service::LoadBalancer => (
                format!("/v2.0/lbaas/quotas/{project_id}"),
                json!({ "quota": { quota: limit } }),
            ),
            _ => (
                format!("/v2.0/quotas/{project_id}"),
                json!({ "quota": { quota: limit } }),
            ),
        };
        self.admin
            .call(service, Method::PUT, &path, Some(body))
            .await?
            .ok()?;
        Ok(())
    }

    pub(crate) async fn create(
        &self,
        service: Service,
        path: &str,
        kind: &str,
        body: Value,
    ) -> Result<String, RestError> {
        self.admin
            .call(service, Method::POST, path, Some(body))
            .await?
            .id(kind)
    }
}

/// What a test calls that needs real services: the cloud that `cargo xtask test --openstack real` has started, or nothing and a
/// line that says what was left out.
///
/// # Panics
///
/// If there is such a cloud and it does not let the administrator in.
#[expect(clippy::panic, reason = "ends the test")]
pub async fn cloud_or_skip() -> Option<Cloud> {
    let cloud = Cloud::wanted().await.unwrap_or_else(|error| panic!("{error}"));
    or_skip(cloud.ok_or("needs `cargo xtask test --openstack real`"), false)
}

/// Waits until an object has the wanted state. `gone` is the state of what answers 404.
pub(crate) async fn wait_for_state(
    session: &Session,
    service: Service,
    path: &str,
    pointer: &str,
    wanted: &str,
) -> Result<Answer, CloudError> {
    let what = format!("{path} is {wanted}");
    wait_for(&what, CHANGE, async || {
        let answer = session.call(service, Method::GET, path, None).await?;
        if wanted == GONE && answer.status == http::StatusCode::NOT_FOUND {
            return Ok(Some(answer));
        }
        let answer = answer.ok()?;
        let state = answer.body.pointer(pointer).and_then(Value::as_str);
        let state = state.unwrap_or_default().to_owned();
        if state == wanted {
            return Ok(Some(answer));
        }
        if state == "ERROR" && wanted != GONE {
            return Err(CloudError::Failed {
                what: path.to_owned(),
                state,
                detail: answer.body,
            });
        }
        Ok(None)
    })
    .await
}

/// The state of an object that does not exist.
pub(crate) const GONE: &str = "gone";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_survives_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cloud.json");
        let access = Access {
            keystone_url: "http://127.0.0.1:1/v3".to_owned(),
            region: "RegionOne".to_owned(),
            mode: Mode::Min,
            external: ExternalNetwork {
                id: "e".to_owned(),
                name: "public".to_owned(),
                subnet_id: "s".to_owned(),
            },
            flavor_id: None,
            image_id: None,
        };
        access.write(&path).unwrap();
        let read: Access = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(read, access);
    }
}
