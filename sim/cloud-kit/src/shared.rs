//! The state of a simulated cloud, and how it is shared.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The state of a simulated cloud.
pub trait Simulated: Send + 'static {
    /// Brings everything up to now that changes by the clock alone.
    fn settle(&mut self);
}

/// A state that the API, the data plane and a test's handle share. Clones are the same state.
pub struct Shared<S> {
    state: Arc<Mutex<S>>,
    changed: Arc<Notify>,
}

impl<S> Clone for Shared<S> {
    fn clone(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            changed: Arc::clone(&self.changed),
        }
    }
}

impl<S> fmt::Debug for Shared<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl<S: Simulated> Shared<S> {
    /// Shares a state.
    pub fn new(state: S) -> Self {
        Self {
            state: Arc::new(Mutex::new(state)),
            changed: Arc::default(),
        }
    }

    /// The state as it is at this moment of the clock.
    pub fn read(&self) -> MutexGuard<'_, S> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.settle();
        state
    }

    /// Changes the state and tells the data plane.
    pub fn write<T>(&self, change: impl FnOnce(&mut S) -> T) -> T {
        let answer = {
            let mut state = self.read();
            let answer = change(&mut state);
            state.settle();
            answer
        };
        self.ring();
        answer
    }

    /// Tells the data plane that the state was changed.
    pub fn ring(&self) {
        self.changed.notify_one();
    }

    /// Rung after each change.
    pub fn changed(&self) -> Arc<Notify> {
        Arc::clone(&self.changed)
    }
}
