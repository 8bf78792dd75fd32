//! The commands that people and CI call: `cargo xtask <command>`.
//!
//! A development tool. Nothing depends on it, and nothing of it is shipped.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program talks to its user"
)]

mod arrows;
mod stages;
mod test;
mod workspace;

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::workspace::Workspace;

fn main() -> ExitCode {
    let matches = command().get_matches();
    match run(&matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn command() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("xtask")
        .about("Checks and generators of this repository")
        .bin_name("cargo xtask")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("test")
                .about("Everything a change must pass, the quickest check first")
                .arg(flag(
                    "quick",
                    "leave out documents, doc tests and the build of the control plane",
                )),
        )
        .subcommand(
            Command::new("arrows")
                .about("Check which crate depends on which against the table of allowed arrows"),
        )
}

fn run(matches: &ArgMatches) -> anyhow::Result<()> {
    let workspace = Workspace::locate()?;
    match matches.subcommand() {
        Some(("test", args)) => test::run(&workspace, args.get_flag("quick")),
        Some(("arrows", _)) => arrows::run(&workspace),
        other => anyhow::bail!("no such command: {other:?}"),
    }
}
