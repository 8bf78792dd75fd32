//! The simulator as a program: an API to point a cloud controller manager at, without an account.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use bowline_cloudscale_sim::kit::Clock;
use bowline_cloudscale_sim::{Access, Behaviour, Builder, CloudscaleSim, ServerSpec};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Some megabytes: enough to look back, and no leak.
const KEPT_REQUESTS: usize = 10_000;

fn command() -> Command {
    let value = |name: &'static str, unit: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(unit).help(help)
    };
    Command::new("cloudscale-sim")
        .about("Simulates the cloudscale.ch API. Prints its base URL, then serves until it is stopped.")
        .arg(
            value(
                "listen",
                "ADDRESS:PORT",
                "Where to listen; port 0 takes a free one",
            )
            .value_parser(value_parser!(SocketAddr))
            .default_value("127.0.0.1:0"),
        )
        .arg(
            value(
                "token",
                "TOKEN",
                "A token that may do everything; without any, all tokens are good",
            )
            .action(ArgAction::Append),
        )
        .arg(value("read-only-token", "TOKEN", "A token that may read").action(ArgAction::Append))
        .arg(
            value(
                "seed",
                "NUMBER",
                "Where ids come from: the same seed gives the same ids",
            )
            .value_parser(value_parser!(u64))
            .default_value("0"),
        )
        .arg(
            value(
                "latency",
                "MILLISECONDS",
                "Time before each request is carried out",
            )
            .value_parser(value_parser!(u64))
            .default_value("0"),
        )
        .arg(
            value(
                "servers",
                "NUMBER",
                "Servers to begin with, named node-1 and so on",
            )
            .value_parser(value_parser!(u32))
            .default_value("0"),
        )
        .arg(
            value(
                "zone",
                "SLUG",
                "A zone; the first one is the default and has the servers [default: rma1 lpg1]",
            )
            .action(ArgAction::Append),
        )
        .arg(
            value(
                "lb-ready-after",
                "SECONDS",
                "How long a new load balancer is changing",
            )
            .value_parser(value_parser!(u64))
            .default_value("0"),
        )
        .arg(
            value(
                "data-plane",
                "ON|OFF",
                "Whether load balancers carry traffic, on the loopback interface",
            )
            .value_parser(["on", "off"])
            .default_value("off"),
        )
        .arg(value(
            "base-url",
            "URL",
            "Base of the links in answers [default: as the caller names the host]",
        ))
}

fn builder(arguments: &ArgMatches) -> Builder {
    let number = |name: &str| arguments.get_one::<u64>(name).copied().unwrap_or_default();
    let texts = |name: &str| arguments.get_many::<String>(name).unwrap_or_default().cloned();
    let behaviour = Behaviour {
        lb_create_time: Duration::from_secs(number("lb-ready-after")),
        ..Behaviour::default()
    };
    let mut builder = CloudscaleSim::builder()
        .clock(Clock::system())
        .seed(number("seed"))
        .latency(Duration::from_millis(number("latency")))
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
    let carries = arguments
        .get_one::<String>("data-plane")
        .is_some_and(|it| it == "on");
    if carries { builder.data_plane() } else { builder }
}

#[expect(clippy::print_stdout, reason = "the base URL is what the program answers")]
async fn run(arguments: ArgMatches) -> anyhow::Result<()> {
    let listen = arguments
        .get_one::<SocketAddr>("listen")
        .context("no address to listen on")?;
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}"))?;
    let sim = builder(&arguments).build();
    sim.journal().keep_at_most(KEPT_REQUESTS);
    for number in 1..=arguments.get_one::<u32>("servers").copied().unwrap_or_default() {
        sim.add_server(ServerSpec::new(format!("node-{number}")));
    }
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for SIGINT")?;
    let server = sim.serve(listener).context("cannot serve")?;
    println!("{}", server.url());
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    drop(server);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    run(command().get_matches()).await
}
