//! The command line: one table of flags, and what becomes of it.

mod clouds;
mod completion;
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
mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bowline_cloud_provider::{NodeName, ServiceKey};
use bowline_manager::doctor::Target;
use bowline_manager::traffic::Wanted;

pub use clouds::CloudOptions;
pub use flag::{Flag, Group, Status};
pub use options::{
    ApiServerOptions, Beside, LoggingFormat, LoggingOptions, Options, Pace, ProviderOptions, SplitStream,
};
pub use table::{CHECK, DOCTOR, EXPLAIN, ORPHANS, PLAN, SUPPORT_BUNDLE, VERSION, flag_table};
pub use value::Kind;

use words::{PLUGIN, Word};

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
    /// Print what nobody asks for any more in the cloud, and perhaps delete it.
    Orphans(Box<Options>, OrphansOptions),
    /// Try whether traffic comes through.
    CheckTraffic(Box<Options>, TrafficOptions),
    /// Collect what a bug report needs.
    SupportBundle(Box<Options>, BundleOptions),
    /// A command without a word about which cloud is meant: the deployed manager knows.
    Unsaid(Box<Unsaid>),
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
    /// Whether it is looked at what has to be so before a manager is installed.
    pub is_before: bool,
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

/// What the word `orphans` takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphansOptions {
    /// Whether they are deleted.
    pub deletes: bool,
    /// Whether nobody has to be asked.
    pub is_sure: bool,
    /// Whether the cluster is gone, so that no API server is asked.
    pub is_gone: bool,
    /// The UID of a cluster that is gone.
    pub cluster_uid: Option<String>,
    /// Whether the command line gives the name of the cluster.
    pub names_cluster: bool,
    /// The form of the output.
    pub output: OutputForm,
    /// Whether the log is wanted on stderr, because a flag says how much of it.
    pub has_log: bool,
}

/// What the words `check traffic` take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrafficOptions {
    /// What is made.
    pub wanted: Wanted,
    /// How long each step may take.
    pub patience: Duration,
    /// Whether nobody has to be asked.
    pub is_sure: bool,
    /// The form of the output.
    pub output: OutputForm,
    /// Whether the log is wanted on stderr, because a flag says how much of it.
    pub has_log: bool,
}

/// What the word `support-bundle` takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleOptions {
    /// Where the archive is written.
    pub file: Option<PathBuf>,
    /// Whether the log is wanted on stderr, because a flag says how much of it.
    pub has_log: bool,
}

/// A command without a word about which cloud is meant.
#[derive(Debug, Clone)]
pub struct Unsaid {
    /// The program's name.
    pub program: String,
    /// The command.
    pub word: &'static str,
    /// What stands behind it.
    pub words: Vec<String>,
    /// All that is said, without a cloud.
    pub options: Options,
    /// What is asked for, without a cloud.
    pub invocation: Invocation,
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

/// The cloud of a command line that names none.
pub(crate) const UNSAID: &str = "unsaid";

/// How people call the plugin.
const PLUGIN_CALLED: &str = "kubectl bowline";

/// Reads a whole command line, the program's name first.
///
/// The program may be named once more by the first argument, as in OpenStack's manifest: the image of its Go manager
/// has no entry point, so the program stands among the container's `args`. That name is the one that counts.
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
        Some((word, rest)) if called == PLUGIN => command(word, PLUGIN_CALLED, preset, rest),
        Some((word, rest)) => command(word, program, preset, rest),
        None if called == PLUGIN => command(Word::Help, PLUGIN_CALLED, preset, words),
        None => command(Word::Run, program, preset, words),
    }
}

/// Whether a word is the path or the name of the program. The value of a flag may end like one.
pub(crate) fn is_program(word: &str) -> bool {
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

fn command(word: Word, program: &str, preset: Option<&str>, words: &[String]) -> Invocation {
    let mut groups: Vec<&Group> = word.group().into_iter().collect();
    groups.extend(flag_table());
    let wrong = |error| Invocation::Wrong {
        errors: vec![error],
        usage: words::hint(word, program),
    };
    let mut flags = match parse::parse(&groups, words, word.takes_objects()) {
        Ok(flags) => flags,
        Err(error) => return wrong(error),
    };
    if flags.switch("help-all") {
        return Invocation::Print(words::long(word, program, &groups));
    }
    if flags.switch("help") {
        return Invocation::Print(words::short(word, program));
    }
    match word {
        Word::Help => return help_of(program, flags.objects()).unwrap_or_else(wrong),
        Word::Completion => {
            return match flags.objects() {
                [shell] => completion::script(shell).map(Invocation::Print),
                _ => None,
            }
            .unwrap_or_else(|| wrong("say for which shell: bash, zsh or fish".to_owned()));
        }
        _ => {}
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
    let is_unsaid = word.takes_flags_of_manager()
        && word != Word::Run
        && flags.text("cloud-provider").is_empty()
        && !flags.is_given("cloud-provider");
    if is_unsaid {
        flags.preset("cloud-provider", UNSAID);
    }
    let mut errors = Vec::new();
    let version = version.unwrap_or_else(|error| {
        errors.push(error);
        Version::current()
    });
    if word == Word::Version && errors.is_empty() {
        let text = match output(&flags, &mut errors) {
            OutputForm::Text => version.lines(program),
            OutputForm::Json => version.json(),
        };
        if errors.is_empty() {
            return Invocation::Print(text);
        }
    }
    let options = Box::new(options::resolve(&flags, program, version, &mut errors));
    let said = (*options).clone();
    let invocation = match word {
        Word::SupportBundle => Invocation::SupportBundle(
            options,
            BundleOptions {
                file: Some(PathBuf::from(flags.text("file"))).filter(|file| !file.as_os_str().is_empty()),
                has_log: has_log(&flags),
            },
        ),
        Word::Run | Word::Version | Word::Completion | Word::Help => Invocation::Run(options),
        Word::Orphans => Invocation::Orphans(options, orphans_options(&flags, &mut errors)),
        Word::Check => Invocation::CheckTraffic(options, traffic_options(&flags, &mut errors)),
        Word::Plan => Invocation::Plan(options, plan_options(&flags, &mut errors)),
        Word::Doctor => Invocation::Doctor(
            options,
            DoctorOptions {
                is_before: flags.switch("pre"),
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
    if errors.is_empty() && is_unsaid {
        let program = if preset.is_none() && program == PLUGIN_CALLED {
            PLUGIN
        } else {
            program
        };
        return Invocation::Unsaid(Box::new(Unsaid {
            program: program.to_owned(),
            word: word.name(),
            words: words.to_vec(),
            options: said,
            invocation,
            has_log: has_log(&flags),
        }));
    }
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

fn orphans_options(flags: &parse::Flags, errors: &mut Vec<String>) -> OrphansOptions {
    let orphans = OrphansOptions {
        deletes: flags.switch("delete"),
        is_sure: flags.switch("yes"),
        is_gone: flags.switch("gone"),
        cluster_uid: Some(flags.text("cluster-uid")).filter(|uid| !uid.is_empty()),
        names_cluster: flags.is_given("cluster-name"),
        output: output(flags, errors),
        has_log: has_log(flags),
    };
    if orphans.is_sure && !orphans.deletes {
        errors.push("--yes answers the question of --delete, which is not given".to_owned());
    }
    orphans
}

fn traffic_options(flags: &parse::Flags, errors: &mut Vec<String>) -> TrafficOptions {
    if !matches!(flags.objects(), [what] if what == "traffic") {
        errors.push("say what to check: traffic".to_owned());
    }
    let mut annotations = BTreeMap::new();
    for text in flags.list("annotation") {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => {
                annotations.insert(key.to_owned(), value.to_owned());
            }
            _ => errors.push(format!("--annotation must be KEY=VALUE, got {text:?}")),
        }
    }
    let port = u16::try_from(flags.int("port")).unwrap_or_default();
    if port == 0 {
        errors.push(format!(
            "--port must be from 1 to 65535, got {}",
            flags.int("port")
        ));
    }
    let patience = Duration::try_from(flags.duration("timeout")).unwrap_or_default();
    if patience.is_zero() {
        errors.push("--timeout must be more than nothing".to_owned());
    }
    let given = |name| Some(flags.text(name)).filter(|text| !text.is_empty());
    TrafficOptions {
        wanted: Wanted {
            namespace: given("namespace"),
            image: flags.text("image"),
            port,
            class: given("class"),
            annotations,
            excluded_node: given("exclude-node").map(NodeName::new),
            keeps: flags.switch("keep"),
        },
        patience,
        is_sure: flags.switch("yes"),
        output: output(flags, errors),
        has_log: has_log(flags),
    }
}

/// The help of the command that is named, or of all.
fn help_of(program: &str, objects: &[String]) -> Result<Invocation, String> {
    let word = match objects {
        [] => Word::Run,
        [name] => Word::named(name).ok_or_else(|| unknown_word(name))?,
        _ => return Err("say one command".to_owned()),
    };
    Ok(Invocation::Print(words::short(word, program)))
}

fn unknown_word(word: &str) -> String {
    let hint = words::near(word).map(|near| format!("; did you mean {near:?}?"));
    format!(
        "unknown command or argument: {word:?}{}",
        hint.unwrap_or_default()
    )
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

/// What was probably meant: what the command line's parser takes for a slip of the pen.
pub(crate) fn near(word: &str, known: impl Iterator<Item = &'static str>) -> Option<String> {
    let values = clap::builder::PossibleValuesParser::new(known);
    let parser = clap::Command::new("word").no_binary_name(true);
    let error = parser
        .arg(clap::Arg::new("word").value_parser(values))
        .try_get_matches_from([word])
        .err()?;
    match error.get(clap::error::ContextKind::SuggestedValue)? {
        clap::error::ContextValue::String(near) => Some(near.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
