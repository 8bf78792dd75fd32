//! Where a walk is made: a project of the real services, or the simulator on a socket.

use bowline_openstack_services::{Login, Project, Server, Service, Session, cloud_or_leave_out};
use bowline_openstack_sim::kit::Server as Listening;
use bowline_openstack_sim::{OpenstackSim, ServerSpec};
use http::Method;
use serde_json::{Value, json};

/// A cloud with one project: a network, two subnets and a router to an external network.
pub(crate) enum Ground {
    /// The services themselves.
    Real(Box<Project>),
    /// Their double.
    Simulated(Box<Simulated>),
}

pub(crate) struct Simulated {
    sim: OpenstackSim,
    session: Session,
    keystone_url: String,
    _listening: Listening,
}

/// Logins that a project can have beside its user's password.
pub(crate) struct Logins {
    pub(crate) by_id: Login,
    pub(crate) by_name: Login,
    pub(crate) by_trust: Login,
}

/// A server of which no more than the id is known.
fn named(id: &str) -> Server {
    Server {
        id: id.to_owned(),
        name: String::new(),
        port_id: String::new(),
        address: String::new(),
    }
}

/// The simulator's user, and the project's name.
const DEMO: &str = "demo";

impl Ground {
    /// The real services, if there are some.
    pub(crate) async fn real(what: &str) -> Option<Self> {
        let cloud = cloud_or_leave_out(what).await?;
        let project = cloud.project(&Project::unique_name("walk")).await.unwrap();
        Some(Self::Real(Box::new(project)))
    }

    /// A simulator that takes as long for a change as it takes to see it pending.
    pub(crate) async fn simulated() -> Self {
        let sim = OpenstackSim::builder()
            .private_v6_range("fd00:10::/64".parse().unwrap())
            .build();
        sim.set_behaviour(|behaviour| {
            let pending = std::time::Duration::from_millis(300);
            behaviour.lb_create_time = pending;
            behaviour.lb_change_time = pending;
            behaviour.lb_delete_time = pending;
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let keystone_url = format!("http://{}/identity/v3", listener.local_addr().unwrap());
        let listening = sim.serve(listener).unwrap();
        let session = Session::open(&keystone_url, &Login::password(DEMO, DEMO, DEMO))
            .await
            .unwrap();
        Self::Simulated(Box::new(Simulated {
            sim,
            session,
            keystone_url,
            _listening: listening,
        }))
    }

    /// The project's user.
    pub(crate) fn session(&self) -> &Session {
        match self {
            Self::Real(project) => &project.session,
            Self::Simulated(simulated) => &simulated.session,
        }
    }

    pub(crate) fn keystone_url(&self) -> &str {
        match self {
            Self::Real(project) => project.cloud().keystone_url(),
            Self::Simulated(simulated) => &simulated.keystone_url,
        }
    }

    /// The user's name, which is its password and the project's name too.
    pub(crate) fn user(&self) -> &str {
        match self {
            Self::Real(project) => &project.name,
            Self::Simulated(_) => DEMO,
        }
    }

    /// Puts a server into the project's network.
    /// Answers its id.
    pub(crate) async fn server(&self, name: &str) -> String {
        match self {
            Self::Real(project) => project.server(name).await.unwrap().id,
            Self::Simulated(simulated) => simulated.sim.add_server(ServerSpec::new(name)).to_string(),
        }
    }

    /// Switches a server off.
    pub(crate) async fn stop(&self, server: &str) {
        match self {
            Self::Real(project) => project.stop(&named(server)).await.unwrap(),
            Self::Simulated(simulated) => simulated
                .sim
                .set_server_status(server.parse().unwrap(), "SHUTOFF"),
        }
    }

    /// Deletes a server.
    pub(crate) async fn delete(&self, server: &str) {
        match self {
            Self::Real(project) => project.delete(&named(server)).await.unwrap(),
            Self::Simulated(simulated) => assert!(simulated.sim.remove_server(server.parse().unwrap())),
        }
    }

    /// The body of an answer that is none of a walk's.
    pub(crate) async fn get(&self, service: Service, path: &str) -> Value {
        let answer = self.session().call(service, Method::GET, path, None).await;
        answer.unwrap().ok().unwrap().body
    }

    /// Lets the project have so many load balancers; -1 is any number.
    pub(crate) async fn limit_load_balancers(&self, limit: i32) {
        match self {
            Self::Real(project) => {
                let cloud = project.cloud();
                let name = "load_balancer";
                let done = cloud.limit(Service::LoadBalancer, project.id(), name, limit.into());
                done.await.unwrap();
            }
            Self::Simulated(simulated) => simulated.sim.set_behaviour(|behaviour| {
                behaviour.quota.load_balancers = usize::try_from(limit).ok();
            }),
        }
    }

    /// Makes the other ways to log in.
    pub(crate) async fn logins(&self) -> Logins {
        let (id, secret, user_id, by_trust) = match self {
            Self::Real(project) => {
                let credential = project.application_credential("manager").await.unwrap();
                let trust = project.trust().await.unwrap();
                let login = Login::trust(&trust.trustee_id, &trust.trustee_password, &trust.id);
                let user = project.session.user_id.clone();
                (credential.id, credential.secret, user, login)
            }
            Self::Simulated(simulated) => {
                let sim = &simulated.sim;
                let user = sim.user_id(DEMO).unwrap();
                let admin = sim.user_id("admin").unwrap();
                let id = sim.add_application_credential(&user, "manager", "secret");
                let trust = sim.add_trust(&user, &admin);
                (
                    id,
                    "secret".to_owned(),
                    user,
                    Login::trust(&admin, "admin", &trust),
                )
            }
        };
        let by_name = json!({
            "name": "manager", "secret": secret, "user": { "id": user_id },
        });
        Logins {
            by_id: Login::application_credential(&id, &secret),
            by_name: Login::of(json!({ "identity": {
                "methods": ["application_credential"], "application_credential": by_name,
            } })),
            by_trust,
        }
    }
}
