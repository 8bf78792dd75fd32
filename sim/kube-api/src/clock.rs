//! Wall time that follows the runtime's clock, so that a test that stops or advances it rules the server's too.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Wall time = a start + what has passed on the runtime's clock.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    start: Timestamp,
    begun: Instant,
}

impl Clock {
    pub(crate) fn starting_at(start: Timestamp) -> Self {
        Self {
            start,
            begun: Instant::now(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.start
            .checked_add(self.begun.elapsed())
            .unwrap_or(Timestamp::MAX)
    }
}

/// `metav1.Time`: whole seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
    format!("{whole:.0}")
}

/// `metav1.MicroTime`: always six digits.
pub(crate) fn micros(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// An age as `kubectl get` shows it (`k8s.io/apimachinery/pkg/util/duration`, HumanDuration).
pub(crate) fn human(age: Duration) -> String {
    let total = age.as_secs();
    let (minutes, hours) = (total / 60, total / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let two = |whole: u64, unit: &str, part: u64, part_unit: &str| match part {
        0 => format!("{whole}{unit}"),
        _ => format!("{whole}{unit}{part}{part_unit}"),
    };
    match total {
        _ if total < 120 => format!("{total}s"),
        _ if minutes < 10 => two(minutes, "m", total % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, "d", hours % 24, "h"),
        _ if days < 730 => format!("{days}d"),
        _ if years < 8 => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_in_kubectl() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (660, "11m"),
            (10_800, "3h"),
            (11_000, "3h3m"),
            (90_000, "25h"),
            (180_000, "2d2h"),
            (864_000, "10d"),
        ] {
            assert_eq!(human(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn times_are_written_as_the_two_go_types_do() -> Result<(), jiff::Error> {
        let time: Timestamp = "2026-01-02T03:04:05.678901234Z".parse()?;
        assert_eq!(seconds(time), "2026-01-02T03:04:05Z");
        assert_eq!(micros(time), "2026-01-02T03:04:05.678901Z");
        assert_eq!(
            micros("2026-01-02T03:04:05Z".parse()?),
            "2026-01-02T03:04:05.000000Z"
        );
        Ok(())
    }
}
