//! Values that nobody thought of: what a policy refuses, the reader refuses too, or the cloud would.

use bowline_cloud_provider::{Accepts, AnnotationSpec, ValueKind};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use crate::admission::apiserver::{ApiServer, complaints, service};

/// Values for each annotation of each cloud.
const VALUES: usize = 24;

/// Texts that are nearly good ones.
fn texts(spec: &AnnotationSpec) -> BoxedStrategy<String> {
    let any = "[ -~]{0,12}";
    let network =
        r"[0-9]{1,3}\.[0-9]{1,2}\.[0-9]\.0(/[0-9]{1,2})?|[0-9a-f:]{2,12}/[0-9]{1,3}|::ffff:[0-9.]{7}/9[6-9]";
    let listed = format!(r#"\[( ?"({network})",?){{0,3}}\]"#);
    let near: BoxedStrategy<String> = match (spec.accepts, spec.kind) {
        (Accepts::Between(..), _) | (Accepts::Any, ValueKind::Int) => "[-+]?[0-9]{0,20}|[0-9]{1,4}(s|ms| |[.]0)".boxed(),
        (Accepts::Words(words) | Accepts::WordsOfAnyCase(words), _) => proptest::sample::select(words)
            .prop_flat_map(|word| prop_oneof![Just(word.to_owned()), Just(word.to_uppercase()), Just(format!(" {word}"))])
            .boxed(),
        (Accepts::Networks | Accepts::Addresses, ValueKind::List) => string(&listed),
        (Accepts::Any, ValueKind::List) => r#"\[("[a-z\\"]{0,3}"?,?){0,3}\]?|null|[ ]{0,2}"#.boxed(),
        (Accepts::Networks | Accepts::Address, _) => string(&format!("(({network}),? ?){{0,3}}")),
        (Accepts::Uuid, _) => r"(urn:uuid:|URN:UUID:)?[0-9a-f]{8}(-[0-9A-F]{4}){3,4}-?[0-9a-f]{10,12}|\{?[0-9a-f]{32}\}?".boxed(),
        (Accepts::Selector | Accepts::Labels, _) => {
            r"(!?[a-z./-]{1,4}( ?(=|==|!=|<|>) ?[a-z0-9/.]{0,3}| ?(in|notin) ?\(?[a-z, ]{0,5}\)?)? ?,? ?){0,3}".boxed()
        }
        (Accepts::Vips, _) => {
            r#"\[? ?(\{("(address|Subnet|x)" ?: ?("[0-9.:]{0,9}"|[0-9]|null|\[\]),?){0,3}\},? ?){0,2}\]?"#.boxed()
        }
        (Accepts::HttpCheck, _) => {
            r#"\{("(expected_codes|METHOD|host|x)" ?: ?("[A-Z2]{0,3}"|[0-9]|null|\[("200"|5|,){0,3}\]|\{\}),?){0,3}\}?"#.boxed()
        }
        (Accepts::Hostname, _) => "[a-zA-Z0-9.:-]{0,9}".boxed(),
        _ => "true|false|True|TRUE|1|t|yes|".boxed(),
    };
    prop_oneof![1 => string(any), 3 => near].boxed()
}

fn string(expression: &str) -> BoxedStrategy<String> {
    proptest::string::string_regex(expression).unwrap().boxed()
}

/// Whether a text may be refused although the reader takes it, because the cloud or the API server does not.
fn is_refused_later(spec: &AnnotationSpec, text: &str) -> bool {
    match spec.accepts {
        Accepts::Between(least, most) => text
            .trim()
            .parse::<i64>()
            .is_ok_and(|number| !(least..=most).contains(&number)),
        Accepts::Words(words) => spec.key.ends_with("/lb-method") && !words.contains(&text.trim()),
        Accepts::Address => text.trim().parse::<std::net::IpAddr>().is_err(),
        // Of two fields of one name the reader takes the last. It passes over those that it does not know.
        Accepts::Vips | Accepts::HttpCheck => {
            let lower = text.to_ascii_lowercase();
            lower.contains("\"x\"")
                || is_other_method(text)
                || ["address", "subnet", "expected_codes", "method", "host"]
                    .iter()
                    .any(|name| lower.matches(&format!("\"{name}\"")).count() > 1)
        }
        // A network leads to no load balancer.
        Accepts::Addresses => text.contains('/'),
        // The test of host names asks the API server.
        Accepts::Hostname => true,
        _ => false,
    }
}

/// Whether the method is one that a load balancer does not know.
fn is_other_method(text: &str) -> bool {
    let value: Option<Value> = serde_json::from_str(text).ok();
    let method = value.and_then(|value| Some(value.get("METHOD")?.as_str()?.to_owned()));
    method.is_some_and(|method| !["", "GET", "PUT"].contains(&method.as_str()))
}

#[tokio::test]
async fn what_a_policy_refuses_the_reader_refuses_too() {
    let Some(server) = ApiServer::start("Warn").await else {
        return;
    };
    let mut runner = TestRunner::deterministic();
    let (mut refused, mut taken, mut missed) = (0, 0, Vec::new());
    for (cloud, table) in [
        ("cloudscale", bowline_cloudscale::annotation_table()),
        ("cloudstack", bowline_cloudstack::annotation_table()),
        ("openstack", bowline_openstack::annotation_table()),
    ] {
        for spec in table
            .iter()
            .filter(|spec| !spec.key.ends_with("/load-balancer-source-ranges"))
        {
            let texts = texts(spec);
            for _ in 0..VALUES {
                let text = texts.new_tree(&mut runner).unwrap().current();
                let service = service(&[(spec.key, &text)]);
                let said = server.create(cloud, &service).await.said();
                let is_caught = !said.trim().is_empty();
                let read = complaints(cloud, &service);
                if is_caught {
                    refused += 1;
                    assert!(
                        // A blank value is none on cloudscale.ch: the policy says that nobody means it.
                        !read.is_empty() || is_refused_later(spec, &text) || text.trim().is_empty(),
                        "{} is {text:?}: only the policy complains: {said}",
                        spec.key
                    );
                } else {
                    taken += 1;
                    if !read.is_empty() {
                        missed.push((spec.accepts, spec.key, text));
                    }
                }
            }
        }
    }
    assert!(refused > 300 && taken > 300, "{refused} refused, {taken} taken");
    // What only the reader sees is of the kinds that the guide lists.
    for (accepts, key, text) in missed {
        let is_listed = matches!(
            accepts,
            Accepts::Between(..)
                | Accepts::Networks
                | Accepts::Addresses
                | Accepts::Vips
                | Accepts::HttpCheck
                | Accepts::Selector
        ) || text.contains('\\')
            || key.ends_with("/class")
            || key.ends_with("/floating-subnet")
            || key.ends_with("/default-tls-container-ref");
        assert!(is_listed, "{key} is {text:?}: only the reader complains");
    }
}
