//! The simulator as a program: APIs to point a cloud controller manager at, without an account.

use bowline_openstack_sim::kit::addresses::v4_range;
use bowline_openstack_sim::kit::options;
use bowline_openstack_sim::kit::program::{self, Arguments};
use bowline_openstack_sim::{Behaviour, OpenstackSim, ServerSpec, Service};
use clap::Command;

fn command() -> Command {
    let about = "Simulates OpenStack's Keystone, Nova, Neutron, Octavia and Barbican. Prints its base URL, below which \
                 /identity is the address to log in at, then serves until it is stopped.";
    options! {
        program::command("openstack-sim").about(about);
        "user" "NAME:PASSWORD" = "demo:demo": "The user of the project";
        "project" "NAME" = "demo": "The project";
        "region" "NAME": "A region; the first one is simulated [default: RegionOne]";
        "zone" "NAME" = "nova": "The zone that the servers run in";
        "network" "NAME" = "private": "The network that the servers are in";
        "without" "load-balancer|key-manager": "A service that the catalog leaves out";
        "lb-ready-after" "MILLISECONDS" = "0": "How long a new load balancer is PENDING_CREATE";
        "lb-change-time" "MILLISECONDS" = "0": "How long a load balancer is PENDING_UPDATE or PENDING_DELETE";
        "data-plane" "on|off" = "off": "Whether load balancers carry traffic, on the loopback interface";
        "base-url" "URL": "Base of the catalog's URLs [default: as the caller names the host]";
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read(command());
    let behaviour = Behaviour {
        lb_create_time: arguments.millis("lb-ready-after"),
        lb_change_time: arguments.millis("lb-change-time"),
        lb_delete_time: arguments.millis("lb-change-time"),
        ..Behaviour::default()
    };
    let mut builder = OpenstackSim::builder();
    if !arguments.settings().data_plane {
        // Room for as many servers as anybody will ask for.
        builder = builder.private_range(v4_range([10, 0, 0, 0], 16));
    }
    builder = builder
        .settings(arguments.settings())
        .behaviour(behaviour)
        .project(arguments.text("project"))
        .network(arguments.text("network"))
        .zone(arguments.text("zone"));
    for (name, password) in arguments.logins("user")? {
        builder = builder.user(name, password);
    }
    if arguments.first("region").is_some() {
        builder = builder.regions(arguments.texts("region"));
    }
    for service in arguments.texts("without") {
        builder = builder.without(match service {
            "load-balancer" => Service::LoadBalancer,
            _ => Service::KeyManager,
        });
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
