//! The story as it is told: one line per fact, with the time since the start.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

/// Where the story goes.
pub type Output = Box<dyn Write + Send>;

/// Tells the story. Clones tell the same one.
#[derive(Clone)]
pub struct Narrator(Arc<Shared>);

struct Shared {
    start: Instant,
    output: Mutex<Output>,
    recent: Mutex<Recent>,
    is_styled: bool,
}

/// How many of the last lines are remembered.
const REMEMBERED: usize = 60;

/// One line of the story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its place in the story.
    pub(crate) number: u64,
    /// Since the start.
    pub(crate) milliseconds: u128,
    /// Whether a new part begins with it.
    pub(crate) is_chapter: bool,
    pub(crate) text: String,
}

#[derive(Default)]
struct Recent {
    said: u64,
    lines: VecDeque<Line>,
}

impl Narrator {
    /// Begins now. Style is weight only, it carries no meaning, and is for terminals.
    pub fn new(output: Output, is_styled: bool) -> Self {
        Self(Arc::new(Shared {
            start: Instant::now(),
            output: Mutex::new(output),
            recent: Mutex::default(),
            is_styled,
        }))
    }

    /// A new part of the story.
    pub(crate) fn chapter(&self, title: &str) {
        self.remember(true, title);
        let title = self.weighed("1", title);
        self.write(&format!("\n{title}\n"));
    }

    /// Something happened just now.
    pub(crate) fn tell(&self, text: impl AsRef<str>) {
        self.remember(false, text.as_ref());
        let time = self.weighed("2", &stamp(self.0.start.elapsed().as_millis()));
        self.write(&format!("{time}  {}\n", text.as_ref()));
    }

    /// Something that was checked holds, or not.
    pub(crate) fn verdict(&self, what: &str, failure: Option<&str>) {
        match failure {
            None => self.tell(format!("ok      {what}")),
            Some(why) => self.tell(format!("FAILED  {what}: {why}")),
        }
    }

    /// Text that stands for itself, set in.
    pub(crate) fn quote(&self, text: &str) {
        let set_in: String = text
            .trim_end()
            .lines()
            .map(|line| format!("          {line}\n").replace("          \n", "\n"))
            .collect();
        self.write(&set_in);
    }

    /// The last lines in order, without what was quoted.
    pub(crate) fn recent(&self) -> Vec<Line> {
        let recent = self.0.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.lines.iter().cloned().collect()
    }

    fn remember(&self, is_chapter: bool, text: &str) {
        let mut recent = self.0.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let line = Line {
            number: recent.said,
            milliseconds: self.0.start.elapsed().as_millis(),
            is_chapter,
            text: text.to_owned(),
        };
        recent.said += 1;
        recent.lines.push_back(line);
        let excess = recent.lines.len().saturating_sub(REMEMBERED);
        recent.lines.drain(..excess);
    }

    fn weighed(&self, weight: &str, text: &str) -> String {
        if self.0.is_styled {
            format!("\x1b[{weight}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// One write for each piece, so that pieces of several tasks do not mix.
    fn write(&self, text: &str) {
        let mut output = self.0.output.lock().unwrap_or_else(PoisonError::into_inner);
        // A reader who has gone away, as `head` does, needs no story.
        let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    }
}

/// Seconds with one digit, right-aligned.
fn stamp(milliseconds: u128) -> String {
    format!("{:>4}.{} s", milliseconds / 1000, milliseconds % 1000 / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that can be read while the narrator writes to it.
    #[derive(Clone, Default)]
    struct Memory(Arc<Mutex<Vec<u8>>>);

    impl Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lines_carry_the_time_since_the_start_and_no_style_unless_asked() {
        let memory = Memory::default();
        let narrator = Narrator::new(Box::new(memory.clone()), false);
        tokio::time::advance(std::time::Duration::from_millis(12_340)).await;
        narrator.tell("a node appears");
        narrator.verdict("it is there", Some("it is not"));
        narrator.quote("a\n\nb");
        let text = String::from_utf8(memory.0.lock().unwrap().clone()).unwrap();
        assert_eq!(
            text,
            "  12.3 s  a node appears\n  12.3 s  FAILED  it is there: it is not\n          a\n\n          b\n"
        );
    }

    #[test]
    fn the_last_lines_are_remembered_and_what_is_quoted_is_not() {
        let narrator = Narrator::new(Box::new(Memory::default()), false);
        narrator.chapter("The beginning");
        narrator.quote("a command line");
        for number in 0..REMEMBERED {
            narrator.tell(format!("line {number}"));
        }
        let recent = narrator.recent();
        assert_eq!(recent.len(), REMEMBERED);
        assert_eq!((recent[0].number, recent[0].text.as_str()), (1, "line 0"));
        assert!(!recent[0].is_chapter);
    }

    #[test]
    fn stamps_stay_in_line() {
        assert_eq!([stamp(0), stamp(99_999)], ["   0.0 s", "  99.9 s"]);
    }
}
