//! Scripts that complete commands and flags, from the table.

use std::fmt::Write as _;

use super::words::{self, PLUGIN};
use super::{PROGRAM, table};

/// The script for a shell; `None` if it is none of those that are known.
pub(super) fn script(shell: &str) -> Option<String> {
    match shell {
        "bash" => Some(bash()),
        "zsh" => Some(zsh()),
        "fish" => Some(fish()),
        _ => None,
    }
}

fn names() -> String {
    let names: Vec<&str> = words::names().map(|(name, _)| name).collect();
    names.join(" ")
}

fn flags() -> String {
    let of_words = words::groups().flat_map(|group| group.flags);
    let shown = of_words.chain(table::all()).filter(|flag| !flag.is_hidden);
    let mut names: Vec<String> = shown.map(|flag| format!("--{}", flag.name)).collect();
    names.sort();
    names.dedup();
    names.join(" ")
}

fn bash() -> String {
    let (names, flags) = (names(), flags());
    format!(
        "_bowline() {{\n  \
           local cur=${{COMP_WORDS[COMP_CWORD]}} words='{flags}'\n  \
           [ \"$COMP_CWORD\" -eq 1 ] && words=\"{names} $words\"\n  \
           COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n\
         }}\n\
         complete -o default -F _bowline {PROGRAM} {PLUGIN}\n"
    )
}

fn zsh() -> String {
    let (names, flags) = (names(), flags());
    format!(
        "#compdef {PROGRAM} {PLUGIN}\n\
         _bowline() {{\n  \
           (( CURRENT == 2 )) && compadd -- {names}\n  \
           compadd -- {flags}\n  \
           _files\n\
         }}\n\
         compdef _bowline {PROGRAM} {PLUGIN}\n"
    )
}

fn fish() -> String {
    let mut script = String::new();
    for program in [PROGRAM, PLUGIN] {
        for (name, summary) in words::names() {
            // Writing to a String cannot fail.
            let _ = writeln!(
                script,
                "complete -c {program} -n __fish_use_subcommand -a {name} -d '{summary}'"
            );
        }
        for flag in flags().split(' ') {
            let _ = writeln!(
                script,
                "complete -c {program} -l {}",
                flag.trim_start_matches('-')
            );
        }
    }
    script
}
