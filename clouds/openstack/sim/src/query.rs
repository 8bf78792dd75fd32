//! The query of a list: filters, pages, and which fields are wanted.

use serde_json::{Map, Value, json};

/// The pairs of a query, decoded, in order.
#[derive(Clone, Debug)]
pub(crate) struct Query(Vec<(String, String)>);

/// Names that are no filters.
const CONTROL: [&str; 7] = [
    "fields",
    "limit",
    "marker",
    "page_reverse",
    "sort_key",
    "sort_dir",
    "all_tenants",
];

/// Filters by tags.
const TAGS: [&str; 4] = ["tags", "tags-any", "not-tags", "not-tags-any"];

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Self {
        let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.into_owned().collect())
    }

    /// The first value of a name.
    pub(crate) fn first(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// All values of a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let fits = move |(key, _): &&(String, String)| key == name;
        self.0.iter().filter(fits).map(|(_, value)| value.as_str())
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.first(name).is_some_and(|it| it.eq_ignore_ascii_case("true"))
    }

    /// A filter that is neither by tags nor of these names.
    pub(crate) fn unknown(&self, names: &[&str]) -> Option<&str> {
        let names_known = |key: &str| {
            CONTROL.contains(&key) || TAGS.contains(&key) || names.contains(&key) || key == "fixed_ips"
        };
        let mut keys = self.0.iter().map(|(key, _)| key.as_str());
        keys.find(|key| !names_known(key))
    }

    /// Whether an object's id passes, told before it is rendered.
    pub(crate) fn may_be(&self, name: &str, value: &str) -> bool {
        let mut wanted = self.all(name).peekable();
        wanted.peek().is_none() || wanted.any(|it| it == value)
    }

    /// Whether a rendered object passes all filters: of one name any value may fit, and each name must.
    pub(crate) fn passes(&self, object: &Value) -> bool {
        let names = self.0.iter().map(|(key, _)| key.as_str());
        let mut filters = names.filter(|key| !CONTROL.contains(key));
        filters.all(|key| match key {
            _ if TAGS.contains(&key) => self.passes_tags(key, &object["tags"]),
            "fixed_ips" => self.passes_fixed_ips(&object[key]),
            _ => self.all(key).any(|wanted| fits(&object[key], wanted)),
        })
    }

    /// Like filters of an object of its own: of one field any value may fit, and each field must.
    fn passes_fixed_ips(&self, fixed_ips: &Value) -> bool {
        let mut wanted = self.all("fixed_ips");
        wanted.all(|one| {
            let mut alike = self.all("fixed_ips").filter(|it| field_of(it) == field_of(one));
            alike.any(|it| has_fixed_ip(fixed_ips, it))
        })
    }

    /// `tags` are all there, of `tags-any` at least one; `not-tags` are not all there, of `not-tags-any` none.
    fn passes_tags(&self, key: &str, tags: &Value) -> bool {
        let has = |tag: &str| {
            tags.as_array()
                .is_some_and(|tags| tags.iter().any(|it| it == tag))
        };
        self.all(key).all(|wanted| {
            let mut wanted = wanted.split(',');
            match key {
                "tags" => wanted.all(has),
                "tags-any" => wanted.any(has),
                "not-tags" => !wanted.all(has),
                _ => !wanted.any(has),
            }
        })
    }

    /// The query without a filter that was applied already.
    pub(crate) fn without(&self, names: &[&str]) -> Self {
        let others = self.0.iter().filter(|(key, _)| !names.contains(&key.as_str()));
        Self(others.cloned().collect())
    }

    /// Leaves only the fields that are asked for, if any are.
    pub(crate) fn trim(&self, object: Value) -> Value {
        let wanted: Vec<&str> = self.all("fields").flat_map(|it| it.split(',')).collect();
        match object {
            Value::Object(fields) if !wanted.is_empty() => {
                let kept = fields
                    .into_iter()
                    .filter(|(name, _)| wanted.contains(&name.as_str()));
                Value::Object(kept.collect::<Map<_, _>>())
            }
            object => object,
        }
    }

    /// One page of a list, and the marker of the next one. An unknown marker is an error, or none at all.
    ///
    /// As in OpenStack a full page has a next one, even if that turns out to be empty.
    pub(crate) fn page(
        &self,
        objects: Vec<Value>,
        most: Option<usize>,
        begins_anew: bool,
    ) -> Result<Page, UnknownMarker> {
        let asked: Option<usize> = self.first("limit").and_then(|it| it.parse().ok());
        let limit = match (asked, most) {
            (Some(asked), Some(most)) => Some(asked.min(most)),
            (asked, most) => asked.or(most),
        };
        let begin = match self.first("marker") {
            None => 0,
            Some(marker) => match objects.iter().position(|it| it["id"] == marker) {
                Some(at) => at + 1,
                None if begins_anew => 0,
                None => return Err(UnknownMarker(marker.to_owned())),
            },
        };
        let rest = objects.into_iter().skip(begin);
        let objects: Vec<Value> = rest.take(limit.unwrap_or(usize::MAX)).collect();
        let is_full = limit.is_some_and(|limit| limit > 0 && objects.len() >= limit);
        let last = objects.last().filter(|_| is_full);
        let next = last.and_then(|it| it["id"].as_str()).map(str::to_owned);
        Ok(Page { objects, next, limit })
    }

    /// The query of Octavia's link to the page after a marker: it has no filters (`_make_links` of its `PaginationHelper`).
    pub(crate) fn sorted_after(&self, marker: &str, limit: Option<usize>) -> String {
        let sorted = self.0.iter().filter(|(key, _)| key == "sort_key");
        Self(sorted.cloned().collect()).after(marker, limit)
    }

    /// The query that asks for the page after a marker.
    pub(crate) fn after(&self, marker: &str, limit: Option<usize>) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for (key, value) in &self.0 {
            if key != "marker" && key != "limit" {
                query.append_pair(key, value);
            }
        }
        if let Some(limit) = limit {
            query.append_pair("limit", &limit.to_string());
        }
        query.append_pair("marker", marker);
        query.finish()
    }
}

/// A marker that names no object of the list.
#[derive(Debug)]
pub(crate) struct UnknownMarker(pub(crate) String);

/// Part of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Value>,
    /// The marker of the next page.
    pub(crate) next: Option<String>,
    pub(crate) limit: Option<usize>,
}

/// Links as each service writes them.
pub(crate) fn next_link(href: &str) -> Value {
    json!([{ "rel": "next", "href": href }])
}

/// Whether a field has a value, or a list holds it, itself or as an `id`.
fn fits(field: &Value, wanted: &str) -> bool {
    match field {
        Value::String(text) => text == wanted,
        Value::Bool(flag) => wanted.eq_ignore_ascii_case(if *flag { "true" } else { "false" }),
        Value::Number(number) => number.to_string() == wanted,
        Value::Array(items) => items.iter().any(|it| it == wanted || it["id"] == wanted),
        Value::Null => wanted.is_empty(),
        Value::Object(_) => false,
    }
}

/// The part of a `fixed_ips` filter before its value.
fn field_of(wanted: &str) -> Option<&str> {
    wanted.split_once('=').map(|(field, _)| field)
}

/// `ip_address=10.0.0.1` or `subnet_id=...`.
fn has_fixed_ip(fixed_ips: &Value, wanted: &str) -> bool {
    let Some((field, value)) = wanted.split_once('=') else {
        return false;
    };
    fixed_ips
        .as_array()
        .is_some_and(|all| all.iter().any(|it| it[field] == value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(query: &str) -> Vec<&'static str> {
        let objects = [
            ("none", json!([])),
            ("a", json!(["a"])),
            ("ab", json!(["a", "b"])),
        ];
        let query = Query::parse(Some(query));
        let passing = objects
            .into_iter()
            .filter(|(name, tags)| query.passes(&json!({ "id": name, "tags": tags })));
        passing.map(|(name, _)| name).collect()
    }

    #[test]
    fn tags_are_filtered_as_neutron_does() {
        assert_eq!(names("tags=a,b"), ["ab"]);
        assert_eq!(names("tags-any=a,b"), ["a", "ab"]);
        assert_eq!(names("not-tags=a,b"), ["none", "a"]);
        assert_eq!(names("not-tags-any=a,b"), ["none"]);
        assert_eq!(names("not-tags=a"), names("not-tags-any=a"));
    }

    #[test]
    fn filters_of_one_name_are_alternatives() {
        assert_eq!(names("id=a&id=none"), ["none", "a"]);
        assert_eq!(names("id=a&tags=b"), Vec::<&str>::new());
    }

    #[test]
    fn fixed_ips_are_found_by_address() {
        let port = json!({ "fixed_ips": [{ "subnet_id": "s", "ip_address": "10.0.0.1" }] });
        for (query, found) in [
            ("fixed_ips=ip_address%3D10.0.0.1", true),
            ("fixed_ips=ip_address%3D10.0.0.2", false),
            (
                "fixed_ips=ip_address%3D10.0.0.2&fixed_ips=ip_address%3D10.0.0.1",
                true,
            ),
            ("fixed_ips=subnet_id%3Dt&fixed_ips=ip_address%3D10.0.0.1", false),
            ("fixed_ips=subnet_id%3Ds&fixed_ips=ip_address%3D10.0.0.1", true),
        ] {
            assert_eq!(Query::parse(Some(query)).passes(&port), found, "{query}");
        }
    }

    #[test]
    fn full_page_has_a_next_one() {
        let objects = || vec![json!({ "id": "1" }), json!({ "id": "2" })];
        let page = |query| Query::parse(Some(query)).page(objects(), None, false);
        assert_eq!(page("").unwrap().next, None);
        assert_eq!(page("limit=3").unwrap().next, None);
        assert_eq!(page("limit=2").unwrap().next.as_deref(), Some("2"));
        let last = page("limit=2&marker=2").unwrap();
        assert!(last.objects.is_empty() && last.next.is_none());
        assert!(page("marker=9").is_err());
        let anew = Query::parse(Some("marker=9")).page(objects(), None, true);
        assert_eq!(anew.unwrap().objects, objects());
        let query = Query::parse(Some("name=a&limit=2&marker=1"));
        assert_eq!(query.after("2", Some(2)), "name=a&limit=2&marker=2");
        assert_eq!(query.sorted_after("2", Some(2)), "limit=2&marker=2");
    }
}
