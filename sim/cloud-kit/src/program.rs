//! What the simulators' programs have in common: their first options, and a life from the base URL to a signal.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::clock::Clock;
use crate::service::CloudService;
use crate::simulator::Settings;

/// Some megabytes: enough to look back, and no leak.
const KEPT_REQUESTS: usize = 10_000;

/// The options of a simulator's program as a table: name, unit, value without it, help. A unit such as `on|off` is a choice;
/// an option without a value to begin with may come several times.
#[macro_export]
macro_rules! options {
    ($command:expr; $($name:literal $unit:literal $(= $default:literal)?: $help:literal;)+) => {
        $command $(.arg($crate::program::option($name, $unit, &[$($default)?], $help)))+
    };
}

/// A program with `--listen`, `--seed`, `--latency` and `--servers`.
pub fn command(name: &'static str) -> Command {
    crate::options! {
        Command::new(name);
        "listen" "ADDRESS:PORT" = "127.0.0.1:0": "Where to listen; port 0 takes a free one";
        "seed" "NUMBER" = "0": "Where ids come from: the same seed gives the same ids";
        "latency" "MILLISECONDS" = "0": "Time before each request is carried out";
        "servers" "NUMBER" = "0": "Servers to begin with, named node-1 and so on";
    }
}

/// An option that takes a value.
pub fn option(
    name: &'static str,
    unit: &'static str,
    default: &'static [&'static str],
    help: &'static str,
) -> Arg {
    let option = Arg::new(name).long(name).value_name(unit).help(help);
    let option = match unit {
        "ADDRESS:PORT" => option.value_parser(value_parser!(SocketAddr)),
        "NUMBER" | "SECONDS" | "MILLISECONDS" => option.value_parser(value_parser!(u64)),
        choice if choice.contains('|') => option.value_parser(PossibleValuesParser::new(choice.split('|'))),
        _ => option,
    };
    match default.first() {
        Some(default) => option.default_value(*default),
        None => option.action(ArgAction::Append),
    }
}

/// The values of a program's options.
#[derive(Debug)]
pub struct Arguments(ArgMatches);

impl Arguments {
    /// Reads the command line of this process, or ends it with what is wrong.
    pub fn read(command: Command) -> Self {
        Self(command.get_matches())
    }

    /// The values of an option that are of a type of its own.
    pub fn all<T: Clone + Send + Sync + 'static>(&self, name: &str) -> impl Iterator<Item = &T> {
        self.0.get_many(name).unwrap_or_default()
    }

    /// The values of an option.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.all::<String>(name).map(String::as_str)
    }

    /// The first value of an option.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.texts(name).next()
    }

    /// The same; empty if there is none.
    pub fn text(&self, name: &str) -> &str {
        self.first(name).unwrap_or_default()
    }

    /// A number.
    pub fn number(&self, name: &str) -> u64 {
        self.all(name).copied().next().unwrap_or_default()
    }

    /// A time that is given in seconds.
    pub fn seconds(&self, name: &str) -> Duration {
        Duration::from_secs(self.number(name))
    }

    /// A time that is given in milliseconds.
    pub fn millis(&self, name: &str) -> Duration {
        Duration::from_millis(self.number(name))
    }

    /// Who may call and the secret, with a colon between them. The error does not repeat them.
    ///
    /// # Errors
    ///
    /// If a part is missing.
    pub fn logins(&self, name: &'static str) -> Result<Vec<(&str, &str)>, ProgramError> {
        let whole = self.texts(name).map(|text| {
            let halves = text.split_once(':');
            let halves = halves.filter(|(who, secret)| !who.is_empty() && !secret.is_empty());
            halves.ok_or(ProgramError::Login(name))
        });
        whole.collect()
    }

    /// What they say about the simulator itself, whose clock is the operating system's.
    pub fn settings(&self) -> Settings {
        Settings {
            seed: self.number("seed"),
            clock: Some(Clock::system()),
            latency: self.millis("latency"),
            data_plane: self.text("data-plane") == "on",
        }
    }

    /// The names of the servers to begin with.
    pub fn servers(&self) -> impl Iterator<Item = String> {
        (1..=self.number("servers")).map(|number| format!("node-{number}"))
    }

    /// Prints the base URL as the only line, then serves until SIGTERM or SIGINT. The journal forgets old requests.
    ///
    /// # Errors
    ///
    /// If it cannot listen or cannot wait for signals.
    pub async fn serve(&self, service: CloudService) -> Result<(), ProgramError> {
        let listen = self.all("listen").copied().next();
        run(
            service,
            listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0))),
        )
        .await
    }
}

/// Why a simulator's program ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// An option that holds no login.
    #[error("--{0}: expected who logs in and the secret, with a colon between them")]
    Login(&'static str),
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

#[expect(clippy::print_stdout, reason = "the base URL is what the program answers")]
async fn run(service: CloudService, listen: SocketAddr) -> Result<(), ProgramError> {
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
