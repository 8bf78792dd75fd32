//! `cargo xtask openstack`: the real OpenStack services, for trying things and for the tests that want them.

use std::ffi::OsString;

use anyhow::Result;
use clap::{Arg, ArgMatches, Command};

use crate::stages::Stages;
use crate::workspace::{Workspace, call};

/// The crates whose tests use real services where they find them.
const PACKAGES: [&str; 1] = ["bowline-openstack-services"];

/// The command; its words are those of the program that does the work.
pub(crate) fn command() -> Command {
    Command::new("openstack")
        .about("The real OpenStack services: install, start, or run a command with them (install --help, start --help ...)")
        .disable_help_flag(true)
        .arg(
            Arg::new("words")
                .value_name("WORDS")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(clap::value_parser!(OsString)),
        )
}

/// Passes the words on.
pub(crate) fn run(workspace: &Workspace, arguments: &ArgMatches) -> Result<()> {
    let words: Vec<OsString> = arguments.get_many("words").unwrap_or_default().cloned().collect();
    call(services(workspace)?.args(words))
}

/// Runs the tests that want real services with a cloud of their own, which is installed if it is not there.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let mut stages = Stages::default();
    let result = test_in(workspace, &mut stages);
    stages.summary();
    result
}

fn test_in(workspace: &Workspace, stages: &mut Stages) -> Result<()> {
    let tests = |words: &[&str]| {
        let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
        for package in PACKAGES {
            words.extend(["--package".into(), package.into()]);
        }
        words
    };
    stages.stage("build", || {
        call(workspace.cargo().args(tests(&["test", "--no-run"])))
    })?;
    stages.stage("OpenStack services", || call(services(workspace)?.arg("install")))?;
    stages.stage("tests on them", || {
        let mut command = services(workspace)?;
        command.args(["run", "--"]);
        command.arg(workspace.cargo().get_program());
        call(command.args(tests(&["test", "--no-fail-fast"])))
    })
}

/// The program that installs and starts them.
fn services(workspace: &Workspace) -> Result<std::process::Command> {
    call(
        workspace
            .cargo()
            .args(["build", "--quiet", "--package", "bowline-openstack-services"]),
    )?;
    let program = workspace.target_directory()?.join("debug/openstack-services");
    Ok(workspace.tool(program))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_words_are_passed_on() {
        let line = ["openstack", "run", "--mode", "min", "--", "sh", "-c", "true"];
        let arguments = command().get_matches_from(line);
        let words: Vec<&OsString> = arguments.get_many("words").unwrap().collect();
        assert_eq!(words, ["run", "--mode", "min", "--", "sh", "-c", "true"]);
    }
}
