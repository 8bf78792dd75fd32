//! The command line: one table of flags, and what becomes of it.

mod configz;
pub mod features;
mod flag;
mod help;
mod options;
mod parse;
mod quantity;
mod serving;
mod table;
mod validate;
mod value;

use bowline_cloud_provider::ServiceKey;

pub use flag::{Flag, Group, Status};
pub use options::{
    ApiServerOptions, LoggingFormat, LoggingOptions, Options, Pace, ProviderOptions, SplitStream,
};
pub use table::{PLAN, flag_table};
pub use value::Kind;

use crate::version::Version;

/// What the command line asks for.
#[derive(Debug, Clone)]
pub enum Invocation {
    /// Run the manager.
    Run(Box<Options>),
    /// Print what would be done for Services.
    Plan(Box<Options>, PlanOptions),
    /// Print this text on stdout; nothing else is to be done.
    Print(String),
    /// The command line is wrong.
    Wrong {
        /// What is wrong, one text for each fault.
        errors: Vec<String>,
        /// How the program is called; empty if the errors say enough.
        usage: String,
    },
}

/// What the word `plan` takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanOptions {
    /// Only these Services; empty for all.
    pub services: Vec<ServiceKey>,
    /// The form of the output.
    pub output: PlanOutput,
    /// Whether the log is wanted on stderr, because a flag says how much of it.
    pub has_log: bool,
}

/// The form of a printed plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanOutput {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Binaries of Go managers and the provider that each of them has built in.
const NAMES: &[(&str, &str)] = &[
    ("cloudscale-cloud-controller-manager", "cloudscale"),
    ("cloud-provider-phoenixnap", "phoenixnap"),
    ("cloudstack-ccm", "external-cloudstack"),
    ("openstack-cloud-controller-manager", "openstack"),
];

const PROGRAM: &str = "cloud-controller-manager";

/// Reads a whole command line, the program's name first.
///
/// The program may be named once more by the first argument, as in OpenStack's manifest: the image of its Go manager
/// has no entry point, so the program stands among the container's `args`. That name is the one that counts.
#[must_use]
pub fn read(line: &[String]) -> Invocation {
    let words = line.get(1..).unwrap_or_default();
    let (called, words) = match words.split_first() {
        Some((word, rest)) if is_program(word) => (word.as_str(), rest),
        _ => (line.first().map_or(PROGRAM, String::as_str), words),
    };
    let called = file_name(called);
    let preset = built_in(called);
    let program = if preset.is_some() { called } else { PROGRAM };
    match words.split_first() {
        Some((word, rest)) if word == "plan" => command(Word::Plan, program, preset, rest),
        _ => command(Word::Run, program, preset, words),
    }
}

/// Whether a word is the path or the name of the program. The value of a flag may end like one.
fn is_program(word: &str) -> bool {
    let name = file_name(word);
    !word.starts_with('-') && (name == PROGRAM || built_in(name).is_some())
}

fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The provider that the Go manager of this name has built in.
fn built_in(program: &str) -> Option<&'static str> {
    NAMES
        .iter()
        .find(|(name, _)| *name == program)
        .map(|(_, provider)| *provider)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Run,
    Plan,
}

fn command(word: Word, program: &str, preset: Option<&str>, words: &[String]) -> Invocation {
    let mut groups: Vec<&Group> = Vec::new();
    if word == Word::Plan {
        groups.push(&PLAN);
    }
    groups.extend(flag_table());
    let mut flags = match parse::parse(&groups, words) {
        Ok(flags) => flags,
        Err(error) => {
            return Invocation::Wrong {
                errors: vec![error],
                usage: hint(word, program),
            };
        }
    };
    if flags.switch("help") {
        return Invocation::Print(format!("{}{}", about(word, program), help::groups(&groups)));
    }
    let version = match flags.text("version").as_str() {
        "" | "false" => Ok(Version::current()),
        "true" => return Invocation::Print(format!("{}\n", Version::current().line(program))),
        "raw" => return Invocation::Print(format!("{}\n", Version::current().raw())),
        text => Version::current().reported_as(text),
    };
    if let Some(provider) = preset {
        flags.preset("cloud-provider", provider);
    }
    let mut errors = Vec::new();
    let version = version.unwrap_or_else(|error| {
        errors.push(error);
        Version::current()
    });
    let options = options::resolve(&flags, program, version, &mut errors);
    let plan = (word == Word::Plan).then(|| plan_options(&flags, &mut errors));
    match (options, plan) {
        _ if !errors.is_empty() => Invocation::Wrong {
            errors,
            usage: String::new(),
        },
        (options, Some(plan)) => Invocation::Plan(Box::new(options), plan),
        (options, None) => Invocation::Run(Box::new(options)),
    }
}

fn plan_options(flags: &parse::Flags, errors: &mut Vec<String>) -> PlanOptions {
    let mut services = Vec::new();
    for text in flags.list("service") {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                services.push(ServiceKey::new(namespace, name));
            }
            _ => errors.push(format!("--service must be namespace/name, got {text:?}")),
        }
    }
    let output = match flags.text("output").as_str() {
        "text" => PlanOutput::Text,
        "json" => PlanOutput::Json,
        other => {
            errors.push(format!("--output must be text or json, got {other:?}"));
            PlanOutput::Text
        }
    };
    let has_log = flags.is_given("v") || flags.is_given("vmodule");
    PlanOptions {
        services,
        output,
        has_log,
    }
}

fn about(word: Word, program: &str) -> String {
    let text = match word {
        Word::Run => {
            "The cloud controller manager ties a Kubernetes cluster to its cloud: it initialises\n\
             Nodes, removes those whose instances are gone, and keeps load balancers for Services.\n"
        }
        Word::Plan => {
            "Prints what would be done for the load balancers of Services, and changes nothing.\n\
             Takes the flags of the manager as well, so that they are read from one place.\n\
             Without --kubeconfig and --master, the kubeconfig is the one of $KUBECONFIG.\n\n\
             The plan goes to stdout; warnings and errors go to stderr, with -v the log, too.\n\n\
             Exit status: 0 nothing to do; 2 changes, or a cloud that is busy; 1 a plan could not\n\
             be made, or something has to be changed by a person first.\n"
        }
    };
    format!("{text}\n{}", usage(word, program))
}

fn usage(word: Word, program: &str) -> String {
    match word {
        Word::Run => format!("Usage:\n  {program} [flags]\n  {program} plan [flags]\n"),
        Word::Plan => format!("Usage:\n  {program} plan [flags]\n"),
    }
}

/// What is said after a fault of the command line.
fn hint(word: Word, program: &str) -> String {
    let help = match word {
        Word::Run => format!("{program} --help"),
        Word::Plan => format!("{program} plan --help"),
    };
    format!("{}\nUse \"{help}\" for all flags.\n", usage(word, program))
}

#[cfg(test)]
mod tests;
