//! The simulator as a program: an API to point a cloud controller manager at, without an account.

use std::net::{AddrParseError, IpAddr};

use bowline_paper_sim::kit::options;
use bowline_paper_sim::kit::program::{self, Arguments};
use bowline_paper_sim::{MachineSpec, PaperSim};
use clap::Command;

fn command() -> Command {
    let about = "Simulates the Paper API. Prints its base URL, then serves until it is stopped.";
    let machines = "A machine of this name, with this private address; one per Node";
    let machines = program::option("machine", "NAME[=ADDRESS]", &[], machines);
    options! {
        program::command("paper-sim").about(about).arg(machines.value_parser(machine));
        "token" "TOKEN": "The only token that is good [default: any]";
        "data-plane" "on|off" = "off": "Whether balancers carry traffic, on the loopback interface";
    }
}

fn machine(text: &str) -> Result<MachineSpec, AddrParseError> {
    let (name, private) = match text.split_once('=') {
        Some((name, address)) => (name, vec![address.parse::<IpAddr>()?]),
        None => (text, Vec::new()),
    };
    Ok(MachineSpec {
        private,
        ..MachineSpec::new(name)
    })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read(command());
    let mut builder = PaperSim::builder().settings(arguments.settings());
    if let Some(token) = arguments.first("token") {
        builder = builder.token(token);
    }
    let sim = builder.build();
    let named = arguments.all::<MachineSpec>("machine").cloned();
    for spec in named.chain(arguments.servers().map(MachineSpec::new)) {
        sim.add_machine(spec);
    }
    Ok(arguments.serve(sim.service()).await?)
}
