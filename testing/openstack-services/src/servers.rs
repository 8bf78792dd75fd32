//! How each server is started.

use std::path::PathBuf;
use std::process::Command;

use bowline_base::server::{Process, ProcessError};

use crate::programs::{rabbitmq_server, system_program};
use crate::service::Service;
use crate::site::Site;

/// MariaDB, on a socket only. `init` is SQL that it runs before it takes connections.
pub(crate) fn mariadb(site: &Site, init: &str) -> Result<Process, ProcessError> {
    let mut command = site.command(&program("mariadbd"));
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}", site.text("mysql")))
        .arg(format!("--socket={}", site.text("mysql.sock")))
        .arg(format!("--pid-file={}", site.text("mysql.pid")))
        .arg(format!("--tmpdir={}", site.text("state")))
        .arg(format!("--init-file={init}"))
        .args(["--skip-networking", "--skip-name-resolve", "--skip-log-bin"])
        // Without it the server refuses to run as root; for others it changes nothing.
        .args(["--user=root", "--skip-grant-tables"])
        .args(["--max-connections=400", "--performance-schema=OFF"])
        // The data is thrown away in any case, so nobody waits for the disk.
        .args(["--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0"])
        .args(["--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M"]);
    Process::start("mariadb", &command, site.log("mariadb"))
}

/// Where the broker's node tells its name. A daemon of our own: the system's would be shared, and would outlive us.
pub(crate) fn names(site: &Site) -> Result<Process, ProcessError> {
    let mut command = site.command(&program("epmd"));
    command
        .args(["-address", "127.0.0.1", "-port"])
        .arg(site.ports.names.to_string());
    Process::start("epmd", &command, site.log("epmd"))
}

/// RabbitMQ.
pub(crate) fn broker(site: &Site) -> Result<Process, ProcessError> {
    let script = rabbitmq_server().unwrap_or_else(|| PathBuf::from("rabbitmq-server"));
    let mut command = site.command(&script);
    command
        .env("ERL_EPMD_ADDRESS", "127.0.0.1")
        .env("ERL_EPMD_PORT", site.ports.names.to_string())
        .env("RABBITMQ_NODENAME", "bowline@localhost")
        .env("RABBITMQ_DIST_PORT", site.ports.distribution.to_string())
        .env("RABBITMQ_CONFIG_FILE", site.path("etc/rabbitmq.conf"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", site.path("etc/rabbitmq-plugins"))
        .env("RABBITMQ_MNESIA_BASE", site.path("broker"))
        .env("RABBITMQ_LOG_BASE", site.path("log"))
        .env("RABBITMQ_PID_FILE", site.path("rabbitmq.pid"))
        .env("RABBITMQ_FEATURE_FLAGS_FILE", site.path("broker/feature-flags"))
        // One scheduler: it carries a few messages a second. And it listens for others like it on the loopback address.
        .env(
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1",
        );
    Process::start("rabbitmq", &command, site.log("rabbitmq"))
}

/// How many requests a service answers at the same time.
///
/// Keystone answers one. With more it mixes requests up: an application credential that is created while another user's token is
/// checked gets that user's roles, and is refused (seen with Keystone 30.0.0 in every second attempt).
fn threads(service: Service) -> u32 {
    match service {
        Service::Identity => 1,
        Service::Network | Service::LoadBalancer | Service::Placement | Service::Image | Service::Compute => {
            4
        }
    }
}

/// The API of a service, in one process.
pub(crate) fn api(site: &Site, service: Service) -> Result<Process, ProcessError> {
    let etc = site.path("etc");
    let mut command = site.python("uwsgi");
    command
        .arg(format!("--http-socket=127.0.0.1:{}", site.ports.of(service)))
        .arg(format!("--module={}:application", module(service)))
        .arg(format!("--threads={}", threads(service)))
        .args(["--enable-threads", "--need-app", "--die-on-term"])
        .args(["--buffer-size=65535", "--http-chunked-input", "--disable-logging"])
        // It closes a connection after each answer, and has to say so, or clients use the connection again.
        .args(["--wsgi-disable-file-wrapper", "--add-header=Connection: close"]);
    match service {
        Service::Identity => {
            command.env("OS_KEYSTONE_CONFIG_DIR", &etc);
            command.env("OS_KEYSTONE_CONFIG_FILES", "keystone.conf");
        }
        Service::Network => {
            command.env("OS_NEUTRON_CONFIG_DIR", &etc);
            command.env("OS_NEUTRON_CONFIG_FILES", "neutron.conf;ml2.ini");
            // Without assertions: those of the mechanism driver `test` do not hold when a port is bound by an update, as Nova
            // binds it.
            command.env("PYTHONOPTIMIZE", "1").arg("--optimize=1");
        }
        Service::LoadBalancer => {
            let file = etc.join("octavia-api.conf");
            command.arg(format!("--pyargv=--config-file {}", file.display()));
        }
        Service::Placement => {
            command.env("OS_PLACEMENT_CONFIG_DIR", etc.join("placement"));
        }
        Service::Image => {
            command.env("OS_GLANCE_CONFIG_DIR", &etc);
            command.env("OS_GLANCE_CONFIG_FILES", "glance-api.conf");
        }
        Service::Compute => {
            let paste = site.installation.environment().join("etc/nova/api-paste.ini");
            command.env("OS_NOVA_CONFIG_DIR", &etc);
            // The first of them is taken for the description of the pipeline.
            command.env("OS_NOVA_CONFIG_FILES", format!("{};nova.conf", paste.display()));
        }
    }
    Process::start(service.api(), &command, site.log(service.api()))
}

/// A server without an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Worker {
    Octavia,
    Conductor,
    Scheduler,
    Compute,
}

impl Worker {
    fn program(self) -> &'static str {
        match self {
            Self::Octavia => "octavia-worker",
            Self::Conductor => "nova-conductor",
            Self::Scheduler => "nova-scheduler",
            Self::Compute => "nova-compute",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Self::Octavia => "etc/octavia-worker.conf",
            Self::Conductor | Self::Scheduler | Self::Compute => "etc/nova.conf",
        }
    }

    pub(crate) fn start(self, site: &Site) -> Result<Process, ProcessError> {
        let mut command = site.python(self.program());
        command.arg("--config-file").arg(site.path(self.file()));
        Process::start(self.program(), &command, site.log(self.program()))
    }
}

/// One of the programs by which an administrator prepares a service.
pub(crate) fn manage(site: &Site, name: &str, arguments: &str) -> Command {
    let mut command = site.python(name);
    command.args(arguments.split_whitespace());
    command
}

fn module(service: Service) -> &'static str {
    match service {
        Service::Identity => "keystone.wsgi.api",
        Service::Network => "neutron.wsgi.api",
        Service::LoadBalancer => "octavia.wsgi.api",
        Service::Placement => "placement.wsgi.api",
        Service::Image => "glance.wsgi.api",
        Service::Compute => "nova.wsgi.osapi_compute",
    }
}

/// A program that was installed; if it has vanished since, its bare name, so that the start fails with it.
fn program(name: &str) -> PathBuf {
    system_program(name).unwrap_or_else(|| PathBuf::from(name))
}
