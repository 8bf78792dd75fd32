//! `cloud-controller-manager`: reads the command line and runs one command.

use std::process::ExitCode;

use bowline::args;
use bowline::commands::{self, Surroundings};

fn main() -> ExitCode {
    let line: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    ExitCode::from(commands::start(args::read(&line), Surroundings::of_process()))
}
