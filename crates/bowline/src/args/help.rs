//! Help as text, from the table.

use std::fmt::Write as _;

use super::flag::{Flag, Group};
use super::value::Kind;

const WIDTH: usize = 100;
const INDENT: &str = "          ";

/// The groups with their flags, each flag on its line and its meaning below.
pub(super) fn groups(groups: &[&Group]) -> String {
    let mut text = String::new();
    for group in groups {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{} flags:\n", group.title);
        for flag in group.flags.iter().filter(|flag| !flag.is_hidden) {
            one(&mut text, flag);
        }
    }
    text
}

fn one(text: &mut String, flag: &Flag) {
    match flag.short {
        Some(short) => {
            let _ = write!(text, "\n  -{short}, --{}", flag.name);
        }
        None => {
            let _ = write!(text, "\n      --{}", flag.name);
        }
    }
    if let Some(placeholder) = flag.kind.placeholder() {
        let _ = write!(text, " {placeholder}");
    }
    text.push('\n');
    let mut help = flag.help.to_owned();
    if let Some(remark) = flag.status.remark() {
        let _ = write!(help, " {remark}");
    }
    if let Some(default) = shown_default(flag) {
        let _ = write!(help, " (default {default})");
    }
    wrap(text, &help);
}

fn shown_default(flag: &Flag) -> Option<String> {
    match flag.kind {
        _ if flag.default.is_empty() => None,
        Kind::Bool => (flag.default == "true").then(|| flag.default.to_owned()),
        Kind::Text => Some(format!("{:?}", flag.default)),
        Kind::List => Some(format!("[{}]", flag.default)),
        _ => Some(flag.default.to_owned()),
    }
}

fn wrap(text: &mut String, help: &str) {
    let mut column = 0;
    for word in help.split(' ') {
        let length = word.chars().count();
        if column == 0 {
            text.push_str(INDENT);
            column = INDENT.len();
        } else if column + 1 + length > WIDTH {
            text.push('\n');
            text.push_str(INDENT);
            column = INDENT.len();
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}
