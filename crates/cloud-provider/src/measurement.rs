//! What a provider counts, for `/metrics`.

/// A series that a provider's [background work](crate::BackgroundWork) keeps current. The reference page is made from
/// these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GaugeSpec {
    /// The name: the provider's, then what is counted, such as `nimbus_volumes`. Dashboards and alerts go by it, so it is
    /// fixed for ever.
    pub name: &'static str,
    /// What is counted, for `# HELP`.
    pub help: &'static str,
    /// The label that tells its series apart; empty: there is one series without a label.
    pub label: &'static str,
}

/// One series of a gauge, and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measurement {
    /// Which gauge it is.
    pub gauge: &'static GaugeSpec,
    /// The value of its label, one of a few that are known in advance; empty without a label.
    pub of: &'static str,
    /// How many there are.
    pub count: usize,
}

impl GaugeSpec {
    /// How many there are of this gauge's things, or of those with this value of its label.
    #[must_use]
    pub fn measure(&'static self, of: &'static str, count: usize) -> Measurement {
        Measurement {
            gauge: self,
            of,
            count,
        }
    }
}
