//! Values of the file by their kind, and the sections that hold them.

use std::fmt;
use std::time::Duration;

use bowline_cloud_http::{base_url, glimpse};

/// Why a value is none of its kind. The text begins as the Go manager's does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// A variable without an equals sign that is no switch.
    #[error("blank value not supported for type {0}")]
    Blank(&'static str),
    /// A switch that is neither on nor off.
    #[error("failed to parse bool {0}: it is one of true, yes, on, 1, false, no, off, 0")]
    Bool(String),
    /// No number, or one out of range.
    #[error("failed to parse {0}: it is a whole number, decimal or hexadecimal after 0x{1}")]
    Number(String, &'static str),
    /// A duration without its unit.
    #[error("failed to parse {0}: the unit is missing: a duration is written as 5s, 1m30s or 500ms")]
    NoUnit(String),
    /// No duration.
    #[error("failed to parse {0}: it is a duration such as 5s, 1m30s or 500ms{1}")]
    Duration(String, &'static str),
}

/// What a variable can hold.
pub(super) trait Value {
    /// Takes what a line says; `None` is a variable without an equals sign.
    fn assign(&mut self, said: Option<String>) -> Result<(), ValueError>;

    /// Takes a line without a value.
    fn unset(&mut self, default: Self)
    where
        Self: Sized,
    {
        *self = default;
    }

    /// The value as it may be shown; empty if it is not set.
    fn shown(&self) -> String;
}

fn text(said: Option<String>, kind: &'static str) -> Result<String, ValueError> {
    said.ok_or(ValueError::Blank(kind))
}

impl Value for String {
    fn assign(&mut self, said: Option<String>) -> Result<(), ValueError> {
        *self = text(said, "string")?;
        Ok(())
    }

    fn shown(&self) -> String {
        self.clone()
    }
}

/// A URL as somebody wrote it. It is shown without the user and the password that may stand in it, and not at all if it is
/// none.
#[derive(Clone, Default)]
pub(super) struct UrlText(pub(super) String);

impl fmt::Debug for UrlText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Value for UrlText {
    fn assign(&mut self, said: Option<String>) -> Result<(), ValueError> {
        self.0.assign(said)
    }

    fn shown(&self) -> String {
        base_url(&self.0).map(String::from).unwrap_or_default()
    }
}

/// An empty text is nothing.
impl<T: From<String> + ToString> Value for Option<T> {
    fn assign(&mut self, said: Option<String>) -> Result<(), ValueError> {
        *self = Some(text(said, "string")?)
            .filter(|text| !text.is_empty())
            .map(T::from);
        Ok(())
    }

    fn shown(&self) -> String {
        self.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}

/// Each line adds one, and one without a value none; a line without an equals sign removes those above it.
impl Value for Vec<String> {
    fn unset(&mut self, _: Self) {}

    fn assign(&mut self, said: Option<String>) -> Result<(), ValueError> {
        match said {
            Some(text) => self.push(text),
            None => self.clear(),
        }
        Ok(())
    }

    fn shown(&self) -> String {
        self.join(", ")
    }
}

impl Value for bool {
    fn assign(&mut self, said: Option<String>) -> Result<(), ValueError> {
        *self = bowline_gcfg::switch(said.as_deref())
            .ok_or_else(|| ValueError::Bool(glimpse(&said.unwrap_or_default())))?;
        Ok(())
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Value for i64 {
    fn assign(&mut self, said: Option<String>) -> Result<(), ValueError> {
        let text = text(said, "int")?;
        *self = bowline_gcfg::integer(&text).ok_or_else(|| ValueError::Number(glimpse(&text), ""))?;
        Ok(())
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Value for u32 {
    fn assign(&mut self, said: Option<String>) -> Result<(), ValueError> {
        let text = text(said, "uint")?;
        *self = bowline_gcfg::integer(&text)
            .and_then(|number| Self::try_from(number).ok())
            .ok_or_else(|| ValueError::Number(glimpse(&text), ", and not negative"))?;
        Ok(())
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Value for Duration {
    fn assign(&mut self, said: Option<String>) -> Result<(), ValueError> {
        let text = text(said, "duration")?;
        if text.parse::<f64>().is_ok_and(f64::is_finite) && text != "0" {
            return Err(ValueError::NoUnit(glimpse(&text)));
        }
        let wrong = |more| ValueError::Duration(glimpse(&text), more);
        let signed = bowline_gcfg::duration::parse(&text).map_err(|_| wrong(""))?;
        *self = Self::try_from(signed).map_err(|_| wrong(", and not negative"))?;
        Ok(())
    }

    fn shown(&self) -> String {
        format!("{self:?}")
    }
}

/// Options that stand under one heading.
pub(crate) trait Section {
    /// Takes a line, if there is such an option. Letter case does not count.
    fn set(&mut self, name: &str, said: Option<String>) -> Option<Result<(), ValueError>>;

    /// Takes a line without a value: the option counts as not set. Whether there is such an option.
    fn unset(&mut self, name: &str) -> bool;

    /// Each option and its value, as it may be shown.
    fn shown(&self) -> Vec<(&'static str, String)>;

    /// The value of an option, if there is one of this name: empty if it is not set.
    fn value_of(&self, option: &str) -> Option<String> {
        let mut all = self.shown().into_iter();
        all.find(|(name, _)| *name == option).map(|(_, value)| value)
    }

    /// The names of its options.
    fn names(&self) -> Vec<&'static str> {
        self.shown().into_iter().map(|(name, _)| name).collect()
    }
}

/// Says which fields of a type are options, by name and default, and which hold more of them (`+`).
macro_rules! section {
    ($name:ident { $($field:ident = $key:literal $(, $default:expr)?;)* $(+ $part:ident;)* }) => {
        impl Section for $name {
            fn set(&mut self, name: &str, said: Option<String>) -> Option<Result<(), ValueError>> {
                $(if name.eq_ignore_ascii_case($key) {
                    return Some(self.$field.assign(said));
                })*
                $(if let Some(set) = self.$part.set(name, said.clone()) {
                    return Some(set);
                })*
                None
            }

            fn unset(&mut self, name: &str) -> bool {
                $(if name.eq_ignore_ascii_case($key) {
                    self.$field.unset(section!(@default $($default)?));
                    return true;
                })*
                false $(|| self.$part.unset(name))*
            }

            fn shown(&self) -> Vec<(&'static str, String)> {
                [vec![$(($key, self.$field.shown()),)*], $(self.$part.shown(),)*].concat()
            }
        }
    };
    (@default) => { Default::default() };
    (@default $default:expr) => { $default.into() };
}

/// Defines sections: for each option its field, kind, name in the file and default; after `+` what holds more options, and after `~` what
/// the file does not say under this heading.
macro_rules! sections {
    ($($(#[$doc:meta])* $vis:vis $name:ident {
        $($(#[$option_doc:meta])* $field:ident: $kind:ty = $key:literal $(, $default:expr)?;)*
        $(+ $(#[$part_doc:meta])* $part:ident: $of:ty;)*
        $(~ $(#[$other_doc:meta])* $other:ident: $other_kind:ty, $value:expr;)*
    })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        $vis struct $name {
            $($(#[$option_doc])* $vis $field: $kind,)*
            $($(#[$part_doc])* $vis $part: $of,)*
            $($(#[$other_doc])* $vis $other: $other_kind,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: section!(@default $($default)?),)*
                    $($part: Default::default(),)*
                    $($other: $value,)*
                }
            }
        }

        section! { $name { $($field = $key $(, $default)?;)* $(+ $part;)* } }
    )*};
}

pub(super) use {section, sections};
