//! The simulator as a program: APIs to point a cloud controller manager at, without an account.

use std::time::Duration;

use anyhow::Context;
use bowline_openstack_sim::kit::addresses::v4_range;
use bowline_openstack_sim::kit::program::{self, Common, option};
use bowline_openstack_sim::{Behaviour, Builder, OpenstackSim, ServerSpec, Service};
use clap::{ArgAction, ArgMatches, Command, value_parser};

fn command() -> Command {
    program::command("openstack-sim")
        .about(
            "Simulates OpenStack's Keystone, Nova, Neutron, Octavia and Barbican. Prints its base URL, below which \
             /identity is the address to log in at, then serves until it is stopped.",
        )
        .arg(
            option("user", "NAME:PASSWORD", "The user of the project").default_value("demo:demo"),
        )
        .arg(option("project", "NAME", "The project").default_value("demo"))
        .arg(
            option(
                "region",
                "NAME",
                "A region; the first one is simulated [default: RegionOne]",
            )
            .action(ArgAction::Append),
        )
        .arg(option("zone", "NAME", "The zone that the servers run in").default_value("nova"))
        .arg(option("network", "NAME", "The network that the servers are in").default_value("private"))
        .arg(
            option("without", "SERVICE", "A service that the catalog leaves out")
                .value_parser(["load-balancer", "key-manager"])
                .action(ArgAction::Append),
        )
        .arg(
            option(
                "lb-ready-after",
                "MILLISECONDS",
                "How long a new load balancer is PENDING_CREATE",
            )
            .value_parser(value_parser!(u64))
            .default_value("0"),
        )
        .arg(
            option(
                "lb-change-time",
                "MILLISECONDS",
                "How long a load balancer is PENDING_UPDATE or PENDING_DELETE",
            )
            .value_parser(value_parser!(u64))
            .default_value("0"),
        )
        .arg(program::data_plane(
            "Whether load balancers carry traffic, on the loopback interface",
        ))
        .arg(option(
            "base-url",
            "URL",
            "Base of the catalog's URLs [default: as the caller names the host]",
        ))
}

/// Who logs in. The message does not repeat it.
fn user(text: &str) -> anyhow::Result<(&str, &str)> {
    let user = text
        .split_once(':')
        .filter(|(name, password)| !name.is_empty() && !password.is_empty());
    user.context("--user: expected a name and a password with a colon between them")
}

fn builder(arguments: &ArgMatches, common: Common) -> anyhow::Result<Builder> {
    let texts = |name: &str| arguments.get_many::<String>(name).unwrap_or_default();
    let text = |name: &str| texts(name).next().cloned().unwrap_or_default();
    let millis = |name: &str| Duration::from_millis(arguments.get_one(name).copied().unwrap_or_default());
    let behaviour = Behaviour {
        lb_create_time: millis("lb-ready-after"),
        lb_change_time: millis("lb-change-time"),
        lb_delete_time: millis("lb-change-time"),
        ..Behaviour::default()
    };
    let login = text("user");
    let (name, password) = user(&login)?;
    let mut builder = OpenstackSim::builder();
    if !common.data_plane {
        // Room for as many servers as anybody will ask for.
        builder = builder.private_range(v4_range([10, 0, 0, 0], 16));
    }
    builder = builder
        .settings(common.settings())
        .behaviour(behaviour)
        .user(name, password)
        .project(text("project"))
        .network(text("network"))
        .zone(text("zone"));
    if arguments.contains_id("region") {
        builder = builder.regions(texts("region").cloned());
    }
    for service in texts("without") {
        builder = builder.without(match service.as_str() {
            "load-balancer" => Service::LoadBalancer,
            _ => Service::KeyManager,
        });
    }
    if let Some(url) = arguments.get_one::<String>("base-url") {
        builder = builder.base_url(url.trim_end_matches('/'));
    }
    Ok(builder)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = command().get_matches();
    let common = Common::read(&arguments);
    let sim = builder(&arguments, common)?.build();
    for number in 1..=common.servers {
        sim.add_server(ServerSpec::new(format!("node-{number}")));
    }
    Ok(program::run(sim.service(), common.listen).await?)
}
