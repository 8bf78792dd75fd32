//! The simulator as a program: an API to point a cloud controller manager at, without an account.

use std::time::Duration;

use bowline_cloudscale_sim::kit::program::{self, Common, option};
use bowline_cloudscale_sim::{Access, Behaviour, Builder, CloudscaleSim, ServerSpec};
use clap::{ArgAction, ArgMatches, Command, value_parser};

fn command() -> Command {
    program::command("cloudscale-sim")
        .about("Simulates the cloudscale.ch API. Prints its base URL, then serves until it is stopped.")
        .arg(
            option(
                "token",
                "TOKEN",
                "A token that may do everything; without any, all tokens are good",
            )
            .action(ArgAction::Append),
        )
        .arg(option("read-only-token", "TOKEN", "A token that may read").action(ArgAction::Append))
        .arg(
            option(
                "zone",
                "SLUG",
                "A zone; the first one is the default and has the servers [default: rma1 lpg1]",
            )
            .action(ArgAction::Append),
        )
        .arg(
            option(
                "lb-ready-after",
                "SECONDS",
                "How long a new load balancer is changing",
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
            "Base of the links in answers [default: as the caller names the host]",
        ))
}

fn builder(arguments: &ArgMatches, common: Common) -> Builder {
    let texts = |name: &str| arguments.get_many::<String>(name).unwrap_or_default().cloned();
    let ready_after = arguments
        .get_one::<u64>("lb-ready-after")
        .copied()
        .unwrap_or_default();
    let behaviour = Behaviour {
        lb_create_time: Duration::from_secs(ready_after),
        ..Behaviour::default()
    };
    let mut builder = CloudscaleSim::builder()
        .settings(common.settings())
        .behaviour(behaviour);
    for (name, access) in [
        ("token", Access::ReadWrite),
        ("read-only-token", Access::ReadOnly),
    ] {
        builder = texts(name).fold(builder, |builder, token| builder.token(token, access));
    }
    if arguments.contains_id("zone") {
        builder = builder.zones(texts("zone"));
    }
    if let Some(url) = arguments.get_one::<String>("base-url") {
        builder = builder.base_url(url.trim_end_matches('/'));
    }
    builder
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = command().get_matches();
    let common = Common::read(&arguments);
    let sim = builder(&arguments, common).build();
    for number in 1..=common.servers {
        sim.add_server(ServerSpec::new(format!("node-{number}")));
    }
    Ok(program::run(sim.service(), common.listen).await?)
}
