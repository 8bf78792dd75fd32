//! Values that are more than texts, as the Go parser reads them.

/// Reads a switch. Letter case does not count, and a variable without an equals sign is on.
pub fn switch(value: Option<&str>) -> Option<bool> {
    let Some(value) = value else {
        return Some(true);
    };
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Reads a number: decimal, or hexadecimal after `0x`, with a sign if it has one.
pub fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let (radix, digits) = match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        _ => (10, digits),
    };
    // The parser of numbers takes a sign of its own.
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let number = i128::from(u64::from_str_radix(digits, radix).ok()?);
    i64::try_from(sign * number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_one_of_eight_words_or_a_bare_name() {
        for word in ["true", "YES", "On", "1"] {
            assert_eq!(switch(Some(word)), Some(true), "{word}");
        }
        for word in ["false", "No", "OFF", "0"] {
            assert_eq!(switch(Some(word)), Some(false), "{word}");
        }
        assert_eq!(switch(None), Some(true));
        for word in ["", "2", "y", "enabled"] {
            assert_eq!(switch(Some(word)), None, "{word}");
        }
    }

    #[test]
    fn a_number_is_decimal_or_hexadecimal() {
        let table = [
            ("0", Some(0)),
            ("10", Some(10)),
            ("010", Some(10)),
            ("0x1F", Some(31)),
            ("-3", Some(-3)),
            ("+3", Some(3)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("", None),
            ("-", None),
            ("0x", None),
            ("--1", None),
            ("0x-1", None),
            ("1.5", None),
            ("ten", None),
            ("a", None),
            ("ü1", None),
        ];
        for (text, number) in table {
            assert_eq!(integer(text), number, "{text}");
        }
    }
}
