//! The gate: the last question before a request leaves the process.

/// Says whether a request may begin now.
///
/// A manager that may have lost its lease must not call the cloud any more, however long a request waited in a queue,
/// for its next try or for a connection. So this is asked innermost: when the request is handed over to the transport,
/// and again by each connection before it sends, so that nothing that can wait comes after the last question.
///
/// Reads are asked about as well. They do no harm by themselves, but a manager that does not lead has no use for their
/// answers, and should not spend a budget that it shares with the one that leads.
pub trait RequestGate: Send + Sync {
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

/// A gate that lets every request pass: for commands that run without a lease.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenGate;

impl RequestGate for OpenGate {
    fn check(&self) -> Result<(), GateClosed> {
        Ok(())
    }
}

impl<F> RequestGate for F
where
    F: Fn() -> Result<(), GateClosed> + Send + Sync,
{
    fn check(&self) -> Result<(), GateClosed> {
        self()
    }
}
