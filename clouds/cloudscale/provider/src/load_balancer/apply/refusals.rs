//! What a refusal of the API means for what comes next.

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_cloudscale_client::{ApiError, Class};
use bowline_plan::Step as _;

use crate::load_balancer::annotations as keys;
use crate::load_balancer::refused::Place;
use crate::load_balancer::step::CloudStep;

/// Whether the API refuses because of the state of things, not because of what is asked. It says so with 409, or with
/// 400, which can mean anything.
pub(super) fn is_refusal(error: &ApiError) -> bool {
    matches!(error.class, Class::Conflict | Class::Invalid | Class::Exhausted)
}

/// Whether the API refuses what is asked, not whoever asks or at this moment.
fn is_about_what_is_asked(error: &ApiError) -> bool {
    is_refusal(error) || matches!(error.class, Class::NotFound | Class::Denied)
}

/// Whether a refused creation can mean that something is in the way. Not if it complains of a value: then deleting what is in
/// the way would leave nothing at all. Nor if it says nothing in the API's own words.
pub(super) fn can_be_in_the_way(error: &ApiError) -> bool {
    match error.class {
        Class::Conflict | Class::Exhausted => true,
        Class::Invalid if annotations_of(error).is_empty() => {
            let mut said = error.fields.iter();
            said.any(|(key, text)| !UNNAMED.contains(&key.as_str()) || speaks_of_another(text))
        }
        _ => false,
    }
}

/// Whether a refusal leaves open what it is about: it names no attribute, and says nothing of another object.
pub(super) fn leaves_open(error: &ApiError) -> bool {
    error.class == Class::Invalid
        && !error.fields.is_empty()
        && annotations_of(error).is_empty()
        && !can_be_in_the_way(error)
}

/// Whether a refusal says all that another one says.
pub(super) fn repeats(error: &ApiError, other: &ApiError) -> bool {
    let said = |key: &str, text: &str| error.fields.get(key).is_some_and(|said| said.contains(text));
    other.fields.iter().all(|(key, text)| said(key, text))
}

/// Keys of what the API does not say of one attribute.
const UNNAMED: [&str; 2] = ["detail", "non_field_errors"];

/// Whether a refusal says that there is one already, whatever it is about.
fn speaks_of_another(text: &str) -> bool {
    let words = [
        "already",
        "another",
        "duplicate",
        "exists",
        "in use",
        "only one",
        "unique",
    ];
    let text = text.to_ascii_lowercase();
    words.iter().any(|word| text.contains(word))
}

/// Whether all else goes on without what a step was to create: other ports have pools and listeners of their own, and other members serve.
/// And without what it was to change, the monitor that a pool was to have, or the part that was to go: nothing leans on that. A conflict of a balancer at
/// rest is about what is asked, as of a second member with one address.
pub(super) fn holds_up_nothing(step: &CloudStep, error: &ApiError) -> bool {
    let is_settled = is_refusal(error) || error.class == Class::Denied;
    match Place::of(step) {
        None if step.changes_attribute() || step.is_first_monitor() || step.removes() => is_settled,
        None => matches!(step, CloudStep::AssignFloatingIp { .. }) && is_about_what_is_asked(error),
        Some(Place::Pool | Place::Listener) => is_settled && !step.replaces(),
        Some(Place::Member(_)) => is_settled,
    }
}

/// The annotations whose values the API complains of.
fn annotations_of(error: &ApiError) -> Vec<&'static str> {
    let fields = error.fields.keys();
    fields
        .filter_map(|field| Some(keys::of_field(field)?.key))
        .collect()
}

/// The failure of a write. The API names its own fields; a person knows the annotations.
pub(super) fn of_write(error: ApiError) -> CloudError {
    let annotations = annotations_of(&error);
    let error = CloudError::of_write(error);
    if !matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Exhausted) || annotations.is_empty() {
        return error;
    }
    let text = format!(
        "{}; the value is that of {}",
        error.message(),
        annotations.join(" and ")
    );
    CloudError::new(error.kind(), text)
}
