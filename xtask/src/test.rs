//! `cargo xtask test`: all gates of a change, in the order in which they fail soonest.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};

use crate::stages::Stages;
use crate::suites::Suites;
use crate::workspace::{Workspace, call, in_ci, on_path, output};
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
    suites.and_doc_tests(cargo("test --workspace --doc --no-fail-fast"));
    stages.stage("control plane", || control_plane(workspace, options))?;
    stages.stage("Helm", || helm(workspace, options))?;
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

/// Builds the real kube-apiserver and etcd that some tests start, unless the cache has them.
fn control_plane(workspace: &Workspace, options: &Options) -> Result<()> {
    if env::var_os("KUBEBUILDER_ASSETS").is_some() {
        println!("control plane: taken from KUBEBUILDER_ASSETS");
        return Ok(());
    }
    built(workspace, options, "control-plane", "kube-apiserver and etcd")
}

/// Builds the real Helm that renders the chart, unless the cache has it.
fn helm(workspace: &Workspace, options: &Options) -> Result<()> {
    built(workspace, options, "chart", "Helm")
}

/// Has one of our programs build what it keeps in the cache, with the Go toolchain.
fn built(workspace: &Workspace, options: &Options, program: &str, what: &str) -> Result<()> {
    if !on_path("go") {
        if in_ci() {
            bail!("Go is needed to build {what}, and is not on the path");
        }
        println!("{what}: not built, there is no Go here; tests that need it say what they left out");
        return Ok(());
    }
    // The program as the build stage made it: asking cargo for this one package would choose other features for its
    // dependencies and compile them once more.
    let program = workspace.target_directory()?.join("debug").join(program);
    let command = workspace.tool(&program);
    call(with_kubernetes(command, options).arg("build")).with_context(|| format!("building {what}"))
}

fn with_kubernetes(mut command: Command, options: &Options) -> Command {
    if let Some(minor) = &options.kubernetes {
        command.env("BOWLINE_KUBERNETES", minor);
    }
    command
}
