//! The databases: which there are, and what in them depends on where a cloud listens.

use std::path::Path;
use std::{fs, io};

use crate::service::{Mode, Service};
use crate::site::{COMPUTE_HOST, Site};

/// All databases.
const DATABASES: [&str; 8] = [
    "keystone",
    "neutron",
    "octavia",
    "placement",
    "glance",
    "nova",
    "nova_api",
    "nova_cell0",
];

/// Writes SQL that the server runs at its start, one statement in a line, and returns its path.
pub(crate) fn write_init(site: &Site, statements: &[String]) -> io::Result<String> {
    let path = site.path("etc/init.sql");
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let lines: Vec<String> = statements
        .iter()
        .map(|statement| format!("{statement};\n"))
        .collect();
    fs::write(&path, lines.concat())?;
    Ok(path.display().to_string())
}

/// Empty databases.
pub(crate) fn creation() -> Vec<String> {
    DATABASES
        .iter()
        .map(|name| format!("CREATE DATABASE {name} CHARACTER SET utf8mb3"))
        .collect()
}

/// What turns the prepared databases into those of this cloud: the URLs in the catalog and in Nova's list of cells.
pub(crate) fn relocation(site: &Site, mode: Mode) -> Vec<String> {
    let mut statements: Vec<String> = Service::ALL
        .iter()
        .map(|service| {
            format!(
                "UPDATE keystone.endpoint SET url = '{url}', enabled = {enabled} \
                 WHERE service_id IN (SELECT id FROM keystone.service WHERE type = '{kind}')",
                url = site.endpoint(*service),
                enabled = u8::from(mode.has(*service)),
                kind = service.catalog_type(),
            )
        })
        .collect();
    statements.extend([
        format!(
            "UPDATE nova_api.cell_mappings SET database_connection = '{}', transport_url = '{}' WHERE name = 'cell1'",
            site.database_url("nova"),
            site.broker_url(),
        ),
        format!(
            "UPDATE nova_api.cell_mappings SET database_connection = '{}' WHERE name = 'cell0'",
            site.database_url("nova_cell0"),
        ),
        // What the scheduler would find out some seconds after the compute host has come.
        format!(
            "INSERT INTO nova_api.host_mappings (created_at, cell_id, host) \
             SELECT NOW(), id, '{COMPUTE_HOST}' FROM nova_api.cell_mappings WHERE name = 'cell1'"
        ),
    ]);
    statements
}

/// Whether the server takes connections: it greets who connects.
pub(crate) fn is_ready(site: &Site) -> bool {
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    let socket = site.path("mysql.sock");
    let greeting = || {
        let mut stream = UnixStream::connect(&socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.read_exact(&mut [0; 4])
    };
    greeting().is_ok()
}

/// Copies a directory with all that is in it; links and sockets are left out.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::installation::Installation;

    fn site(directory: &Path) -> Site {
        Site::new(&Installation::wanted(), directory).unwrap()
    }

    #[test]
    fn the_catalog_tells_where_this_cloud_listens_and_what_it_has() {
        let directory = tempfile::tempdir().unwrap();
        let site = site(directory.path());
        let statements = relocation(&site, Mode::Min);
        let of = |kind: &str| {
            let end = format!("type = '{kind}')");
            statements.iter().find(|text| text.ends_with(&end)).unwrap()
        };
        let identity = format!("url = 'http://127.0.0.1:{}/v3'", site.ports.of(Service::Identity));
        assert!(of("identity").contains(&identity), "{statements:?}");
        assert!(of("identity").contains("enabled = 1"));
        assert!(of("compute").contains("enabled = 0"));
    }

    #[test]
    fn each_statement_is_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let site = site(directory.path());
        let statements = relocation(&site, Mode::Full);
        let path = write_init(&site, &statements).unwrap();
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), statements.len());
        assert!(text.lines().all(|line| line.ends_with(';')), "{text}");
    }

    #[test]
    fn a_copy_has_all_files() {
        let directory = tempfile::tempdir().unwrap();
        let from = directory.path().join("from");
        fs::create_dir_all(from.join("deep")).unwrap();
        fs::write(from.join("deep/file"), "text").unwrap();
        let to = directory.path().join("to");
        copy(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("deep/file")).unwrap(), "text");
    }
}
