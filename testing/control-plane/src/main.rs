//! `control-plane`: builds kube-apiserver and etcd, or runs them until Ctrl-C.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program talks to its user"
)]

use anyhow::{Context, Result};
use bowline_control_plane::{ControlPlane, Options, Version, build};
use clap::{Arg, Command};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let matches = command().get_matches();
    let Some((word, arguments)) = matches.subcommand() else {
        return Ok(());
    };
    let version = match arguments.get_one::<Version>("version") {
        Some(version) => *version,
        None => Version::wanted()?,
    };
    eprintln!("Kubernetes {}", version.release());
    let programs = build(version)?;
    if word == "build" {
        println!(
            "{}\n{}",
            programs.kube_apiserver.display(),
            programs.etcd.display()
        );
        return Ok(());
    }
    start(version).await
}

fn command() -> Command {
    let version = Arg::new("version")
        .long("version")
        .value_name("MINOR")
        .value_parser(|text: &str| text.parse::<Version>())
        .help("1.35, 1.36 or 1.37 [default: $BOWLINE_KUBERNETES, else 1.37]");
    Command::new("control-plane")
        .about("The real kube-apiserver and etcd, for tests")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("build")
                .about("Build both, unless the cache has them")
                .arg(version.clone()),
        )
        .subcommand(
            Command::new("start")
                .about("Run both until Ctrl-C and print the admin's kubeconfig")
                .arg(version),
        )
}

async fn start(version: Version) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let options = Options {
        version,
        ..Options::default()
    };
    // A start that is given up leaves nothing behind, so nobody has to wait for it to end first.
    let plane = tokio::select! {
        biased;
        _ = interrupt.recv() => return Ok(()),
        _ = terminate.recv() => return Ok(()),
        plane = ControlPlane::start(options) => plane?,
    };
    println!("export KUBECONFIG={}", plane.admin().path().display());
    eprintln!("{} is ready; Ctrl-C stops it and removes its files", plane.url());
    tokio::select! {
        biased;
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    drop(plane);
    Ok(())
}
