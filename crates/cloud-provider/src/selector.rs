//! Kubernetes label selectors in their text form, such as `tier in (edge, core), !gpu`.
//!
//! Grammar and meaning are those of the Kubernetes API ("Labels and Selectors"): requirements separated by commas, all of
//! which must hold. A requirement that excludes values also holds where the key is absent.

use std::collections::BTreeSet;
use std::fmt;

use crate::Labels;

mod lexer;

use lexer::{Lexer, Token};

/// The most characters of a label's name and of a label's value.
const MAX_NAME: usize = 63;
/// The most characters of the prefix of a label's key.
const MAX_PREFIX: usize = 253;

/// Says which labels fit. The empty selector fits everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Above(i64),
    Below(i64),
}

/// Why a text is not a selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// Something else was expected here.
    #[error("found '{found}', expected: {expected}")]
    Unexpected {
        /// What stands there; empty at the end of the text.
        found: String,
        /// What may stand there.
        expected: &'static str,
    },
    /// The key is not one that a label can have.
    #[error("`{0}` is not a label key")]
    Key(String),
    /// The value is not one that a label can have.
    #[error("`{0}` is not a label value")]
    Value(String),
    /// `>` and `<` compare with whole numbers.
    #[error("`{0}` is not a whole number")]
    Number(String),
}

impl Selector {
    /// Reads a selector.
    ///
    /// # Errors
    ///
    /// The text is not a selector, or asks for labels that cannot exist.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut lexer = Lexer::new(text);
        let mut requirements = Vec::new();
        if *lexer.peek() == Token::End {
            return Ok(Self::default());
        }
        loop {
            requirements.push(requirement(&mut lexer)?);
            match lexer.next() {
                Token::End => return Ok(Self(requirements)),
                Token::Comma => {}
                other => return Err(unexpected(&other, "',' or 'end of string'")),
            }
        }
    }

    /// Whether labels fit.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| requirement.matches(labels))
    }

    /// Whether everything fits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Requirement {
    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.value(&self.key);
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Absent => value.is_none(),
            Test::In(values) => value.is_some_and(|value| values.contains(value)),
            Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Test::Above(limit) => number().is_some_and(|number| number > *limit),
            Test::Below(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

fn requirement(lexer: &mut Lexer<'_>) -> Result<Requirement, SelectorError> {
    let absent = *lexer.peek() == Token::Not;
    if absent {
        lexer.next();
    }
    let key = match lexer.next() {
        Token::Word(word) => checked_key(word)?,
        other if absent => return Err(unexpected(&other, "identifier")),
        other => return Err(unexpected(&other, "!, identifier, or 'end of string'")),
    };
    if absent {
        return Ok(Requirement {
            key,
            test: Test::Absent,
        });
    }
    let operator = match lexer.peek() {
        Token::End | Token::Comma => {
            return Ok(Requirement {
                key,
                test: Test::Exists,
            });
        }
        _ => lexer.next(),
    };
    let one = |value| BTreeSet::from([value]);
    let test = match operator {
        Token::Equals => Test::In(one(value(lexer)?)),
        Token::NotEquals => Test::NotIn(one(value(lexer)?)),
        Token::Word("in") => Test::In(values(lexer)?),
        Token::Word("notin") => Test::NotIn(values(lexer)?),
        Token::Above => Test::Above(number(lexer)?),
        Token::Below => Test::Below(number(lexer)?),
        other => return Err(unexpected(&other, "in, notin, =, ==, !=, gt, lt")),
    };
    Ok(Requirement { key, test })
}

/// One value; nothing at all is the empty value.
fn value(lexer: &mut Lexer<'_>) -> Result<String, SelectorError> {
    match lexer.peek() {
        Token::End | Token::Comma => Ok(String::new()),
        _ => match lexer.next() {
            Token::Word(word) => checked_value(word),
            other => Err(unexpected(&other, "identifier")),
        },
    }
}

fn number(lexer: &mut Lexer<'_>) -> Result<i64, SelectorError> {
    let text = value(lexer)?;
    text.parse().map_err(|_| SelectorError::Number(text))
}

/// Values in parentheses; a gap between commas is the empty value.
fn values(lexer: &mut Lexer<'_>) -> Result<BTreeSet<String>, SelectorError> {
    match lexer.next() {
        Token::Open => {}
        other => return Err(unexpected(&other, "'('")),
    }
    let mut values = BTreeSet::new();
    loop {
        let value = match lexer.peek() {
            Token::Comma | Token::Close => String::new(),
            _ => match lexer.next() {
                Token::Word(word) => checked_value(word)?,
                other => return Err(unexpected(&other, "',', ')' or identifier")),
            },
        };
        values.insert(value);
        match lexer.next() {
            Token::Comma => {}
            Token::Close => return Ok(values),
            other => return Err(unexpected(&other, "',' or ')'")),
        }
    }
}

fn checked_key(key: &str) -> Result<String, SelectorError> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let prefix_fits = prefix.is_none_or(|prefix| {
        prefix.len() <= MAX_PREFIX
            && prefix.split('.').all(|part| {
                is_bounded(
                    part,
                    |c| c.is_ascii_lowercase() || c.is_ascii_digit(),
                    |c| c == '-',
                )
            })
    });
    if prefix_fits && is_name(name) {
        Ok(key.to_owned())
    } else {
        Err(SelectorError::Key(key.to_owned()))
    }
}

fn checked_value(value: &str) -> Result<String, SelectorError> {
    if value.is_empty() || is_name(value) {
        Ok(value.to_owned())
    } else {
        Err(SelectorError::Value(value.to_owned()))
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= MAX_NAME
        && is_bounded(
            name,
            |c| c.is_ascii_alphanumeric(),
            |c| matches!(c, '-' | '_' | '.'),
        )
}

/// Whether a text begins and ends with an outer character and holds nothing but outer and inner ones.
fn is_bounded(text: &str, outer: impl Fn(char) -> bool, inner: impl Fn(char) -> bool) -> bool {
    text.starts_with(&outer) && text.ends_with(&outer) && text.chars().all(|c| outer(c) || inner(c))
}

fn unexpected(found: &Token<'_>, expected: &'static str) -> SelectorError {
    SelectorError::Unexpected {
        found: found.to_string(),
        expected,
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Requirement { key, test }) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            let list = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(",");
            match test {
                Test::Exists => write!(f, "{key}")?,
                Test::Absent => write!(f, "!{key}")?,
                Test::In(values) => write!(f, "{key} in ({})", list(values))?,
                Test::NotIn(values) => write!(f, "{key} notin ({})", list(values))?,
                Test::Above(limit) => write!(f, "{key}>{limit}")?,
                Test::Below(limit) => write!(f, "{key}<{limit}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
