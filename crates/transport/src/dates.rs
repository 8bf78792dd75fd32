//! The clock of the other side, as its answers tell.

use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderMap;
use http::header::DATE;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// What time it was where the last answer came from. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Dates(Arc<Mutex<Option<(Timestamp, Instant)>>>);

impl Dates {
    /// Notes the `Date` of an answer that came just now; of several, the last one. It is exact to a second.
    pub fn note(&self, headers: &HeaderMap) {
        let date = headers.get(DATE).and_then(|date| date.to_str().ok());
        if let Some(date) = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()) {
            let noted = (date.timestamp(), Instant::now());
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(noted);
        }
    }

    /// What time it is there now; `None` if no answer has told it.
    pub fn now(&self) -> Option<Timestamp> {
        let (date, noted) = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let since = SignedDuration::try_from(noted.elapsed()).ok()?;
        date.checked_add(since).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_clock_of_the_other_side_goes_on_after_its_answer() {
        let dates = Dates::default();
        let mut headers = HeaderMap::new();
        dates.note(&headers);
        assert_eq!(dates.now(), None);
        headers.insert(DATE, "Wed, 21 Oct 2015 07:28:00 GMT".parse().unwrap());
        dates.note(&headers);
        tokio::time::advance(Duration::from_secs(5)).await;
        headers.insert(DATE, "today".parse().unwrap());
        dates.note(&headers);
        assert_eq!(dates.now(), "2015-10-21T07:28:05Z".parse().ok());
    }
}
