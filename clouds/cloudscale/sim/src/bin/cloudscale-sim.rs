//! The simulator as a program: an API to point a cloud controller manager at, without an account.

use bowline_cloudscale_sim::kit::options;
use bowline_cloudscale_sim::kit::program::{self, Arguments};
use bowline_cloudscale_sim::{Access, Behaviour, CloudscaleSim, ServerSpec};
use clap::Command;

fn command() -> Command {
    let about = "Simulates the cloudscale.ch API. Prints its base URL, then serves until it is stopped.";
    options! {
        program::command("cloudscale-sim").about(about);
        "token" "TOKEN": "A token that may do everything; without any, all tokens are good";
        "read-only-token" "TOKEN": "A token that may read";
        "zone" "SLUG": "A zone; the first one is the default and has the servers [default: rma1 lpg1]";
        "lb-ready-after" "SECONDS" = "0": "How long a new load balancer is changing";
        "data-plane" "on|off" = "off": "Whether load balancers carry traffic, on the loopback interface";
        "base-url" "URL": "Base of the links in answers [default: as the caller names the host]";
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read(command());
    let behaviour = Behaviour {
        lb_create_time: arguments.seconds("lb-ready-after"),
        ..Behaviour::default()
    };
    let mut builder = CloudscaleSim::builder()
        .settings(arguments.settings())
        .behaviour(behaviour);
    for (name, access) in [
        ("token", Access::ReadWrite),
        ("read-only-token", Access::ReadOnly),
    ] {
        builder = arguments
            .texts(name)
            .fold(builder, |builder, token| builder.token(token, access));
    }
    if arguments.first("zone").is_some() {
        builder = builder.zones(arguments.texts("zone"));
    }
    if let Some(url) = arguments.first("base-url") {
        builder = builder.base_url(url.trim_end_matches('/'));
    }
    let sim = builder.build();
    for name in arguments.servers() {
        sim.add_server(ServerSpec::new(name));
    }
    Ok(arguments.serve(sim.service()).await?)
}
