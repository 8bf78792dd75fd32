//! What every cloud begins with: databases after all migrations, the services' users, the catalog, Keystone's keys.
//!
//! Prepared once, because the migrations take most of a minute. A cloud takes a copy of the files and changes only what depends on
//! where it listens (`database.rs`).

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, io};

use bowline_base::server::{Process, ProcessError};
use http::Method;
use serde_json::json;

use crate::config::{self, ConfigError};
use crate::deadline::{NotInTime, wait_for};
use crate::installation::Installation;
use crate::programs::system_program;
use crate::rest::{Login, RestError, Session};
use crate::service::Service;
use crate::site::{ADMIN_PASSWORD, Directory, REGION, ROLES, SERVICE_PASSWORD, Site, Workers};
use crate::{database, servers};

/// For one step. The longest, Neutron's migrations, takes 20 s on a quiet machine.
const STEP: Duration = Duration::from_secs(600);

/// The folders that a cloud takes over.
pub(crate) const FOLDERS: [&str; 2] = ["mysql", "keys"];

/// Why the databases could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// A file or folder.
    #[error("cannot write the files of the databases")]
    Files(#[from] io::Error),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A server.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A program of a service failed, or a server did; its output ends like this.
    #[error("{what} failed; its last words:\n{last_words}")]
    Failed {
        /// Which.
        what: String,
        /// The end of its output.
        last_words: String,
    },
    /// A step took too long.
    #[error(transparent)]
    NotInTime(#[from] NotInTime),
    /// Keystone refused something.
    #[error(transparent)]
    Rest(#[from] RestError),
}

/// Prepares the databases of an installation.
pub(crate) async fn prepare(installation: &Installation) -> Result<(), SeedError> {
    let directory = Directory::new()?;
    let site = Site::new(installation, directory.path())?;
    config::write(&site, Workers::Working)?;

    let mut install =
        site.command(&system_program("mariadb-install-db").unwrap_or_else(|| "mariadb-install-db".into()));
    install
        .arg("--no-defaults")
        .arg(format!("--datadir={}", site.text("mysql")))
        .args(["--user=root", "--skip-test-db"]);
    run(&site, "mariadb-install-db", install).await?;
    let init = database::write_init(&site, &database::creation())?;
    let mut mariadb = servers::mariadb(&site, &init)?;
    until_ready("the database", &mut mariadb, || database::is_ready(&site)).await?;
    migrate(&site).await?;
    users(&site).await?;
    // In order, so that the files are whole.
    mariadb.ask_to_end();
    wait_for("the end of the database", STEP, async || {
        Ok::<_, SeedError>(mariadb.has_ended().then_some(()))
    })
    .await?;
    for folder in FOLDERS {
        database::copy(&site.path(folder), &installation.seed().join(folder))?;
    }
    Ok(())
}

/// Tables for all, in two chains side by side: one is about as long as the other.
async fn migrate(site: &Site) -> Result<(), SeedError> {
    let file = |name: &str| site.path("etc").join(name).display().to_string();
    let keystone = format!("--config-file {}", file("keystone.conf"));
    let neutron = format!(
        "--config-file {} --config-file {}",
        file("neutron.conf"),
        file("ml2.ini")
    );
    let nova = format!("--config-file {}", file("nova.conf"));
    let url = site.endpoint(Service::Identity);
    // Keystone asks to whom the keys shall belong.
    let owner = format!("--keystone-user {} --keystone-group {}", id("-un")?, id("-gn")?);
    let first = [
        ("keystone-manage", format!("{keystone} db_sync")),
        ("keystone-manage", format!("{keystone} fernet_setup {owner}")),
        ("keystone-manage", format!("{keystone} credential_setup {owner}")),
        (
            "keystone-manage",
            format!(
                "{keystone} bootstrap --bootstrap-password {ADMIN_PASSWORD} --bootstrap-region-id {REGION} \
                 --bootstrap-admin-url {url} --bootstrap-internal-url {url} --bootstrap-public-url {url}"
            ),
        ),
        ("nova-manage", format!("{nova} api_db sync")),
        ("nova-manage", format!("{nova} cell_v2 map_cell0")),
        ("nova-manage", format!("{nova} cell_v2 create_cell --name=cell1")),
        ("nova-manage", format!("{nova} db sync")),
    ];
    let second = [
        ("neutron-db-manage", format!("{neutron} upgrade heads")),
        (
            "octavia-db-manage",
            format!("--config-file {} upgrade head", file("octavia-api.conf")),
        ),
        (
            "placement-manage",
            format!("--config-dir {} db sync", file("placement")),
        ),
        (
            "glance-manage",
            format!("--config-file {} db_sync", file("glance-api.conf")),
        ),
    ];
    tokio::try_join!(chain(site, &first), chain(site, &second))?;
    Ok(())
}

/// The name of who runs this, or of the group.
fn id(which: &str) -> io::Result<String> {
    let output = Command::new("id").arg(which).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

async fn chain(site: &Site, steps: &[(&'static str, String)]) -> Result<(), SeedError> {
    for (program, arguments) in steps {
        let command = servers::manage(site, program, arguments);
        run(site, &format!("{program} {arguments}"), command).await?;
    }
    Ok(())
}

/// The services' own users, the roles of ordinary ones, and the catalog. The URLs in it are those of this moment.
async fn users(site: &Site) -> Result<(), SeedError> {
    let mut keystone = servers::api(site, Service::Identity)?;
    let url = site.endpoint(Service::Identity);
    let login = Login::password("admin", ADMIN_PASSWORD, "admin");
    let session = wait_for("an answer of Keystone", STEP, async || {
        ended(&mut keystone)?;
        Ok::<_, SeedError>(Session::open(&url, &login).await.ok())
    })
    .await?;
    let create = async |collection: &str, kind: &str, body: serde_json::Value| {
        let path = format!("/{collection}");
        let answer = session
            .call(
                Service::Identity,
                Method::POST,
                &path,
                Some(json!({ kind: body })),
            )
            .await?;
        answer.id(kind)
    };
    for role in ROLES {
        create("roles", "role", json!({ "name": role })).await?;
    }
    let project = json!({ "name": "service", "domain_id": "default" });
    let project = create("projects", "project", project).await?;
    for service in Service::ALL {
        if service == Service::Identity {
            continue;
        }
        let user = json!({ "name": service.name(), "password": SERVICE_PASSWORD, "domain_id": "default" });
        let user = create("users", "user", user).await?;
        for role in ["admin", "service"] {
            session.grant(&project, &user, role).await?;
        }
        let entry = json!({ "name": service.name(), "type": service.catalog_type() });
        let entry = create("services", "service", entry).await?;
        for interface in ["public", "internal", "admin"] {
            let endpoint = json!({
                "service_id": entry, "interface": interface, "region_id": REGION, "url": site.endpoint(service),
            });
            create("endpoints", "endpoint", endpoint).await?;
        }
    }
    Ok(())
}

fn ended(server: &mut Process) -> Result<(), SeedError> {
    if !server.has_ended() {
        return Ok(());
    }
    Err(SeedError::Failed {
        what: server.name().to_owned(),
        last_words: server.last_words(),
    })
}

async fn until_ready(what: &str, server: &mut Process, ready: impl Fn() -> bool) -> Result<(), SeedError> {
    wait_for(what, STEP, async || {
        ended(server)?;
        Ok(ready().then_some(()))
    })
    .await
}

/// Runs a program to its end, with its output in a log.
async fn run(site: &Site, what: &str, mut command: Command) -> Result<(), SeedError> {
    let name: String = what.chars().take_while(|character| *character != ' ').collect();
    let log = site.log(&name);
    let out = fs::OpenOptions::new().create(true).append(true).open(&log)?;
    command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
    let mut command = tokio::process::Command::from(command);
    let status = tokio::time::timeout(STEP, command.kill_on_drop(true).status())
        .await
        .map_err(|_| NotInTime {
            what: what.to_owned(),
            within: STEP,
        })??;
    if status.success() {
        return Ok(());
    }
    Err(SeedError::Failed {
        what: what.to_owned(),
        last_words: last_lines(&log),
    })
}

fn last_lines(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}
