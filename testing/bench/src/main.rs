//! Measures a cloud controller manager against a real API server and a simulated cloud.
//!
//! Everything runs on one machine, each part as a process of its own: kube-apiserver and etcd, the simulator, the
//! manager, and this program, which makes the objects, watches and counts. Each row is measured in a world of its own
//! that has just been started. A row's *floor* is what no manager can beat: the same writes, sent by a bare client with
//! as many under way at once.
//!
//! `cargo xtask bench` builds what is needed and calls this.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program talks to its user"
)]

mod floor;
mod journal;
mod machine;
mod manager;
mod nodes;
mod process;
mod report;
mod rows;
mod services;
mod simulator;
mod wait;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::manager::Subject;
use crate::report::{Measured, Report};
use crate::rows::{Bench, ROWS};
use crate::simulator::{Kind, Program};

fn command() -> Command {
    let path = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("PATH")
            .value_parser(value_parser!(PathBuf))
            .help(help)
    };
    Command::new("bench")
        .about("Measures a cloud controller manager and prints a table")
        .arg(path("manager", "our manager, built for release").required(true))
        .arg(path("cloudscale-sim", "the cloudscale simulator, built for release").required(true))
        .arg(path("openstack-sim", "the OpenStack simulator, built for release").required(true))
        .arg(path("binary", "the manager as it is in the image, for its size"))
        .arg(
            Arg::new("only")
                .long("only")
                .value_name("ROW")
                .action(ArgAction::Append)
                .value_parser(ROWS.map(|row| row.name))
                .help("measure this row; may be repeated [default: all]"),
        )
        .arg(
            Arg::new("nodes")
                .long("nodes")
                .value_name("NUMBER")
                .value_parser(value_parser!(u32).range(1..))
                .default_value("1000")
                .help("nodes of the rows with many of them"),
        )
        .arg(
            Arg::new("peer-command")
                .long("peer-command")
                .value_name("COMMAND")
                .help(
                    "another manager to be measured beside ours; {kubeconfig}, {api_url}, {token} and {secure_port} \
                     are filled in; one with {cloud_config} is measured on OpenStack, any other on cloudscale",
                ),
        )
        .arg(
            Arg::new("env")
                .long("env")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .value_parser(variable)
                .help("an environment variable of our manager, as the image has it; may be repeated"),
        )
        .arg(
            Arg::new("no-floor")
                .long("no-floor")
                .action(ArgAction::SetTrue)
                .help("leave the floors out"),
        )
        .arg(path("json", "also write the figures to this file"))
        .arg(path("logs", "keep the managers' logs in this directory"))
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("no `=` in it")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn main() -> ExitCode {
    let arguments = command().get_matches();
    let measured = tokio::runtime::Runtime::new()
        .context("no runtime")
        .and_then(|runtime| runtime.block_on(run(&arguments)));
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &ArgMatches) -> Result<()> {
    let path = |name: &str| arguments.get_one::<PathBuf>(name).cloned();
    let program = |kind: Kind, name: &str| {
        let path = path(name).context("no simulator")?;
        anyhow::Ok(Program { kind, path })
    };
    let bench = Bench {
        cloudscale: program(Kind::Cloudscale, "cloudscale-sim")?,
        openstack: program(Kind::OpenStack, "openstack-sim")?,
        binary: path("binary"),
        nodes: arguments.get_one::<u32>("nodes").copied().unwrap_or(1000),
        logs: path("logs"),
    };
    let environment = arguments.get_many("env").unwrap_or_default().cloned().collect();
    let mut subjects = vec![Subject::ours(
        &path("manager").context("no manager")?,
        environment,
    )];
    if let Some(line) = arguments.get_one::<String>("peer-command") {
        subjects.push(Subject::peer(line)?);
    }
    let wanted: Vec<&String> = arguments.get_many("only").unwrap_or_default().collect();
    let mut report = Report::new(machine::describe(bench.nodes)?, subjects.iter().map(|it| it.name));
    for row in ROWS
        .iter()
        .filter(|row| wanted.is_empty() || wanted.iter().any(|name| *name == row.name))
    {
        if !arguments.get_flag("no-floor") {
            eprintln!("==> {}: the floor", row.name);
            let mut floor = Measured::default();
            (row.floor)(&bench, &mut floor)
                .await
                .with_context(|| format!("the floor of {}", row.name))?;
            report.add_floor(floor);
        }
        let subjects = subjects.iter().enumerate();
        for (index, subject) in subjects.filter(|(_, subject)| subject.knows(row.cloud)) {
            eprintln!("==> {}: {}", row.name, subject.name);
            let mut measured = Measured::default();
            let done = (row.measure)(&bench, subject, &mut measured).await;
            report.add(index, measured);
            // A row that cannot be measured does not take the others with it.
            if let Err(error) = done {
                eprintln!("bench: {} of {}: {error:#}", row.name, subject.name);
                report.missed(row.name, subject.name, &format!("{error:#}"));
            }
        }
    }
    println!("{}", report.markdown());
    if let Some(file) = path("json") {
        std::fs::write(&file, report.json().to_string())
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
