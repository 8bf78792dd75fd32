//! Who has a port that is taken, as far as Linux shows it.

use std::path::Path;

/// Where Linux shows its processes and sockets.
pub(super) const PROC: &str = "/proc";
/// The state of a socket that listens, as `/proc/net/tcp` has it.
const LISTENS: &str = "0A";

/// Who listens on a port and what to do about that, as the end of a sentence; empty if nothing shows it. A container on the host's network
/// sees the host's sockets, and its own processes only.
pub(super) fn holder(proc: &Path, port: u16) -> String {
    let tables = ["net/tcp", "net/tcp6"].map(|table| std::fs::read_to_string(proc.join(table)));
    let lines: Vec<String> = tables
        .iter()
        .flatten()
        .flat_map(|table| table.lines().skip(1).map(str::to_owned))
        .collect();
    let Some((user, inode)) = lines.iter().find_map(|line| listening(line, port)) else {
        return String::new();
    };
    let who = match process(proc, inode) {
        Some((pid, name)) => format!("process {pid} ({name}) listens there"),
        None => format!(
            "a process of the user {user} listens there, which `ss -ltnp sport = :{port}` on this machine names"
        ),
    };
    format!("; {who}: stop it, or give another port with --secure-port")
}

/// User and inode of a socket that listens on this port.
fn listening(line: &str, port: u16) -> Option<(&str, &str)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, local, _, state, _, _, _, user, _, inode, ..] = fields[..] else {
        return None;
    };
    let (_, at) = local.rsplit_once(':')?;
    let is_it = u16::from_str_radix(at, 16).ok()? == port && state == LISTENS;
    is_it.then_some((user, inode))
}

/// The process that has a socket open.
fn process(proc: &Path, inode: &str) -> Option<(String, String)> {
    let wanted = format!("socket:[{inode}]");
    let has_it = |process: &Path| {
        let files = std::fs::read_dir(process.join("fd")).into_iter().flatten();
        let mut targets = files
            .flatten()
            .filter_map(|file| std::fs::read_link(file.path()).ok());
        targets.any(|target| target.as_os_str() == wanted.as_str())
    };
    let processes = std::fs::read_dir(proc).ok()?.flatten();
    let mut processes = processes.filter(|it| it.file_name().to_string_lossy().parse::<u32>().is_ok());
    let found = processes.find(|it| has_it(&it.path()))?;
    let name = std::fs::read_to_string(found.path().join("comm")).unwrap_or_default();
    Some((
        found.file_name().to_string_lossy().into_owned(),
        name.trim().to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_process_that_has_a_port_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let told = holder(Path::new(PROC), port);
        let own = format!("; process {} (", std::process::id());
        assert!(
            told.starts_with(&own) && told.ends_with("--secure-port"),
            "{told}"
        );
        drop(listener);
        assert_eq!(holder(Path::new(PROC), port), "");
    }

    #[test]
    fn the_user_is_told_where_the_process_is_out_of_sight() {
        let proc = tempfile::tempdir().unwrap();
        assert_eq!(holder(proc.path(), 10258), "");
        std::fs::create_dir(proc.path().join("net")).unwrap();
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:2812 0100007F:D431 01 00000000:00000000 00:00000000 00000000     7        0 99 1 x\n\
            \x20  1: 00000000:2812 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 4242 1 x\n";
        std::fs::write(proc.path().join("net/tcp6"), table).unwrap();
        let told = holder(proc.path(), 10258);
        assert!(
            told.contains("a process of the user 1001 listens there"),
            "{told}"
        );
        assert!(told.contains("sport = :10258"), "{told}");
        assert_eq!(holder(proc.path(), 10257), "");
    }
}
