//! `cloud-controller-manager`: reads the command line and runs one command.

use std::process::ExitCode;

use bowline::args::{self, Invocation};
use bowline::commands::{self, Surroundings};

fn main() -> ExitCode {
    let line: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let code = match args::read(&line) {
        Invocation::Run(options) => commands::run(*options, Surroundings::of_process()),
        Invocation::Plan(options, plan) => commands::plan(*options, &plan, Surroundings::of_process()),
        Invocation::Doctor(options, doctor) => {
            commands::doctor(*options, &doctor, Surroundings::of_process())
        }
        Invocation::Explain(options, explain) => {
            commands::explain(*options, &explain, Surroundings::of_process())
        }
        Invocation::Orphans(options, orphans) => {
            commands::orphans(*options, &orphans, Surroundings::of_process())
        }
        Invocation::Print(text) => commands::print(&text),
        Invocation::Wrong { errors, usage } => commands::complain(&errors, &usage),
    };
    ExitCode::from(code)
}
