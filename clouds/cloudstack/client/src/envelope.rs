//! The one object around every answer: `{"commandresponse": payload}`.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// What is inside, unread. The member's name is normally the command's in lower case and `response`, but an error's may
/// be another: any name is taken.
///
/// # Errors
///
/// The body is no such object; the text says what it is instead.
pub(crate) fn open(body: &[u8]) -> Result<&RawValue, String> {
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let answer = |name: &str| name.to_ascii_lowercase().ends_with("response");
    match members.len() {
        1 => members.into_values().next(),
        _ => members
            .into_iter()
            .find(|(name, _)| answer(name))
            .map(|(_, payload)| payload),
    }
    .ok_or_else(|| "no member with a response".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_is_taken() {
        for body in [
            r#"{"listzonesresponse":{"count":1}}"#,
            r#"{"errorresponse":{"count":1}}"#,
            r#"{"x": {"count":1}}"#,
            r#"{"aside":1,"listzonesresponse":{"count":1},"more":[]}"#,
        ] {
            assert_eq!(open(body.as_bytes()).unwrap().get(), r#"{"count":1}"#, "{body}");
        }
    }

    #[test]
    fn what_is_no_envelope_is_told() {
        for (body, reason) in [
            ("<html>", "expected value at line 1 column 1"),
            ("", "EOF while parsing a value at line 1 column 0"),
            ("{}", "no member with a response"),
            (r#"{"a":1,"b":2}"#, "no member with a response"),
        ] {
            assert_eq!(open(body.as_bytes()).unwrap_err(), reason, "{body}");
        }
    }
}
