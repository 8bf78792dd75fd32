//! From the command line to flags with values.
//!
//! Clap reads the words; what is around it gives them the form that manifests of Go managers have: `_` for `-` in
//! names, a boolean without a separate value, the last of several values, and the error texts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, StringValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};
use jiff::SignedDuration;

use super::flag::{Flag, Group};
use super::table;
use super::value::{self, Kind, Value};

/// The values of all flags, the defaults included.
#[derive(Debug, Clone)]
pub(crate) struct Flags {
    values: BTreeMap<&'static str, Value>,
    given: Vec<&'static str>,
    changed: Vec<&'static str>,
    objects: Vec<String>,
}

/// Reads the words after the program's name; those that are no flags, only if the command `takes_objects`.
///
/// # Errors
///
/// The text after `Error: `.
pub(super) fn parse(groups: &[&Group], words: &[String], takes_objects: bool) -> Result<Flags, String> {
    let words = normalised(groups, words);
    let command = command(groups);
    let matches = command
        .try_get_matches_from(words)
        .map_err(|error| describe(&error))?;
    Flags::read(groups, &matches, takes_objects)
}

/// Replaces `_` by `-` in the names of flags. A word that is the value of the flag before it stays as it is.
fn normalised(groups: &[&Group], words: &[String]) -> Vec<String> {
    let mut is_value = false;
    let mut ended = false;
    let mut all = Vec::with_capacity(words.len());
    for word in words {
        let name = word.strip_prefix("--").filter(|name| !name.is_empty());
        ended |= word == "--" && !is_value;
        match name.filter(|_| !is_value && !ended) {
            None => {
                // `-v 3`: the only letter that takes a value in the next word is one of the table's.
                is_value = !is_value
                    && word.len() == 2
                    && groups.iter().flat_map(|group| group.flags).any(|flag| {
                        flag.short.map(|c| format!("-{c}")).as_deref() == Some(word)
                            && !flag.kind.stands_alone()
                    });
                all.push(word.clone());
            }
            Some(name) => {
                let (name, value) = name.split_once('=').map_or((name, None), |(n, v)| (n, Some(v)));
                let name = name.replace('_', "-");
                is_value = value.is_none()
                    && table::find(groups.iter().copied(), &name)
                        .is_some_and(|flag| !flag.kind.stands_alone());
                all.push(match value {
                    Some(value) => format!("--{name}={value}"),
                    None => format!("--{name}"),
                });
            }
        }
    }
    all
}

fn command(groups: &[&Group]) -> Command {
    let flags = groups.iter().flat_map(|group| group.flags).map(argument);
    Command::new("cloud-controller-manager")
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .args(flags)
        .arg(
            Arg::new(POSITIONAL)
                .num_args(0..)
                .value_parser(OsStringValueParser::new()),
        )
}

/// No flag can have this name.
const POSITIONAL: &str = "<arguments>";

fn argument(flag: &'static Flag) -> Arg {
    let mut argument = Arg::new(flag.name)
        .long(flag.name)
        .action(ArgAction::Append)
        .value_parser(StringValueParser::new());
    if let Some(short) = flag.short {
        argument = argument.short(short);
    }
    if flag.kind.stands_alone() {
        argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value(Kind::ALONE)
    } else {
        argument.num_args(1).allow_hyphen_values(true)
    }
}

fn describe(error: &clap::Error) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    // Clap shows the placeholder after the name, as in `--v <v>`.
    let flag = text(ContextKind::InvalidArg)
        .and_then(|text| text.split([' ', '=', '[']).next())
        .unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument if flag.starts_with("--") => {
            // What help does not show is there for old manifests, and nobody means it.
            let is_shown = |name: &&str| {
                let known = table::find(table::flag_table(), name.trim_start_matches('-'));
                known.is_none_or(|flag| !flag.is_hidden)
            };
            let hint = text(ContextKind::SuggestedArg).filter(is_shown);
            let hint = hint.map(|name| format!(" (did you mean {name}?)"));
            format!("unknown flag: {flag}{}", hint.unwrap_or_default())
        }
        ErrorKind::UnknownArgument => {
            format!(
                "unknown shorthand flag: '{}' in {flag}",
                flag.trim_start_matches('-')
            )
        }
        ErrorKind::InvalidValue | ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues => {
            format!("flag needs an argument: {flag}")
        }
        ErrorKind::InvalidUtf8 => "the command line is not valid UTF-8".to_owned(),
        _ => error
            .to_string()
            .trim_start_matches("error: ")
            .trim_end()
            .to_owned(),
    }
}

impl Flags {
    fn read(groups: &[&Group], matches: &ArgMatches, takes_objects: bool) -> Result<Self, String> {
        let words = matches.get_raw(POSITIONAL).into_iter().flatten();
        let mut objects: Vec<_> = words.collect();
        if let Some(word) = objects.first().filter(|_| !takes_objects) {
            let is_command = word
                .to_str()
                .is_some_and(|word| super::Word::named(word).is_some());
            let word = word.to_string_lossy();
            return Err(match is_command {
                true => format!("unknown command or argument: {word:?} (a command is the first word)"),
                false => super::unknown_word(&word),
            });
        }
        let mut flags = Self {
            values: BTreeMap::new(),
            given: Vec::new(),
            changed: Vec::new(),
            objects: objects
                .drain(..)
                .map(|it| it.to_string_lossy().into_owned())
                .collect(),
        };
        for flag in groups.iter().flat_map(|group| group.flags) {
            flags.put(flag, matches)?;
        }
        Ok(flags)
    }

    fn put(&mut self, flag: &'static Flag, matches: &ArgMatches) -> Result<(), String> {
        let mut result: Option<Value> = None;
        for text in matches.get_many::<String>(flag.name).into_iter().flatten() {
            let value = value::read(flag.kind, text).map_err(|error| {
                format!("invalid argument {text:?} for \"--{}\" flag: {error}", flag.name)
            })?;
            match result.as_mut().filter(|_| flag.kind.accumulates()) {
                Some(earlier) => value::add(earlier, value),
                None => result = Some(value),
            }
        }
        let value = match result {
            Some(value) => {
                self.given.push(flag.name);
                // An empty default of a kind that cannot be empty is none, so that any value is another one.
                if value::read(flag.kind, flag.default).as_ref() != Ok(&value) {
                    self.changed.push(flag.name);
                }
                value
            }
            // The table's own tests hold that every default can be read.
            None => value::read(flag.kind, flag.default)?,
        };
        self.values.insert(flag.name, value);
        Ok(())
    }

    /// A text that is not empty.
    pub(super) fn stated(&self, name: &str) -> Option<String> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// A path; `None` for an empty one.
    pub(super) fn path(&self, name: &str) -> Option<PathBuf> {
        self.stated(name).map(PathBuf::from)
    }

    /// The words that are no flags.
    pub(crate) fn objects(&self) -> &[String] {
        &self.objects
    }

    /// Whether the flag was on the command line.
    pub(crate) fn is_given(&self, name: &str) -> bool {
        self.given.contains(&name)
    }

    /// Whether the command line gave the flag another value than its default.
    pub(crate) fn is_changed(&self, name: &str) -> bool {
        self.changed.contains(&name)
    }

    /// The flags on the command line, in the order of the table.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        self.given.iter().copied()
    }

    /// Gives the flag a value if the command line did not.
    pub(crate) fn preset(&mut self, name: &'static str, text: &str) {
        if !self.is_given(name) {
            self.values.insert(name, Value::Text(text.to_owned()));
        }
    }

    /// Each flag with its value, as text, by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.values.iter().map(|(name, value)| (*name, shown(value)))
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Duration(value) => bowline_gcfg::duration::format(*value),
        Value::List(list) => list.join(","),
        Value::Ints(list) => list.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        Value::Ip(address) => address.to_string(),
        Value::Gates(list) => {
            let list: Vec<_> = list
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            list.join(",")
        }
    }
}

/// Reading one value. The names and kinds are those of the table; the tests resolve every one of them.
macro_rules! readers {
    ($($name:ident: $variant:ident => $type:ty,)*) => {
        impl Flags {$(
            pub(crate) fn $name(&self, name: &str) -> $type {
                match self.values.get(name) {
                    Some(Value::$variant(value)) => value.clone(),
                    other => unreachable!("--{name} is asked for as {}, but it is {other:?}", stringify!($variant)),
                }
            }
        )*}
    };
}

readers! {
    text: Text => String,
    switch: Bool => bool,
    int: Int => i64,
    float: Float => f64,
    duration: Duration => SignedDuration,
    list: List => Vec<String>,
    ints: Ints => Vec<i64>,
    ip: Ip => std::net::IpAddr,
    gates: Gates => Vec<(String, bool)>,
}
