//! Values of flags: what they look like on the command line, and what is wrong with them.

use std::net::IpAddr;
use std::num::{IntErrorKind, ParseIntError};

use bowline_gcfg::duration;
use jiff::SignedDuration;

use super::{features, quantity};

/// What a flag's value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// `true` or `false`; the flag alone means `true`, and a value needs `=`.
    Bool,
    /// A whole number of 32 bits.
    Int,
    /// A number.
    Float,
    /// A duration in Go's form.
    Duration,
    /// A number of bytes in Kubernetes' form.
    Quantity,
    /// Texts separated by commas; the flag may be repeated.
    List,
    /// One text each time; the flag may be repeated.
    Repeated,
    /// Whole numbers separated by commas; the flag may be repeated.
    IntList,
    /// An IP address.
    Ip,
    /// `Name=true,Other=false`; the flag may be repeated.
    Gates,
    /// The flag alone, or `raw`, or a version after `=`.
    Version,
}

impl Kind {
    /// The word for the value in help; `None` if the flag can stand alone.
    pub fn placeholder(self) -> Option<&'static str> {
        match self {
            Self::Text => Some("string"),
            Self::Bool | Self::Version => None,
            Self::Int => Some("int"),
            Self::Float => Some("float"),
            Self::Duration => Some("duration"),
            Self::Quantity => Some("quantity"),
            Self::List => Some("strings"),
            Self::Repeated => Some("string"),
            Self::IntList => Some("ints"),
            Self::Ip => Some("ip"),
            Self::Gates => Some("mapStringBool"),
        }
    }

    /// Whether the flag can stand alone, so that a value needs `=`.
    pub fn stands_alone(self) -> bool {
        matches!(self, Self::Bool | Self::Version)
    }

    /// The value of a flag that stands alone.
    pub(super) const ALONE: &'static str = "true";

    /// Whether each occurrence adds to the ones before; else the last one counts.
    pub fn accumulates(self) -> bool {
        matches!(self, Self::List | Self::Repeated | Self::IntList | Self::Gates)
    }
}

/// A value that was read.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Bool(bool),
    Int(i64),
    Float(f64),
    Duration(SignedDuration),
    List(Vec<String>),
    Ints(Vec<i64>),
    Ip(IpAddr),
    Gates(Vec<(String, bool)>),
}

/// Reads one occurrence of a flag's value.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn read(kind: Kind, text: &str) -> Result<Value, String> {
    let split = || text.split(',').filter(|_| !text.is_empty());
    Ok(match kind {
        Kind::Text | Kind::Version => Value::Text(text.to_owned()),
        Kind::Bool => Value::Bool(boolean(text)?),
        Kind::Int => Value::Int(integer(text)?),
        Kind::Float => Value::Float(
            text.parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
                .ok_or_else(|| format!("{text:?} is not a number"))?,
        ),
        Kind::Duration => Value::Duration(duration::parse(text)?),
        Kind::Quantity => Value::Int(quantity::parse(text)?),
        Kind::List => Value::List(split().map(|part| part.trim().to_owned()).collect()),
        Kind::Repeated => Value::List(
            Some(text.to_owned())
                .into_iter()
                .filter(|t| !t.is_empty())
                .collect(),
        ),
        Kind::IntList => Value::Ints(
            split()
                .map(|part| integer(part.trim()))
                .collect::<Result<_, _>>()?,
        ),
        Kind::Ip => Value::Ip(
            text.parse()
                .map_err(|_| format!("failed to parse IP: {text:?}"))?,
        ),
        Kind::Gates => Value::Gates(
            split()
                .map(|part| features::assignment(part.trim()))
                .collect::<Result<_, _>>()?,
        ),
    })
}

/// Adds a later occurrence to an earlier one.
pub(super) fn add(earlier: &mut Value, later: Value) {
    match (earlier, later) {
        (Value::List(all), Value::List(more)) => all.extend(more),
        (Value::Ints(all), Value::Ints(more)) => all.extend(more),
        (Value::Gates(all), Value::Gates(more)) => all.extend(more),
        (earlier, later) => *earlier = later,
    }
}

fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

fn integer(text: &str) -> Result<i64, String> {
    let number: Result<i32, ParseIntError> = text.parse();
    number.map(i64::from).map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
            format!("{text} is out of range: {} to {} are allowed", i32::MIN, i32::MAX)
        }
        _ => format!("{text:?} is not a whole number"),
    })
}
