//! Sizes as Kubernetes writes them: `512`, `64k`, `2Ki`, `1.5Mi`.

/// Decimal and binary suffixes with their factors. `K` is what the Go managers' help shows, `k` what they read.
const SUFFIXES: [(&str, i128); 14] = [
    ("", 1),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("E", 1_000_000_000_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("Ei", 1 << 60),
];

/// Reads a number of bytes; a part of a byte counts as one.
///
/// # Errors
///
/// The text is no quantity, or too large.
pub(super) fn parse(text: &str) -> Result<i64, String> {
    let invalid = || {
        format!("{text:?} is no quantity: must be a number with an optional suffix such as k, Ki, M or Mi")
    };
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (_, factor) = SUFFIXES
        .iter()
        .find(|(name, _)| *name == suffix)
        .ok_or_else(invalid)?;
    let (sign, number) = match number.strip_prefix('-') {
        Some(number) => (-1, number),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // More digits than a byte has parts do not matter.
    let fraction = fraction.get(..fraction.len().min(18)).ok_or_else(invalid)?;
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(invalid());
    }
    let scale = u32::try_from(fraction.len()).map_or(1, |length| 10_i128.pow(length));
    digits
        .parse::<i128>()
        .ok()
        .and_then(|value| value.checked_mul(*factor))
        .map(|value| sign * value.div_euclid(scale) + sign * i128::from(value % scale != 0))
        .and_then(|bytes| i64::try_from(bytes).ok())
        .ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_kubernetes_reads_them() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("64k", 64_000),
            ("64K", 64_000),
            ("2Ki", 2048),
            ("1.5Mi", 1_572_864),
            ("0.1", 1),
            ("+3", 3),
            ("-1", -1),
            ("7E", 7_000_000_000_000_000_000),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "Ki", "1kb", "1 k", ".", "1.2.3", "--1", "99E", "ten"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
