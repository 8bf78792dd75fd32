//! `cargo xtask test`: all gates of a change, in the order in which they fail soonest.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::go_programs::GoPrograms;
use crate::stages::Stages;
use crate::suites::Suites;
use crate::workspace::{Workspace, call, output};
use crate::{arrows, deny, generate, site, targets, workflows};

/// What of the gates is wanted.
pub(crate) struct Options {
    /// Leave out what is slow: documents, doc tests, and the build of the control plane.
    pub(crate) quick: bool,
    /// The Kubernetes minor for the tests against a real API server; nothing for the newest.
    pub(crate) kubernetes: Option<String>,
}

/// Runs the gates until one fails, and prints the durations whatever the outcome.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let mut stages = Stages::default();
    let result = gates(workspace, options, &mut stages);
    stages.summary();
    result
}

fn gates(workspace: &Workspace, options: &Options, stages: &mut Stages) -> Result<()> {
    let cargo = |words: &str| {
        let mut command = workspace.cargo();
        command.args(words.split_whitespace());
        with_kubernetes(command, options)
    };
    let programs = GoPrograms::for_tests(options.kubernetes.as_deref())?;
    let begun = match options.quick {
        true => None,
        false => programs.begin(&workspace.target_directory()?)?,
    };
    stages.stage("format", || call(&mut cargo("fmt --all --check")))?;
    stages.stage("arrows", || arrows::run(workspace))?;
    stages.stage("targets", || targets::check(workspace))?;
    stages.stage("generated files", || generate::check(workspace))?;
    stages.stage("deny", || deny::run(workspace))?;
    stages.stage("clippy", || {
        call(&mut cargo("clippy --workspace --all-targets -- -D warnings"))
    })?;
    let logs = workspace.target_directory()?.join("tests");
    if options.quick {
        let programs = cargo("test --workspace --tests");
        let suites = stages.stage("build", || Suites::build(workspace, programs))?;
        return stages.stage("tests", || suites.run(&logs));
    }
    stages.stage("documents", || {
        // For each crate rustdoc merges its index with all that former runs have left there: without them the stage takes
        // less than half the time.
        let _ = fs::remove_dir_all(workspace.target_directory()?.join("doc"));
        let mut documents = cargo("doc --workspace --no-deps");
        checked_by_clippy(workspace, &mut documents)?;
        // Set, not added to: the flags a person has exported must not decide what passes.
        call(documents.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    stages.stage("site", || site::check(workspace))?;
    stages.stage("workflows", || workflows::check(workspace))?;
    let mut suites = stages.stage("build", || Suites::build(workspace, cargo("test --workspace")))?;
    let mut doc_tests = cargo("test --doc --no-fail-fast");
    for package in targets::with_doc_tests(workspace)? {
        doc_tests.args(["--package", &package]);
    }
    suites.and_doc_tests(doc_tests);
    stages.stage("Go programs", || {
        if let Some(mut begun) = begun {
            begun.wait()?;
        }
        programs.build()
    })?;
    stages.stage("tests", || suites.run(&logs))
}

/// Rustdoc needs our crates checked, and clippy has done so. Cargo takes that over where the wrapper and its arguments are
/// those of `cargo clippy -- -D warnings`; where they are not, it checks once more, which costs a minute and nothing else.
fn checked_by_clippy(workspace: &Workspace, cargo: &mut Command) -> Result<()> {
    let toolchain = output(workspace.tool("rustc").args(["--print", "sysroot"]))?;
    let driver = Path::new(&toolchain).join("bin").join("clippy-driver");
    if driver.is_file() {
        let arguments = ["-D", "warnings"].map(|it| format!("{it}__CLIPPY_HACKERY__"));
        cargo
            .env("RUSTC_WORKSPACE_WRAPPER", driver)
            .env("CLIPPY_ARGS", arguments.concat());
    }
    Ok(())
}

fn with_kubernetes(mut command: Command, options: &Options) -> Command {
    if let Some(minor) = &options.kubernetes {
        command.env("BOWLINE_KUBERNETES", minor);
    }
    command
}
