//! The simulator as a program: an API to point a cloud controller manager at, without an account.

use std::time::Duration;

use anyhow::Context;
use bowline_cloudstack_sim::kit::program::{self, Common, option};
use bowline_cloudstack_sim::{
    Behaviour, Builder, CloudstackSim, NetworkSpec, NicSpec, UserSpec, VmSpec, VpcSpec,
};
use clap::{ArgAction, ArgMatches, Command, value_parser};

fn command() -> Command {
    program::command("cloudstack-sim")
        .about(
            "Simulates the Apache CloudStack API. Prints its base URL, below which the API is at /client/api, then serves \
             until it is stopped.",
        )
        .arg(
            option(
                "user",
                "API_KEY:SECRET_KEY",
                "An ordinary user's keys; without any, simulated-api-key:simulated-secret-key",
            )
            .action(ArgAction::Append),
        )
        .arg(
            option("admin", "API_KEY:SECRET_KEY", "A root admin's keys, of the account admin")
                .action(ArgAction::Append),
        )
        .arg(option("version", "VERSION", "The server's version").default_value("4.22.0.0"))
        .arg(option("zone", "NAME", "The zone's name").default_value("Zurich-1"))
        .arg(
            option("network", "KIND", "What the servers are in: an isolated network, or a tier of a VPC")
                .value_parser(["isolated", "tier"])
                .default_value("isolated"),
        )
        .arg(
            option(
                "balancing",
                "KIND",
                "What balances: a virtual router, which carries no UDP and keeps port 8081 to itself, or something that carries everything",
            )
            .value_parser(["virtual-router", "other"])
            .default_value("virtual-router"),
        )
        .arg(
            option("job-time", "MILLISECONDS", "How long a job takes")
                .value_parser(value_parser!(u64))
                .default_value("0"),
        )
        .arg(
            option("page-size", "NUMBER", "The most items of one answer")
                .value_parser(value_parser!(u64).range(1..))
                .default_value("500"),
        )
        .arg(program::data_plane(
            "Whether load balancer rules carry traffic, on the loopback interface",
        ))
        .disable_version_flag(true)
}

/// A user of two keys. The message does not repeat them.
fn user(flag: &str, text: &str) -> anyhow::Result<UserSpec> {
    let keys = text
        .split_once(':')
        .filter(|(api, secret)| !api.is_empty() && !secret.is_empty());
    let (api, secret) =
        keys.with_context(|| format!("--{flag}: expected two keys with a colon between them"))?;
    Ok(UserSpec::new(api, secret))
}

fn builder(arguments: &ArgMatches, common: Common) -> anyhow::Result<Builder> {
    let texts = |name: &str| arguments.get_many::<String>(name).unwrap_or_default();
    let text = |name: &str| texts(name).next().cloned().unwrap_or_default();
    let number = |name: &str| arguments.get_one::<u64>(name).copied().unwrap_or_default();
    let mut behaviour = Behaviour {
        version: text("version"),
        job_time: Duration::from_millis(number("job-time")),
        page_size: Some(usize::try_from(number("page-size"))?),
        ..Behaviour::default()
    };
    if text("balancing") == "other" {
        behaviour.carry_everything();
    }
    let mut builder = CloudstackSim::builder()
        .settings(common.settings())
        .behaviour(behaviour)
        .zone(text("zone"));
    for keys in texts("user") {
        builder = builder.user(user("user", keys)?);
    }
    for keys in texts("admin") {
        builder = builder.user(user("admin", keys)?.account("admin").admin());
    }
    Ok(builder)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = command().get_matches();
    let common = Common::read(&arguments);
    let sim = builder(&arguments, common)?.build();
    let is_tier = arguments
        .get_one::<String>("network")
        .is_some_and(|it| it == "tier");
    let network = if is_tier {
        let vpc = sim.add_vpc(VpcSpec::new("vpc"));
        let list = sim.add_acl_list("tier-acl", &vpc);
        sim.add_network(NetworkSpec::tier("tier", &vpc, &list))
    } else {
        sim.network()
    };
    for number in 1..=common.servers {
        sim.add_vm(VmSpec::with_nics(
            format!("node-{number}"),
            [NicSpec::on(&network)],
        ));
    }
    Ok(program::run(sim.service(), common.listen).await?)
}
