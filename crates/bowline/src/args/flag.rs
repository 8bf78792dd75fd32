//! What a flag is: one entry of the table that parser, help and reference page are made from.

use super::value::Kind;

/// A flag.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// The name without dashes.
    pub name: &'static str,
    /// The one-letter form.
    pub short: Option<char>,
    /// What its value looks like.
    pub kind: Kind,
    /// The default in the form of the command line; empty for none.
    pub default: &'static str,
    /// What it does, in one or two sentences.
    pub help: &'static str,
    /// How much of it is in force.
    pub status: Status,
    /// Whether help shows it.
    pub is_hidden: bool,
}

/// How much of a flag is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It does what its help says.
    InForce,
    /// It is accepted so that existing manifests keep working, and has no effect here.
    Accepted,
    /// It works, but should not be used any more.
    Deprecated,
}

impl Status {
    /// What help adds to the text.
    pub fn remark(self) -> Option<&'static str> {
        match self {
            Self::InForce => None,
            Self::Accepted => Some("(accepted, no effect)"),
            Self::Deprecated => Some("(deprecated)"),
        }
    }
}

impl Flag {
    /// A flag that is shown and in force.
    pub(super) const fn new(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            short: None,
            kind,
            default,
            help,
            status: Status::InForce,
            is_hidden: false,
        }
    }

    pub(super) const fn short(mut self, short: char) -> Self {
        self.short = Some(short);
        self
    }

    pub(super) const fn accepted(mut self) -> Self {
        self.status = Status::Accepted;
        self
    }

    pub(super) const fn deprecated(mut self) -> Self {
        self.status = Status::Deprecated;
        self
    }

    pub(super) const fn hidden(mut self) -> Self {
        self.is_hidden = true;
        self
    }
}

/// A group of flags, as help shows them.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The title, such as `Generic`.
    pub title: &'static str,
    /// The flags, by name.
    pub flags: &'static [Flag],
}
