//! What this cloud's Neutron can do for routes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_openstack_client::{Client, Extension};
use tokio::time::Instant;

/// How long the answer is believed: an upgrade shows without a restart.
const LIFE: Duration = Duration::from_secs(3600);

/// How the routes of a router are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Some are added or removed, whatever the others are.
    Atomic,
    /// All are replaced.
    Classic,
}

/// What matters of the extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extensions {
    pub(super) mode: Mode,
    /// Whether ports let only their own addresses and their address pairs through.
    pub(super) has_pairs: bool,
}

impl Extensions {
    /// Reads the list. `None`: routers take no routes.
    pub(super) fn of(listed: &[Extension]) -> Option<Self> {
        let has = |alias: &str| listed.iter().any(|extension| extension.alias == alias);
        let mode = match (has("extraroute-atomic"), has("extraroute")) {
            (true, _) => Mode::Atomic,
            (false, true) => Mode::Classic,
            (false, false) => return None,
        };
        Some(Self {
            mode,
            has_pairs: has("allowed-address-pairs"),
        })
    }
}

/// The last answer.
#[derive(Default)]
pub(super) struct KnownExtensions(Mutex<Option<(Instant, Extensions)>>);

impl KnownExtensions {
    /// What is known, or what Neutron says now if that is too old.
    pub(super) async fn ask(&self, client: &Client) -> Result<Extensions, CloudError> {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, extensions)) = known.filter(|(read, _)| read.elapsed() < LIFE) {
            return Ok(extensions);
        }
        let asked = Instant::now();
        let extensions = Extensions::of(&client.extensions().await?).ok_or_else(|| {
            let text = "the network service has neither the extension extraroute-atomic nor extraroute, so routers take no routes";
            CloudError::new(ErrorKind::NotSupported, text)
        })?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((asked, extensions));
        Ok(extensions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_added_one_by_one_where_neutron_can() {
        let of = |aliases: &[&str]| {
            let listed = aliases.iter().map(|alias| Extension {
                alias: (*alias).to_owned(),
            });
            Extensions::of(&listed.collect::<Vec<_>>())
        };
        let some = |mode, has_pairs| Some(Extensions { mode, has_pairs });
        assert_eq!(
            of(&["router", "extraroute", "extraroute-atomic"]),
            some(Mode::Atomic, false)
        );
        assert_eq!(
            of(&["extraroute", "allowed-address-pairs"]),
            some(Mode::Classic, true)
        );
        assert_eq!(of(&["router", "allowed-address-pairs"]), None);
    }
}
