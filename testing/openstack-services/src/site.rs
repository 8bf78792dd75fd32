//! One cloud's place: its directory, its ports, and how its programs are called.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use bowline_base::server::free_ports;
use tempfile::TempDir;

use crate::installation::Installation;
use crate::service::Service;

/// The name of the region, of which there is one.
pub(crate) const REGION: &str = "RegionOne";

/// The password of `admin`. The services listen on the loopback address only, and nothing real hangs on them.
pub(crate) const ADMIN_PASSWORD: &str = "bowline-admin";

/// The password of the services' own users, for the same reason a constant.
pub(crate) const SERVICE_PASSWORD: &str = "bowline-service";

/// User and password at the broker.
pub(crate) const BROKER_USER: &str = "bowline";

/// The name of the compute host. Neutron's mechanism driver `test` binds the ports of this host without an agent, and
/// sets them ACTIVE (`neutron/tests/unit/plugins/ml2/drivers/mechanism_test.py`, in Neutron's own package).
pub(crate) const COMPUTE_HOST: &str = "host-ovs-filter-active";

/// The roles that an ordinary user of load balancers has in addition to `member`.
pub(crate) const ROLES: [&str; 2] = ["load-balancer_member", "creator"];

/// How Octavia's worker works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Workers {
    /// New load balancers become ACTIVE.
    #[default]
    Working,
    /// New load balancers end in ERROR.
    Failing,
}

/// How directories of clouds are called.
const PREFIX: &str = "bowline-openstack-";

/// Where one cloud has its files and listens.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) installation: Installation,
    pub(crate) ports: Ports,
    directory: PathBuf,
}

/// Ports of 127.0.0.1.
#[derive(Debug, Clone)]
pub(crate) struct Ports {
    services: [u16; Service::ALL.len()],
    /// The broker's own protocol.
    pub(crate) broker: u16,
    /// Where the broker would speak to brokers like it. There is none, but it insists.
    pub(crate) distribution: u16,
    /// Where the broker's runtime tells its name.
    pub(crate) names: u16,
}

impl Ports {
    fn free() -> io::Result<Self> {
        let [a, b, c, d, e, f, broker, distribution, names] = free_ports()?;
        Ok(Self {
            services: [a, b, c, d, e, f],
            broker,
            distribution,
            names,
        })
    }

    /// Where a service listens.
    pub(crate) fn of(&self, service: Service) -> u16 {
        let place = Service::ALL.iter().position(|one| *one == service);
        place.map_or(0, |place| self.services[place])
    }
}

impl Site {
    /// A place in this directory, with free ports. The folders that servers expect are made.
    pub(crate) fn new(installation: &Installation, directory: &Path) -> io::Result<Self> {
        for folder in ["etc", "log", "home", "broker", "images", "locks", "state", "keys"] {
            fs::create_dir_all(directory.join(folder))?;
        }
        Ok(Self {
            installation: installation.clone(),
            ports: Ports::free()?,
            directory: directory.to_owned(),
        })
    }

    /// A file or folder of this cloud.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The same as text, for configuration files.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Where a server's output goes.
    pub(crate) fn log(&self, server: &str) -> PathBuf {
        self.directory.join("log").join(format!("{server}.log"))
    }

    /// Where a service listens, without a path.
    pub(crate) fn url(&self, service: Service) -> String {
        format!("http://127.0.0.1:{}", self.ports.of(service))
    }

    /// The URL that the catalog has.
    pub(crate) fn endpoint(&self, service: Service) -> String {
        format!("{}{}", self.url(service), service.path())
    }

    /// How a service reaches its database: through a socket in the cloud's directory, which only its owner can enter.
    pub(crate) fn database_url(&self, database: &str) -> String {
        let socket = self.text("mysql.sock");
        format!("mysql+pymysql://root@localhost/{database}?charset=utf8mb3&unix_socket={socket}")
    }

    /// How a service reaches the broker.
    pub(crate) fn broker_url(&self) -> String {
        let port = self.ports.broker;
        format!("rabbit://{BROKER_USER}:{BROKER_USER}@127.0.0.1:{port}/")
    }

    /// A program of the services, with what it needs in its environment and without what the caller's holds.
    pub(crate) fn python(&self, program: &str) -> Command {
        let mut command = self.command(&self.installation.program(program));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let first = self.installation.environment().join("bin");
        let path = std::iter::once(first).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(path) {
            command.env("PATH", path);
        }
        command
    }

    /// A program of the system, likewise.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // Credentials of the caller's cloud, and settings of the caller's Python or RabbitMQ, must not decide what happens.
        for (variable, _) in std::env::vars_os() {
            let name = variable.to_string_lossy();
            if ["OS_", "PYTHON", "RABBITMQ_", "ERL_", "MYSQL_"]
                .iter()
                .any(|prefix| name.starts_with(prefix))
            {
                command.env_remove(&variable);
            }
        }
        command
            .env("HOME", self.path("home"))
            .env("LANG", "C.UTF-8")
            .current_dir(&self.directory);
        command
    }
}

/// A cloud's directory, removed when this is dropped. The next one to be made removes what dead processes left.
#[derive(Debug)]
pub(crate) struct Directory {
    // Held, and so locked, as long as the cloud lives.
    _lock: File,
    directory: Option<TempDir>,
}

impl Directory {
    pub(crate) fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(parent: &Path) -> io::Result<Self> {
        remove_left_behind(parent);
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        // Locked before it has its name, so that nobody finds it unlocked.
        let unnamed = directory.path().join("lock.new");
        let lock = File::create(&unnamed)?;
        lock.lock()?;
        fs::rename(&unnamed, directory.path().join("lock"))?;
        Ok(Self {
            _lock: lock,
            directory: Some(directory),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.as_ref().map_or(Path::new(""), TempDir::path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let Some(directory) = self.directory.take() else {
            return;
        };
        let path = directory.keep();
        // Children of a killed server may write until the kernel has come to them.
        for _ in 0..1000 {
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::yield_now(),
                _ => return,
            }
        }
    }
}

/// Removes the directories of processes that were killed. Those of living ones are locked; one without a lock is being made.
fn remove_left_behind(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let unlocked = File::open(entry.path().join("lock")).is_ok_and(|lock| lock.try_lock().is_ok());
        if unlocked {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_dead_processes_are_removed_and_of_living_ones_kept() {
        let parent = tempfile::tempdir().unwrap();
        let dead = parent.path().join(format!("{PREFIX}dead"));
        fs::create_dir(&dead).unwrap();
        File::create(dead.join("lock")).unwrap();
        let foreign = parent.path().join("else");
        fs::create_dir(&foreign).unwrap();
        let living = Directory::new_in(parent.path()).unwrap();
        assert!(!dead.exists());

        let another = Directory::new_in(parent.path()).unwrap();
        assert!(living.path().exists() && foreign.exists());
        let path = another.path().to_owned();
        drop(another);
        assert!(!path.exists());
    }

    #[test]
    fn two_sites_share_no_port() {
        let directory = tempfile::tempdir().unwrap();
        let site = Site::new(&Installation::wanted(), directory.path()).unwrap();
        let mut ports: Vec<u16> = Service::ALL.map(|service| site.ports.of(service)).to_vec();
        ports.extend([site.ports.broker, site.ports.distribution, site.ports.names]);
        ports.sort_unstable();
        assert!(
            ports[0] > 0 && ports.windows(2).all(|pair| pair[0] != pair[1]),
            "{ports:?}"
        );
    }
}
