//! Whether a failed try is followed by another one, and when.

use std::time::Duration;

use bowline_transport::Backoff;
use http::StatusCode;

use crate::config::RetryPolicy;
use crate::error::Failure;

/// The delay before the next try of a call that may be repeated, or `None` if this failure is final.
///
/// `tries` is the number of tries made so far. `share` draws the share of the longest delay that is waited.
pub(crate) fn delay(
    policy: &RetryPolicy,
    tries: u32,
    failure: &Failure,
    share: impl FnOnce() -> f64,
) -> Option<Duration> {
    if tries >= policy.attempts {
        return None;
    }
    let asked = match failure {
        Failure::Connect(_) | Failure::Broken(_) => None,
        Failure::Status(failure) if is_transient(failure.status) => failure.retry_after,
        _ => return None,
    };
    if asked.is_some_and(|asked| asked > policy.max_retry_after) {
        return None;
    }
    let longest = Backoff {
        base: policy.first_delay,
        max: policy.max_delay,
        jitter: None,
    };
    let drawn = longest.delay(tries - 1, 1.0).mul_f64(share());
    Some(drawn.max(asked.unwrap_or_default()))
}

fn is_transient(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use http::HeaderMap;

    use super::*;
    use crate::error::{Phase, StatusFailure};

    fn status(status: u16, retry_after: Option<u64>) -> Failure {
        Failure::Status(Box::new(StatusFailure {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            retry_after: retry_after.map(Duration::from_secs),
            body: Bytes::new(),
            excerpt: String::new(),
        }))
    }

    #[test]
    fn only_transient_failures_are_repeated() {
        let policy = RetryPolicy::default();
        let broken = || Arc::new(std::io::Error::other("gone"));
        let table = [
            (status(429, None), true),
            (status(502, None), true),
            (status(503, None), true),
            (status(504, None), true),
            (Failure::Connect(broken()), true),
            (Failure::Broken(broken()), true),
            (Failure::Tls(broken()), false),
            (status(400, None), false),
            (status(404, None), false),
            (status(500, None), false),
            (
                Failure::Timeout {
                    phase: Phase::Exchange,
                    after: Duration::from_secs(20),
                },
                false,
            ),
            (Failure::Cancelled, false),
        ];
        for (failure, repeated) in table {
            assert_eq!(
                delay(&policy, 1, &failure, || 0.5).is_some(),
                repeated,
                "{failure}"
            );
        }
    }

    #[test]
    fn delays_double_with_jitter_up_to_the_limit_and_tries_are_bounded() {
        let policy = RetryPolicy {
            attempts: 7,
            ..RetryPolicy::default()
        };
        let millis = |tries, share: f64| {
            delay(&policy, tries, &status(503, None), || share).map(|delay| delay.as_millis())
        };
        let shortest: Vec<_> = (1..=7).map(|tries| millis(tries, 0.5)).collect();
        let longest: Vec<_> = (1..=7).map(|tries| millis(tries, 1.0)).collect();
        assert_eq!(
            shortest,
            [
                Some(250),
                Some(500),
                Some(1000),
                Some(2000),
                Some(2500),
                Some(2500),
                None
            ]
        );
        assert_eq!(
            longest,
            [
                Some(500),
                Some(1000),
                Some(2000),
                Some(4000),
                Some(5000),
                Some(5000),
                None
            ]
        );
    }

    #[test]
    fn the_clouds_own_delay_is_honoured_up_to_the_limit() {
        let policy = RetryPolicy::default();
        assert_eq!(
            delay(&policy, 1, &status(429, Some(9)), || 0.5),
            Some(Duration::from_secs(9))
        );
        assert_eq!(
            delay(&policy, 1, &status(429, Some(30)), || 0.5),
            Some(Duration::from_secs(30))
        );
        assert_eq!(delay(&policy, 1, &status(429, Some(31)), || 0.5), None);
    }
}
