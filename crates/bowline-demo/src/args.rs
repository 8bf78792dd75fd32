//! The demo's own command line.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::cloud;

/// Which API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In this process.
    Embedded,
    /// kube-apiserver and etcd, built from their published modules.
    Real,
}

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Args {
    /// Run the fixed story and exit.
    pub once: bool,
    /// The cloud's name.
    pub cloud: String,
    /// Which API server.
    pub control_plane: Kind,
    /// Where ids come from.
    pub seed: u64,
    /// Where the embedded API server listens.
    pub listen: SocketAddr,
    /// Open the page in a browser.
    pub open: bool,
    /// Show the manager's log on stderr.
    pub logs: bool,
}

impl Args {
    /// Reads a command line, the program's name first.
    ///
    /// # Errors
    ///
    /// What is wrong with it; also `--help`.
    pub fn parse(line: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        command().try_get_matches_from(line).map(|matches| Self {
            once: matches.get_flag("once"),
            cloud: text(&matches, "cloud"),
            control_plane: match text(&matches, "control-plane").as_str() {
                "real" => Kind::Real,
                _ => Kind::Embedded,
            },
            seed: matches.get_one("seed").copied().unwrap_or_default(),
            listen: matches
                .get_one("listen")
                .copied()
                .unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            open: matches.get_flag("open"),
            logs: matches.get_flag("logs"),
        })
    }
}

fn text(matches: &ArgMatches, name: &str) -> String {
    matches.get_one::<String>(name).cloned().unwrap_or_default()
}

fn command() -> Command {
    let clouds = PossibleValuesParser::new(cloud::NAMES);
    let first = cloud::NAMES.first().copied().unwrap_or_default();
    Command::new("demo")
        .about(
            "Runs a cluster and a cloud in one process and shows what the cloud controller manager does. \
             Ctrl-C ends it and leaves nothing behind.",
        )
        .args([
            switch(
                "once",
                "Run a fixed story, check each point of it, and exit with 0 if all hold, else with 1",
            ),
            value("cloud", "NAME", first, "The simulated cloud").value_parser(clouds),
            value(
                "control-plane",
                "KIND",
                "embedded",
                "The API server: in this process, or kube-apiserver and etcd (needs Go the first time)",
            )
            .value_parser(["embedded", "real"]),
            value(
                "seed",
                "NUMBER",
                "0",
                "Where ids come from: the same seed gives the same ids",
            )
            .value_parser(value_parser!(u64)),
            value(
                "listen",
                "ADDRESS:PORT",
                "127.0.0.1:0",
                "Where the embedded API server listens; port 0 takes a free one",
            )
            .value_parser(value_parser!(SocketAddr)),
            switch(
                "open",
                "Open the demo's page in a browser; its address is printed in any case",
            )
            .conflicts_with("once"),
            switch("logs", "Show the manager's log on stderr"),
        ])
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn value(name: &'static str, what: &'static str, default: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(what)
        .default_value(default)
        .help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Args, clap::Error> {
        Args::parse(["demo"].iter().chain(words))
    }

    #[test]
    fn without_flags_it_is_the_first_cloud_on_the_embedded_server() {
        let args = parse(&[]).unwrap();
        assert_eq!(args.cloud, cloud::NAMES[0]);
        assert_eq!((args.control_plane, args.once), (Kind::Embedded, false));
        assert_eq!(args.listen.port(), 0);
    }

    #[test]
    fn a_wrong_flag_is_status_2_and_help_is_0() {
        for words in [
            &["--twice"][..],
            &["--cloud", "fog"],
            &["--listen", "here"],
            &["extra"],
            // The fixed story has no page.
            &["--once", "--open"],
        ] {
            assert_eq!(parse(words).unwrap_err().exit_code(), 2, "{words:?}");
        }
        assert_eq!(parse(&["--help"]).unwrap_err().exit_code(), 0);
        assert_eq!(
            parse(&["--control-plane=real"]).unwrap().control_plane,
            Kind::Real
        );
    }
}
