//! The annotations of a Service: what they are called, what they mean, how they are read.

use bowline_cloud_http::meant;
use bowline_cloud_provider::k8s::Service;
use bowline_cloud_provider::{AnnotationSpec, facts};

use crate::load_balancer::tags;

mod table;

pub use table::annotation_table;
pub(crate) use table::*;

/// Reads annotations of one Service. A value that cannot be read counts as absent, as the Go manager has it, and is
/// remembered: a person is told of all of them at once.
pub(crate) struct Reader<'a> {
    service: &'a Service,
    ignored: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(service: &'a Service) -> Self {
        Self {
            service,
            ignored: Vec::new(),
        }
    }

    /// The value, if the key is there; an empty value is one, and switches a configured default off.
    pub(crate) fn given(&self, spec: &AnnotationSpec) -> Option<&'a str> {
        facts::annotation(self.service, spec.key)
    }

    /// The value, or else the default.
    pub(crate) fn text(&self, spec: &AnnotationSpec, default: &'a str) -> &'a str {
        self.given(spec).unwrap_or(default)
    }

    /// Exactly `true` or `false`.
    pub(crate) fn flag(&mut self, spec: &AnnotationSpec, default: bool) -> bool {
        match self.given(spec) {
            None => default,
            Some("true") => true,
            Some("false") => false,
            Some(other) => {
                self.ignore(spec, other, "must be `true` or `false`");
                default
            }
        }
    }

    /// One of the words of the table.
    pub(crate) fn word(&mut self, spec: &AnnotationSpec, default: &'a str) -> &'a str {
        match self.given(spec) {
            None => default,
            Some(text) if spec.words().contains(&text) => text,
            Some(other) => {
                let words: Vec<String> = spec.words().iter().map(|word| format!("`{word}`")).collect();
                self.ignore(spec, other, &format!("must be one of {}", words.join(", ")));
                default
            }
        }
    }

    /// A decimal number, perhaps with a sign.
    pub(crate) fn number(&mut self, spec: &AnnotationSpec, default: i64) -> i64 {
        match self.given(spec) {
            None => default,
            Some(text) => text.parse().unwrap_or_else(|_| {
                self.ignore(spec, text, "must be a whole number");
                default
            }),
        }
    }

    /// Tags, each once, in the order in which they are written.
    pub(crate) fn tags(&mut self, spec: &AnnotationSpec) -> Vec<String> {
        let mut tags: Vec<String> = Vec::new();
        for tag in tags::listed(self.given(spec).unwrap_or_default()) {
            match tags::flaw(tag) {
                Some(why) => self
                    .ignored
                    .push(format!("{} names the tag `{tag}`, {why}", spec.key)),
                None if tags.iter().any(|there| there == tag) => {}
                None => tags.push(tag.to_owned()),
            }
        }
        tags
    }

    fn ignore(&mut self, spec: &AnnotationSpec, value: &str, why: &str) {
        self.ignored.push(format!("{} is `{value}` and {why}", spec.key));
    }

    /// What could not be read, and keys with the provider's prefix that it does not know.
    pub(crate) fn into_ignored(mut self) -> Vec<String> {
        let unknown = facts::unknown_annotations(self.service, PREFIX, annotation_table(), meant);
        let told = unknown.iter().map(|it| match it.meant {
            Some(meant) => format!("{} is not known (did you mean {meant}?)", it.key),
            None => format!("{} is not known", it.key),
        });
        self.ignored.extend(told);
        self.ignored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(annotations: &[(&str, &str)]) -> Service {
        let mut service = Service::default();
        let owned = annotations
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        service.metadata.annotations = Some(owned.collect());
        service
    }

    #[test]
    fn an_empty_text_is_a_value() {
        let service = service(&[(FLAVOR.key, "")]);
        let reader = Reader::new(&service);
        assert_eq!(reader.text(&FLAVOR, "large"), "");
        assert_eq!(reader.text(&ZONE, "az1"), "az1");
    }

    #[test]
    fn what_cannot_be_read_counts_as_absent_and_is_told() {
        let service = service(&[
            (CONNECTION_LIMIT.key, "many"),
            (KEEP_FLOATING_IP.key, "True"),
            (TIMEOUT_CLIENT_DATA.key, "+7"),
            ("loadbalancer.openstack.org/flavour-id", "x"),
            ("example.org/flavour-id", "x"),
        ]);
        let mut reader = Reader::new(&service);
        assert_eq!(reader.number(&CONNECTION_LIMIT, -1), -1);
        assert!(!reader.flag(&KEEP_FLOATING_IP, false));
        assert_eq!(reader.number(&TIMEOUT_CLIENT_DATA, 50_000), 7);
        assert_eq!(
            reader.into_ignored(),
            [
                "loadbalancer.openstack.org/connection-limit is `many` and must be a whole number",
                "loadbalancer.openstack.org/keep-floatingip is `True` and must be `true` or `false`",
                "loadbalancer.openstack.org/flavour-id is not known (did you mean loadbalancer.openstack.org/flavor-id?)",
            ]
        );
    }

    #[test]
    fn blanks_around_do_not_count() {
        let service = service(&[
            (CONNECTION_LIMIT.key, " 7\n"),
            (KEEP_FLOATING_IP.key, "true\r\n"),
            (PROXY_PROTOCOL.key, "v2 "),
        ]);
        let mut reader = Reader::new(&service);
        assert_eq!(reader.number(&CONNECTION_LIMIT, -1), 7);
        assert!(reader.flag(&KEEP_FLOATING_IP, false));
        assert_eq!(reader.word(&PROXY_PROTOCOL, "false"), "v2");
        assert_eq!(reader.into_ignored(), [""; 0]);
    }

    #[test]
    fn a_word_that_is_none_of_the_table_is_told() {
        for (text, read, is_told) in [
            ("v2", "v2", false),
            ("", "", false),
            ("V2", "false", true),
            ("yes", "false", true),
        ] {
            let service = service(&[(PROXY_PROTOCOL.key, text)]);
            let mut reader = Reader::new(&service);
            assert_eq!(reader.word(&PROXY_PROTOCOL, "false"), read);
            assert_eq!(!reader.into_ignored().is_empty(), is_told, "{text:?}");
        }
    }
}
