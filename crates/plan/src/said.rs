//! What was said already, so that nobody is told the same twice while it holds.

use std::collections::BTreeSet;

use crate::Note;

/// What was said of one object, by subject: the reason of an event, or a word for a line in the log.
///
/// It stands beside what else is remembered of the object, and is forgotten with it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Said(BTreeSet<(&'static str, String, u64)>);

impl Said {
    /// Whether this is another text than the last one on the subject. From now on it is the last one.
    pub fn is_news(&mut self, subject: &'static str, text: &str) -> bool {
        let said = (subject, text.to_owned(), 0);
        if self.0.contains(&said) {
            return false;
        }
        self.over(subject);
        self.0.insert(said)
    }

    /// Which of a plan's notes were not said yet. What the plan does not note any more is forgotten, but for subjects that
    /// last beyond it: it is news when it comes back.
    pub fn news<'n>(&mut self, notes: &'n [Note], lasts: impl Fn(&str) -> bool) -> Vec<&'n Note> {
        self.0.retain(|(subject, text, occasion)| {
            let is_it = |note: &Note| (note.reason, &note.text, note.occasion) == (*subject, text, *occasion);
            lasts(subject) || notes.iter().any(is_it)
        });
        let is_news = |note: &&Note| self.0.insert((note.reason, note.text.clone(), note.occasion));
        notes.iter().filter(is_news).collect()
    }

    /// Whether a note was said.
    #[must_use]
    pub fn has(&self, note: &Note) -> bool {
        self.0.contains(&(note.reason, note.text.clone(), note.occasion))
    }

    /// Nothing holds on this subject any more: whatever comes next is news.
    pub fn over(&mut self, subject: &str) {
        self.0.retain(|(said, ..)| *said != subject);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_said_once_until_another_one_or_none_holds() {
        let mut said = Said::default();
        assert!(said.is_news("Failed", "quota"));
        assert!(!said.is_news("Failed", "quota"));
        assert!(said.is_news("Failed", "denied"));
        assert!(said.is_news("Failed", "quota"));
        said.over("Failed");
        assert!(said.is_news("Failed", "quota"));
    }

    #[test]
    fn a_note_that_a_plan_leaves_out_is_news_when_it_comes_back_unless_its_subject_lasts() {
        let mut said = Said::default();
        let notes = [
            Note::warning("Orphan", "block 7"),
            Note::warning("Orphan", "block 8"),
        ];
        let lasts = |subject: &str| subject == "Failed";
        assert_eq!(said.news(&notes, lasts).len(), 2);
        assert!(said.is_news("Failed", "quota"));
        assert!(said.news(&notes, lasts).is_empty());
        assert!(said.news(&notes[..1], lasts).is_empty());
        assert_eq!(said.news(&notes, lasts), [&notes[1]]);
        assert!(said.has(&notes[0]) && !said.is_news("Failed", "quota"));
    }

    #[test]
    fn what_happens_again_is_news_each_time_and_once_only() {
        let mut said = Said::default();
        for occasion in [0, 1, 2] {
            let notes = [Note::warning("Moved", "address 7").on_occasion(occasion)];
            assert_eq!(said.news(&notes, |_| false).len(), 1);
            assert!(said.has(&notes[0]));
            assert!(said.news(&notes, |_| false).is_empty());
        }
    }
}
