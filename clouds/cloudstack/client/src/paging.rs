//! Lists, followed to their end.
//!
//! A list that is asked for without a page holds at most as many items as the server is set to (500 normally), and the
//! count of all. If that was not all, its length is a page size that the server allows; the rest is asked for with it.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Something that is listed.
pub(crate) trait Listed: DeserializeOwned {
    /// The member of the answer that holds the list.
    const KEY: &'static str;

    /// What no two of a list have in common; empty if the server does not tell it.
    fn id(&self) -> &str;
}

/// A list that is whole as far as the server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted<T> {
    /// What it holds.
    pub items: Vec<T>,
    /// Whether the server counted just as many. If not, what is missing in the list may be there all the same.
    pub is_counted: bool,
}

/// What the API says about one ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup<T> {
    /// Here it is.
    Found(T),
    /// Nothing has this ID, whoever asks: the API refuses it.
    Unknown,
    /// A list without it: it is gone, or these keys do not see it in this project.
    Unlisted,
}

impl<T> Lookup<T> {
    /// It, if it was found.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(item) => Some(item),
            Self::Unknown | Self::Unlisted => None,
        }
    }
}

/// One answer.
pub(crate) struct Page<T> {
    /// How many there are on all pages.
    count: usize,
    items: Vec<T>,
}

/// What to do after an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Ask for this page, of this size.
    Page { number: usize, size: usize },
    /// The list is whole.
    Whole,
    /// The list changed while it was read: begin again.
    Again,
    /// The server lists fewer than it counts.
    Short { listed: usize, count: usize },
}

impl<T: Listed> Page<T> {
    /// Whether there are no others.
    pub(crate) fn is_whole(&self) -> bool {
        self.items.len() >= self.count
    }

    /// The item with this id, if it is on this page.
    pub(crate) fn find(self, id: &str) -> Option<T> {
        self.items
            .into_iter()
            .find(|item| item.id().eq_ignore_ascii_case(id))
    }
}

/// A list as it is put together.
pub(crate) struct Listing<T> {
    items: Vec<T>,
    ids: BTreeSet<String>,
    count: Option<usize>,
    size: usize,
    pages: usize,
}

/// Reads one answer. An empty list is an object without members.
///
/// # Errors
///
/// It is no list; the text says why.
pub(crate) fn page<T: Listed>(payload: &RawValue) -> Result<Page<T>, String> {
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_slice(payload.get().as_bytes()).map_err(|error| error.to_string())?;
    if !members.is_empty() && !["count", T::KEY].iter().any(|key| members.contains_key(*key)) {
        return Err(format!("no member `{}`", T::KEY));
    }
    let items: Option<Vec<T>> = match members.get(T::KEY) {
        Some(list) => {
            serde_json::from_slice(list.get().as_bytes()).map_err(|error| format!("{}: {error}", T::KEY))?
        }
        None => None,
    };
    let items = items.unwrap_or_default();
    let count = match members.get("count").map(|count| count.get().trim_matches('"')) {
        None | Some("null") => 0,
        Some(count) => count
            .parse()
            .map_err(|_| format!("count: {count} is no number of items"))?,
    };
    Ok(Page { count, items })
}

impl<T: Listed> Listing<T> {
    pub(crate) fn new() -> Self {
        Self {
            items: Vec::new(),
            ids: BTreeSet::new(),
            count: None,
            size: 0,
            pages: 0,
        }
    }

    /// Takes an answer.
    pub(crate) fn take(&mut self, page: Page<T>) -> Next {
        let length = page.items.len();
        let first = self.count.is_none();
        if self
            .count
            .replace(page.count)
            .is_some_and(|count| count != page.count)
        {
            return Next::Again;
        }
        if !first && length > 0 && page.items.iter().all(|item| self.ids.contains(item.id())) {
            // It has no pages, or no more of them.
            return Next::Short {
                listed: self.items.len(),
                count: page.count,
            };
        }
        for item in page.items {
            if !item.id().is_empty() && !self.ids.insert(item.id().to_owned()) {
                // Something came or went, so that another one moved to the next page.
                return Next::Again;
            }
            self.items.push(item);
        }
        self.pages += 1;
        if first {
            self.size = length;
        }
        if self.items.len() >= page.count {
            return Next::Whole;
        }
        if length < self.size || length == 0 {
            return Next::Short {
                listed: self.items.len(),
                count: page.count,
            };
        }
        Next::Page {
            number: self.pages + 1,
            size: self.size,
        }
    }

    /// What was read so far.
    pub(crate) fn finish(self) -> Counted<T> {
        Counted {
            is_counted: self.count == Some(self.items.len()),
            items: self.items,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize, PartialEq, Eq)]
    struct Thing {
        id: String,
    }

    impl Listed for Thing {
        const KEY: &'static str = "thing";

        fn id(&self) -> &str {
            &self.id
        }
    }

    fn answer(count: usize, ids: &[&str]) -> Page<Thing> {
        let items = ids.iter().map(|id| Thing { id: (*id).to_owned() });
        Page {
            count,
            items: items.collect(),
        }
    }

    fn after(pages: Vec<Page<Thing>>) -> Vec<Next> {
        let mut listing = Listing::new();
        pages.into_iter().map(|page| listing.take(page)).collect()
    }

    #[test]
    fn an_empty_list_has_no_members_at_all() {
        let payload = RawValue::from_string("{}".to_owned()).unwrap();
        let page: Page<Thing> = page(&payload).unwrap();
        assert_eq!((page.count, page.items.len()), (0, 0));
        let payload = RawValue::from_string(r#"{"count":"0","thing":null}"#.to_owned()).unwrap();
        assert_eq!(super::page::<Thing>(&payload).unwrap().count, 0);
        assert_eq!(after(vec![page]), [Next::Whole]);
    }

    #[test]
    fn what_is_no_list_at_all_is_no_empty_one() {
        let payload = RawValue::from_string(r#"{"code":200,"message":"ok"}"#.to_owned()).unwrap();
        assert_eq!(super::page::<Thing>(&payload).err().unwrap(), "no member `thing`");
    }

    #[test]
    fn only_a_list_of_the_server_s_own_count_is_counted() {
        for (payload, expected) in [
            (r#"{"count":1,"thing":[{"id":"a"}]}"#, true),
            (r#"{"thing":[{"id":"a"}]}"#, false),
            (r#"{"count":1,"thing":[{"id":"a"},{"id":"b"}]}"#, false),
            ("{}", true),
        ] {
            let payload = RawValue::from_string(payload.to_owned()).unwrap();
            let mut listing = Listing::<Thing>::new();
            assert_eq!(listing.take(super::page(&payload).unwrap()), Next::Whole);
            assert_eq!(listing.finish().is_counted, expected, "{payload}");
        }
    }

    #[test]
    fn a_first_answer_that_is_not_all_gives_the_page_size() {
        assert_eq!(
            after(vec![
                answer(5, &["a", "b"]),
                answer(5, &["c", "d"]),
                answer(5, &["e"])
            ]),
            [
                Next::Page { number: 2, size: 2 },
                Next::Page { number: 3, size: 2 },
                Next::Whole
            ]
        );
    }

    #[test]
    fn fewer_than_counted_is_short_and_never_whole() {
        let short = |listed, count| Next::Short { listed, count };
        assert_eq!(after(vec![answer(3, &[])]), [short(0, 3)]);
        let pages = after(vec![answer(5, &["a", "b"]), answer(5, &["c"])]);
        assert_eq!(pages[1], short(3, 5));
        let pages = after(vec![answer(5, &["a", "b"]), answer(5, &[])]);
        assert_eq!(pages[1], short(2, 5));
    }

    #[test]
    fn a_list_that_changes_under_the_reader_is_begun_again() {
        let pages = after(vec![answer(5, &["a", "b"]), answer(4, &["d", "e"])]);
        assert_eq!(pages[1], Next::Again);
        let pages = after(vec![answer(4, &["a", "b"]), answer(4, &["b", "c"])]);
        assert_eq!(pages[1], Next::Again);
    }

    #[test]
    fn what_is_no_list_is_told() {
        for (payload, reason) in [
            (r#"{"thing":[{}]}"#, "thing: missing field `id`"),
            (r#"{"count":"many"}"#, "count: many is no number"),
            (r#"{"count":-1}"#, "count: -1 is no number"),
            ("[]", "invalid type: sequence"),
        ] {
            let payload = RawValue::from_string(payload.to_owned()).unwrap();
            let text = page::<Thing>(&payload).err().unwrap();
            assert!(text.starts_with(reason), "{text}");
        }
    }
}
