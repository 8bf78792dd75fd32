//! Calls that have no answer for long, while they are waited for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a call may go without an answer before that is told.
pub const TOLD_AFTER: Duration = Duration::from_secs(10);

/// The reads of a cloud that have no answer for long, and are waited for. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Silences(Arc<Mutex<Vec<Unheard>>>);

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unheard {
    /// The call.
    pub call: String,
    /// Whether all others wait for it, as for a sign-in.
    pub is_preliminary: bool,
}

impl Silences {
    /// From now on, until what is returned is dropped, this one is waited for.
    pub fn note(&self, silence: Unheard) -> impl Drop {
        self.lock().push(silence.clone());
        Noted {
            all: self.clone(),
            silence,
        }
    }

    /// The one that is waited for the longest, and first one that all others wait for; `None`: there is none.
    pub fn longest(&self) -> Option<Unheard> {
        let all = self.lock();
        let preliminary = all.iter().find(|it| it.is_preliminary);
        preliminary.or(all.first()).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Unheard>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Noted {
    all: Silences,
    silence: Unheard,
}

impl Drop for Noted {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(at) = all.iter().position(|it| *it == self.silence) {
            all.remove(at);
        }
    }
}
