//! Programs of the system that a cloud needs.

use std::fs;
use std::path::PathBuf;

/// Where Debian has programs that are not on everybody's path.
const SYSTEM_DIRECTORIES: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Where Debian puts the releases of RabbitMQ. The wrapper on the path insists on a user of its own.
const RABBITMQ: &str = "/usr/lib/rabbitmq/lib";

/// A program of the system: on the path, or where Debian puts what only administrators start.
pub(crate) fn system_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(SYSTEM_DIRECTORIES.iter().map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
}

/// RabbitMQ's own start script.
pub(crate) fn rabbitmq_server() -> Option<PathBuf> {
    fs::read_dir(RABBITMQ)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path().join("sbin/rabbitmq-server")))
        .filter(|script| script.is_file())
        .max()
}
