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
    Command::new("demo")
        .about(
            "Runs a cluster and a cloud in one process and shows what the cloud controller manager does. \
             Ctrl-C ends it and leaves nothing behind.",
        )
        .arg(
            Arg::new("once")
                .long("once")
                .action(ArgAction::SetTrue)
                .help("Run a fixed story, check each point of it, and exit with 0 if all hold, else with 1"),
        )
        .arg(
            Arg::new("cloud")
                .long("cloud")
                .value_name("NAME")
                .value_parser(PossibleValuesParser::new(cloud::NAMES))
                .default_value(cloud::NAMES.first().copied().unwrap_or_default())
                .help("The simulated cloud"),
        )
        .arg(
            Arg::new("control-plane")
                .long("control-plane")
                .value_name("KIND")
                .value_parser(["embedded", "real"])
                .default_value("embedded")
                .help(
                    "The API server: in this process, or kube-apiserver and etcd (needs Go the first time)",
                ),
        )
        .arg(
            Arg::new("seed")
                .long("seed")
                .value_name("NUMBER")
                .value_parser(value_parser!(u64))
                .default_value("0")
                .help("Where ids come from: the same seed gives the same ids"),
        )
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS:PORT")
                .value_parser(value_parser!(SocketAddr))
                .default_value("127.0.0.1:0")
                .help("Where the embedded API server listens; port 0 takes a free one"),
        )
        .arg(
            Arg::new("open")
                .long("open")
                .action(ArgAction::SetTrue)
                .conflicts_with("once")
                .help("Open the demo's page in a browser; its address is printed in any case"),
        )
        .arg(
            Arg::new("logs")
                .long("logs")
                .action(ArgAction::SetTrue)
                .help("Show the manager's log on stderr"),
        )
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
