//! The gate: the last question before a request leaves the process.

/// Says whether a request may begin now.
///
/// A manager that may have lost its lease must not send any more, however long a request waited in a queue, for its next
/// try or for a connection. So each stack asks innermost: when the request is handed over to be sent, and again when a
/// connection is ready to send its first byte, so that nothing that can wait comes after the last question.
///
/// Before which requests it is asked is for the stack: before all of them to a cloud, because whoever does not lead has no use
/// for the answers and should not spend a budget that it shares with the one that leads; before writes to the API server,
/// because followers keep their caches warm.
pub trait Gate: Send + Sync {
    /// Lets the request pass, or says why it must not begin.
    ///
    /// # Errors
    ///
    /// [`GateClosed`] keeps the request from being sent; nothing has happened then.
    fn check(&self) -> Result<(), GateClosed>;
}

/// The request was not sent, because requests are not allowed now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct GateClosed {
    /// Why requests are not allowed, e.g. `the lease may have been lost`.
    pub reason: String,
}

impl GateClosed {
    /// A refusal with its reason.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

/// A gate that lets every request pass: for commands that run without a lease, and for the lease itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenGate;

impl Gate for OpenGate {
    fn check(&self) -> Result<(), GateClosed> {
        Ok(())
    }
}

impl<F> Gate for F
where
    F: Fn() -> Result<(), GateClosed> + Send + Sync,
{
    fn check(&self) -> Result<(), GateClosed> {
        self()
    }
}
