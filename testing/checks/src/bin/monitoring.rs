//! `monitoring`: builds promtool, and writes the dashboard from the guide.

#![expect(clippy::print_stdout, reason = "a command-line program talks to its user")]

use anyhow::{Context as _, Result};
use bowline_checks::monitoring::{DASHBOARD, build, dashboard, questions, root};
use clap::Command;

fn main() -> Result<()> {
    let commands = Command::new("monitoring")
        .about("promtool, and the dashboard")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(Command::new("build").about("Build promtool, unless the cache has it"))
        .subcommand(Command::new("dashboard").about("Write the dashboard from the queries of the guide"));
    match commands.get_matches().subcommand_name() {
        Some("dashboard") => {
            let guide = std::fs::read_to_string(root().join("docs/guides/monitor.md"))?;
            let text = dashboard(&questions(&guide));
            std::fs::write(root().join(DASHBOARD), text)
                .with_context(|| format!("cannot write {DASHBOARD}"))?;
            println!("wrote {DASHBOARD}");
        }
        _ => {
            build()?;
        }
    }
    Ok(())
}
