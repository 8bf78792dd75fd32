//! A cloud of one's own: started, and stopped when it is dropped.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_base::server::{Process, ProcessError};
use http::Method;
use serde_json::json;
use tokio::net::TcpStream;

use crate::cloud::{Access, Cloud, CloudError};
use crate::config::{self, ConfigError};
use crate::deadline::{NotInTime, wait_for};
use crate::installation::{Installation, Missing};
use crate::network::ExternalNetwork;
use crate::rest::{Login, RestError, Session};
use crate::seed::FOLDERS;
use crate::servers::Worker;
use crate::service::{Mode, Service};
use crate::site::{ADMIN_PASSWORD, Directory, REGION, Site, Workers};
use crate::{database, servers};

/// For each thing that a start waits for. Some tens of seconds on a quiet machine; a busy one with two cores may take many times that.
const START: Duration = Duration::from_secs(300);

/// A free port can be taken by another between our look and a server's bind.
const ATTEMPTS: usize = 3;

/// How a cloud is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Which services.
    pub mode: Mode,
    /// What becomes of new load balancers.
    pub workers: Workers,
}

/// Why a cloud did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nothing is installed.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A file or folder.
    #[error("cannot prepare the files of the cloud")]
    Files(#[from] io::Error),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A process.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A server gave up; its log ends like this.
    #[error("{server} ended while starting; its last words:\n{last_words}")]
    Ended {
        /// Which.
        server: &'static str,
        /// The end of its log.
        last_words: String,
    },
    /// A server did not get ready in time; its log ends like this.
    #[error("{server}: {late}; its last words:\n{last_words}")]
    NotReady {
        /// Which.
        server: &'static str,
        /// What was waited for.
        late: NotInTime,
        /// The end of its log.
        last_words: String,
    },
    /// Something else did not happen in time.
    #[error(transparent)]
    NotInTime(#[from] NotInTime),
    /// A service refused what every cloud has.
    #[error(transparent)]
    Rest(#[from] RestError),
    /// The administrator cannot log in.
    #[error(transparent)]
    Cloud(#[from] CloudError),
}

/// A running cloud. All its servers are killed, and its files removed, when this is dropped.
#[derive(Debug)]
pub struct OpenStack {
    // Fields drop in this order: the servers before their files.
    servers: Servers,
    cloud: Cloud,
    description: PathBuf,
    directory: Directory,
}

impl OpenStack {
    /// Starts one and returns when it is ready to be used.
    ///
    /// # Errors
    ///
    /// When nothing is installed (see [`crate::install()`]), or a server does not get ready.
    ///
    /// # Cancellation
    ///
    /// Leaves nothing behind.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let installation = Installation::find()?;
        let mut attempt = 1;
        loop {
            match Self::attempt(&installation, options).await {
                Err(StartError::Ended { last_words, .. })
                    if attempt < ATTEMPTS && is_taken_port(&last_words) =>
                {
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    async fn attempt(installation: &Installation, options: Options) -> Result<Self, StartError> {
        let directory = Directory::new()?;
        let site = Site::new(installation, directory.path())?;
        for folder in FOLDERS {
            database::copy(&installation.seed().join(folder), &site.path(folder))?;
        }
        config::write(&site, options.workers)?;
        let init = database::write_init(&site, &database::relocation(&site, options.mode))?;
        // Below the directory, so dropped before it when the start fails or is given up.
        let mut servers = Servers::default();
        servers.add(servers::mariadb(&site, &init)?);
        servers.add(servers::names(&site)?);
        servers
            .until("the name daemon listens", async || {
                listens(site.ports.names).await
            })
            .await?;
        servers.add(servers::broker(&site)?);
        servers
            .until("the database takes connections", async || {
                database::is_ready(&site)
            })
            .await?;
        let access = servers.start_services(&site, options.mode).await?;
        let description = site.path("cloud.json");
        access.write(&description)?;
        Ok(Self {
            servers,
            cloud: Cloud::open(access).await?,
            description,
            directory,
        })
    }

    /// How tests speak to it.
    pub fn cloud(&self) -> &Cloud {
        &self.cloud
    }

    /// The file that tells other processes how to use this cloud: what [`Cloud::VARIABLE`] names.
    pub fn description(&self) -> &Path {
        &self.description
    }

    /// Where the logs of all servers are.
    pub fn logs(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    /// The process ids of all servers, which are those of their groups.
    pub fn process_ids(&self) -> Vec<(&'static str, u32)> {
        let servers = self.servers.0.iter();
        servers.map(|server| (server.name(), server.id())).collect()
    }
}

/// Running servers, in the order of their start; stopped in the opposite one.
#[derive(Debug, Default)]
struct Servers(Vec<Process>);

impl Servers {
    fn add(&mut self, server: Process) {
        self.0.push(server);
    }

    /// Waits for something, and fails as soon as a server ends.
    async fn until(&mut self, what: &str, mut ready: impl AsyncFnMut() -> bool) -> Result<(), StartError> {
        let result = wait_for(what, START, async || {
            for server in &mut self.0 {
                if server.has_ended() {
                    return Err(StartError::Ended {
                        server: server.name(),
                        last_words: server.last_words(),
                    });
                }
            }
            Ok(ready().await.then_some(()))
        })
        .await;
        match (result, self.0.last()) {
            // Most often it is the server that was started last.
            (Err(StartError::NotInTime(late)), Some(server)) => Err(StartError::NotReady {
                server: server.name(),
                late,
                last_words: server.last_words(),
            }),
            (result, _) => result,
        }
    }

    /// Starts the services and makes what every cloud has.
    async fn start_services(&mut self, site: &Site, mode: Mode) -> Result<Access, StartError> {
        for service in mode.services() {
            self.add(servers::api(site, *service)?);
        }
        let login = Login::password("admin", ADMIN_PASSWORD, "admin");
        let keystone_url = site.endpoint(Service::Identity);
        let mut session = None;
        self.until("Keystone lets the administrator in", async || {
            session = Session::open(&keystone_url, &login).await.ok();
            session.is_some()
        })
        .await?;
        let Some(admin) = session else {
            return Err(NotInTime {
                what: "a session".to_owned(),
                within: START,
            }
            .into());
        };
        let broker = site.ports.broker;
        self.until("the broker listens", async || listens(broker).await)
            .await?;
        self.add(Worker::Octavia.start(site)?);
        if mode.has(Service::Compute) {
            self.answers(&admin, Service::Placement).await?;
            // These log in at Placement when they start, and end if they cannot.
            for worker in [Worker::Conductor, Worker::Scheduler, Worker::Compute] {
                self.add(worker.start(site)?);
            }
        }
        for service in mode.services() {
            self.answers(&admin, *service).await?;
        }
        let external = ExternalNetwork::create(&admin, "public", "203.0.113.0/24").await?;
        let (mut flavor_id, mut image_id) = (None, None);
        if mode.has(Service::Compute) {
            flavor_id = Some(flavor(&admin).await?);
            image_id = Some(image(&admin).await?);
            self.until("Nova's workers report", async || {
                matches!(nova_is_up(&admin).await, Ok(true))
            })
            .await?;
        }
        Ok(Access {
            keystone_url,
            region: REGION.to_owned(),
            mode,
            external,
            flavor_id,
            image_id,
        })
    }

    async fn answers(&mut self, admin: &Session, service: Service) -> Result<(), StartError> {
        let what = format!("{} answers", service.api());
        self.until(&what, async || {
            let answer = admin.call(service, Method::GET, "/", None).await;
            answer.is_ok_and(|answer| !answer.status.is_server_error())
        })
        .await
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        while let Some(server) = self.0.pop() {
            drop(server);
        }
    }
}

/// What the servers say when their port is another's: uWSGI, epmd and the broker's runtime.
fn is_taken_port(last_words: &str) -> bool {
    let words = last_words.to_ascii_lowercase();
    words.contains("address already in use") || words.contains("eaddrinuse")
}

async fn listens(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).await.is_ok()
}

async fn flavor(admin: &Session) -> Result<String, RestError> {
    let body = json!({ "flavor": { "name": "m1.small", "ram": 64, "vcpus": 1, "disk": 1 } });
    admin
        .call(Service::Compute, Method::POST, "/flavors", Some(body))
        .await?
        .id("flavor")
}

/// An image, because Nova boots nothing without. Nobody looks into it.
async fn image(admin: &Session) -> Result<String, RestError> {
    let body = json!({
        "name": "empty", "disk_format": "raw", "container_format": "bare", "visibility": "public",
    });
    let id = admin
        .call(Service::Image, Method::POST, "/v2/images", Some(body))
        .await?
        .text("/id")?;
    admin
        .upload(Service::Image, &format!("/v2/images/{id}/file"), &[0; 4096])
        .await?
        .ok()?;
    Ok(id)
}

/// Whether all three workers have told the database that they live, and the one host has told Placement what it has.
async fn nova_is_up(admin: &Session) -> Result<bool, RestError> {
    let services = admin
        .call(Service::Compute, Method::GET, "/os-services", None)
        .await?
        .ok()?;
    let up = services.body["services"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|service| service["state"] == "up")
        .filter(|service| {
            let name = service["binary"].as_str().unwrap_or_default();
            ["nova-conductor", "nova-scheduler", "nova-compute"].contains(&name)
        });
    if up.count() < 3 {
        return Ok(false);
    }
    let hosts = admin
        .call(Service::Placement, Method::GET, "/resource_providers", None)
        .await?;
    let Ok(host) = hosts.text("/resource_providers/0/uuid") else {
        return Ok(false);
    };
    let path = format!("/resource_providers/{host}/inventories");
    let room = admin
        .call(Service::Placement, Method::GET, &path, None)
        .await?
        .ok()?;
    Ok(room.body["inventories"]
        .as_object()
        .is_some_and(|room| !room.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_recognised() {
        for words in [
            "probably another instance of uWSGI is running on the same address (127.0.0.1:1).\nbind(): Address already in use [core/socket.c]",
            "epmd: Error: bind: Address already in use",
            "{error,eaddrinuse}",
        ] {
            assert!(is_taken_port(words), "{words}");
        }
        assert!(!is_taken_port("no such module"));
    }
}
