//! The simulator as a program: an API to point a cloud controller manager at, without an account.

use std::net::{AddrParseError, IpAddr};

use bowline_paper_sim::kit::program::{self, Common};
use bowline_paper_sim::{MachineSpec, PaperSim};
use clap::{ArgAction, Command};

fn command() -> Command {
    program::command("paper-sim")
        .about("Simulates the Paper API. Prints its base URL, then serves until it is stopped.")
        .arg(
            program::option(
                "machine",
                "NAME[=ADDRESS]",
                "A machine of this name, with this private address; one per Node",
            )
            .value_parser(machine)
            .action(ArgAction::Append),
        )
        .arg(program::option(
            "token",
            "TOKEN",
            "The only token that is good [default: any]",
        ))
        .arg(program::data_plane(
            "Whether balancers carry traffic, on the loopback interface",
        ))
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
    let arguments = command().get_matches();
    let common = Common::read(&arguments);
    let mut builder = PaperSim::builder().settings(common.settings());
    if let Some(token) = arguments.get_one::<String>("token") {
        builder = builder.token(token);
    }
    let sim = builder.build();
    let named = arguments
        .get_many::<MachineSpec>("machine")
        .unwrap_or_default()
        .cloned();
    let numbered = (1..=common.servers).map(|number| MachineSpec::new(format!("node-{number}")));
    for spec in named.chain(numbered) {
        sim.add_machine(spec);
    }
    Ok(program::run(sim.service(), common.listen).await?)
}
