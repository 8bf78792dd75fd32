//! The embedded API server as a program: prints a kubeconfig and serves until interrupted.

use std::process::ExitCode;

use bowline_kube_api::{BoxError, DEFAULT_MINOR, KubeApi};
use tokio::net::TcpListener;

const USAGE: &str = "usage: embedded-kube-api [--listen 127.0.0.1:PORT] [--kubernetes-version 1.MINOR]";

#[derive(Debug, PartialEq)]
struct Args {
    listen: String,
    minor: u32,
}

impl Args {
    fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self {
            listen: "127.0.0.1:0".to_owned(),
            minor: DEFAULT_MINOR,
        };
        while let Some(arg) = args.next() {
            let (flag, inline) = match arg.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
                None => (arg, None),
            };
            let mut value = || {
                inline
                    .clone()
                    .or_else(|| args.next())
                    .ok_or(format!("{flag} needs a value"))
            };
            match flag.as_str() {
                "--listen" => parsed.listen = value()?,
                "--kubernetes-version" => {
                    let version = value()?;
                    let minor = version
                        .trim_start_matches('v')
                        .strip_prefix("1.")
                        .unwrap_or(&version);
                    let minor = minor.split('.').next().unwrap_or_default();
                    parsed.minor = minor
                        .parse()
                        .map_err(|_| format!("not a Kubernetes version: `{version}`"))?;
                }
                _ => return Err(format!("unknown flag: `{flag}`")),
            }
        }
        Ok(parsed)
    }
}

#[tokio::main]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "a program's output")]
async fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(problem) => {
            eprintln!("{problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let listen = args.listen.clone();
    match run(args, |kubeconfig| print!("{kubeconfig}")).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot serve at `{listen}`: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args, show: impl FnOnce(&str)) -> Result<(), BoxError> {
    let listener = TcpListener::bind(&args.listen).await?;
    let server = KubeApi::builder().version(args.minor).build().serve(listener)?;
    show(&KubeApi::kubeconfig(server.address()));
    tokio::signal::ctrl_c().await?;
    server.stop().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Args, String> {
        Args::parse(args.iter().map(|&arg| arg.to_owned()))
    }

    #[test]
    fn versions_are_read_with_and_without_prefix_and_patch() {
        for text in ["1.35", "v1.35", "1.35.2", "35"] {
            assert_eq!(
                parse(&["--kubernetes-version", text]).map(|args| args.minor),
                Ok(35),
                "{text}"
            );
        }
        assert!(parse(&["--kubernetes-version", "x"]).is_err());
        assert!(parse(&["--listen"]).is_err());
        assert!(parse(&["--port=1"]).is_err());
        assert_eq!(
            parse(&["--listen=127.0.0.1:80"]).map(|args| args.listen),
            Ok("127.0.0.1:80".to_owned())
        );
    }
}
