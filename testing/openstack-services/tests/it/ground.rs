//! Where a walk is made: a project of the real services, or the simulator on a socket.

use std::time::Duration;

use bowline_openstack_services::{Login, Project, Server, Service, Session, cloud_or_skip};
use bowline_openstack_sim::kit::Server as Listening;
use bowline_openstack_sim::model::network::FixedIp;
use bowline_openstack_sim::{OpenstackSim, ServerSpec, SubnetSpec};
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
    pub(crate) async fn real() -> Option<Self> {
        let cloud = cloud_or_skip().await?;
        let project = cloud.project(&Project::unique_name("walk")).await.unwrap();
        Some(Self::Real(Box::new(project)))
    }

    /// A simulator whose changes end after this time, or when [`Self::ends_change`] says so.
    pub(crate) async fn simulated(pending: Duration) -> Self {
        let sim = OpenstackSim::builder()
            .private_v6_range("fd00:10::/64".parse().unwrap())
            .build();
        sim.set_behaviour(|behaviour| {
            behaviour.lb_create_time = pending;
            behaviour.lb_change_time = pending;
            behaviour.lb_delete_time = pending;
            // No amphora says that a real one works.
            behaviour.hears_of_health = false;
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

    /// Ends what is under way on a load balancer of the simulator; the real services take their time.
    pub(crate) fn ends_change(&self, id: &str) -> bool {
        match self {
            Self::Real(_) => false,
            Self::Simulated(simulated) => {
                simulated.sim.end_change(id.parse().unwrap());
                true
            }
        }
    }

    /// Adds a subnet of one free address to the project's network; answers its id.
    pub(crate) async fn small_subnet(&self) -> String {
        let cidr = "10.9.0.0/30";
        match self {
            Self::Real(project) => {
                let subnet = json!({ "subnet": {
                    "name": "small", "network_id": project.network_id, "ip_version": 4, "cidr": cidr, "enable_dhcp": false,
                } });
                let path = "/v2.0/subnets";
                let made = self
                    .session()
                    .call(Service::Network, Method::POST, path, Some(subnet));
                made.await.unwrap().id("subnet").unwrap()
            }
            Self::Simulated(simulated) => {
                let network = simulated.sim.home().network;
                let subnet = SubnetSpec::new("small", network, cidr.parse().unwrap());
                simulated.sim.add_subnet(subnet).to_string()
            }
        }
    }

    /// Makes a port of the last free address of [`Self::small_subnet`]; answers its id.
    pub(crate) async fn last_port(&self, subnet: &str) -> String {
        match self {
            Self::Real(project) => {
                let fixed_ips = json!([{ "subnet_id": subnet }]);
                let port = json!({ "port": { "network_id": project.network_id, "fixed_ips": fixed_ips } });
                let made = self
                    .session()
                    .call(Service::Network, Method::POST, "/v2.0/ports", Some(port));
                made.await.unwrap().id("port").unwrap()
            }
            Self::Simulated(simulated) => {
                let (subnet, address) = (subnet.parse().unwrap(), "10.9.0.2".parse().unwrap());
                let port = simulated.sim.add_port("", vec![FixedIp { subnet, address }]);
                port.to_string()
            }
        }
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

    /// Lets the project have so many of something, as the service's quotas name it; -1 is any number.
    pub(crate) async fn limit(&self, service: Service, name: &str, limit: i32) {
        match self {
            Self::Real(project) => {
                let cloud = project.cloud();
                let done = cloud.limit(service, project.id(), name, limit.into());
                done.await.unwrap();
            }
            Self::Simulated(simulated) => simulated.sim.set_behaviour(|behaviour| {
                let quota = &mut behaviour.quota;
                let limited = match name {
                    "load_balancer" => &mut quota.load_balancers,
                    "listener" => &mut quota.listeners,
                    "pool" => &mut quota.pools,
                    "member" => &mut quota.members,
                    "health_monitor" => &mut quota.health_monitors,
                    "port" => &mut quota.ports,
                    "floatingip" => &mut quota.floating_ips,
                    "security_group" => &mut quota.security_groups,
                    "security_group_rule" => &mut quota.security_group_rules,
                    other => panic!("{other} is not limited"),
                };
                *limited = usize::try_from(limit).ok();
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
