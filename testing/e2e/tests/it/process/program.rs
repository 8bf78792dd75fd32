//! Starting the program.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::Instant;

/// The program.
const PROGRAM: &str = env!("CARGO_BIN_EXE_bowline-under-test");

/// Ends a wait that never ends. A computer with two cores may be busy with other tests.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// When to look again for what has not come yet, by how long it has been waited for: each look takes time from those who
/// make it come.
pub(crate) fn until_next_look(begun: Instant) -> Duration {
    (begun.elapsed() / 20).clamp(Duration::from_millis(10), Duration::from_millis(50))
}

/// Runs a command line to its end under this name, in an empty environment but for these variables.
pub(crate) fn run_as(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    std::process::Command::new(PROGRAM)
        .arg0(name)
        .args(arguments)
        .env_clear()
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

/// The same by a link to the program, as an image has one.
pub(crate) fn run_by_link(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join(name);
    std::os::unix::fs::symlink(Path::new(PROGRAM), &link).unwrap();
    std::process::Command::new(&link)
        .args(arguments)
        .env_clear()
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

/// What a word of the program printed, and its exit status.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: Option<i32>,
}

impl Told {
    /// All that it printed.
    pub(crate) fn all(&self) -> String {
        format!("{}--- stderr\n{}", self.out, self.err)
    }

    /// It ended with this status, and printed each of these.
    #[track_caller]
    pub(crate) fn says(&self, code: i32, parts: &[&str]) {
        let all = self.all();
        assert_eq!(self.code, Some(code), "{all}");
        for part in parts {
            assert!(all.contains(part), "{part}\n{all}");
        }
    }

    /// It printed none of these.
    #[track_caller]
    pub(crate) fn is_silent_on(&self, parts: &[&str]) {
        let all = self.all();
        for part in parts {
            assert!(!all.contains(part), "{part}\n{all}");
        }
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.all()))
    }
}

/// Runs a word of the program to its end under this name, while the servers of this process go on.
pub(crate) async fn run_word(name: &'static str, words: &[&str], variables: &[(String, String)]) -> Told {
    let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
    let variables = variables.to_vec();
    let output = tokio::task::spawn_blocking(move || {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let variables: Vec<(&str, &str)> = variables.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        run_as(name, &words, &variables)
    });
    let output = output.await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Told {
        out: text(output.stdout),
        err: text(output.stderr),
        code: output.status.code(),
    }
}

/// A program that runs; killed when this is dropped.
pub(crate) struct Running {
    child: Child,
    log: Arc<Mutex<Vec<String>>>,
    reader: tokio::task::JoinHandle<()>,
    patience: Duration,
}

impl Running {
    /// Starts it under this name, in an empty environment but for these variables.
    pub(crate) fn start(name: &str, arguments: &[String], variables: &[(String, String)]) -> Self {
        let mut command = Command::new(PROGRAM);
        command
            .arg0(name)
            .args(arguments)
            .env_clear()
            .envs(variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let sink = Arc::clone(&log);
        let reader = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                sink.lock().unwrap().push(line);
            }
        });
        Self {
            child,
            log,
            reader,
            patience: DEADLINE,
        }
    }

    /// Its log so far.
    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// How much of its memory is resident, in KiB.
    pub(crate) fn resident(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// The same without the parts of the program file.
    pub(crate) fn anonymous(&self) -> u64 {
        self.status("RssAnon:")
    }

    /// How many files it has open, connections among them.
    pub(crate) fn open_files(&self) -> usize {
        let id = self.child.id().expect("it runs");
        std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().count()
    }

    fn status(&self, key: &str) -> u64 {
        let id = self.child.id().expect("it runs");
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let figure = line.and_then(|line| line.trim().strip_suffix(" kB")).unwrap();
        figure.parse().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id().expect("it runs")).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), signal).expect("it runs");
    }

    /// Waits for its end and the end of its log; says how long that took.
    pub(crate) async fn ended(&mut self) -> (ExitStatus, Duration) {
        let begun = Instant::now();
        let status = match tokio::time::timeout(DEADLINE, self.child.wait()).await {
            Ok(status) => status.unwrap(),
            Err(_) => panic!("still running:\n{}", self.log().join("\n")),
        };
        (&mut self.reader).await.expect("no panic");
        (status, begun.elapsed())
    }

    /// From now on, what is waited for may take longer than usual.
    pub(crate) fn patiently(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Waits for a condition; if it never holds, shows the log.
    pub(crate) async fn until(&self, what: &str, mut condition: impl AsyncFnMut() -> bool) {
        let begun = Instant::now();
        while !condition().await {
            assert!(
                begun.elapsed() < self.patience,
                "never: {what}; log:\n{}",
                self.log().join("\n")
            );
            tokio::time::sleep(until_next_look(begun)).await;
        }
    }

    /// Waits for a line of the log.
    pub(crate) async fn until_logged(&self, text: &str) {
        self.until(text, async || self.log().iter().any(|line| line.contains(text)))
            .await;
    }
}
