//! The commands that people and CI call: `cargo xtask <command>`.
//!
//! A development tool. Nothing depends on it, and nothing of it is shipped.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program talks to its user"
)]

mod alone;
mod arrows;
mod bench;
mod deny;
mod generate;
mod go_programs;
mod image;
mod manifests;
mod monitoring;
mod openstack;
mod page;
mod release;
mod site;
mod stages;
mod suites;
mod targets;
mod test;
mod workflows;
mod workspace;

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::go_programs::GoPrograms;
use crate::image::Arch;
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
    let kubernetes = || {
        Arg::new("kubernetes")
            .long("kubernetes")
            .value_name("MINOR")
            .help("the real API server to test with: 1.35, 1.36 or 1.37 [default: 1.37]")
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
                ))
                .arg(kubernetes())
                .arg(
                    Arg::new("openstack")
                        .long("openstack")
                        .value_name("WHICH")
                        .value_parser(["real"])
                        .conflicts_with_all(["quick", "kubernetes"])
                        .help("instead of all that: the tests that use the real OpenStack services, which are installed first"),
                ),
        )
        .subcommand(Command::new("arrows").about("Check which crate depends on which against the table"))
        .subcommand(Command::new("targets").about("Check that what is compiled for tests has tests, and that no other has"))
        .subcommand(
            Command::new("alone").about("Check each crate without the features its neighbours ask for"),
        )
        .subcommand(
            Command::new("deny").about("Check licences, sources and bans, if cargo-deny is installed"),
        )
        .subcommand(
            Command::new("generate")
                .about("Write the reference pages that come from tables in the code")
                .arg(flag("check", "write nothing, fail if a page is not fresh")),
        )
        .subcommand(
            Command::new("go-programs")
                .about("Build kube-apiserver, etcd and Helm, unless the cache has them; needs Go")
                .arg(kubernetes()),
        )
        .subcommand(
            Command::new("manifests").about("Write the plain manifests under deploy/, which come out of the chart; needs Go"),
        )
        .subcommand(
            Command::new("monitoring").about("Test the alerts with the real promtool, which is built first; needs Go"),
        )
        .subcommand(
            Command::new("image")
                .about("Build the static binary and its image, as an OCI archive")
                .arg(
                    Arg::new("arch")
                        .long("arch")
                        .value_name("ARCH")
                        .action(ArgAction::Append)
                        .value_parser(Arch::parse)
                        .help("amd64 or arm64, may be repeated [default: all that this machine can build]"),
                )
                .arg(
                    Arg::new("source")
                        .long("source")
                        .value_name("URL")
                        .help("where the sources are, for the image's label"),
                )
                .arg(flag(
                    "auditable",
                    "put the list of dependencies into the program; needs cargo-auditable",
                )),
        )
        .subcommand(
            Command::new("site")
                .about("Build the documentation as a site, strictly; needs Python")
                .arg(
                    Arg::new("source")
                        .long("source")
                        .value_name("URL")
                        .help("where the sources are, for links to files that are no pages"),
                ),
        )
        .subcommand(Command::new("workflows").about("Check the form of .github/workflows; needs Go"))
        .subcommand(bench::command())
        .subcommand(openstack::command())
        .subcommand(Command::new("page").about(
            "Press each button of the demo's page in a real browser, and make the pictures of the guide; installs Chromium on Debian",
        ))
        .subcommand(
            Command::new("release")
                .about("Check the steps of docs/releasing.md that a machine can check")
                .arg(flag("check", "check; nothing else is done by machine").required(true)),
        )
}

fn run(matches: &ArgMatches) -> anyhow::Result<()> {
    let workspace = Workspace::locate()?;
    match matches.subcommand() {
        Some(("test", args)) if args.contains_id("openstack") => openstack::test(&workspace),
        Some(("test", args)) => {
            let kubernetes = args.get_one::<String>("kubernetes").cloned();
            test::run(
                &workspace,
                &test::Options {
                    quick: args.get_flag("quick"),
                    kubernetes,
                },
            )
        }
        Some(("arrows", _)) => arrows::run(&workspace),
        Some(("targets", _)) => targets::check(&workspace),
        Some(("alone", _)) => alone::run(&workspace),
        Some(("deny", _)) => deny::run(&workspace),
        Some(("generate", args)) if args.get_flag("check") => generate::check(&workspace),
        Some(("generate", _)) => generate::write(&workspace),
        Some(("go-programs", args)) => {
            let minor = args.get_one::<String>("kubernetes");
            GoPrograms::for_tests(minor.map(String::as_str))?.build()
        }
        Some(("manifests", _)) => manifests::write(&workspace),
        Some(("monitoring", _)) => monitoring::test(&workspace),
        Some(("image", args)) => {
            let options = image::Options {
                platforms: args.get_many("arch").unwrap_or_default().copied().collect(),
                source: args.get_one::<String>("source").cloned(),
                auditable: args.get_flag("auditable"),
            };
            image::run(&workspace, &options)
        }
        Some(("site", args)) => site::run(&workspace, args.get_one::<String>("source").map(String::as_str)),
        Some(("workflows", _)) => workflows::check(&workspace),
        Some(("openstack", args)) => openstack::run(&workspace, args),
        Some(("page", _)) => page::run(&workspace),
        Some(("bench", args)) => bench::run(&workspace, args),
        Some(("release", _)) => release::check(&workspace),
        other => anyhow::bail!("no such command: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    /// The commands that a text names: the word behind `cargo xtask`.
    fn named(text: &str) -> impl Iterator<Item = &str> {
        let tails = text.split("cargo xtask ").skip(1);
        let words = tails.map(|tail| {
            tail.split(|it: char| !it.is_ascii_lowercase() && it != '-')
                .next()
                .unwrap_or_default()
        });
        words.filter(|word| !word.is_empty())
    }

    /// The files of a folder and, if wanted, of those in it.
    fn files(folder: &Path, is_deep: bool) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let (folders, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        for folder in folders.iter().filter(|_| is_deep) {
            files.extend(self::files(folder, is_deep));
        }
        files
    }

    #[test]
    fn every_command_that_a_page_or_a_workflow_names_is_one() {
        let workspace = Workspace::locate().unwrap();
        let folders = ["", "docs", ".github", ".ci"].map(|folder| workspace.root().join(folder));
        let mut count = 0;
        for file in folders
            .iter()
            .enumerate()
            .flat_map(|(at, folder)| files(folder, at > 0))
        {
            // What is no text names nothing.
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            for word in named(&text) {
                count += 1;
                let file = file.display();
                assert!(
                    command().find_subcommand(word).is_some(),
                    "{file}: cargo xtask {word}"
                );
            }
        }
        assert!(count > 20, "only {count} commands were found");
    }
}
