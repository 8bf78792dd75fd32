//! What is wrong with a Service, without a cluster and without a cloud: for tests of whatever else judges Services.

use std::sync::Arc;

use bowline_cloud_provider::{Service, ServiceFacts};

use crate::events::{KEEP_IP_IGNORED, PROXY_PROTOCOL_IGNORED, UNKNOWN_ANNOTATIONS};
use crate::intent::{Intent, read};

/// Why a Service would be refused for what it says, and which of its annotations have no effect. Empty if there is nothing to
/// complain of, or no load balancer is wanted.
#[must_use]
pub fn complaints(service: &Service) -> Vec<String> {
    let facts = ServiceFacts::alone(Arc::new(service.clone()));
    match read(&facts) {
        Err(refusal) => vec![refusal.reason],
        Ok(Intent::Absent(_)) => Vec::new(),
        Ok(Intent::Wanted(wanted)) => {
            let events = [PROXY_PROTOCOL_IGNORED, KEEP_IP_IGNORED, UNKNOWN_ANNOTATIONS];
            let of_annotations = |reason: &str| events.iter().any(|event| event.reason == reason);
            let notes = wanted.notes.into_iter();
            let notes = notes.filter(|note| of_annotations(note.reason));
            let refusal = wanted.refusal.map(|refusal| refusal.reason);
            refusal.into_iter().chain(notes.map(|note| note.text)).collect()
        }
    }
}
