//! One server process.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

/// Runs the server and, beside it, one who waits for the end of the pipe that we hold and then kills the whole group.
///
/// The kernel closes the pipe when we die, even when nothing of ours runs any more; a parent-death signal would need
/// unsafe code. `$$` is the server, because the shell's process becomes it, and the server leads its group.
const GUARD: &str = r#"exec 3<&0 </dev/null; (read -r _ <&3; kill -9 -$$) & exec "$@" 3<&-"#;

/// A server could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {program}")]
pub struct ProcessError {
    program: String,
    source: io::Error,
}

/// A running server, killed with its children when this is dropped.
#[derive(Debug)]
pub struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program whose output goes to a log file. The program, its arguments, environment and directory are the command's.
    ///
    /// # Errors
    ///
    /// When the log cannot be written. A program that does not exist ends at once, and its last words say so.
    pub fn start(name: &'static str, server: &Command, log: PathBuf) -> Result<Self, ProcessError> {
        let start = || {
            let out = File::create(&log)?;
            let mut command = Command::new("/bin/sh");
            command.args(["-c", GUARD, name]);
            command.arg(server.get_program()).args(server.get_args());
            for (variable, value) in server.get_envs() {
                match value {
                    Some(value) => command.env(variable, value),
                    None => command.env_remove(variable),
                };
            }
            if let Some(directory) = server.get_current_dir() {
                command.current_dir(directory);
            }
            command.stdin(Stdio::piped()).stdout(out.try_clone()?).stderr(out);
            // A group of its own: Ctrl-C is for us, who then stop it in order; and one signal reaches all of it.
            command.process_group(0);
            command.spawn()
        };
        match start() {
            Ok(child) => Ok(Self { name, child, log }),
            Err(source) => Err(ProcessError {
                program: server.get_program().to_string_lossy().into_owned(),
                source,
            }),
        }
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Blocks until it has ended by itself.
    ///
    /// # Errors
    ///
    /// When the system does not say.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        // Whoever waits lets go of the pipe first, and the guard would take that for our death.
        let pipe = self.child.stdin.take();
        let status = self.child.wait();
        self.child.stdin = pipe;
        status
    }

    /// Which server this is.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its process id, which is also that of its group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it, and its children, to end in order (`SIGTERM`). Whether it has, [`Self::has_ended`] tells.
    pub fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// The end of its log, for an error message.
    pub fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    fn signal(&self, signal: Signal) {
        // The group still has the guard in it when the server has ended, so the number cannot belong to another yet.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It fails only when the whole group has ended, and that is what is wanted.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    fn start(directory: &Path, script: &str) -> Process {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env("GREETING", "hello");
        Process::start("test", &command, directory.join("log")).unwrap()
    }

    /// Whether a process of this group runs. One that has ended but that nobody has reaped yet does not: in a
    /// container the first process may never reap.
    fn group_is_alive(id: u32) -> bool {
        let stat = |entry: io::Result<fs::DirEntry>| fs::read_to_string(entry.ok()?.path().join("stat")).ok();
        fs::read_dir("/proc").unwrap().filter_map(stat).any(|stat| {
            // After the name, which ends at the last parenthesis: state, parent, group (proc_pid_stat(5)).
            let (_, fields) = stat.rsplit_once(')').unwrap();
            let fields: Vec<&str> = fields.split_whitespace().collect();
            fields[0] != "Z" && fields[2] == id.to_string()
        })
    }

    async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
        while !holds() {
            assert!(tokio::time::Instant::now() < deadline, "not within 10 s: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_dropped_server_is_gone_with_its_children() {
        let directory = tempfile::tempdir().unwrap();
        let process = start(directory.path(), "sleep 1000 & sleep 1000");
        let id = process.id();
        assert!(group_is_alive(id));
        drop(process);
        eventually("the group ends", || !group_is_alive(id)).await;
    }

    #[tokio::test]
    async fn a_server_dies_with_its_children_when_the_pipe_to_it_closes() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = start(directory.path(), "sleep 1000 & sleep 1000");
        assert!(!process.has_ended());
        // What the kernel does for a process that was killed.
        drop(process.child.stdin.take());
        eventually("the server ends", || process.has_ended()).await;
        let id = process.id();
        eventually("the group ends", || !group_is_alive(id)).await;
    }

    #[tokio::test]
    async fn a_server_that_is_asked_to_end_ends_in_order() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = start(
            directory.path(),
            "trap 'echo in order; exit 0' TERM; echo ready; while :; do sleep 0.01; done",
        );
        eventually("the server is ready", || process.last_words() == "ready").await;
        process.ask_to_end();
        eventually("the server ends", || process.has_ended()).await;
        assert!(
            process.last_words().ends_with("in order"),
            "{}",
            process.last_words()
        );
    }

    #[test]
    fn whoever_waits_for_the_end_is_told_how_it_ended() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = start(directory.path(), "sleep 0.1; echo done; exit 3");
        assert_eq!(process.wait().unwrap().code(), Some(3));
        assert_eq!(process.last_words(), "done");
        // And once more.
        assert_eq!(process.wait().unwrap().code(), Some(3));
        assert!(process.has_ended());
    }

    #[tokio::test]
    async fn a_server_gets_the_environment_of_its_command() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = start(directory.path(), "echo $GREETING");
        eventually("the server ends", || process.has_ended()).await;
        assert_eq!(process.last_words(), "hello");
    }

    #[tokio::test]
    async fn the_last_words_of_a_server_that_ended_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = start(directory.path(), "echo no room; exit 1");
        eventually("the server ends", || process.has_ended()).await;
        assert_eq!(process.last_words(), "no room");
    }
}
