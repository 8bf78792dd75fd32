//! The simulator as a program: APIs to point a cloud controller manager at, without an account.

use bowline_phoenixnap_sim::kit::options;
use bowline_phoenixnap_sim::kit::program::{self, Arguments};
use bowline_phoenixnap_sim::{Behaviour, NetworkSpec, PhoenixnapSim, Scope, ServerSpec};
use clap::Command;

fn command() -> Command {
    let about = "Simulates phoenixNAP's token, BMC, IP, Network and Tag APIs. Prints their base URL, then serves until it is \
                 stopped.";
    options! {
        program::command("phoenixnap-sim").about(about);
        "credentials" "ID:SECRET": "Credentials that may do everything; without any, all are good";
        "network" "ID": "A public network that all servers are in";
        "location" "CODE" = "NLD": "Where the servers and networks are";
        "create-time" "SECONDS" = "0": "How long a new block is creating";
        "attach-time" "SECONDS" = "0": "How long a block is assigning and its network BUSY";
        "detach-time" "SECONDS" = "0": "How long a block is unassigning";
        "prefix" "PATH" = "": "A path in front of all others, such as /x";
        "data-plane" "on|off" = "off": "Whether announced addresses carry traffic, on the loopback interface";
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read(command());
    let behaviour = Behaviour {
        block_create_time: arguments.seconds("create-time"),
        attach_time: arguments.seconds("attach-time"),
        detach_time: arguments.seconds("detach-time"),
        ..Behaviour::default()
    };
    let mut builder = PhoenixnapSim::builder()
        .settings(arguments.settings())
        .behaviour(behaviour)
        .prefix(arguments.text("prefix"));
    for (id, secret) in arguments.logins("credentials")? {
        builder = builder.credentials(id, secret, Scope::ALL);
    }
    let sim = builder.build();
    let location = arguments.first("location").map(str::to_owned);
    for id in arguments.texts("network") {
        sim.add_network(NetworkSpec {
            location: location.clone(),
            ..NetworkSpec::with_id(id, id)
        });
    }
    for name in arguments.servers() {
        sim.add_server(ServerSpec {
            location: location.clone(),
            networks: arguments.texts("network").map(str::to_owned).collect(),
            ..ServerSpec::new(name)
        });
    }
    Ok(arguments.serve(sim.service()).await?)
}
