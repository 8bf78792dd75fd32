//! How a look at something ended, for `doctor` and for `explain`.

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// As it should be.
    Ok,
    /// Worth a look.
    Warning,
    /// The manager cannot do its work, or a part of it.
    Failed,
    /// There was nothing to go by, because of an earlier failure.
    Skipped,
}

impl Outcome {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}
