//! What the simulators' programs have in common: their first options, and a life from the base URL to a signal.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command, value_parser};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::clock::Clock;
use crate::service::CloudService;
use crate::simulator::Settings;

/// Some megabytes: enough to look back, and no leak.
const KEPT_REQUESTS: usize = 10_000;

/// A program with `--listen`, `--seed`, `--latency` and `--servers`.
pub fn command(name: &'static str) -> Command {
    Command::new(name)
        .arg(
            option(
                "listen",
                "ADDRESS:PORT",
                "Where to listen; port 0 takes a free one",
            )
            .value_parser(value_parser!(SocketAddr))
            .default_value("127.0.0.1:0"),
        )
        .arg(
            option(
                "seed",
                "NUMBER",
                "Where ids come from: the same seed gives the same ids",
            )
            .value_parser(value_parser!(u64))
            .default_value("0"),
        )
        .arg(
            option(
                "latency",
                "MILLISECONDS",
                "Time before each request is carried out",
            )
            .value_parser(value_parser!(u64))
            .default_value("0"),
        )
        .arg(
            option(
                "servers",
                "NUMBER",
                "Servers to begin with, named node-1 and so on",
            )
            .value_parser(value_parser!(u64))
            .default_value("0"),
        )
}

/// An option that takes a value.
pub fn option(name: &'static str, unit: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(unit).help(help)
}

/// An option `ON|OFF` for a simulator whose addresses carry traffic.
pub fn data_plane(help: &'static str) -> Arg {
    option("data-plane", "ON|OFF", help)
        .value_parser(["on", "off"])
        .default_value("off")
}

/// The values of the common options.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where ids come from.
    pub seed: u64,
    /// Time before each request is carried out.
    pub latency: Duration,
    /// How many servers there are at the start.
    pub servers: u64,
    /// Whether addresses carry traffic.
    pub data_plane: bool,
}

impl Common {
    /// Reads them out of what [`command`] parsed.
    pub fn read(arguments: &ArgMatches) -> Self {
        let number = |name: &str| arguments.get_one::<u64>(name).copied().unwrap_or_default();
        let listen = arguments.get_one::<SocketAddr>("listen").copied();
        let data_plane = arguments.try_get_one::<String>("data-plane").ok().flatten();
        Self {
            listen: listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0))),
            seed: number("seed"),
            latency: Duration::from_millis(number("latency")),
            servers: number("servers"),
            data_plane: data_plane.is_some_and(|it| it == "on"),
        }
    }
}

impl Common {
    /// What they say about the simulator itself, whose clock is the operating system's.
    pub fn settings(&self) -> Settings {
        Settings {
            seed: self.seed,
            clock: Some(Clock::system()),
            latency: self.latency,
            data_plane: self.data_plane,
        }
    }
}

/// Why a simulator's program ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// No socket.
    #[error("cannot listen on {0}")]
    Listen(SocketAddr, #[source] io::Error),
    /// A socket that has no address.
    #[error("cannot serve")]
    Serve(#[source] io::Error),
    /// No way to be told to stop.
    #[error("cannot wait for signals")]
    Signals(#[source] io::Error),
}

/// Prints the base URL as the only line, then serves until SIGTERM or SIGINT. The journal forgets old requests.
///
/// # Errors
///
/// If it cannot listen or cannot wait for signals.
#[expect(clippy::print_stdout, reason = "the base URL is what the program answers")]
pub async fn run(service: CloudService, listen: SocketAddr) -> Result<(), ProgramError> {
    let mut terminate = signal(SignalKind::terminate()).map_err(ProgramError::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ProgramError::Signals)?;
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| ProgramError::Listen(listen, error))?;
    service.journal().keep_at_most(KEPT_REQUESTS);
    let server = crate::serve(listener, service).map_err(ProgramError::Serve)?;
    println!("{}", server.url());
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    drop(server);
    Ok(())
}
