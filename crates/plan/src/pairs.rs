//! A map of a few entries that is kept for a long time.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Texts with a value each, in the order of the texts, without room for more.
///
/// The smallest ordered map has room for eleven entries, and most of what a cluster has by the thousand has one or two: of 1,000
/// Services the room alone was more than a megabyte. Each that is added moves those after it, so it is for maps that are small. One
/// that somebody made large is read and searched like another map.
#[derive(Clone, PartialEq, Eq)]
pub struct Pairs<V>(Vec<(Box<str>, V)>);

/// The entries of [`Pairs`], in order.
type Entries<'a, V> = std::iter::Map<std::slice::Iter<'a, (Box<str>, V)>, fn(&(Box<str>, V)) -> (&str, &V)>;

impl<V> Default for Pairs<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> Pairs<V> {
    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The value of a text.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&V> {
        let at = self.place(key).ok()?;
        Some(&self.0[at].1)
    }

    /// Where a text is, or would be.
    fn place(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(there, _)| (**there).cmp(key))
    }

    /// The value of a text, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        let at = self.place(key).ok()?;
        Some(&mut self.0[at].1)
    }

    /// Whether there is a value of this text.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Sets the value of a text; gives the one before.
    pub fn insert(&mut self, key: impl Into<Box<str>>, value: V) -> Option<V> {
        let key = key.into();
        match self.place(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, value)),
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (key, value));
                None
            }
        }
    }

    /// Removes an entry; gives its value.
    pub fn remove(&mut self, key: &str) -> Option<V> {
        let at = self.place(key).ok()?;
        let (_, value) = self.0.remove(at);
        self.0.shrink_to_fit();
        Some(value)
    }

    /// Keeps the entries for which this holds.
    pub fn retain(&mut self, is_kept: impl Fn(&V) -> bool) {
        self.0.retain(|(_, value)| is_kept(value));
        self.0.shrink_to_fit();
    }

    /// Entries were added at the end: of those of one text the last one counts.
    fn settle(&mut self) {
        self.0.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.0.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                std::mem::swap(later, kept);
            }
            is_same
        });
        self.0.shrink_to_fit();
    }

    /// All entries, in order.
    pub fn iter(&self) -> Entries<'_, V> {
        self.into_iter()
    }

    /// All texts, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(key, _)| key)
    }
}

impl Pairs<String> {
    /// The text of a text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl<K: Into<Box<str>>, V> FromIterator<(K, V)> for Pairs<V> {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(entries: T) -> Self {
        let mut pairs = Self::default();
        pairs.extend(entries);
        pairs
    }
}

impl<K: Into<Box<str>>, V, const N: usize> From<[(K, V); N]> for Pairs<V> {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<K: Into<Box<str>>, V> Extend<(K, V)> for Pairs<V> {
    fn extend<T: IntoIterator<Item = (K, V)>>(&mut self, entries: T) {
        self.0
            .extend(entries.into_iter().map(|(key, value)| (key.into(), value)));
        self.settle();
    }
}

impl<'a, V> IntoIterator for &'a Pairs<V> {
    type Item = (&'a str, &'a V);
    type IntoIter = Entries<'a, V>;

    fn into_iter(self) -> Entries<'a, V> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }
}

impl<V> IntoIterator for Pairs<V> {
    type Item = (Box<str>, V);
    type IntoIter = std::vec::IntoIter<(Box<str>, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<V: fmt::Debug> fmt::Debug for Pairs<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<V: Serialize> Serialize for Pairs<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Pairs<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfMap<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for OfMap<V> {
            type Value = Pairs<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<V>, A::Error> {
                let mut pairs = Pairs::default();
                while let Some(entry) = map.next_entry()? {
                    pairs.0.push(entry);
                }
                pairs.settle();
                Ok(pairs)
            }
        }
        deserializer.deserialize_map(OfMap(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// As many as the API server takes of annotations with three letters: with a search through all for each, this takes minutes.
    #[test]
    fn one_that_somebody_made_large_is_read_and_searched_like_another_map() {
        let entries = (0..90_000_u32).map(|it| (format!("{:05}", it * 7 % 80_000), it));
        let entries: Vec<(String, u32)> = entries.collect();
        let text: Vec<String> = entries.iter().map(|(key, it)| format!("{key:?}:{it}")).collect();
        let pairs: Pairs<u32> = serde_json::from_str(&format!("{{{}}}", text.join(","))).unwrap();
        let map: BTreeMap<&str, &u32> = entries.iter().map(|(key, it)| (&**key, it)).collect();
        assert!(pairs.iter().eq(map.iter().map(|(key, it)| (*key, *it))));
        assert!(map.iter().all(|(key, it)| pairs.get(key) == Some(*it)));
    }

    #[test]
    fn they_are_a_map_in_order_that_has_no_room() {
        let text = r#"{"b":1,"a":2,"c":3,"b":4}"#;
        let mut pairs: Pairs<u8> = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&pairs).unwrap(), r#"{"a":2,"b":4,"c":3}"#);
        assert_eq!(pairs.insert("d", 5), None);
        assert_eq!(pairs.remove("a"), Some(2));
        assert_eq!(pairs.remove("a"), None);
        pairs.retain(|value| *value != 3);
        assert_eq!(pairs, Pairs::from([("d", 5), ("b", 4)]));
        assert_eq!((pairs.len(), pairs.0.capacity()), (2, 2));
        assert_eq!((pairs.get("b"), pairs.contains_key("c")), (Some(&4), false));
    }
}
