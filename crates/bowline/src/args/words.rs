//! The words that a command line may begin with: what each is for, and its help.

use std::fmt::Write as _;

use super::flag::{Flag, Group};
use super::{help, table};

/// The program under this name is the commands alone, as `kubectl` calls its plugins.
pub(super) const PLUGIN: &str = "kubectl-bowline";

/// What the command line begins with; [`Run`](Self::Run) is no word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Run,
    Plan,
    Doctor,
    Explain,
    Orphans,
    Check,
    SupportBundle,
    Completion,
    Version,
    Help,
}

/// All of them, in the order of help, with what they are for.
const WORDS: &[(Word, &str, &str)] = &[
    (Word::Plan, "plan", "preview every change to load balancers"),
    (
        Word::Doctor,
        "doctor",
        "find out why the manager does not do its work",
    ),
    (
        Word::Explain,
        "explain",
        "say why a Service or a Node is as it is",
    ),
    (
        Word::Orphans,
        "orphans",
        "find load balancers without a Service, and delete them",
    ),
    (
        Word::Check,
        "check",
        "try whether traffic comes through a load balancer",
    ),
    (
        Word::SupportBundle,
        "support-bundle",
        "collect what a bug report needs, without secrets",
    ),
    (
        Word::Completion,
        "completion",
        "print completions for bash, zsh or fish",
    ),
    (
        Word::Version,
        "version",
        "print the version and what is known of the build",
    ),
    (Word::Help, "help", "print the help of a command"),
];

/// The flags that the short help of every command that asks the cluster or the cloud shows beside the command's own.
const COMMON: &[&str] = &[
    "cloud-config",
    "cloud-provider",
    "cluster-name",
    "help",
    "help-all",
    "kubeconfig",
    "v",
];

/// The widest line of the short help.
const WIDTH: usize = 80;
/// Where the meaning of a flag begins.
const MEANING: usize = 31;

impl Word {
    /// The command of this name.
    pub(super) fn named(word: &str) -> Option<Self> {
        WORDS
            .iter()
            .find(|(_, name, _)| *name == word)
            .map(|(it, ..)| *it)
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        let mut words = WORDS.iter();
        words.find(|(it, ..)| *it == self).map_or("", |(_, name, _)| name)
    }

    /// Whether words that are no flags may follow.
    pub(super) fn takes_objects(self) -> bool {
        matches!(self, Self::Explain | Self::Check | Self::Completion | Self::Help)
    }

    /// The flags that only this command takes.
    pub(super) fn group(self) -> Option<&'static Group> {
        match self {
            Self::Plan => Some(&table::PLAN),
            Self::Doctor => Some(&table::DOCTOR),
            Self::Explain => Some(&table::EXPLAIN),
            Self::Orphans => Some(&table::ORPHANS),
            Self::Check => Some(&table::CHECK),
            Self::SupportBundle => Some(&table::SUPPORT_BUNDLE),
            Self::Version => Some(&table::VERSION),
            Self::Run | Self::Completion | Self::Help => None,
        }
    }

    /// Whether the command asks the cluster or the cloud, so that the manager's flags mean something to it.
    pub(super) fn takes_flags_of_manager(self) -> bool {
        !matches!(self, Self::Completion | Self::Version | Self::Help)
    }

    /// What stands behind the program's name.
    fn suffix(self) -> String {
        match self.name() {
            "" => String::new(),
            name => format!(" {name}"),
        }
    }

    /// What the command does, and its exit status.
    fn about(self) -> &'static str {
        match self {
            Self::Run => {
                "Ties a Kubernetes cluster to its cloud: initialises Nodes, deletes those whose\n\
                 instances are gone, and keeps load balancers for Services.\n"
            }
            Self::Plan => {
                "Previews every change to the load balancers of Services, and changes nothing.\n\
                 The plan goes to stdout; warnings, errors and, with -v, the log go to stderr.\n\n\
                 Exit status: 0 nothing to do; 1 a plan could not be made, or a person has to\n\
                 change something first; 2 changes, or the cloud is busy.\n"
            }
            Self::Doctor => {
                "Finds out why the manager does not do its work, and changes nothing:\n\
                 configuration, API server and permissions, cloud, Nodes, Services.\n\n\
                 Exit status: 0 nothing is wrong; 1 a check failed; 2 there are warnings.\n"
            }
            Self::Explain => {
                "Says of a Service or a Node how it is, how it should be, why it is not so, who\n\
                 has to do what, and what happens next. Changes nothing.\n\n\
                 Exit status: 0 nothing is wrong; 1 an object is in trouble, or nothing could be\n\
                 found out; 2 something is to be done or under way.\n"
            }
            Self::Orphans => {
                "Lists what this cluster made in the cloud and no Service asks for any more, and\n\
                 why it is taken for that. What is a person's, another cluster's or unclear is\n\
                 listed apart and never touched. With --delete, shows the plan, asks, deletes.\n\n\
                 Exit status: 0 there are none, or all are deleted; 1 something failed, or could\n\
                 not be deleted; 2 there are orphans.\n"
            }
            Self::Check => {
                "Makes a Service with a small workload, asks it through the load balancer and\n\
                 through each Node, takes a member away and brings it back, removes all, and\n\
                 proves that nothing is left. Asks first: a load balancer may cost money.\n\n\
                 Exit status: 0 all is well; 1 a check failed; 2 warnings, or checks skipped.\n"
            }
            Self::SupportBundle => {
                "Collects what a bug report needs into one archive: versions, flags, the last\n\
                 lines of the logs, metrics, Services, Nodes, events, plan and doctor. What is a\n\
                 secret, or looks like one, is left out. Prints what is in it. Changes nothing.\n\n\
                 Exit status: 0 it is written; 1 it is not.\n"
            }
            Self::Completion => "Prints a script that completes commands and flags.\n",
            Self::Version => "Prints the version, the commit and the platform of this program.\n",
            Self::Help => "Prints the help of a command.\n",
        }
    }

    /// How the command is called, line by line.
    fn forms(self) -> &'static [&'static str] {
        match self {
            Self::Run => &["[flags]", "COMMAND [flags]"],
            Self::Explain => &["service/NAMESPACE/NAME [flags]", "node/NAME [flags]"],
            Self::Check => &["traffic [flags]"],
            Self::Completion => &["bash|zsh|fish"],
            Self::Help => &["[COMMAND]"],
            Self::Plan | Self::Doctor | Self::Orphans | Self::SupportBundle | Self::Version => &["[flags]"],
        }
    }

    /// What people call, behind the program's name and the word.
    fn examples(self) -> &'static [&'static str] {
        match self {
            Self::Run => &[
                "--cloud-provider=cloudscale --allow-untagged-cloud",
                "doctor --kubeconfig=admin.conf",
            ],
            Self::Plan => &["--service=default/web", "--output=json"],
            Self::Doctor => &["--kubeconfig=admin.conf", "--pre --cloud-provider=cloudscale"],
            Self::Explain => &["service/default/web", "service/web -n shop", "node/worker-1"],
            Self::Orphans => &["--kubeconfig=admin.conf", "--delete", "--cluster-name=old --gone"],
            Self::Check => &["traffic", "traffic --kubeconfig=admin.conf --yes -o json"],
            Self::SupportBundle => &["--kubeconfig=admin.conf", "--file=bundle.tar.gz"],
            Self::Completion => &["bash > /etc/bash_completion.d/bowline"],
            Self::Version => &["--output=json"],
            Self::Help => &["orphans"],
        }
    }
}

/// The names of all commands, for completions.
pub(super) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    WORDS.iter().map(|(_, name, summary)| (*name, *summary))
}

/// The flags that single commands take.
pub(super) fn groups() -> impl Iterator<Item = &'static Group> {
    WORDS.iter().filter_map(|(word, ..)| word.group())
}

/// The command that was probably meant.
pub(super) fn near(word: &str) -> Option<String> {
    super::near(word, WORDS.iter().map(|(_, name, _)| *name))
}

fn usage(word: Word, program: &str) -> String {
    let mut text = String::from("Usage:\n");
    for form in word.forms() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {program}{} {form}", word.suffix());
    }
    text
}

/// What is said after a fault of the command line.
pub(super) fn hint(word: Word, program: &str) -> String {
    format!(
        "{}\nSee \"{program}{} --help\".\n",
        usage(word, program),
        word.suffix()
    )
}

/// The help that fits on a screen.
pub(super) fn short(word: Word, program: &str) -> String {
    let mut text = format!("{}\n{}", word.about(), usage(word, program));
    if word == Word::Run || word == Word::Help {
        text.push_str("\nCommands:\n");
        for (name, summary) in names() {
            let _ = writeln!(text, "  {name:<16}{summary}");
        }
    }
    text.push_str("\nExamples:\n");
    for example in word.examples() {
        let _ = writeln!(text, "  {program}{} {example}", word.suffix());
    }
    let own = word.group().into_iter().flat_map(|group| group.flags);
    let is_common = |flag: &&Flag| match word.takes_flags_of_manager() {
        true => COMMON.contains(&flag.name),
        false => flag.name == "help",
    };
    let mut flags: Vec<&Flag> = own.chain(table::all().filter(is_common)).collect();
    flags.sort_by_key(|flag| flag.name);
    text.push_str("\nFlags:\n");
    for flag in flags {
        line(&mut text, flag);
    }
    if word.takes_flags_of_manager() {
        let _ = writeln!(text, "\nAll flags: {program}{} --help-all", word.suffix());
    }
    text
}

/// All that can be said on the command line.
pub(super) fn long(word: Word, program: &str, groups: &[&Group]) -> String {
    format!(
        "{}\n{}{}",
        word.about(),
        usage(word, program),
        help::groups(groups)
    )
}

/// A flag with the first sentence of its meaning.
fn line(text: &mut String, flag: &Flag) {
    let short = flag
        .short
        .map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
    let placeholder = flag
        .kind
        .placeholder()
        .map(|word| format!(" {word}"))
        .unwrap_or_default();
    let name = format!("  {short}--{}{placeholder}", flag.name);
    let meaning = flag.help.split_once(". ").map_or(flag.help, |(first, _)| first);
    let _ = write!(text, "{name:<MEANING$}");
    let mut column = name.len().max(MEANING);
    for word in meaning.trim_end_matches('.').split(' ') {
        if column + 1 + word.len() > WIDTH {
            let _ = write!(text, "\n{:MEANING$}", "");
            column = MEANING;
        }
        let _ = write!(text, " {word}");
        column += 1 + word.len();
    }
    text.push('\n');
}
