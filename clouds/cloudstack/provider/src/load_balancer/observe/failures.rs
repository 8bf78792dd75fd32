//! What a removal could not close, and where it could not be told what to close.
//!
//! A port is closed before its rule goes, so that nothing stays open by mistake. But what cannot be closed must not keep a
//! balancer that nobody wants: after a few tries it is left, and people are told. Of what cannot be listed nobody can be told what is
//! left. So that is looked for until it is known, but by the Service alone: its rules are gone by then.

use std::collections::BTreeMap;

use bowline_cloud_provider::CloudError;
use bowline_cloud_provider::ErrorKind;

/// A failed write.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// What to say of it.
    pub(crate) error: CloudError,
    /// Whether the API itself said so. If not, the write may have had its effect.
    pub(crate) is_definite: bool,
    /// Whether the write was sent, and no answer of the API came.
    pub(crate) is_unheard: bool,
    /// Whether the write was to take back what an earlier failure left.
    pub(crate) is_rollback: bool,
}

impl Failure {
    pub(crate) fn new(error: CloudError, is_definite: bool) -> Self {
        Self {
            error,
            is_definite,
            is_unheard: false,
            is_rollback: false,
        }
    }

    /// The same, of a write that was sent without an answer of the API if `is_unheard`.
    pub(crate) fn unheard(self, is_unheard: bool) -> Self {
        Self { is_unheard, ..self }
    }
}

/// How often it is tried to close one thing, unless the API says that it will never be.
const TRIES: u32 = 3;

/// Firewall rules and items of ACL lists whose deletion failed, by ID; and addresses and ACL lists by ID, what lets ports in at
/// which could not be listed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unclosed(BTreeMap<String, Tried>);

#[derive(Debug, Clone)]
struct Tried {
    times: u32,
    is_hopeless: bool,
    /// It is tried again after the next look only.
    rests: bool,
    error: String,
}

impl Unclosed {
    /// A try has failed.
    pub(crate) fn failed(&mut self, id: &str, failure: &Failure) {
        let times = self.0.get(id).map_or(0, |tried| tried.times);
        let will_never = matches!(failure.error.kind(), ErrorKind::Invalid | ErrorKind::Denied);
        let tried = Tried {
            times: times + 1,
            is_hopeless: failure.is_definite && will_never,
            rests: true,
            error: failure.error.to_string(),
        };
        self.0.insert(id.to_owned(), tried);
    }

    /// What was left to rest is tried again.
    pub(crate) fn rested(&self) -> Self {
        let mut all = self.clone();
        all.0.values_mut().for_each(|tried| tried.rests = false);
        all
    }

    /// Why it is tried no more to close something.
    pub(crate) fn given_up(&self, id: &str) -> Option<&str> {
        let tried = self.0.get(id)?;
        (tried.is_hopeless || tried.times >= TRIES).then_some(tried.error.as_str())
    }

    /// The same of what could not be listed, if it may be another time: then it is waited for when the rest is gone.
    pub(crate) fn unlisted(&self, id: &str) -> Option<&str> {
        let tried = self.0.get(id).filter(|tried| !tried.is_hopeless);
        tried.and_then(|_| self.given_up(id))
    }

    /// Whether something is to be tried again, and not now.
    pub(crate) fn rests(&self, id: &str) -> bool {
        self.0.get(id).is_some_and(|tried| tried.rests)
    }
}
