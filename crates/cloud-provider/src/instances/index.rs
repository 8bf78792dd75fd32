//! One listing of a cloud's instances, and how they are found in it.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The instances of one listing, found by ID or by name.
///
/// IDs are keys of the cloud's own making: a cloud whose IDs are the same in any letter case hands in one spelling and looks for
/// that one.
#[derive(Debug, Clone)]
pub struct InstanceIndex<K, T> {
    instances: Vec<T>,
    by_id: BTreeMap<K, usize>,
    /// By the name in lower case.
    by_name: BTreeMap<String, Vec<Named>>,
}

/// An instance that has a name.
#[derive(Debug, Clone)]
struct Named {
    position: usize,
    /// The name, where it is not in lower case.
    spelt: Option<Box<str>>,
}

impl<K, T> Default for InstanceIndex<K, T> {
    fn default() -> Self {
        Self {
            instances: Vec::new(),
            by_id: BTreeMap::new(),
            by_name: BTreeMap::new(),
        }
    }
}

impl<K: Ord, T> InstanceIndex<K, T> {
    /// An index of what was listed. Whatever is listed twice is one instance, and one whose name is empty is found by its ID
    /// only.
    pub fn new(listed: Vec<T>, id: impl Fn(&T) -> K, name: impl Fn(&T) -> String) -> Self {
        let mut index = Self::default();
        for instance in listed {
            let position = index.instances.len();
            let Entry::Vacant(entry) = index.by_id.entry(id(&instance)) else {
                continue;
            };
            entry.insert(position);
            let name = name(&instance);
            if !name.is_empty() {
                let lower = name.to_lowercase();
                let spelt = (name != lower).then(|| name.into_boxed_str());
                let named = Named { position, spelt };
                index.by_name.entry(lower).or_default().push(named);
            }
            index.instances.push(instance);
        }
        index
    }

    /// The instance with this ID.
    pub fn with_id<Q: Ord + ?Sized>(&self, id: &Q) -> Option<&T>
    where
        K: Borrow<Q>,
    {
        self.by_id.get(id).map(|position| &self.instances[*position])
    }

    /// The instances with this name to the letter; if there are none, those with it in any letter case. In the listing's order.
    ///
    /// A Node's name has no capitals, and that of its instance may have some.
    pub fn with_name(&self, name: &str) -> Vec<&T> {
        let lower = name.to_lowercase();
        let alike = self.by_name.get(&lower).map_or(&[][..], Vec::as_slice);
        let is_exact = |named: &&Named| named.spelt.as_deref().unwrap_or(&lower) == name;
        let has_exact = alike.iter().any(|named| is_exact(&named));
        let found = alike.iter().filter(|named| !has_exact || is_exact(named));
        found.map(|named| &self.instances[named.position]).collect()
    }

    /// All instances, in the listing's order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.instances.iter()
    }

    /// All names, as they are spelt.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let all = self.by_name.iter();
        all.flat_map(|(lower, named)| {
            named
                .iter()
                .map(|it| it.spelt.as_deref().unwrap_or(lower).to_owned())
        })
        .collect()
    }

    /// Whether nothing was listed. Wrong credentials look like that too, so nothing follows from it.
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(listed: &[(u8, &'static str)]) -> InstanceIndex<u8, (u8, &'static str)> {
        InstanceIndex::new(listed.to_vec(), |(id, _)| *id, |(_, name)| (*name).to_owned())
    }

    #[test]
    fn an_instance_is_found_by_its_id_and_several_by_the_name_they_share() {
        let index = index(&[(1, "db"), (2, "web"), (3, "db")]);
        assert_eq!(index.with_id(&2), Some(&(2, "web")));
        assert_eq!(index.with_id(&4), None);
        assert_eq!(index.with_name("db"), [&(1, "db"), &(3, "db")]);
        assert!(index.with_name("d").is_empty());
        assert_eq!(index.names(), ["db", "db", "web"]);
    }

    #[test]
    fn a_name_is_matched_to_the_letter_first_and_in_any_case_then() {
        let index = index(&[(1, "Worker-1"), (2, "worker-1"), (3, "Worker-2"), (4, "WORKER-2")]);
        assert_eq!(index.with_name("worker-1"), [&(2, "worker-1")]);
        assert_eq!(index.with_name("Worker-1"), [&(1, "Worker-1")]);
        assert_eq!(index.with_name("worker-2"), [&(3, "Worker-2"), &(4, "WORKER-2")]);
        assert!(index.with_name("worker-3").is_empty());
    }

    #[test]
    fn an_instance_without_a_name_is_not_found_by_an_empty_one() {
        let index = index(&[(1, "")]);
        assert!(index.with_name("").is_empty());
        assert!(index.with_id(&1).is_some());
    }

    #[test]
    fn an_instance_that_is_listed_twice_is_one() {
        let index = index(&[(1, "db"), (1, "db")]);
        assert_eq!(index.with_name("db"), [&(1, "db")]);
        assert_eq!(index.iter().count(), 1);
    }
}
