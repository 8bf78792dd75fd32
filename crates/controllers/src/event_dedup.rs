//! De-duplication of events and lines of the log: nobody is told the same at each look, and nothing that still holds is ever silent
//! for long.

use std::time::Duration;

use bowline_plan::{Note, NoteKind};
use tokio::time::Instant;

/// After this time a failure that still holds is said again, so that the API server counts up one event and does not forget it: it
/// keeps events for an hour. Failures are tried again every five minutes, so none is silent for a quarter of an hour.
const AGAIN: Duration = Duration::from_secs(10 * 60);

/// The same for what a plan notes beside its steps: of what has settled, a plan is made every ten minutes.
const NOTED_AGAIN: Duration = Duration::from_secs(5 * 60);

/// What was said of one object, by subject: the reason of an event, or a word for a line in the log.
///
/// It stands beside what else is remembered of the object, and is forgotten with it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct EventDedup(Vec<Told>);

#[derive(Debug, PartialEq, Eq)]
struct Told {
    subject: &'static str,
    text: String,
    occasion: u64,
    at: Instant,
}

impl Told {
    fn is(&self, note: &Note) -> bool {
        (self.subject, &self.text, self.occasion) == (note.reason, &note.text, note.occasion)
    }

    /// Says it again, if that is due.
    fn again(&mut self, after: Duration) -> bool {
        let now = Instant::now();
        let is_due = now >= self.at + after;
        if is_due {
            self.at = now;
        }
        is_due
    }
}

impl EventDedup {
    /// Whether this is to be told: it is another text than the last one on the subject, or was said [long ago](AGAIN).
    pub(crate) fn is_news(&mut self, subject: &'static str, text: &str) -> bool {
        let mut told = self.0.iter_mut();
        if let Some(told) = told.find(|told| (told.subject, told.text.as_str()) == (subject, text)) {
            return told.again(AGAIN);
        }
        self.over(subject);
        self.0.push(Told {
            subject,
            text: text.to_owned(),
            occasion: 0,
            at: Instant::now(),
        });
        true
    }

    /// The text that was said last on the subject, if it is due to be said again.
    pub(crate) fn again(&mut self, subject: &str) -> Option<&str> {
        let told = self.0.iter_mut().find(|told| told.subject == subject)?;
        told.again(AGAIN).then_some(&told.text)
    }

    /// Whether what holds on a subject is due to be said again, of which a plan is made every ten minutes.
    pub(crate) fn noted_again(&mut self, subject: &str) -> bool {
        let mut told = self.0.iter_mut();
        told.find(|told| told.subject == subject)
            .is_some_and(|told| told.again(NOTED_AGAIN))
    }

    /// Which of a plan's notes are to be told: those that were not yet, and warnings that still hold [after a while](NOTED_AGAIN). What
    /// the plan does not note any more is forgotten, but for subjects that last beyond it: it is news when it comes back.
    pub(crate) fn news<'n>(&mut self, notes: &'n [Note], lasts: impl Fn(&str) -> bool) -> Vec<&'n Note> {
        self.0
            .retain(|told| lasts(told.subject) || notes.iter().any(|note| told.is(note)));
        let is_news = |note: &&Note| match self.0.iter_mut().find(|told| told.is(note)) {
            // What happened once holds no longer.
            Some(told) => note.kind == NoteKind::Warning && note.occasion == 0 && told.again(NOTED_AGAIN),
            None => {
                self.0.push(Told {
                    subject: note.reason,
                    text: note.text.clone(),
                    occasion: note.occasion,
                    at: Instant::now(),
                });
                true
            }
        };
        notes.iter().filter(is_news).collect()
    }

    /// Whether a note was told.
    pub(crate) fn has(&self, note: &Note) -> bool {
        self.0.iter().any(|told| told.is(note))
    }

    /// Nothing holds on this subject any more: whatever comes next is news.
    pub(crate) fn over(&mut self, subject: &str) {
        self.0.retain(|told| told.subject != subject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_said_once_until_another_one_or_none_holds() {
        let mut told = EventDedup::default();
        assert!(told.is_news("Failed", "quota"));
        assert!(!told.is_news("Failed", "quota"));
        assert!(told.is_news("Failed", "denied"));
        assert!(told.is_news("Failed", "quota"));
        told.over("Failed");
        assert!(told.is_news("Failed", "quota"));
    }

    #[test]
    fn a_note_that_a_plan_leaves_out_is_news_when_it_comes_back_unless_its_subject_lasts() {
        let mut told = EventDedup::default();
        let notes = [
            Note::warning("Orphan", "block 7"),
            Note::warning("Orphan", "block 8"),
        ];
        let lasts = |subject: &str| subject == "Failed";
        assert_eq!(told.news(&notes, lasts).len(), 2);
        assert!(told.is_news("Failed", "quota"));
        assert!(told.news(&notes, lasts).is_empty());
        assert!(told.news(&notes[..1], lasts).is_empty());
        assert_eq!(told.news(&notes, lasts), [&notes[1]]);
        assert!(told.has(&notes[0]) && !told.is_news("Failed", "quota"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_still_holds_is_said_again_and_what_happened_once_is_not() {
        let mut told = EventDedup::default();
        let notes = [
            Note::warning("Ignored", "annotation"),
            Note::warning("Moved", "address 7").on_occasion(1),
        ];
        let mut times = (0, 0);
        for _ in 0..60 {
            times.0 += usize::from(told.is_news("Failed", "quota"));
            times.1 += told.news(&notes, |subject| subject == "Failed").len();
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        assert_eq!(times, (6, 12 + 1));
    }

    #[test]
    fn what_happens_again_is_news_each_time_and_once_only() {
        let mut told = EventDedup::default();
        for occasion in [0, 1, 2] {
            let notes = [Note::warning("Moved", "address 7").on_occasion(occasion)];
            assert_eq!(told.news(&notes, |_| false).len(), 1);
            assert!(told.has(&notes[0]));
            assert!(told.news(&notes, |_| false).is_empty());
        }
    }
}
