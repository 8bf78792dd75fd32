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

use std::path::PathBuf;

use bowline_cloud_provider::{NodeName, ServiceKey};
use bowline_manager::doctor::Target;

pub use flag::{Flag, Group, Status};
pub use options::{
    ApiServerOptions, LoggingFormat, LoggingOptions, Options, Pace, ProviderOptions, SplitStream,
};
pub use table::{DOCTOR, EXPLAIN, PLAN, flag_table};
pub use value::Kind;

use crate::version::Version;

/// What the command line asks for.
#[derive(Debug, Clone)]
pub enum Invocation {
    /// Run the manager.
    Run(Box<Options>),
    /// Print what would be done for Services.
    Plan(Box<Options>, PlanOptions),
    /// Print what keeps the manager from its work.
    Doctor(Box<Options>, DoctorOptions),
    /// Print why objects are as they are.
    Explain(Box<Options>, ExplainOptions),
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
    /// Files with Services that are not applied yet.
    pub files: Vec<PathBuf>,
    /// The form of the output.
    pub output: OutputForm,
    /// Whether the log is wanted on stderr, because a flag says how much of it.
    pub has_log: bool,
}

/// What the word `doctor` takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorOptions {
    /// The form of the output.
    pub output: OutputForm,
    /// Whether the log is wanted on stderr, because a flag says how much of it.
    pub has_log: bool,
}

/// What the word `explain` takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainOptions {
    /// What is asked about: at least one, or a file.
    pub targets: Vec<Target>,
    /// Files with Services that are not applied yet.
    pub files: Vec<PathBuf>,
    /// The namespace of what names none.
    pub namespace: String,
    /// The form of the output.
    pub output: OutputForm,
    /// Whether the log is wanted on stderr, because a flag says how much of it.
    pub has_log: bool,
}

/// The form of what a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputForm {
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
    let named = words.split_first();
    match named.and_then(|(word, rest)| Some((Word::named(word)?, rest))) {
        Some((word, rest)) => command(word, program, preset, rest),
        None => command(Word::Run, program, preset, words),
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
    Doctor,
    Explain,
}

impl Word {
    /// The command of this name.
    fn named(word: &str) -> Option<Self> {
        match word {
            "plan" => Some(Self::Plan),
            "doctor" => Some(Self::Doctor),
            "explain" => Some(Self::Explain),
            _ => None,
        }
    }

    /// What stands behind the program's name.
    fn suffix(self) -> &'static str {
        match self {
            Self::Run => "",
            Self::Plan => " plan",
            Self::Doctor => " doctor",
            Self::Explain => " explain",
        }
    }
}

fn command(word: Word, program: &str, preset: Option<&str>, words: &[String]) -> Invocation {
    let mut groups: Vec<&Group> = Vec::new();
    match word {
        Word::Run => {}
        Word::Plan => groups.push(&PLAN),
        Word::Doctor => groups.push(&DOCTOR),
        Word::Explain => groups.push(&EXPLAIN),
    }
    groups.extend(flag_table());
    let mut flags = match parse::parse(&groups, words, word == Word::Explain) {
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
    let options = Box::new(options::resolve(&flags, program, version, &mut errors));
    let invocation = match word {
        Word::Run => Invocation::Run(options),
        Word::Plan => Invocation::Plan(options, plan_options(&flags, &mut errors)),
        Word::Doctor => Invocation::Doctor(
            options,
            DoctorOptions {
                output: output(&flags, &mut errors),
                has_log: has_log(&flags),
            },
        ),
        Word::Explain => Invocation::Explain(
            options,
            ExplainOptions {
                targets: targets(&flags, &mut errors),
                files: files(&flags),
                namespace: flags.text("namespace"),
                output: output(&flags, &mut errors),
                has_log: has_log(&flags),
            },
        ),
    };
    if errors.is_empty() {
        return invocation;
    }
    Invocation::Wrong {
        errors,
        usage: String::new(),
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
    PlanOptions {
        services,
        files: files(flags),
        output: output(flags, errors),
        has_log: has_log(flags),
    }
}

/// The objects that are named: `service/NAME`, `service/NAMESPACE/NAME`, `node/NAME`.
fn targets(flags: &parse::Flags, errors: &mut Vec<String>) -> Vec<Target> {
    const FORMS: &str = "service/NAMESPACE/NAME, service/NAME with -n NAMESPACE, or node/NAME";
    let namespace = flags.text("namespace");
    let mut targets = Vec::new();
    for text in flags.objects() {
        let parts: Vec<&str> = text.split('/').collect();
        match *parts {
            _ if parts.contains(&"") => {}
            ["service" | "services" | "svc", name] => {
                targets.push(Target::Service(ServiceKey::new(&*namespace, name)));
                continue;
            }
            ["service" | "services" | "svc", namespace, name] => {
                targets.push(Target::Service(ServiceKey::new(namespace, name)));
                continue;
            }
            ["node" | "nodes" | "no", name] => {
                targets.push(Target::Node(NodeName::new(name)));
                continue;
            }
            _ => {}
        }
        errors.push(format!("an object must be {FORMS}, got {text:?}"));
    }
    if targets.is_empty() && errors.is_empty() && files(flags).is_empty() {
        errors.push(format!("say what to explain: {FORMS}"));
    }
    targets
}

fn files(flags: &parse::Flags) -> Vec<PathBuf> {
    flags.list("filename").into_iter().map(PathBuf::from).collect()
}

fn output(flags: &parse::Flags, errors: &mut Vec<String>) -> OutputForm {
    match flags.text("output").as_str() {
        "text" => OutputForm::Text,
        "json" => OutputForm::Json,
        other => {
            errors.push(format!("--output must be text or json, got {other:?}"));
            OutputForm::Text
        }
    }
}

fn has_log(flags: &parse::Flags) -> bool {
    flags.is_given("v") || flags.is_given("vmodule")
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
        Word::Doctor => {
            "Finds out why the manager does not do its work, and changes nothing: configuration,\n\
             API server and permissions, cloud, Nodes, Services.\n\
             Takes the flags of the manager as well, so that they are read from one place.\n\
             Without --kubeconfig and --master, the kubeconfig is the one of $KUBECONFIG.\n\n\
             The checks go to stdout; warnings and errors go to stderr, with -v the log, too.\n\n\
             Exit status: 0 nothing is wrong; 2 there are warnings; 1 a check failed, or the\n\
             command line is wrong.\n"
        }
        Word::Explain => {
            "Says of a Service or a Node how it is, how it should be, why it is not so, who has to\n\
             do what, and what happens next. Changes nothing.\n\
             Takes the flags of the manager as well, so that they are read from one place.\n\
             Without --kubeconfig and --master, the kubeconfig is the one of $KUBECONFIG.\n\n\
             Exit status: 0 nothing is wrong; 2 something is to be done, or under way; 1 an object\n\
             is in trouble, or nothing could be found out.\n"
        }
    };
    format!("{text}\n{}", usage(word, program))
}

fn usage(word: Word, program: &str) -> String {
    match word {
        Word::Run => {
            format!(
                "Usage:\n  {program} [flags]\n  {program} plan [flags]\n  {program} doctor [flags]\n  {program} explain OBJECT [flags]\n"
            )
        }
        Word::Explain => format!(
            "Usage:\n  {program} explain service/NAMESPACE/NAME [flags]\n  {program} explain service/NAME -n NAMESPACE [flags]\n  \
             {program} explain node/NAME [flags]\n"
        ),
        word => format!("Usage:\n  {program}{} [flags]\n", word.suffix()),
    }
}

/// What is said after a fault of the command line.
fn hint(word: Word, program: &str) -> String {
    let help = format!("{program}{} --help", word.suffix());
    format!("{}\nUse \"{help}\" for all flags.\n", usage(word, program))
}

#[cfg(test)]
mod tests;
