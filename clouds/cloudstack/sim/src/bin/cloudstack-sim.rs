//! The simulator as a program: an API to point a cloud controller manager at, without an account.

use bowline_cloudstack_sim::kit::options;
use bowline_cloudstack_sim::kit::program::{self, Arguments};
use bowline_cloudstack_sim::{Behaviour, CloudstackSim, NetworkSpec, NicSpec, UserSpec, VmSpec, VpcSpec};
use clap::Command;

fn command() -> Command {
    let about = "Simulates the Apache CloudStack API. Prints its base URL, below which the API is at /client/api, then serves \
                 until it is stopped.";
    options! {
        program::command("cloudstack-sim").about(about).disable_version_flag(true);
        "user" "API_KEY:SECRET_KEY":
            "An ordinary user's keys; without any, simulated-api-key:simulated-secret-key";
        "admin" "API_KEY:SECRET_KEY": "A root admin's keys, of the account admin";
        "version" "VERSION" = "4.22.0.0": "The server's version";
        "zone" "NAME" = "Zurich-1": "The zone's name";
        "network" "isolated|tier" = "isolated": "What the servers are in: an isolated network, or a tier of a VPC";
        "balancing" "virtual-router|other" = "virtual-router":
            "What balances: a virtual router, which carries no UDP and keeps port 8081 to itself, or something that \
             carries everything";
        "job-time" "MILLISECONDS" = "0": "How long a job takes";
        "page-size" "NUMBER" = "500": "The most items of one answer";
        "data-plane" "on|off" = "off": "Whether load balancer rules carry traffic, on the loopback interface";
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read(command());
    let mut behaviour = Behaviour {
        version: arguments.text("version").to_owned(),
        job_time: arguments.millis("job-time"),
        page_size: Some(usize::try_from(arguments.number("page-size").max(1))?),
        ..Behaviour::default()
    };
    if arguments.text("balancing") == "other" {
        behaviour.carry_everything();
    }
    let mut builder = CloudstackSim::builder()
        .settings(arguments.settings())
        .behaviour(behaviour)
        .zone(arguments.text("zone"));
    for (api, secret) in arguments.logins("user")? {
        builder = builder.user(UserSpec::new(api, secret));
    }
    for (api, secret) in arguments.logins("admin")? {
        builder = builder.user(UserSpec::new(api, secret).account("admin").admin());
    }
    let sim = builder.build();
    let network = if arguments.text("network") == "tier" {
        let vpc = sim.add_vpc(VpcSpec::new("vpc"));
        let list = sim.add_acl_list("tier-acl", &vpc);
        sim.add_network(NetworkSpec::tier("tier", &vpc, &list))
    } else {
        sim.network()
    };
    for name in arguments.servers() {
        sim.add_vm(VmSpec::with_nics(name, [NicSpec::on(&network)]));
    }
    Ok(arguments.serve(sim.service()).await?)
}
