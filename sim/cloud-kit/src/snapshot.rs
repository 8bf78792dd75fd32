//! The end state of a simulator, to compare runs that took different ways, and what is wrong in it.

use serde::Serialize;
use serde_json::{Value, json};

/// A state that can be looked at from outside.
pub trait Inspect {
    /// The end state without ids and times, in an order that does not depend on how it came about: two histories that end
    /// with the same objects have equal ones.
    fn snapshot(&self) -> Value;

    /// What must never be and is, in words; empty if all is well.
    fn violations(&self) -> Vec<String>;
}

/// A list whose order says nothing: by name, then by content.
pub fn sorted(items: impl IntoIterator<Item = impl Serialize>) -> Value {
    let mut items: Vec<Value> = items.into_iter().map(|it| json!(it)).collect();
    items.sort_by_cached_key(|it| (it["name"].to_string(), it.to_string()));
    Value::Array(items)
}

/// Names that are there more than once, in words. An object may have none.
pub fn repeated(what: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().filter(|it| !it.is_empty()).collect();
    names.sort();
    let twins = names.windows(2).filter(|pair| pair[0] == pair[1]);
    twins
        .map(|pair| format!("duplicate {what}: {}", pair[0]))
        .collect()
}
