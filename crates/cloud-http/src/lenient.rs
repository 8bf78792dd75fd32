//! Ways to read what APIs write carelessly, for `#[serde(deserialize_with = ...)]`.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use bowline_plan::Pairs;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};

/// Takes `null` for an empty list, map or text.
///
/// # Errors
///
/// What is there is neither `null` nor such a value.
pub fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Takes `null` for an empty list, and keeps no room that reading left.
///
/// A list grows to room for four at its first entry, and most lists inside of an object have one. In an answer with a
/// thousand instances that is more than all the rest.
///
/// # Errors
///
/// What is there is neither `null` nor a list of this.
pub fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let mut list: Vec<T> = or_default(deserializer)?;
    list.shrink_to_fit();
    Ok(list)
}

/// Takes `null` for an empty map, and for an empty value in it.
///
/// # Errors
///
/// What is there is neither `null` nor a map of this.
pub fn map<'de, D, T>(deserializer: D) -> Result<Pairs<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    let map: Pairs<Option<T>> = or_default(deserializer)?;
    Ok(map
        .into_iter()
        .map(|(key, value)| (key, value.unwrap_or_default()))
        .collect())
}

/// So many texts are known at most. They are as many as a project has zones, sizes and subnets; where it has more of them, they
/// are forgotten together, and those that come then are held once again.
const KNOWN_AT_MOST: usize = 512;

thread_local! {
    // Not part of a client, because nothing that reads an object knows whose answer that is in.
    static KNOWN: RefCell<HashSet<Arc<str>>> = RefCell::default();
}

/// A text that most objects of a list repeat, such as a zone or a subnet: it is held once, however many objects have it.
///
/// # Errors
///
/// What is there is no text.
pub fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    struct Shared;
    impl Visitor<'_> for Shared {
        type Value = Arc<str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_str<E>(self, text: &str) -> Result<Arc<str>, E> {
            Ok(KNOWN.with_borrow_mut(|known| {
                if let Some(held) = known.get(text) {
                    return Arc::clone(held);
                }
                if known.len() == KNOWN_AT_MOST {
                    known.clear();
                }
                let held: Arc<str> = Arc::from(text);
                known.insert(Arc::clone(&held));
                held
            }))
        }
    }
    deserializer.deserialize_str(Shared)
}

/// Takes the text of an id, or its number: old services count their objects and jobs.
///
/// # Errors
///
/// What is there is neither.
pub fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    struct Id;
    impl Visitor<'_> for Id {
        type Value = Arc<str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an id, which is a text or a number")
        }

        fn visit_str<E>(self, text: &str) -> Result<Arc<str>, E> {
            Ok(text.into())
        }

        fn visit_u64<E>(self, number: u64) -> Result<Arc<str>, E> {
            Ok(number.to_string().into())
        }
    }
    deserializer.deserialize_any(Id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq, Deserialize)]
    struct Machine {
        #[serde(default, deserialize_with = "list")]
        nics: Vec<u64>,
        #[serde(default, deserialize_with = "or_default")]
        name: String,
    }

    #[test]
    fn null_and_nothing_are_empty() {
        let empty = Machine {
            nics: Vec::new(),
            name: String::new(),
        };
        for text in [
            "{}",
            r#"{"nics": null, "name": null}"#,
            r#"{"nics": [], "name": ""}"#,
        ] {
            assert_eq!(serde_json::from_str::<Machine>(text).unwrap(), empty, "{text}");
        }
        assert!(serde_json::from_str::<Machine>(r#"{"nics": {}}"#).is_err());
    }

    #[test]
    fn a_text_that_repeats_is_held_once_and_what_is_known_does_not_grow() {
        #[derive(Deserialize)]
        struct Place {
            #[serde(deserialize_with = "shared")]
            zone: Arc<str>,
        }
        let read = |zone: &str| {
            serde_json::from_str::<Place>(&format!(r#"{{"zone": "{zone}"}}"#))
                .unwrap()
                .zone
        };
        let (a, also_a) = (read("a"), read("a"));
        assert!(Arc::ptr_eq(&a, &also_a));
        for number in 0..2 * KNOWN_AT_MOST {
            assert_eq!(*read(&number.to_string()), *number.to_string());
        }
        assert!(KNOWN.with_borrow(HashSet::len) <= KNOWN_AT_MOST);
        assert!(serde_json::from_str::<Place>(r#"{"zone": 1}"#).is_err());
    }

    #[test]
    fn a_list_keeps_no_room() {
        let machine: Machine = serde_json::from_str(r#"{"nics": [7]}"#).unwrap();
        assert_eq!((machine.nics.as_slice(), machine.nics.capacity()), (&[7][..], 1));
    }
}
