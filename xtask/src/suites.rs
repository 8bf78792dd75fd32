//! The programs that hold the workspace's tests, run as cargo runs them, but two at a time.
//!
//! Cargo runs one after the other, each with as many tests at once as there are cores. That is right for tests that
//! compute. The tests of whole processes mostly wait: for a server to start, for a lease to run out. So they have a lane of
//! their own with more tests at once, and what computes runs beside them. An attack on a process has that lane for itself.
//!
//! A process that is waited for has a deadline, which a busy machine may miss. So a few tests of processes that failed are
//! run once more when nothing runs beside them. Who fails twice has failed; who does not is named as flaky, with what it
//! said.

#![expect(
    clippy::disallowed_types,
    reason = "measures how long other programs take; there is no runtime and no clock to stop"
)]

use std::fs::{self, File};
use std::io::{self, BufReader, Write as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use cargo_metadata::{Artifact, Message, Metadata};

use crate::workspace::{Workspace, shown};

/// The packages whose tests wait more than they compute; the one that takes longest comes first.
const WAITING: [&str; 4] = [
    "bowline-e2e",
    "bowline-demo",
    "bowline-checks",
    "bowline-openstack-services",
];

/// The suites that run once more where the doubles of the clouds forgive all that they can: the first time they forgive nothing.
const TWO_WORLDS: [&str; 5] = [
    "bowline-cloudscale",
    "bowline-cloudstack",
    "bowline-openstack",
    "bowline-paper",
    "bowline-phoenixnap",
];

/// The tests that attack a process. They would cost others that wait their deadlines, so none of those runs beside them.
const ATTACKS: (&str, &str) = ("bowline-e2e", "process::hostile::");

/// How many lines of a failed program are shown again at the end.
const FAILURE_LINES: usize = 120;

/// More failed tests of one program are no accident, and not run again.
const TRIED_AGAIN: usize = 3;

/// How many of their tests run at once on each core. What they start uses a third of one.
const WAITING_PER_CORE: usize = 3;

/// The programs of one build.
#[derive(Debug, Default)]
pub(crate) struct Suites {
    waiting: Vec<Suite>,
    computing: Vec<Suite>,
}

/// One program, or all doc tests.
#[derive(Debug)]
struct Suite {
    /// `bowline-e2e it`.
    name: String,
    /// What a person types to run it alone.
    by_hand: String,
    command: Command,
    /// Whether a few failed tests are run once more, alone.
    is_tried_again: bool,
}

/// How a program failed.
#[derive(Debug)]
struct Failure {
    name: String,
    text: String,
    /// What is run once more.
    again: Option<Box<Suite>>,
}

impl Suites {
    /// Builds all of them. Cargo is told what of them is wanted: `test --workspace`.
    ///
    /// # Errors
    ///
    /// When something does not compile, which is on stderr then.
    pub(crate) fn build(workspace: &Workspace, mut cargo: Command) -> Result<Self> {
        cargo.args(["--no-run", "--message-format=json-render-diagnostics"]);
        let metadata = workspace.metadata()?;
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let mut child = cargo
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", shown(&cargo)))?;
        let output = child.stdout.take().context("cargo has no output")?;
        let mut suites = Self::default();
        for message in Message::parse_stream(BufReader::new(output)) {
            let Message::CompilerArtifact(artifact) = message.context("reading what cargo has built")? else {
                continue;
            };
            let Some(program) = Program::of(&metadata, &artifact)? else {
                continue;
            };
            if WAITING.contains(&program.package.as_str()) {
                let at_once = format!("--test-threads={}", cores * WAITING_PER_CORE);
                let mut arguments = vec![at_once.as_str()];
                let (package, attacks) = ATTACKS;
                if program.package == package {
                    arguments.extend(["--skip", attacks]);
                    let mut attacks = program.suite(workspace, &cargo, " attacks", &[attacks]);
                    attacks.is_tried_again = true;
                    suites.waiting.push(attacks);
                }
                let mut waiting = program.suite(workspace, &cargo, "", &arguments);
                waiting.is_tried_again = true;
                suites.waiting.push(waiting);
                continue;
            }
            let is_suite = ["test it", "test scenarios"].contains(&program.which.as_str());
            if is_suite && TWO_WORLDS.contains(&program.package.as_str()) {
                let mut kind = program.suite(workspace, &cargo, " in the kind world", &[]);
                kind.command.env("BOWLINE_SIM_WORLD", "kind");
                kind.by_hand = format!("BOWLINE_SIM_WORLD=kind {}", kind.by_hand);
                suites.computing.push(kind);
            }
            suites.computing.push(program.suite(workspace, &cargo, "", &[]));
        }
        let status = child.wait().context("waiting for cargo")?;
        if !status.success() {
            bail!("{} failed: {status}", shown(&cargo));
        }
        // Cargo names them as they get ready; a log is easier to read when two runs have the same order.
        suites.computing.sort_by(|one, other| one.name.cmp(&other.name));
        let place = |suite: &Suite| WAITING.iter().position(|package| suite.name.starts_with(package));
        suites
            .waiting
            .sort_by_key(|suite| (place(suite), suite.name.clone()));
        Ok(suites)
    }

    /// And these doc tests, which cargo compiles and runs in one.
    pub(crate) fn and_doc_tests(&mut self, cargo: Command) {
        self.computing.push(Suite {
            name: "doc tests".to_owned(),
            by_hand: shown(&cargo),
            command: cargo,
            is_tried_again: false,
        });
    }

    /// Runs all, whatever fails, so that one run tells of every failure. What a program writes is shown in one piece when
    /// it has ended; until then it is in a file, whose name is shown at the beginning.
    ///
    /// # Errors
    ///
    /// When one of them fails, after all have ended; names them.
    pub(crate) fn run(self, directory: &Path) -> Result<()> {
        let _ = fs::remove_dir_all(directory);
        fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        let count = self.waiting.len() + self.computing.len();
        let failed = Mutex::new(Vec::new());
        let run = |suites: Vec<Suite>| {
            for suite in suites {
                if let Err(failure) = suite.run(directory) {
                    failed
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(failure);
                }
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| run(self.waiting));
            run(self.computing);
        });
        let mut failures = Vec::new();
        for mut failure in failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            match failure.again.take().map(|again| again.run(directory)) {
                None => failures.push(failure.text),
                Some(Err(second)) => failures.push(format!("{}\n\n{}", failure.text, second.text)),
                Some(Ok(())) => eprintln!(
                    "tests: {}: FLAKY: failed beside other tests and passed alone: {}",
                    failure.name, failure.text
                ),
            }
        }
        if !failures.is_empty() {
            bail!(
                "{} of {count} programs failed:\n\n{}",
                failures.len(),
                failures.join("\n\n")
            );
        }
        Ok(())
    }
}

/// What a failed program says of its failures: from the heading that the test harness gives them on, or the end of what
/// it wrote. A log of a whole run is long, and whoever keeps a part of it keeps the end.
fn failures(written: &str) -> String {
    let told = written
        .find("\nfailures:\n")
        .map_or(written, |heading| &written[heading..]);
    let lines: Vec<&str> = told.trim().lines().collect();
    lines[lines.len().saturating_sub(FAILURE_LINES)..].join("\n")
}

/// The tests that the harness names as failed, in the list before its last line.
fn failed_tests(written: &str) -> Vec<&str> {
    let list = written.rsplit_once("\nfailures:\n").map_or("", |(_, list)| list);
    list.lines().map_while(|line| line.strip_prefix("    ")).collect()
}

impl Suite {
    fn run(mut self, directory: &Path) -> Result<(), Failure> {
        let outcome = self.written(directory);
        let (why, written) = match outcome {
            Ok((status, _)) if status.success() => return Ok(()),
            Ok((status, written)) => (status.to_string(), written),
            Err(error) => (format!("{error:#}"), String::new()),
        };
        let text = format!(
            "{}: {why}; alone: {}; it wrote at the end:\n{}",
            self.name,
            self.by_hand,
            failures(&written)
        );
        let name = self.name.clone();
        let tests = failed_tests(&written);
        let is_few = (1..=TRIED_AGAIN).contains(&tests.len());
        let again = (self.is_tried_again && is_few).then(|| Box::new(self.only(&tests)));
        Err(Failure { name, text, again })
    }

    /// These of its tests, once more.
    fn only(mut self, tests: &[&str]) -> Self {
        self.name.push_str(" again");
        self.command.arg("--exact").args(tests);
        self.is_tried_again = false;
        self
    }

    /// Runs it, and shows what it wrote.
    fn written(&mut self, directory: &Path) -> Result<(ExitStatus, String)> {
        let name = &self.name;
        let path = directory.join(format!("{}.log", name.replace([' ', '/'], "-")));
        let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("tests: {name} begins; {}", path.display());
        let begun = Instant::now();
        self.command.stdout(file.try_clone()?).stderr(file);
        let status = self.command.status();
        let seconds = begun.elapsed().as_secs_f64();
        let outcome = match &status {
            Ok(status) if status.success() => "ok",
            _ => "FAILED",
        };
        let written = fs::read(&path)?;
        let mut text = format!("tests: {name}: {outcome} in {seconds:.1} s; it wrote:\n").into_bytes();
        text.extend(&written);
        // One write, so that nothing of the other lane comes between.
        io::stdout().lock().write_all(&text)?;
        let status = status.with_context(|| format!("cannot start {name}"))?;
        Ok((status, String::from_utf8_lossy(&written).into_owned()))
    }
}

/// A program with tests that cargo tells of.
struct Program {
    package: String,
    /// `test it`.
    which: String,
    directory: PathBuf,
    executable: PathBuf,
}

impl Program {
    /// Nothing for what has no tests.
    fn of(metadata: &Metadata, artifact: &Artifact) -> Result<Option<Self>> {
        let Some(executable) = artifact.executable.as_ref().filter(|_| artifact.profile.test) else {
            return Ok(None);
        };
        let package = metadata
            .packages
            .iter()
            .find(|package| package.id == artifact.package_id)
            .with_context(|| format!("cargo has built {}, which is none of ours", artifact.package_id))?;
        let name = &artifact.target.name;
        let which = if artifact.target.is_test() {
            format!("test {name}")
        } else if artifact.target.is_bin() {
            format!("bin {name}")
        } else {
            "lib".to_owned()
        };
        Ok(Some(Self {
            package: package.name.to_string(),
            which,
            directory: package.manifest_path.with_file_name("").into(),
            executable: executable.into(),
        }))
    }

    /// It with these arguments, in the place and with the variables that cargo would give it.
    fn suite(&self, workspace: &Workspace, cargo: &Command, part: &str, arguments: &[&str]) -> Suite {
        let mut command = workspace.tool(&self.executable);
        for (variable, value) in cargo.get_envs() {
            match value {
                Some(value) => command.env(variable, value),
                None => command.env_remove(variable),
            };
        }
        command
            .args(arguments)
            .current_dir(&self.directory)
            // Cargo sets more, but no test asks for more while it runs.
            .env("CARGO_MANIFEST_DIR", &self.directory);
        let Self { package, which, .. } = self;
        let mut by_hand = format!("cargo test -p {package} --{which}");
        if !arguments.is_empty() {
            by_hand = format!("{by_hand} -- {}", arguments.join(" "));
        }
        Suite {
            name: format!("{package} {which}{part}"),
            by_hand,
            command,
            is_tried_again: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(name: &str, script: &str) -> Suite {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        Suite {
            name: name.to_owned(),
            by_hand: format!("cargo test -p {name}"),
            command,
            is_tried_again: false,
        }
    }

    #[test]
    fn whoever_waits_is_one_of_our_crates() {
        let members = Workspace::locate().unwrap().members().unwrap();
        for package in WAITING {
            assert!(members.iter().any(|member| member == package), "{package}");
        }
    }

    /// A program of the lane that waits, whose failed tests are tried again.
    fn waiting(script: &str) -> Suites {
        let mut waits = suite("waits", script);
        // The name that the shell gives its script; the arguments that follow are those of a second run.
        waits.command.arg("waits");
        waits.is_tried_again = true;
        Suites {
            waiting: vec![waits],
            ..Suites::default()
        }
    }

    #[test]
    fn a_test_of_processes_that_passes_alone_is_flaky_and_no_failure() {
        let directory = tempfile::tempdir().unwrap();
        let list = "\\nfailures:\\n\\n---- slow stdout ----\\n\\nfailures:\\n    slow\\n\\ntest result";
        let said = format!(r#"[ "$*" = "--exact slow" ] && exit 0; printf "{list}"; exit 101"#);
        waiting(&said).run(directory.path()).unwrap();
        let said = format!(r#"printf "{list}"; exit 101"#);
        let error = waiting(&said).run(directory.path()).unwrap_err().to_string();
        assert!(
            error.starts_with("1 of 1 programs failed:\n\nwaits: exit status: 101"),
            "{error}"
        );
        assert!(error.contains("\n\nwaits again: exit status: 101"), "{error}");
    }

    #[test]
    fn many_failures_are_no_accident() {
        let directory = tempfile::tempdir().unwrap();
        let list = "\\nfailures:\\n    a\\n    b\\n    c\\n    d\\n\\ntest result";
        let said = format!(r#"[ $# = 0 ] || exit 0; printf "{list}"; exit 101"#);
        waiting(&said).run(directory.path()).unwrap_err();
    }

    #[test]
    fn of_a_failed_program_its_failures_are_shown_again() {
        let passed = "test a ... ok\n".repeat(500);
        let written = format!("{passed}test b ... FAILED\n\nfailures:\n\n---- b stdout ----\nwhy\n");
        assert_eq!(failures(&written), "failures:\n\n---- b stdout ----\nwhy");
        assert_eq!(failures(&passed).lines().count(), FAILURE_LINES);
    }

    #[test]
    fn all_run_whatever_fails_and_each_failure_is_named_with_its_command() {
        let directory = tempfile::tempdir().unwrap();
        let suites = Suites {
            waiting: vec![suite("waits", "echo out; echo err >&2; exit 3")],
            computing: vec![
                suite("first", "exit 4"),
                suite("second it", "echo whole"),
                suite("last", "exit 0"),
            ],
        };
        let error = suites.run(directory.path()).unwrap_err().to_string();
        assert!(error.starts_with("2 of 4 programs failed:\n\n"), "{error}");
        for line in [
            "waits: exit status: 3; alone: cargo test -p waits; it wrote at the end:\nout\nerr",
            "first: exit status: 4; alone: cargo test -p first; it wrote at the end:\n",
        ] {
            assert!(error.contains(line), "{error}");
        }
        let text = |name| fs::read_to_string(directory.path().join(name)).unwrap();
        assert_eq!(text("waits.log"), "out\nerr\n");
        assert_eq!(text("second-it.log"), "whole\n");
    }
}
