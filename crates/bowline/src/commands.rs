//! The commands: one function each, from plain options to an exit status.

mod bundle;
mod connect;
mod doctor;
mod explain;
mod orphans;
mod plan;
mod reading;
mod run;
mod taken;
mod terminal;
mod traffic;

use std::io::Write as _;

use bowline_cloud_provider::Environment;
use bowline_manager::Identity;

use crate::args::Invocation;
use crate::providers::Copied;

pub use bundle::support_bundle;
pub use doctor::{TOPICS as DOCTOR_TOPICS, checks as doctor_checks, doctor};
pub use explain::explain;
pub use orphans::orphans;
pub use plan::{plan, plan_reports};
pub use run::{run, run_until};
pub use traffic::check_traffic;

/// Exit statuses, which scripts and supervisors go by.
pub mod exit {
    /// All went well.
    pub const SUCCESS: u8 = 0;
    /// A wrong command line or kubeconfig, a port in use, a lost lease, a second signal; a plan that cannot be made; a check of
    /// `doctor` that failed; an object that `explain` finds in trouble.
    pub const FAILURE: u8 = 1;
    /// The program panicked: a defect, and nothing was tidied up. Also [`TO_DO`].
    pub const PANIC: u8 = 2;
    /// A plan has changes; a check is a warning, or skipped by `check traffic`; something is to be done about an object; there are
    /// orphans.
    pub const TO_DO: u8 = 2;
    /// The provider cannot be built, or a controller ended.
    pub const FATAL: u8 = 255;
}

/// What the process is surrounded by: read once, at its edge.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The environment variables.
    pub environment: Environment,
    /// Who this process is.
    pub identity: Identity,
    /// A number that differs from process to process.
    pub seed: u64,
    /// Configuration files that were taken from a deployed manager.
    pub copies: Vec<Copied>,
    /// What could not be taken from it.
    pub untaken: Untaken,
}

/// What a command could not take from the manager that is deployed.
#[derive(Debug, Clone, Default)]
pub struct Untaken {
    /// Why nothing is known of the cloud.
    pub all: Option<String>,
    /// Whether that is a fault of the manifest, and not only that the API server does not answer or no manager is deployed.
    pub is_fault: bool,
    /// Whether something is lacking because whoever asks may not read it.
    pub is_hidden: bool,
    /// What else is lacking, a line for each.
    pub lines: Vec<String>,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Self {
        let variables = std::env::vars_os().map(|(name, value)| {
            (
                name.to_string_lossy().into_owned(),
                value.to_string_lossy().into_owned(),
            )
        });
        let random = uuid::Uuid::new_v4();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self {
            environment: variables.collect(),
            identity: Identity::new(host, &random.to_string()),
            seed: random.as_u64_pair().0,
            copies: Vec::new(),
            untaken: Untaken::default(),
        }
    }
}

/// Runs what the command line asks for; gives the exit status.
pub fn start(invocation: Invocation, surroundings: Surroundings) -> u8 {
    match invocation {
        Invocation::Run(options) => run(*options, surroundings),
        Invocation::Plan(options, of_plan) => plan(*options, &of_plan, surroundings),
        Invocation::Doctor(options, of_doctor) => doctor(*options, &of_doctor, surroundings),
        Invocation::Explain(options, of_explain) => explain(*options, &of_explain, surroundings),
        Invocation::Orphans(options, of_orphans) => orphans(*options, &of_orphans, surroundings),
        Invocation::CheckTraffic(options, of_traffic) => check_traffic(*options, of_traffic, surroundings),
        Invocation::SupportBundle(options, of_bundle) => support_bundle(*options, &of_bundle, surroundings),
        Invocation::Unsaid(unsaid) => taken::with_deployed(*unsaid, surroundings),
        Invocation::Print(text) => print(&text),
        Invocation::Wrong { errors, usage } => complain(&errors, &usage),
    }
}

/// Prints a text on stdout.
pub fn print(text: &str) -> u8 {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => exit::SUCCESS,
        // Whoever asked went away, as `head` does.
        Err(_) => exit::FAILURE,
    }
}

/// Prints what a command has found; gives the exit status that it comes with.
fn show(text: &str, status: u8) -> u8 {
    match print(text) {
        exit::SUCCESS => status,
        failure => failure,
    }
}

/// Says on stderr what is wrong with the command line.
pub fn complain(errors: &[String], usage: &str) -> u8 {
    let mut text = String::new();
    for error in errors {
        text.push_str("Error: ");
        text.push_str(error);
        text.push('\n');
    }
    text.push_str(usage);
    // Nobody is left to tell if stderr is gone.
    let _ = std::io::stderr().write_all(text.as_bytes());
    exit::FAILURE
}
