//! YAML files that may hold secrets.
//!
//! The library's own errors show the lines around a mistake, and Serde's show the value: `invalid type: string "hunter2"`.
//! Neither leaves this module. What does is [`Malformed`]: the line, which of the known keys stands there, and the kind
//! of the mistake.

use serde::de::DeserializeOwned;
use serde_saphyr::{Error, Options};

use crate::Malformed;
use crate::malformed::meant;

/// Reads a file that is one document. `keys` are all that the file may have, at any depth: errors name no others.
///
/// # Errors
///
/// It is not YAML, or not what is expected.
pub fn document<T: DeserializeOwned>(contents: &[u8], keys: &[&'static str]) -> Result<T, Malformed> {
    let text = text(contents)?;
    serde_saphyr::from_str_with_options(&text, options()).map_err(|error| malformed(&error, &text, keys))
}

/// Reads a file that may have several documents, or none.
///
/// # Errors
///
/// As for [`document`].
pub fn documents<T: DeserializeOwned>(contents: &[u8], keys: &[&'static str]) -> Result<Vec<T>, Malformed> {
    let text = text(contents)?;
    serde_saphyr::from_multiple_with_options(&text, options()).map_err(|error| malformed(&error, &text, keys))
}

fn options() -> Options {
    serde_saphyr::options! { with_snippet: false }
}

/// The contents as text: UTF-8, or UTF-16 if the mark at its begin says so.
fn text(contents: &[u8]) -> Result<String, Malformed> {
    let utf_16 = |bytes: &[u8], unit: fn([u8; 2]) -> u16| {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let units: Vec<u16> = pairs.iter().map(|pair| unit(*pair)).collect();
        String::from_utf16(&units).ok().filter(|_| rest.is_empty())
    };
    match contents {
        [0xFF, 0xFE, rest @ ..] => utf_16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf_16(rest, u16::from_be_bytes),
        _ => {
            let bytes = contents.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(contents);
            std::str::from_utf8(bytes).ok().map(str::to_owned)
        }
    }
    .ok_or(Malformed::because("the file is not a text in UTF-8"))
}

fn malformed(error: &Error, text: &str, keys: &[&'static str]) -> Malformed {
    let place = error.location().filter(|at| at.line() > 0).and_then(|at| {
        Some((
            usize::try_from(at.line()).ok()?,
            usize::try_from(at.column()).ok()?,
        ))
    });
    let nth = |line: usize| text.lines().nth(line - 1);
    let is_tab =
        |line: usize| nth(line).is_some_and(|line| line.trim_start_matches([' ', '-']).starts_with('\t'));
    // The place of a tab is found out on the line after the last good one.
    if matches!(error, Error::ExternalMessage { .. })
        && let Some((line, _)) = place
        && let Some(line) = [line, line + 1].into_iter().find(|line| is_tab(*line))
    {
        return Malformed {
            line: Some(line),
            ..Malformed::because("a tab stands where YAML allows blanks only; indent with blanks")
        };
    }
    if let Error::SerdeUnknownField { field, .. } = bare(error)
        && let Some(key) = meant(field, keys)
    {
        return Malformed {
            line: place.map(|(line, _)| line),
            ..Malformed::at(
                key,
                "a key that is not known stands here, and looks like this one",
            )
        };
    }
    Malformed {
        what: what(error),
        key: place
            .filter(|_| is_about_a_value(error))
            .and_then(|(line, column)| key_before(nth(line)?, column, keys)),
        line: place.map(|(line, _)| line),
    }
}

/// The error itself, without what is wrapped around it.
fn bare(error: &Error) -> &Error {
    match error {
        Error::WithSnippet { error, .. } | Error::AliasError { error, .. } => bare(error),
        error => error,
    }
}

/// Whether the key before the place of the mistake is the one to look at.
fn is_about_a_value(error: &Error) -> bool {
    matches!(
        bare(error),
        Error::DuplicateMappingKey { .. }
            | Error::SerdeInvalidType { .. }
            | Error::SerdeInvalidValue { .. }
            | Error::SerdeInvalidLength { .. }
            | Error::SerdeUnknownVariant { .. }
            | Error::SerdeVariantId { .. }
            | Error::Unexpected { .. }
            | Error::NullIntoString { .. }
            | Error::InvalidScalar { .. }
            | Error::InvalidBooleanStrict { .. }
            | Error::TaggedScalarCannotDeserializeIntoString { .. }
    )
}

/// The last of the known keys on a line that begins no later than this column.
fn key_before(line: &str, column: usize, keys: &[&'static str]) -> Option<&'static str> {
    let is_of_key = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let mut found = None;
    let mut words = line
        .char_indices()
        .filter(|(at, letter)| is_of_key(*letter) && (*at == 0 || !line[..*at].ends_with(is_of_key)))
        .map(|(at, _)| at);
    let limit = line
        .char_indices()
        .nth(column.saturating_sub(1))
        .map_or(line.len(), |(at, _)| at);
    while let Some(at) = words.next().filter(|at| *at <= limit) {
        let word = line[at..]
            .split(|letter| !is_of_key(letter))
            .next()
            .unwrap_or_default();
        let rest = line[at + word.len()..]
            .trim_start_matches(['"', '\''])
            .trim_start();
        if rest.starts_with(':') {
            found = keys.iter().find(|key| **key == word).copied();
        }
    }
    found
}

/// The kind of a mistake, in words that hold nothing of the file.
fn what(error: &Error) -> &'static str {
    match bare(error) {
        Error::Eof { .. } => "the file ends too early",
        Error::MultipleDocuments { .. } => "there is more than one document in the file",
        Error::DuplicateMappingKey { .. } => "a key stands twice; keep one of the two",
        Error::SerdeUnknownField { .. } => "a key is not known here",
        Error::SerdeMissingField { field, .. } => missing(field),
        Error::SerdeInvalidType { expected, .. } | Error::SerdeInvalidValue { expected, .. } => {
            wanted(expected)
        }
        Error::Unexpected { expected, .. } => wanted(expected),
        Error::NullIntoString { .. } => "a text is expected, and there is nothing",
        Error::InvalidScalar { ty, .. } => wanted(ty),
        Error::InvalidBooleanStrict { .. } => wanted("bool"),
        Error::TaggedScalarCannotDeserializeIntoString { .. } => wanted("string"),
        Error::SerdeUnknownVariant { .. } | Error::SerdeVariantId { .. } => {
            "not one of the words that are allowed"
        }
        Error::UnknownAnchor { .. } => {
            "an alias (`*`) names an anchor that is not there; quote values that begin with `*`"
        }
        Error::InvalidUtf8Input => "the file is not a text in UTF-8",
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => "the file is too large or nested too deeply",
        Error::ExternalMessage { msg, .. } if msg.contains("quote") => {
            "not valid YAML: a quoted text does not end, or goes on after its end"
        }
        Error::ExternalMessage { msg, .. } if msg.contains("mapping values") => {
            "not valid YAML: a colon stands where no key is expected; quote values that hold `: `"
        }
        Error::ExternalMessage { .. } => {
            "not valid YAML; look at the indentation, quotes and colons here and one line above"
        }
        _ => "not what is expected here",
    }
}

/// What is said to be expected, by the kind of its description.
fn wanted(expected: &str) -> &'static str {
    let is = |words: &[&str]| words.iter().any(|word| expected.contains(word));
    if is(&["sequence", "list", "array"]) {
        "a list is expected"
    } else if is(&["struct", "map", "object"]) {
        "a mapping of keys to values is expected"
    } else if is(&["bool"]) {
        "true or false is expected"
    } else if is(&["string", "str"]) {
        "a text is expected"
    } else if is(&[
        "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "integer", "number",
    ]) {
        "a number is expected"
    } else {
        "a value of another kind is expected"
    }
}

/// That a key is missing; `field` is a word of the program's own.
fn missing(field: &'static str) -> &'static str {
    match field {
        "name" => "an entry has no `name`",
        "cluster" => "an entry has no `cluster`",
        "apiVersion" => "there is no `apiVersion`",
        "kind" => "there is no `kind`",
        _ => "a key is missing",
    }
}

#[cfg(test)]
mod tests;
