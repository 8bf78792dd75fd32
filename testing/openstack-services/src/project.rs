//! A test's own project, and what is in it.

use std::sync::atomic::{AtomicU32, Ordering};

use http::Method;
use serde_json::{Value, json};

use crate::cloud::{Cloud, CloudError, GONE, wait_for_state};
use crate::network::create;
use crate::rest::{Login, Session};
use crate::service::Service;
use crate::site::{ADMIN_PASSWORD, ROLES};

impl Cloud {
    /// Makes a project of its own for a test: an ordinary user, a network with a subnet for IPv4 (`10.0.0.0/24`) and one for IPv6,
    /// and a router to the external network. No test sees what another one has.
    ///
    /// The name must not be in use; [`Project::unique_name`] makes one.
    ///
    /// # Errors
    ///
    /// When a service refuses.
    pub async fn project(&self, name: &str) -> Result<Project, CloudError> {
        let password = name;
        let project = json!({ "project": { "name": name, "domain_id": "default" } });
        let project = self
            .create(Service::Identity, "/projects", "project", project)
            .await?;
        let user = json!({ "user": { "name": name, "password": password, "domain_id": "default" } });
        let user = self.create(Service::Identity, "/users", "user", user).await?;
        for role in ["member"].into_iter().chain(ROLES) {
            self.admin().grant(&project, &user, role).await?;
        }
        Project::furnish(self.clone(), name, password).await
    }
}

/// A project with an ordinary user and a network of its own.
#[derive(Debug, Clone)]
pub struct Project {
    cloud: Cloud,
    /// The user's name, which is also the project's.
    pub name: String,
    /// The user's password.
    pub password: String,
    /// The user, logged in.
    pub session: Session,
    /// The network of the servers.
    pub network_id: String,
    /// Its subnet for IPv4, `10.0.0.0/24`.
    pub subnet_id: String,
    /// Its subnet for IPv6, `fd00:10::/64`.
    pub subnet6_id: String,
    /// The router between it and the external network.
    pub router_id: String,
}

/// A server and its one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its port.
    pub port_id: String,
    /// Its address for IPv4.
    pub address: String,
}

/// An application credential.
#[derive(Clone)]
pub struct ApplicationCredential {
    /// Its id.
    pub id: String,
    /// Its name, unique for its user.
    pub name: String,
    /// Its secret.
    pub secret: String,
}

/// Without the secret.
impl std::fmt::Debug for ApplicationCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApplicationCredential")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A trust of a project's user in the administrator, who may then do what the user may.
#[derive(Debug, Clone)]
pub struct Trust {
    /// Its id.
    pub id: String,
    /// Whom the user trusts.
    pub trustee_id: String,
    /// The password with which the trustee logs in.
    pub trustee_password: String,
}

impl Project {
    /// A name that no other test in this or another process has.
    pub fn unique_name(what: &str) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        format!("{what}-{}-{number}", std::process::id())
    }

    pub(crate) async fn furnish(cloud: Cloud, name: &str, password: &str) -> Result<Self, CloudError> {
        let login = Login::password(name, password, name);
        let session = Session::open(cloud.keystone_url(), &login).await?;
        let make = async |path: &str, kind: &str, body: Value| {
            let body = json!({ kind: body });
            create(&session, Service::Network, path, kind, body).await
        };
        let network_id = make("/v2.0/networks", "network", json!({ "name": "private" })).await?;
        let subnet = json!({
            "name": "private-v4", "network_id": network_id, "ip_version": 4, "cidr": "10.0.0.0/24",
        });
        let subnet_id = make("/v2.0/subnets", "subnet", subnet).await?;
        let subnet = json!({
            "name": "private-v6", "network_id": network_id, "ip_version": 6, "cidr": "fd00:10::/64",
            "ipv6_address_mode": "slaac", "ipv6_ra_mode": "slaac",
        });
        let subnet6_id = make("/v2.0/subnets", "subnet", subnet).await?;
        let external = &cloud.access().external.id;
        let router = json!({ "name": "router1", "external_gateway_info": { "network_id": external } });
        let router_id = make("/v2.0/routers", "router", router).await?;
        for subnet in [&subnet_id, &subnet6_id] {
            let path = format!("/v2.0/routers/{router_id}/add_router_interface");
            let body = json!({ "subnet_id": subnet });
            session
                .call(Service::Network, Method::PUT, &path, Some(body))
                .await?
                .ok()?;
        }
        Ok(Self {
            cloud,
            name: name.to_owned(),
            password: password.to_owned(),
            session,
            network_id,
            subnet_id,
            subnet6_id,
            router_id,
        })
    }

    /// The project's id.
    pub fn id(&self) -> &str {
        &self.session.project_id
    }

    /// The cloud that it is in.
    pub fn cloud(&self) -> &Cloud {
        &self.cloud
    }

    /// Boots a server on the project's network and waits until it is ACTIVE.
    ///
    /// # Errors
    ///
    /// When the cloud runs without Nova, or Nova refuses, or the server fails.
    pub async fn server(&self, name: &str) -> Result<Server, CloudError> {
        let access = self.cloud.access();
        let body = json!({ "server": {
            "name": name, "flavorRef": access.flavor_id, "imageRef": access.image_id,
            "networks": [{ "uuid": self.network_id }],
        } });
        let id = create(&self.session, Service::Compute, "/servers", "server", body).await?;
        self.server_state(&id, "ACTIVE").await?;
        let path = format!("/v2.0/ports?device_id={id}");
        let answer = self
            .session
            .call(Service::Network, Method::GET, &path, None)
            .await?;
        let v4 = answer
            .body
            .pointer("/ports/0/fixed_ips")
            .and_then(Value::as_array);
        let v4 = v4
            .into_iter()
            .flatten()
            .find_map(|address| address["ip_address"].as_str().filter(|text| text.contains('.')));
        let address = v4.unwrap_or_default().to_owned();
        Ok(Server {
            id,
            name: name.to_owned(),
            port_id: answer.text("/ports/0/id")?,
            address,
        })
    }

    /// Switches a server off and waits until it is.
    ///
    /// # Errors
    ///
    /// When Nova refuses.
    pub async fn stop(&self, server: &Server) -> Result<(), CloudError> {
        let path = format!("/servers/{}/action", server.id);
        let body = json!({ "os-stop": null });
        self.session
            .call(Service::Compute, Method::POST, &path, Some(body))
            .await?
            .ok()?;
        self.server_state(&server.id, "SHUTOFF").await
    }

    /// Deletes a server and waits until Nova does not know it any more.
    ///
    /// # Errors
    ///
    /// When Nova refuses.
    pub async fn delete(&self, server: &Server) -> Result<(), CloudError> {
        let path = format!("/servers/{}", server.id);
        self.session
            .call(Service::Compute, Method::DELETE, &path, None)
            .await?
            .ok()?;
        self.server_state(&server.id, GONE).await
    }

    async fn server_state(&self, id: &str, wanted: &str) -> Result<(), CloudError> {
        let path = format!("/servers/{id}");
        wait_for_state(&self.session, Service::Compute, &path, "/server/status", wanted).await?;
        Ok(())
    }

    /// Waits until a load balancer has this provisioning status; `gone` when it shall not exist any more.
    ///
    /// # Errors
    ///
    /// When it does not come to that, or ends in another state for good.
    pub async fn load_balancer_state(&self, id: &str, wanted: &str) -> Result<(), CloudError> {
        let path = format!("/v2.0/lbaas/loadbalancers/{id}");
        let pointer = "/loadbalancer/provisioning_status";
        wait_for_state(&self.session, Service::LoadBalancer, &path, pointer, wanted).await?;
        Ok(())
    }

    /// Makes an application credential of the project's user.
    ///
    /// # Errors
    ///
    /// When Keystone refuses.
    pub async fn application_credential(&self, name: &str) -> Result<ApplicationCredential, CloudError> {
        let path = format!("/users/{}/application_credentials", self.session.user_id);
        let body = json!({ "application_credential": { "name": name } });
        let answer = self
            .session
            .call(Service::Identity, Method::POST, &path, Some(body))
            .await?;
        Ok(ApplicationCredential {
            id: answer.clone().id("application_credential")?,
            name: name.to_owned(),
            secret: answer.text("/application_credential/secret")?,
        })
    }

    /// Lets the project's user trust the administrator with what an ordinary user may do here.
    ///
    /// # Errors
    ///
    /// When Keystone refuses.
    pub async fn trust(&self) -> Result<Trust, CloudError> {
        let trustee_id = self.cloud.admin().user_id.clone();
        let body = json!({ "trust": {
            "trustor_user_id": self.session.user_id,
            "trustee_user_id": trustee_id,
            "project_id": self.session.project_id,
            "impersonation": true,
            "roles": [{ "name": "member" }, { "name": "load-balancer_member" }],
        } });
        let id = create(
            &self.session,
            Service::Identity,
            "/OS-TRUST/trusts",
            "trust",
            body,
        )
        .await?;
        Ok(Trust {
            id,
            trustee_id,
            trustee_password: ADMIN_PASSWORD.to_owned(),
        })
    }
}
