//! `cargo xtask bench`: builds what is measured, for release, and measures it.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::image;
use crate::workspace::{Workspace, call};

/// The row that needs the program as it is in the image, which takes minutes to build.
const BINARY_ROW: &str = "binary";

/// The simulators that it is measured on: package, and program.
const SIMULATORS: [(&str, &str); 2] = [
    ("bowline-cloudscale-sim", "cloudscale-sim"),
    ("bowline-openstack-sim", "openstack-sim"),
];

/// The command; what is not said here is passed on to the program that measures.
pub(crate) fn command() -> Command {
    let value = |name: &'static str, unit: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(unit).help(help)
    };
    Command::new("bench")
        .about("Measure the manager against a real API server and a simulated cloud")
        .arg(
            value("only", "ROW", "measure this row; may be repeated [default: all]").action(ArgAction::Append),
        )
        .arg(value(
            "nodes",
            "NUMBER",
            "nodes of the rows with many of them [default: 1000]",
        ))
        .arg(value(
            "peer-command",
            "COMMAND",
            "another manager to be measured beside ours; {kubeconfig}, {api_url}, {token} and {secure_port} are filled in; \
             one with {cloud_config} is measured on OpenStack, any other on cloudscale",
        ))
        .arg(value("json", "FILE", "also write the figures to this file"))
        .arg(value(
            "logs",
            "DIRECTORY",
            "keep the managers' logs and the simulator's journals here",
        ))
}

pub(crate) fn run(workspace: &Workspace, arguments: &ArgMatches) -> Result<()> {
    let mut build = workspace.cargo();
    build.args(["build", "--release"]);
    for package in ["bowline", "bowline-bench"]
        .into_iter()
        .chain(SIMULATORS.map(|it| it.0))
    {
        build.args(["--package", package]);
    }
    call(&mut build)?;
    let release = workspace.target_directory()?.join("release");
    let mut bench = workspace.tool(release.join("bench"));
    bench
        .arg("--manager")
        .arg(release.join("cloud-controller-manager"));
    for (_, program) in SIMULATORS {
        bench.arg(format!("--{program}")).arg(release.join(program));
    }
    for (name, value) in image::ENVIRONMENT {
        bench.arg("--env").arg(format!("{name}={value}"));
    }
    if wants_binary(arguments) {
        bench.arg("--binary").arg(binary(workspace)?);
    }
    bench.args(passed_on(arguments));
    call(&mut bench)
}

fn wants_binary(arguments: &ArgMatches) -> bool {
    arguments
        .get_many::<String>("only")
        .is_none_or(|mut rows| rows.any(|row| row == BINARY_ROW))
}

/// The program for this machine, built as for the image.
fn binary(workspace: &Workspace) -> Result<PathBuf> {
    image::program_of_this_machine(workspace)
}

/// The arguments as the measuring program takes them: by the same names.
fn passed_on(arguments: &ArgMatches) -> Vec<OsString> {
    ["only", "nodes", "peer-command", "json", "logs"]
        .into_iter()
        .flat_map(|name| {
            let values = arguments.get_many::<String>(name).unwrap_or_default();
            values.flat_map(move |value| [OsString::from(format!("--{name}")), OsString::from(value)])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_passed_on_under_the_same_names() {
        let line = ["bench", "--only", "nodes", "--only", "start", "--nodes", "10"];
        let arguments = command().get_matches_from(line);
        assert_eq!(
            passed_on(&arguments),
            ["--only", "nodes", "--only", "start", "--nodes", "10"]
        );
        assert!(!wants_binary(&arguments));
        assert!(wants_binary(&command().get_matches_from(["bench"])));
        assert!(wants_binary(
            &command().get_matches_from(["bench", "--only", BINARY_ROW])
        ));
    }
}
