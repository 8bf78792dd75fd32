//! Connections that may have died without a word.
//!
//! A peer that answers no more looks like one that has nothing to say, and the kernel finds out only where nothing answers for the
//! peer. Whoever proves that one connection is dead has the others ended that have said nothing since then: what waits on them
//! fails at once, and nothing is sent on them again.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::time::Instant;

/// The open connections of a client. Clones are the same.
#[derive(Clone, Default, Debug)]
pub struct Lines(Arc<Mutex<Vec<Weak<Line>>>>);

impl Lines {
    /// Ends the connections on which nothing was heard for so long; gives how many these were.
    pub fn end_silent(&self, unheard_for: Duration) -> usize {
        self.end(|state| state.heard.elapsed() >= unheard_for)
    }

    /// The same for those on which nobody waits for an answer either: where an answer may take longer than that.
    pub fn end_unused(&self, unheard_for: Duration) -> usize {
        self.end(|state| !state.is_asked && state.heard.elapsed() >= unheard_for)
    }

    fn end(&self, is_dead: impl Fn(&State) -> bool) -> usize {
        let lines = self.lines();
        let open = lines.iter().filter_map(Weak::upgrade);
        open.filter(|line| line.end_if(&is_dead)).count()
    }

    /// A connection that is made now.
    pub(crate) fn open(&self) -> Arc<Line> {
        let line = Arc::new(Line(Mutex::new(State {
            heard: Instant::now(),
            is_asked: false,
            is_ended: false,
            reader: None,
        })));
        let mut lines = self.lines();
        lines.retain(|line| line.strong_count() > 0);
        lines.push(Arc::downgrade(&line));
        line
    }

    fn lines(&self) -> MutexGuard<'_, Vec<Weak<Line>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Line(Mutex<State>);

#[derive(Debug)]
struct State {
    /// When something came, or when it was made.
    heard: Instant,
    /// Something was sent since then.
    is_asked: bool,
    is_ended: bool,
    /// Who waits for what comes.
    reader: Option<Waker>,
}

impl Line {
    /// Takes note that something came.
    pub(crate) fn hear(&self) {
        let mut state = self.state();
        (state.heard, state.is_asked) = (Instant::now(), false);
    }

    /// Takes note that something is sent.
    pub(crate) fn ask(&self) {
        self.state().is_asked = true;
    }

    /// Fails if the connection was ended.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.state().is_ended {
            true => Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the connection was given up: another one had died without a word, and this one had been silent since then",
            )),
            false => Ok(()),
        }
    }

    /// Wakes this reader if the connection is ended.
    pub(crate) fn wait(&self, cx: &Context<'_>) {
        let reader = &mut self.state().reader;
        if !reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
            *reader = Some(cx.waker().clone());
        }
    }

    fn end_if(&self, is_dead: impl Fn(&State) -> bool) -> bool {
        let mut state = self.state();
        let ends = !state.is_ended && is_dead(&state);
        state.is_ended |= ends;
        let reader = state.reader.take_if(|_| ends);
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        ends
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
