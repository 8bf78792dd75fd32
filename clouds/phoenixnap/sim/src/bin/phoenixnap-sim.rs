//! The simulator as a program: APIs to point a cloud controller manager at, without an account.

use std::time::Duration;

use anyhow::Context;
use bowline_phoenixnap_sim::kit::program::{self, Common, option};
use bowline_phoenixnap_sim::{Behaviour, Builder, NetworkSpec, PhoenixnapSim, Scope, ServerSpec};
use clap::{ArgAction, ArgMatches, Command, value_parser};

fn command() -> Command {
    let seconds = |name: &'static str, help: &'static str| {
        option(name, "SECONDS", help)
            .value_parser(value_parser!(u64))
            .default_value("0")
    };
    program::command("phoenixnap-sim")
        .about(
            "Simulates phoenixNAP's token, BMC, IP, Network and Tag APIs. Prints their base URL, then serves until it \
             is stopped.",
        )
        .arg(
            option(
                "credentials",
                "ID:SECRET",
                "Credentials that may do everything; without any, all are good",
            )
            .action(ArgAction::Append),
        )
        .arg(
            option(
                "network",
                "ID",
                "A public network that all servers are in",
            )
            .action(ArgAction::Append),
        )
        .arg(
            option("location", "CODE", "Where the servers and networks are")
                .default_value("NLD"),
        )
        .arg(seconds("create-time", "How long a new block is creating"))
        .arg(seconds(
            "attach-time",
            "How long a block is assigning and its network BUSY",
        ))
        .arg(seconds("detach-time", "How long a block is unassigning"))
        .arg(option("prefix", "PATH", "A path in front of all others, such as /x"))
        .arg(program::data_plane(
            "Whether announced addresses carry traffic, on the loopback interface",
        ))
}

/// An id and a secret. The message does not repeat them.
fn credentials(text: &str) -> anyhow::Result<(&str, &str)> {
    let halves = text
        .split_once(':')
        .filter(|(id, secret)| !id.is_empty() && !secret.is_empty());
    halves.context("--credentials: expected an id and a secret with a colon between them")
}

fn builder(arguments: &ArgMatches, common: Common) -> anyhow::Result<Builder> {
    let seconds =
        |name: &str| Duration::from_secs(arguments.get_one::<u64>(name).copied().unwrap_or_default());
    let behaviour = Behaviour {
        block_create_time: seconds("create-time"),
        attach_time: seconds("attach-time"),
        detach_time: seconds("detach-time"),
        ..Behaviour::default()
    };
    let mut builder = PhoenixnapSim::builder()
        .settings(common.settings())
        .behaviour(behaviour);
    for text in arguments.get_many::<String>("credentials").unwrap_or_default() {
        let (id, secret) = credentials(text)?;
        builder = builder.credentials(id, secret, Scope::ALL);
    }
    if let Some(prefix) = arguments.get_one::<String>("prefix") {
        builder = builder.prefix(prefix);
    }
    Ok(builder)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = command().get_matches();
    let common = Common::read(&arguments);
    let texts = |name: &str| arguments.get_many::<String>(name).unwrap_or_default();
    let location = texts("location").next().cloned().unwrap_or_default();
    let sim = builder(&arguments, common)?.build();
    for id in texts("network") {
        sim.add_network(NetworkSpec {
            location: Some(location.clone()),
            ..NetworkSpec::with_id(id, id)
        });
    }
    for number in 1..=common.servers {
        sim.add_server(ServerSpec {
            location: Some(location.clone()),
            networks: texts("network").cloned().collect(),
            ..ServerSpec::new(format!("node-{number}"))
        });
    }
    Ok(program::run(sim.service(), common.listen).await?)
}
