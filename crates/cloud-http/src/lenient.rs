//! Ways to read what APIs write carelessly, for `#[serde(deserialize_with = ...)]`.

use std::collections::BTreeMap;

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
pub fn map<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    let map: BTreeMap<String, Option<T>> = or_default(deserializer)?;
    Ok(map
        .into_iter()
        .map(|(key, value)| (key, value.unwrap_or_default()))
        .collect())
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
    fn a_list_keeps_no_room() {
        let machine: Machine = serde_json::from_str(r#"{"nics": [7]}"#).unwrap();
        assert_eq!((machine.nics.as_slice(), machine.nics.capacity()), (&[7][..], 1));
    }
}
