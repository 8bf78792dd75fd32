//! The write gate: the last question before a write leaves the process.

/// Says whether a write may begin now.
///
/// A manager that may have lost its lease must not write any more, however long a write waited in a queue or for its
/// next try. So this is asked innermost, immediately before the request is handed to the transport.
///
/// What may still come between the question and the first byte is making a connection, where none is free: at most
/// [`SocketOptions::connect_timeout`](crate::SocketOptions). A gate that closes some seconds before writes become
/// dangerous covers the usual connection, and the write timeout bounds the rest.
pub trait WriteGate: Send + Sync {
    /// Lets the write pass, or says why it must not begin.
    ///
    /// # Errors
    ///
    /// [`GateClosed`] keeps the write from being sent; nothing has happened then.
    fn check(&self) -> Result<(), GateClosed>;
}

/// The write was not sent, because writes are not allowed now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct GateClosed {
    /// Why writes are not allowed, e.g. `the lease may have been lost`.
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

/// A gate that lets every write pass: for commands that run without a lease.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenGate;

impl WriteGate for OpenGate {
    fn check(&self) -> Result<(), GateClosed> {
        Ok(())
    }
}

impl<F> WriteGate for F
where
    F: Fn() -> Result<(), GateClosed> + Send + Sync,
{
    fn check(&self) -> Result<(), GateClosed> {
        self()
    }
}
