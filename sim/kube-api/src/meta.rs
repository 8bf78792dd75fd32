//! What the registry does with metadata, whatever the kind (`k8s.io/apiserver/pkg/registry/rest`).

use std::collections::BTreeSet;

use jiff::Timestamp;
use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::{Map, Value};

use crate::clock::seconds;
use crate::field::FieldError;
use crate::kind::Kind;
use crate::names::{self, NameRule};
use crate::path;
use crate::status::Status;

/// Characters of generated names: no vowels and nothing that looks like another (`k8s.io/apimachinery/pkg/util/rand`).
const NAME_CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const NAME_LIMIT: usize = 63;
const SUFFIX: usize = 5;

/// A version 4 UUID.
pub(crate) fn new_uid(random: &mut StdRng) -> String {
    let bits: u128 = random.random();
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// `base` and five random characters.
pub(crate) fn generated_name(base: &str, random: &mut StdRng) -> String {
    let suffix =
        (0..SUFFIX).map(|_| char::from(NAME_CHARACTERS[random.random_range(..NAME_CHARACTERS.len())]));
    base.chars().take(NAME_LIMIT - SUFFIX).chain(suffix).collect()
}

/// Gives a new object what only the server may give.
pub(crate) fn before_create(kind: &Kind, object: &mut Value, now: Timestamp, random: &mut StdRng) {
    if path::text(object, "metadata.name").is_empty() {
        let base = path::text(object, "metadata.generateName").to_owned();
        if !base.is_empty() {
            path::set(object, "metadata.name", generated_name(&base, random));
        }
    }
    for field in [
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "selfLink",
        "managedFields",
    ] {
        path::remove(object, &format!("metadata.{field}"));
    }
    path::set(object, "metadata.uid", new_uid(random));
    path::set(object, "metadata.creationTimestamp", seconds(now));
    if kind.kind == "EndpointSlice" || kind.kind == "Pod" {
        path::set(object, "metadata.generation", 1);
    } else {
        path::remove(object, "metadata.generation");
    }
}

/// Puts back what an update may not change.
pub(crate) fn before_update(new: &mut Value, old: &Value) {
    for field in ["generation", "creationTimestamp", "managedFields", "selfLink"] {
        path::copy(new, old, &format!("metadata.{field}"));
    }
    if path::text(new, "metadata.uid").is_empty() {
        path::copy(new, old, "metadata.uid");
    }
    for field in [
        "metadata.deletionTimestamp",
        "metadata.deletionGracePeriodSeconds",
    ] {
        if path::at(old, field).is_some() {
            path::copy(new, old, field);
        }
    }
    if path::at(old, "metadata.generation").is_some() && path::at(old, "spec") != path::at(new, "spec") {
        path::set(
            new,
            "metadata.generation",
            path::number(old, "metadata.generation") + 1,
        );
    }
}

/// Marks an object for deletion; its finalizers keep it until they are gone.
pub(crate) fn mark_deleted(object: &mut Value, now: Timestamp) {
    if path::at(object, "metadata.deletionTimestamp").is_some() {
        return;
    }
    if path::at(object, "metadata.generation").is_some() {
        path::set(
            object,
            "metadata.generation",
            path::number(object, "metadata.generation") + 1,
        );
    }
    path::set(object, "metadata.deletionTimestamp", seconds(now));
    path::set(object, "metadata.deletionGracePeriodSeconds", 0);
}

/// The namespace of the object must be that of the request; an empty one becomes it.
pub(crate) fn adopt_namespace(kind: &Kind, object: &mut Value, namespace: &str) -> Result<(), Status> {
    let own = path::text(object, "metadata.namespace");
    if !kind.namespaced {
        if !own.is_empty() {
            path::remove(object, "metadata.namespace");
        }
        return Ok(());
    }
    if own.is_empty() {
        path::set(object, "metadata.namespace", namespace);
    } else if own != namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    Ok(())
}

/// Checks the metadata of a new object.
pub(crate) fn validate(object: &Value, rule: NameRule, errors: &mut Vec<FieldError>) {
    let name = path::text(object, "metadata.name");
    if name.is_empty() {
        errors.push(FieldError::required(
            "metadata.name",
            "name or generateName is required",
        ));
    } else {
        let wrong = rule.complaints(name);
        errors.extend(
            wrong
                .iter()
                .map(|text| FieldError::invalid("metadata.name", name, text)),
        );
    }
    validate_common(object, errors);
}

/// Checks a change of metadata.
pub(crate) fn validate_update(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    if path::at(old, "metadata.deletionTimestamp").is_some() {
        let had = path::texts(old, "metadata.finalizers");
        let now = path::texts(new, "metadata.finalizers");
        let added: BTreeSet<&str> = now.into_iter().filter(|name| !had.contains(name)).collect();
        if !added.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added
                    .iter()
                    .map(|name| format!("{name:?}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", &detail));
        }
    }
    for field in [
        "name",
        "namespace",
        "uid",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ] {
        let field = format!("metadata.{field}");
        if path::at(new, &field) != path::at(old, &field) {
            let value = path::at(new, &field).cloned().unwrap_or(Value::Null);
            errors.push(FieldError::invalid(field, value, "field is immutable"));
        }
    }
    validate_common(new, errors);
}

fn validate_common(object: &Value, errors: &mut Vec<FieldError>) {
    names::labels(path::at(object, "metadata.labels"), "metadata.labels", errors);
    names::annotations(
        path::at(object, "metadata.annotations"),
        "metadata.annotations",
        errors,
    );
    for (index, finalizer) in path::texts(object, "metadata.finalizers").into_iter().enumerate() {
        let field = format!("metadata.finalizers[{index}]");
        let wrong = names::qualified_name(finalizer);
        errors.extend(
            wrong
                .iter()
                .map(|text| FieldError::invalid(field.as_str(), finalizer, text)),
        );
        if wrong.is_empty()
            && !finalizer.contains('/')
            && !["orphan", "foregroundDeletion", "kubernetes"].contains(&finalizer)
        {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(field.as_str(), finalizer, detail));
        }
    }
    for (index, owner) in path::list(object, "metadata.ownerReferences").iter().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if path::text(owner, field).is_empty() {
                let at = format!("metadata.ownerReferences[{index}].{field}");
                let detail = if field == "apiVersion" {
                    "version must not be empty"
                } else {
                    "must not be empty"
                };
                errors.push(FieldError::invalid(at, "", detail));
            }
        }
    }
}

/// What `as=PartialObjectMetadata` shows of an object.
pub(crate) fn partial(object: &Value) -> Value {
    let mut partial = Map::new();
    partial.insert("kind".into(), "PartialObjectMetadata".into());
    partial.insert("apiVersion".into(), "meta.k8s.io/v1".into());
    partial.insert("metadata".into(), object["metadata"].clone());
    Value::Object(partial)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn uids_are_version_4_and_repeat_with_the_seed() {
        let uid = new_uid(&mut StdRng::seed_from_u64(1));
        assert_eq!(uid, new_uid(&mut StdRng::seed_from_u64(1)));
        assert_ne!(uid, new_uid(&mut StdRng::seed_from_u64(2)));
        assert_eq!(uid.len(), 36);
        assert_eq!(&uid[14..15], "4");
        assert!("89ab".contains(&uid[19..20]), "{uid}");
    }

    #[test]
    fn generated_names_stay_within_a_label() {
        let name = generated_name(&"x".repeat(70), &mut StdRng::seed_from_u64(1));
        assert_eq!(name.len(), 63);
    }
}
