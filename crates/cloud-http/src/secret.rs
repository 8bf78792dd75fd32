//! Strings that must never be shown.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer};

/// What is shown in place of a secret.
pub(crate) const HIDDEN: &str = "***";

/// A string that cannot print itself; its memory is wiped when it is dropped.
///
/// There is no `Serialize` and no `Deref`: the only way to the text is [`Secret::expose`], which is easy to find in a
/// review.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes the text into custody.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The text itself: for the wire only, never for a message.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// The first four characters, so that a person can tell which token is in use; see [`mask_token`].
    pub fn masked(&self) -> String {
        mask_token(self.expose())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HIDDEN)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// Shows the first four characters of a token and a `*` for each further one.
///
/// A token of four characters or fewer gives an empty text, since showing four would show it all.
pub fn mask_token(token: &str) -> String {
    const SHOWN: usize = 4;

    let length = token.chars().count();
    if length <= SHOWN {
        return String::new();
    }
    token
        .chars()
        .take(SHOWN)
        .chain(std::iter::repeat_n('*', length - SHOWN))
        .collect()
}

/// Replaces every occurrence of the secrets in a text that will be shown.
pub(crate) fn redact(text: &str, secrets: &[Secret]) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        if !secret.expose().is_empty() {
            text = text.replace(secret.expose(), HIDDEN);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print_itself() {
        let secret = Secret::new("s3cr3t-value");
        assert_eq!(format!("{secret} {secret:?} {secret:#?}"), "*** *** ***");
        assert_eq!(secret.expose(), "s3cr3t-value");
    }

    #[test]
    fn a_mask_keeps_four_characters_and_the_length() {
        let table = [
            ("", ""),
            ("abc", ""),
            ("abcd", ""),
            ("abcde", "abcd*"),
            ("abcdefghij", "abcd******"),
            ("äöüßx", "äöüß*"),
        ];
        for (token, mask) in table {
            assert_eq!(mask_token(token), mask, "{token}");
        }
    }

    #[test]
    fn redaction_removes_each_occurrence_and_ignores_an_empty_secret() {
        let secrets = [Secret::new("tok"), Secret::new("")];
        assert_eq!(redact("tok and tok", &secrets), "*** and ***");
    }
}
