//! Durations as Go programs write them: `10s`, `5m0s`, `1h2m`, `1.5h`.

use jiff::SignedDuration;

const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a duration: a sign, then numbers with units, of which every one may have a fraction; or `0`.
///
/// # Errors
///
/// The text as the flag library of the Go managers words it.
pub fn parse(text: &str) -> Result<SignedDuration, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut nanoseconds: i128 = 0;
    while !rest.is_empty() {
        let (number, after) = split_while(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, after) = split_while(after, |c| !c.is_ascii_digit() && c != '.');
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("time: unknown unit {unit:?} in duration {text:?}"));
        };
        nanoseconds = scaled(number, *scale)
            .and_then(|part| nanoseconds.checked_add(part))
            .ok_or_else(invalid)?;
        rest = after;
    }
    let signed = if negative { -nanoseconds } else { nanoseconds };
    i64::try_from(signed)
        .map(SignedDuration::from_nanos)
        .map_err(|_| invalid())
}

fn split_while(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !keep(c)).unwrap_or(text.len()))
}

fn scaled(number: &str, scale: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut value = whole.checked_mul(scale)?;
    // More than 18 digits are below a nanosecond for every unit.
    let fraction = &fraction[..fraction.len().min(18)];
    if !fraction.is_empty() {
        let digits: i128 = fraction.parse().ok()?;
        let power = u32::try_from(fraction.len()).ok()?;
        value = value.checked_add(digits * scale / 10_i128.pow(power))?;
    }
    Some(value)
}

/// Writes a duration as Go does: `15s`, `5m0s`, `12h0m0s`, `1.5s`, `100ms`.
pub fn format(duration: SignedDuration) -> String {
    let nanoseconds = duration.as_nanos();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let nanoseconds = nanoseconds.unsigned_abs();
    let unit = match nanoseconds {
        0 => return "0s".to_owned(),
        1..1_000 => Some((1, "ns")),
        1_000..1_000_000 => Some((1_000, "µs")),
        1_000_000..1_000_000_000 => Some((1_000_000, "ms")),
        _ => None,
    };
    if let Some((scale, name)) = unit {
        return format!("{sign}{}{name}", decimal(nanoseconds, scale));
    }
    let minutes = nanoseconds / 60_000_000_000;
    let seconds = decimal(nanoseconds % 60_000_000_000, 1_000_000_000);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

fn decimal(value: u128, scale: u128) -> String {
    let width = scale.ilog10() as usize;
    let fraction = format!("{:0width$}", value % scale);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        (value / scale).to_string()
    } else {
        format!("{}.{fraction}", value / scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, milliseconds) in [
            ("10s", 10_000),
            ("5m0s", 300_000),
            ("1h2m", 3_720_000),
            ("1.5h", 5_400_000),
            (".5s", 500),
            ("-2s", -2_000),
            ("+3ms", 3),
            ("0", 0),
            ("0s", 0),
            ("1500000us", 1_500),
        ] {
            assert_eq!(
                parse(text),
                Ok(SignedDuration::from_millis(milliseconds)),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_in_go_s_words() {
        assert_eq!(parse("10").unwrap_err(), r#"time: missing unit in duration "10""#);
        assert_eq!(
            parse("1d").unwrap_err(),
            r#"time: unknown unit "d" in duration "1d""#
        );
        for text in [
            "",
            "-",
            "s",
            ".s",
            "1.2.3s",
            "9999999999999h",
            "99999999999999999999999999999999999999999h",
        ] {
            assert_eq!(
                parse(text).unwrap_err(),
                format!("time: invalid duration {text:?}"),
                "{text}"
            );
        }
    }

    #[test]
    fn durations_are_written_as_go_writes_them() {
        for text in [
            "0s",
            "15s",
            "5m0s",
            "12h0m0s",
            "1.5s",
            "100ms",
            "1h2m3.25s",
            "-2s",
            "7ns",
            "1.5µs",
        ] {
            assert_eq!(format(parse(text).unwrap()), text);
        }
    }
}
