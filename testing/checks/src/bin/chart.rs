//! `chart`: builds Helm, runs it, and writes the plain manifests from the chart.

#![expect(clippy::print_stdout, reason = "a command-line program talks to its user")]

use anyhow::{Context, Result};
use bowline_checks::chart::{build, chart, manifests, root, with_flags};
use clap::{Arg, Command};

fn main() -> Result<()> {
    let matches = command().get_matches();
    let helm = build()?;
    match matches.subcommand() {
        Some(("manifests", _)) => {
            let path = chart().join("values.schema.json");
            let schema = std::fs::read_to_string(&path).context("cannot read values.schema.json")?;
            std::fs::write(&path, with_flags(&schema)).context("cannot write values.schema.json")?;
            for plain in manifests(&helm)? {
                let path = root().join(plain.path);
                if std::fs::read_to_string(&path).is_ok_and(|present| present == plain.text) {
                    continue;
                }
                std::fs::write(&path, plain.text).with_context(|| format!("cannot write {}", plain.path))?;
                println!("manifests: wrote {}", plain.path);
            }
        }
        Some(("helm", arguments)) => {
            let words: Vec<&str> = arguments
                .get_many::<String>("words")
                .unwrap_or_default()
                .map(String::as_str)
                .collect();
            print!("{}", helm.run(&words)?);
        }
        _ => println!("{}", helm.run(&["version", "--short"])?.trim()),
    }
    Ok(())
}

fn command() -> Command {
    Command::new("chart")
        .about("The chart, and the real Helm to render it with")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Command::new("build").about("Build Helm, unless the cache has it"))
        .subcommand(Command::new("manifests").about("Write the plain manifests that come out of the chart"))
        .subcommand(
            Command::new("helm").about("Run Helm with these words").arg(
                Arg::new("words")
                    .value_name("WORDS")
                    .num_args(0..)
                    .trailing_var_arg(true)
                    .allow_hyphen_values(true),
            ),
        )
}
