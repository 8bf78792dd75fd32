//! What is wrong with a Service, without a cluster and without a cloud: for tests of whatever else judges Services.

use std::sync::Arc;

use bowline_cloud_provider::{Service, ServiceFacts};

use super::intent::Intent;
use super::intent::read::read;
use crate::messages::IGNORED_ANNOTATIONS;

/// Why a Service would be refused for what it says, and which of its annotations have no effect. Empty if there is nothing to
/// complain of, or no load balancer is wanted.
#[must_use]
pub fn complaints(service: &Service) -> Vec<String> {
    let facts = ServiceFacts::alone(Arc::new(service.clone()));
    match read(&facts) {
        Err(refusal) => vec![refusal.reason],
        Ok(Intent::Absent(_)) => Vec::new(),
        Ok(Intent::Wanted(wanted)) => {
            let notes = wanted.notes.into_iter();
            let notes = notes.filter(|note| note.reason == IGNORED_ANNOTATIONS.reason);
            let refusal = wanted.refusal.map(|refusal| refusal.reason);
            refusal.into_iter().chain(notes.map(|note| note.text)).collect()
        }
    }
}
