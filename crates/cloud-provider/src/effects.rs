//! What a write does to what was observed, whether its answer tells it or it is only predicted.
//!
//! A step makes, changes or removes objects. Where the answer shows an object, that counts. Where it shows none, or where there is no
//! answer because nothing is written, the object is read from the request ([`as_shown`]): most APIs show what was asked of them.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Puts an object in the place of the one with its key, or behind all others.
pub fn put<T, K: PartialEq>(list: &mut Vec<T>, now: T, key: impl Fn(&T) -> K) {
    match list.iter_mut().find(|there| key(there) == key(&now)) {
        Some(there) => *there = now,
        None => list.push(now),
    }
}

/// An object as its API shows it after a request: as it was before, or for a new one what the API fills in, with what the request asks
/// laid over that. `None` if that is no such object.
///
/// A field that the request leaves out stays. `depth` is how deep that holds: at 1 a field that is itself an object is replaced as a
/// whole, at 2 the fields of that stay too.
pub fn as_shown<T: DeserializeOwned>(
    before: &impl Serialize,
    request: &impl Serialize,
    depth: usize,
) -> Option<T> {
    let mut shown = read_as(before).ok()?;
    lay_over(&mut shown, read_as(request).ok()?, depth);
    read_as(&shown).ok()
}

/// What is read of an object as another type, by way of its text. The other way would be another copy of the readers and
/// writers of all types in the program, for trees of values instead of texts.
///
/// # Errors
///
/// It is no such object; the text says why.
pub fn read_as<T: DeserializeOwned>(object: &impl Serialize) -> Result<T, String> {
    let read = serde_json::to_vec(object).and_then(|text| serde_json::from_slice(&text));
    read.map_err(|error| {
        let said = error.to_string();
        // Nobody has seen the text whose line and column that are.
        let end = said.rfind(" at line ").unwrap_or(said.len());
        said[..end].to_owned()
    })
}

fn lay_over(shown: &mut Value, request: Value, depth: usize) {
    match (shown, request) {
        (Value::Object(shown), Value::Object(request)) if depth > 0 => {
            for (field, value) in request {
                lay_over(shown.entry(field).or_insert(Value::Null), value, depth - 1);
            }
        }
        (shown, request) => *shown = request,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_takes_the_place_of_the_one_with_its_key() {
        let mut list = vec![("a", 1), ("b", 1)];
        for now in [("a", 2), ("c", 2)] {
            put(&mut list, now, |it| it.0);
        }
        assert_eq!(list, [("a", 2), ("b", 1), ("c", 2)]);
    }

    #[test]
    fn an_object_shows_what_was_asked_and_else_what_it_showed_before() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Thing {
            name: String,
            size: Option<u8>,
            labels: BTreeMap<String, u8>,
        }
        let thing = |size, labels: &[(&str, u8)]| Thing {
            name: "a".to_owned(),
            size,
            labels: labels
                .iter()
                .map(|(key, value)| ((*key).to_owned(), *value))
                .collect(),
        };
        let before = thing(Some(1), &[("x", 1)]);
        let change = json!({"size": null, "labels": {"y": 2}});
        let replaced = as_shown(&before, &change, 1);
        assert_eq!(replaced, Some(thing(None, &[("y", 2)])));
        let merged = as_shown(&before, &change, 2);
        assert_eq!(merged, Some(thing(None, &[("x", 1), ("y", 2)])));
        let filled_in = json!({"size": 3, "labels": {}});
        assert_eq!(
            as_shown(&filled_in, &json!({"name": "a"}), 1),
            Some(thing(Some(3), &[]))
        );
        assert_eq!(as_shown::<Thing>(&filled_in, &json!({}), 1), None);
    }

    #[test]
    fn what_cannot_be_read_names_no_line_of_a_text_that_nobody_saw() {
        let error = read_as::<Vec<u8>>(&json!([1, "x"])).unwrap_err();
        assert_eq!(error, "invalid type: string \"x\", expected u8");
    }
}
