//! The annotations of a Service: what they are called, what they mean, how they are read.

use bowline_cloud_http::meant;
use bowline_cloud_provider::facts::UnknownAnnotation;
use bowline_cloud_provider::{AnnotationSpec, Changeability, Service, facts};

mod table;

pub use table::annotation_table;
pub(crate) use table::*;

/// The value, or the default if the key is absent. A value that is there and empty is empty.
pub(crate) fn text<'a>(service: &'a Service, spec: &AnnotationSpec) -> &'a str {
    facts::annotation(service, spec.key).unwrap_or(spec.default)
}

/// Whether it is exactly `true`. The default of all flags is `false`.
pub(crate) fn flag(service: &Service, spec: &AnnotationSpec) -> bool {
    facts::annotation(service, spec.key) == Some("true")
}

/// A value of a flag that is neither of the two words, and so has no effect.
pub(crate) fn misread_flag<'a>(service: &'a Service, spec: &AnnotationSpec) -> Option<&'a str> {
    facts::annotation(service, spec.key).filter(|text| !matches!(*text, "true" | "false"))
}

/// The address that a Service asks for: the annotation goes before the field, which Kubernetes deprecates.
pub(crate) fn requested(service: &Service) -> Option<&str> {
    let spec = service.spec.as_ref();
    let field = spec.and_then(|spec| spec.load_balancer_ip.as_deref());
    let both = [text(service, &ADDRESS), field.unwrap_or_default()];
    both.map(str::trim).into_iter().find(|ip| !ip.is_empty())
}

/// Whether Leaseweb's manager made the load balancer, or took it over.
pub(crate) fn is_of_leaseweb(service: &Service) -> bool {
    !text(service, &BALANCER_ID).trim().is_empty()
}

/// Annotations that look like one of ours and are none.
pub(crate) fn unknown(service: &Service) -> Vec<UnknownAnnotation<'_>> {
    facts::unknown_annotations(service, PREFIX, annotation_table(), meant)
}

/// Whether it is not people who write what has this key.
pub(crate) fn is_written(key: &str) -> bool {
    let is_it = |spec: &AnnotationSpec| spec.key == key && spec.change == Changeability::Written;
    annotation_table().iter().any(is_it)
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::Pairs;

    use super::*;

    fn service(annotations: &[(&str, &str)]) -> Service {
        let annotations: Pairs<String> = annotations
            .iter()
            .map(|(key, value)| (*key, (*value).to_owned()))
            .collect();
        let mut service = Service::default();
        service.metadata.annotations = Some(annotations);
        service
    }

    #[test]
    fn only_the_exact_words_switch_the_proxy_protocol() {
        for (value, expected) in [
            ("true", true),
            ("false", false),
            ("True", false),
            ("1", false),
            ("enabled", false),
            ("", false),
        ] {
            let service = service(&[(PROXY_PROTOCOL.key, value)]);
            assert_eq!(flag(&service, &PROXY_PROTOCOL), expected, "{value:?}");
            let is_word = matches!(value, "true" | "false");
            assert_eq!(
                misread_flag(&service, &PROXY_PROTOCOL).is_none(),
                is_word,
                "{value:?}"
            );
        }
        assert!(!flag(&Service::default(), &PROXY_PROTOCOL));
    }

    #[test]
    fn a_value_that_is_there_and_empty_is_no_default() {
        assert_eq!(text(&Service::default(), &SOURCE_CIDRS), "0.0.0.0/0");
        assert_eq!(text(&service(&[(SOURCE_CIDRS.key, "")]), &SOURCE_CIDRS), "");
    }

    #[test]
    fn a_misspelt_key_is_noticed_and_keys_of_others_are_not() {
        let misspelt = "service.beta.kubernetes.io/cloudstack-load-balancer-proxy";
        let service = service(&[
            (misspelt, "true"),
            (PROXY_PROTOCOL.key, "true"),
            ("service.beta.kubernetes.io/aws-load-balancer-type", "nlb"),
        ]);
        let unknown: Vec<&str> = unknown(&service).iter().map(|it| it.key).collect();
        assert_eq!(unknown, [misspelt]);
    }
}
