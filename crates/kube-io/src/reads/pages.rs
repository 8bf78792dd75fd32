//! Which answers to a list are believed.
//!
//! A proxy that answers in the place of the API server, or cuts its answer short, must not read as "there is nothing":
//! on that word members would be removed, and balancers with them. So a page counts only if it says what it is and in
//! which version, and holds a list of objects; and the pages of one list must add up.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::read;
use crate::error::KubeError;

/// More pages than any cluster has: 100,000 objects. An API server that always has one more page is not read for ever.
const MAX_PAGES: usize = 1000;

/// One page as it came.
///
/// The API server writes `kind`, `apiVersion`, `metadata.resourceVersion` and `items` into every list; the `items` of an
/// empty one are `[]`. (It makes an empty slice where there is none, in `GetList` of `storage/etcd3/store.go` and of
/// `storage/cacher`; the Go library would also take `null`, or no `items` at all, for an empty list.)
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    metadata: ListMeta,
    // Read one by one, so that an object that cannot be understood is an error of that object alone.
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct ListMeta {
    #[serde(default)]
    resource_version: String,
    #[serde(default, rename = "continue")]
    next: String,
    remaining_item_count: Option<i64>,
}

/// The pages of one list so far.
#[derive(Debug)]
pub(super) struct Pages {
    /// The kind of the list, such as `NodeList`.
    kind: &'static str,
    version: String,
    next: String,
    pages: usize,
    received: usize,
    /// How many objects there must be at least, by what the pages say.
    promised: usize,
    is_counted: bool,
}

impl Pages {
    pub(super) fn of(kind: &'static str) -> Self {
        Self {
            kind,
            version: String::new(),
            next: String::new(),
            pages: 0,
            received: 0,
            promised: 0,
            is_counted: false,
        }
    }

    /// Whether there is a page.
    pub(super) fn is_begun(&self) -> bool {
        self.pages > 0
    }

    /// Checks one page and gives its objects.
    ///
    /// # Errors
    ///
    /// The page is not what was asked for, or does not go with the pages before it.
    pub(super) fn add<'a>(&mut self, answer: &'a [u8]) -> Result<Vec<&'a RawValue>, KubeError> {
        let page: Page<'a> =
            read(answer).map_err(|error| self.refuse(&format!("it cannot be read ({error})")))?;
        let ListMeta {
            resource_version: version,
            next,
            remaining_item_count,
        } = page.metadata;
        if page.kind != self.kind || page.api_version != "v1" {
            let why = format!("its kind is {:?} of {:?}", page.kind, page.api_version);
            return Err(self.refuse(&why));
        }
        if version.is_empty() || version == "0" {
            return Err(self.refuse("it has no resourceVersion"));
        }
        if self.pages > 0 && version != self.version {
            return Err(self.refuse("its pages are of different versions"));
        }
        let Some(items) = page.items else {
            return Err(self.refuse("it has no items"));
        };
        if !next.is_empty() && (items.is_empty() || next == self.next || self.pages == MAX_PAGES) {
            return Err(self.refuse("it has no end"));
        }
        self.received += items.len();
        self.is_counted |= remaining_item_count.is_some();
        // More objects than promised are no surprise, because API servers may count a moment too early. Fewer are.
        let remaining = match remaining_item_count {
            Some(count) => usize::try_from(count).unwrap_or(0),
            None => usize::from(!next.is_empty()),
        };
        self.promised = self.promised.max(self.received + remaining);
        self.pages += 1;
        (self.version, self.next) = (version, next);
        if self.next.is_empty() && self.received < self.promised {
            let (received, promised) = (self.received, self.promised);
            return Err(self.refuse(&format!("it ends after {received} of {promised} objects")));
        }
        Ok(items)
    }

    /// Whether a page has told how many objects there are besides its own.
    pub(super) fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// Checks the number of objects against a page of the same version that holds one of them.
    ///
    /// # Errors
    ///
    /// There are more.
    pub(super) fn count(&self, answer: &[u8]) -> Result<(), KubeError> {
        let mut counted = Self::of(self.kind);
        counted.add(answer)?;
        if counted.version != self.version || counted.promised > self.received {
            let (received, promised) = (self.received, counted.promised);
            return Err(self.refuse(&format!("it ends after {received} of {promised} objects")));
        }
        Ok(())
    }

    /// Where the next page begins; empty before the first page and after the last.
    pub(super) fn next(&self) -> &str {
        &self.next
    }

    /// The version of all pages.
    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Why the list is not believed.
    pub(super) fn refuse(&self, why: &str) -> KubeError {
        KubeError::Decode(format!(
            "the {} is not believed, because {why}. Look for a proxy that answers for the API server.",
            self.kind
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read_all(pages: &[Value]) -> Result<usize, String> {
        let mut sum = Pages::of("NodeList");
        for page in pages {
            sum.add(page.to_string().as_bytes())
                .map_err(|error| error.to_string())?;
        }
        assert_eq!(sum.next(), "", "another page would be asked for");
        Ok(sum.received)
    }

    fn page(patch: Value) -> Value {
        let mut page = json!({
            "kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": [{}],
        });
        for (key, value) in patch.as_object().unwrap() {
            page[key] = value.clone();
        }
        page
    }

    #[test]
    fn what_an_api_server_sends_is_believed() {
        assert_eq!(read_all(&[page(json!({}))]), Ok(1));
        assert_eq!(read_all(&[page(json!({"items": []}))]), Ok(0));
        let first = json!({"resourceVersion": "7", "continue": "a", "remainingItemCount": 1});
        assert_eq!(
            read_all(&[page(json!({"metadata": first})), page(json!({}))]),
            Ok(2)
        );
        let uncounted = json!({"resourceVersion": "7", "continue": "a"});
        assert_eq!(
            read_all(&[page(json!({"metadata": uncounted})), page(json!({}))]),
            Ok(2)
        );
    }

    #[test]
    fn what_is_no_list_of_the_kind_in_a_version_is_not_believed() {
        for (patch, why) in [
            (json!({"kind": "Status"}), r#"its kind is "Status" of "v1""#),
            (
                json!({"kind": "ServiceList"}),
                r#"its kind is "ServiceList" of "v1""#,
            ),
            (json!({"apiVersion": "v2"}), r#"its kind is "NodeList" of "v2""#),
            (json!({"metadata": {}}), "it has no resourceVersion"),
            (
                json!({"metadata": {"resourceVersion": ""}}),
                "it has no resourceVersion",
            ),
            (
                json!({"metadata": {"resourceVersion": "0"}}),
                "it has no resourceVersion",
            ),
            (json!({"items": null}), "it has no items"),
            (json!({"items": {}}), "it cannot be read"),
            (json!({"metadata": null}), "it cannot be read"),
        ] {
            let error = read_all(&[page(patch.clone())]).unwrap_err();
            assert!(error.contains(&format!("because {why}")), "{patch}: {error}");
        }
        for body in [json!({}), json!([]), json!("ok"), json!(null)] {
            assert!(read_all(std::slice::from_ref(&body)).is_err(), "{body}");
        }
    }

    #[test]
    fn a_list_of_one_page_is_counted_against_another_answer() {
        let mut list = Pages::of("NodeList");
        list.add(page(json!({"items": [{}, {}]})).to_string().as_bytes())
            .unwrap();
        assert!(!list.is_counted());
        let count = |version: &str, next: &str, remaining: Option<i64>| {
            let meta = json!({"resourceVersion": version, "continue": next, "remainingItemCount": remaining});
            list.count(page(json!({"metadata": meta})).to_string().as_bytes())
        };
        assert_eq!(count("7", "a", Some(1)), Ok(()));
        assert_eq!(
            count("7", "a", None),
            Ok(()),
            "there may be an API server that does not count"
        );
        assert!(count("7", "a", Some(2)).is_err());
        assert!(count("8", "a", Some(1)).is_err());
    }

    #[test]
    fn pages_that_do_not_add_up_are_not_believed() {
        let meta = |version: &str, next: &str, remaining: i64| json!({"resourceVersion": version, "continue": next, "remainingItemCount": remaining});
        for (pages, why) in [
            (
                vec![page(json!({"metadata": meta("7", "a", 2)})), page(json!({}))],
                "it ends after 2 of 3 objects",
            ),
            (
                vec![page(json!({"metadata": meta("7", "", 2)}))],
                "it ends after 1 of 3 objects",
            ),
            (
                vec![
                    page(json!({"metadata": meta("7", "a", 1)})),
                    page(json!({"items": []})),
                ],
                "it ends after 1 of 2 objects",
            ),
            (
                vec![
                    page(json!({"metadata": {"resourceVersion": "7", "continue": "a"}})),
                    page(json!({"items": []})),
                ],
                "it ends after 1 of 2 objects",
            ),
            (
                vec![
                    page(json!({"metadata": meta("7", "a", 1)})),
                    page(json!({"metadata": {"resourceVersion": "8"}})),
                ],
                "its pages are of different versions",
            ),
            (
                vec![page(json!({"metadata": meta("7", "a", 1), "items": []}))],
                "it has no end",
            ),
            (
                vec![
                    page(json!({"metadata": meta("7", "a", 9)})),
                    page(json!({"metadata": meta("7", "a", 8)})),
                ],
                "it has no end",
            ),
        ] {
            let error = read_all(&pages).unwrap_err();
            assert!(error.contains(&format!("because {why}")), "{why}: {error}");
        }
    }
}
