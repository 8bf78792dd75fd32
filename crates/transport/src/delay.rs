//! The delay that an answer states, and how a time is told.

use std::time::Duration;

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

/// The delay that an answer asks for in `Retry-After` (RFC 9110, section 10.2.3), at most `longest`.
///
/// It is seconds, or a date, which is taken relative to the answer's own `Date`, so that the local wall clock does not
/// matter. What is neither is no delay, and neither is one of nothing: whoever took it to the letter would ask again and
/// again. The bound holds because the number is the other side's: one that is mistaken, or hostile, could otherwise have
/// us wait for ever.
pub fn stated_delay(headers: &HeaderMap, longest: Duration) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let stated = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Only a number that is too large does not parse.
        text.parse().map_or(longest, Duration::from_secs)
    } else {
        let until = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
        let sent = jiff::fmt::rfc2822::parse(headers.get(DATE)?.to_str().ok()?)
            .ok()?
            .timestamp();
        Duration::try_from(until.duration_since(sent)).ok()?
    };
    (!stated.is_zero()).then(|| stated.min(longest))
}

/// A time as people read it: in whole seconds, and in tenths of one below that.
pub fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        below @ ..0.95 => format!("{below:.1} s"),
        seconds => format!("{seconds:.0} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_whole_seconds() {
        for (millis, told) in [
            (0, "0.0 s"),
            (437, "0.4 s"),
            (949, "0.9 s"),
            (999, "1 s"),
            (7_206, "7 s"),
            (24_474, "24 s"),
            (60_000, "60 s"),
        ] {
            assert_eq!(seconds(Duration::from_millis(millis)), told, "{millis}");
        }
    }

    #[test]
    fn a_delay_is_read_as_seconds_or_relative_to_the_answers_date_and_is_bounded() {
        let now = "Wed, 21 Oct 2015 07:28:00 GMT";
        let table = [
            ("120", None, Some(120)),
            (" 7 ", None, Some(7)),
            ("600", None, Some(600)),
            ("601", None, Some(600)),
            ("3600", None, Some(600)),
            ("18446744073709551615", None, Some(600)),
            ("99999999999999999999999", None, Some(600)),
            ("0", None, None),
            ("000", None, None),
            ("-1", None, None),
            ("+5", None, None),
            ("1.5", None, None),
            ("1e9", None, None),
            ("NaN", None, None),
            ("soon", None, None),
            ("", None, None),
            ("Wed, 21 Oct 2015 07:28:30 GMT", Some(now), Some(30)),
            ("Wed, 21 Oct 2015 07:27:00 GMT", Some(now), None),
            ("Wed, 29 Dec 9999 23:59:59 GMT", Some(now), Some(600)),
            // Beyond what a date can be.
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(now), None),
            ("Wed, 21 Oct 2015 07:28:30 GMT", None, None),
            ("Wed, 21 Oct 2015 07:28:30 GMT", Some("today"), None),
        ];
        for (retry_after, date, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, retry_after.parse().unwrap());
            if let Some(date) = date {
                headers.insert(DATE, date.parse().unwrap());
            }
            let delay = stated_delay(&headers, Duration::from_secs(600));
            assert_eq!(
                delay.map(|delay| delay.as_secs()),
                expected,
                "{retry_after} {date:?}"
            );
        }
        assert_eq!(stated_delay(&HeaderMap::new(), Duration::MAX), None);
    }
}
