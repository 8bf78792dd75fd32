//! `openstack-services`: installs the real OpenStack services, or runs them until Ctrl-C.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line program talks to its user"
)]

use std::process::ExitCode;

use anyhow::{Context, Result};
use bowline_openstack_services::{Cloud, Installation, Mode, OpenStack, Options, Project, Workers, install};
use clap::{Arg, ArgAction, ArgMatches, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The services' packages whose versions are told.
const PACKAGES: [&str; 6] = [
    "keystone",
    "neutron",
    "octavia",
    "nova",
    "openstack-placement",
    "glance",
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let matches = command().get_matches();
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let work = async {
        match matches.subcommand() {
            Some(("start", arguments)) => start(arguments).await,
            Some(("run", arguments)) => run(arguments).await,
            _ => put().await,
        }
    };
    // Whatever is under way is given up: a start leaves nothing behind, and a running cloud is dropped.
    tokio::select! {
        biased;
        () = ended(&mut interrupt, &mut terminate) => Ok(ExitCode::FAILURE),
        result = work => result,
    }
}

async fn ended(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        biased;
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

fn command() -> Command {
    let mode = Arg::new("mode")
        .long("mode")
        .value_name("MODE")
        .value_parser(|text: &str| text.parse::<Mode>())
        .help("min (without Nova) or full [default: full]");
    let failing = Arg::new("failing")
        .long("failing")
        .action(ArgAction::SetTrue)
        .help("new load balancers end in ERROR");
    Command::new("openstack-services")
        .about("The real OpenStack services, for tests")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Command::new("install").about("Install them, unless the cache has them"))
        .subcommand(
            Command::new("start")
                .about("Run them until Ctrl-C, with a project, and print how its user logs in")
                .arg(mode.clone())
                .arg(failing.clone())
                .arg(
                    Arg::new("servers")
                        .long("servers")
                        .value_name("NUMBER")
                        .value_parser(clap::value_parser!(u32))
                        .default_value("0")
                        .help("servers in the project: node-1, node-2 ..."),
                ),
        )
        .subcommand(
            Command::new("run")
                .about("Run them as long as a command runs, whose tests find them")
                .arg(mode)
                .arg(failing)
                .arg(
                    Arg::new("command")
                        .value_name("COMMAND")
                        .num_args(1..)
                        .required(true)
                        .trailing_var_arg(true)
                        .allow_hyphen_values(true)
                        .help("the command with its arguments"),
                ),
        )
}

async fn put() -> Result<ExitCode> {
    install().await?;
    for package in PACKAGES {
        println!(
            "{package} {}",
            Installation::version(package).unwrap_or("unknown")
        );
    }
    Ok(ExitCode::SUCCESS)
}

async fn cloud(arguments: &ArgMatches) -> Result<OpenStack> {
    install().await?;
    let workers = if arguments.get_flag("failing") {
        Workers::Failing
    } else {
        Workers::Working
    };
    let mode = arguments.get_one::<Mode>("mode").copied().unwrap_or_default();
    Ok(OpenStack::start(Options { mode, workers }).await?)
}

async fn start(arguments: &ArgMatches) -> Result<ExitCode> {
    let openstack = cloud(arguments).await?;
    let project = openstack.cloud().project("demo").await?;
    for number in 1..=arguments.get_one::<u32>("servers").copied().unwrap_or_default() {
        project.server(&format!("node-{number}")).await?;
    }
    tell(&openstack, &project);
    std::future::pending().await
}

fn tell(openstack: &OpenStack, project: &Project) {
    let cloud = openstack.cloud();
    let description = openstack.description().display().to_string();
    for (name, value) in [
        ("OS_AUTH_URL", cloud.keystone_url()),
        ("OS_REGION_NAME", cloud.region()),
        ("OS_USERNAME", &project.name),
        ("OS_PASSWORD", &project.password),
        ("OS_PROJECT_NAME", &project.name),
        ("OS_USER_DOMAIN_ID", "default"),
        ("OS_PROJECT_DOMAIN_ID", "default"),
        (Cloud::VARIABLE, &description),
    ] {
        println!("export {name}={value}");
    }
    eprintln!(
        "network {}\nsubnet {}\nrouter {}\nexternal network {}\nlogs in {}\nCtrl-C stops all",
        project.network_id,
        project.subnet_id,
        project.router_id,
        cloud.access().external.id,
        openstack.logs().display()
    );
}

async fn run(arguments: &ArgMatches) -> Result<ExitCode> {
    let openstack = cloud(arguments).await?;
    let mut words = arguments.get_many::<String>("command").unwrap_or_default();
    let program = words.next().context("no command")?;
    let status = tokio::process::Command::new(program)
        .args(words)
        .env(Cloud::VARIABLE, openstack.description())
        .kill_on_drop(true)
        .status()
        .await
        .with_context(|| format!("cannot start {program}"))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn the_words_of_a_command_are_not_ours() {
        let line = [
            "openstack-services",
            "run",
            "--mode",
            "min",
            "--",
            "cargo",
            "test",
            "--mode",
        ];
        let matches = command().get_matches_from(line);
        let (_, arguments) = matches.subcommand().unwrap();
        let words: Vec<&String> = arguments.get_many("command").unwrap().collect();
        assert_eq!(words, ["cargo", "test", "--mode"]);
    }
}
