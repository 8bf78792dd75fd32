//! How the APIs wrap objects and lists: under a key that names the kind.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many entries of a whole list are asked for at once: by itself Neutron has no limit, and of Octavia an operator may take it. A
/// security group with its rules is about 3.5 KiB, a port 1.5 KiB, and to an administrator many lists show those of all projects.
pub(crate) const PER_PAGE: usize = 1000;

/// A kind of object, and the keys under which the APIs write it.
pub(crate) trait Resource: DeserializeOwned {
    /// The key of one.
    const ONE: &'static str;
    /// The key of a list.
    const MANY: &'static str;

    /// What no two of a list have in common.
    fn id(&self) -> &str;
}

/// One object: `{"port": {...}}`.
pub(crate) struct One<T>(pub(crate) T);

/// A page of a list: `{"ports": [...], "ports_links": [{"rel": "next", "href": ...}]}`.
pub(crate) struct Page<T> {
    pub(crate) entries: Vec<T>,
    /// The URL of the next page.
    pub(crate) next: Option<String>,
}

/// What is sent: `{"port": {...}}`.
pub(crate) struct Wrapped<'a, T>(pub(crate) &'static str, pub(crate) &'a T);

impl<T: Serialize> Serialize for Wrapped<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.0, self.1)?;
        map.end()
    }
}

impl<'de, T: Resource> Deserialize<'de> for One<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneVisitor<T>(PhantomData<T>);

        impl<'de, T: Resource> Visitor<'de> for OneVisitor<T> {
            type Value = One<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an object with the key {}", T::ONE)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut found = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key == T::ONE {
                        found = Some(map.next_value()?);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                found.map(One).ok_or_else(|| A::Error::missing_field(T::ONE))
            }
        }

        deserializer.deserialize_map(OneVisitor(PhantomData))
    }
}

#[derive(Deserialize)]
struct Link {
    #[serde(default)]
    rel: String,
    #[serde(default)]
    href: String,
}

impl<'de, T: Resource> Deserialize<'de> for Page<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PageVisitor<T>(PhantomData<T>);

        impl<'de, T: Resource> Visitor<'de> for PageVisitor<T> {
            type Value = Page<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an object with the key {}", T::MANY)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = None;
                let mut next = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key == T::MANY {
                        entries = Some(map.next_value()?);
                    } else if key.strip_suffix("_links") == Some(T::MANY) {
                        let links: Option<Vec<Link>> = map.next_value()?;
                        next = links
                            .into_iter()
                            .flatten()
                            .find(|link| link.rel == "next")
                            .map(|link| link.href);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                // A list without its key is no empty list: nothing is proved by it.
                let entries = entries.ok_or_else(|| A::Error::missing_field(T::MANY))?;
                Ok(Page { entries, next })
            }
        }

        deserializer.deserialize_map(PageVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Extension, Network};

    #[test]
    fn a_page_is_read_whatever_the_order_of_its_keys() {
        for text in [
            r#"{"networks": [{"id": "a"}], "networks_links": [{"rel": "previous", "href": "p"}, {"rel": "next", "href": "n"}]}"#,
            r#"{"networks_links": [{"rel": "next", "href": "n"}], "other": {"x": [1]}, "networks": [{"id": "a"}]}"#,
        ] {
            let page: Page<Network> = serde_json::from_str(text).unwrap();
            assert_eq!(page.entries[0].id.as_str(), "a");
            assert_eq!(page.next.as_deref(), Some("n"));
        }
        let page: Page<Extension> =
            serde_json::from_str(r#"{"extensions": [], "extensions_links": null}"#).unwrap();
        assert!(page.entries.is_empty() && page.next.is_none());
    }

    #[test]
    fn an_answer_without_the_key_is_neither_an_object_nor_an_empty_list() {
        assert!(serde_json::from_str::<Page<Network>>("{}").is_err());
        assert!(serde_json::from_str::<Page<Network>>(r#"{"networks": null}"#).is_err());
        assert!(serde_json::from_str::<One<Network>>(r#"{"ports": {"id": "a"}}"#).is_err());
    }
}
