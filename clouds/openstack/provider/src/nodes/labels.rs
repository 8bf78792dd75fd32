//! What may stand in a label of a Node.

/// The most characters of a label's value.
const LONGEST: usize = 63;

/// Whether a text is a label's value as it stands: empty, or letters and digits at both ends and `-`, `_`, `.` between.
pub(crate) fn is_value(text: &str) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric();
    text.len() <= LONGEST
        && text.bytes().all(|byte| is_plain(&byte) || b"-_.".contains(&byte))
        && text.as_bytes().first().is_none_or(is_plain)
        && text.as_bytes().last().is_none_or(is_plain)
}

/// Makes a label's value of a text: each run of characters that none may have becomes one `-`. Two texts may become one
/// value.
pub(crate) fn value(text: &str) -> String {
    let is_known = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let mut value = String::new();
    let mut was_known = true;
    for letter in text.chars() {
        if is_known(letter) {
            value.push(letter);
        } else if was_known {
            value.push('-');
        }
        was_known = is_known(letter);
    }
    let ends = ['-', '_', '.'];
    let value = value.trim_matches(ends);
    // All that is left is ASCII. A cut may leave another such end.
    value[..value.len().min(LONGEST)]
        .trim_end_matches(ends)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_becomes_a_label() {
        let table = [
            ("nova", "nova"),
            ("az 1", "az-1"),
            ("az  /1", "az-1"),
            ("az - 1", "az---1"),
            (" _az.1-", "az.1"),
            ("Zürich", "Z-rich"),
            ("", ""),
            ("!!!", ""),
        ];
        for (zone, label) in table {
            assert_eq!(value(zone), label, "{zone}");
        }
        let long = format!("{}-b", "a".repeat(62));
        assert_eq!(value(&long), "a".repeat(62));
    }

    #[test]
    fn a_value_begins_and_ends_with_a_letter_or_a_digit() {
        let long = "a".repeat(63);
        for text in ["", "m1.large", "a", "A_1-b", long.as_str()] {
            assert!(is_value(text), "{text}");
        }
        let too_long = "a".repeat(64);
        for text in ["m1 large!", "-a", "a.", "ü", too_long.as_str()] {
            assert!(!is_value(text), "{text}");
        }
    }
}
