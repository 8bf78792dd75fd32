use proptest::prelude::*;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().copied().collect()
}

#[test]
fn every_form_of_a_requirement_means_what_kubernetes_says() {
    let edge = labels(&[("tier", "edge"), ("size", "12"), ("empty", "")]);
    let table = [
        ("", true),
        ("  ", true),
        ("tier", true),
        ("gpu", false),
        ("!gpu", true),
        ("! gpu", true),
        ("!tier", false),
        ("tier=edge", true),
        ("tier == edge", true),
        ("tier=core", false),
        ("gpu=", false),
        ("empty=", true),
        ("empty", true),
        ("tier!=core", true),
        ("tier!=edge", false),
        ("gpu!=yes", true),
        ("tier in (core, edge)", true),
        ("tier in (core)", false),
        ("empty in ()", true),
        ("empty in (a,)", true),
        ("gpu notin (yes)", true),
        ("tier notin (edge,core)", false),
        ("tier in (edge),!gpu", true),
        ("tier in (edge),gpu", false),
        ("size > 11", true),
        ("size > 12", false),
        ("size < 13, tier", true),
        ("tier > 1", false),
    ];
    for (text, fits) in table {
        assert_eq!(
            Selector::parse(text).map(|selector| selector.matches(&edge)),
            Ok(fits),
            "{text}"
        );
    }
    let in_key = labels(&[("in", "in")]);
    assert!(Selector::parse("in in (in)").unwrap().matches(&in_key));
}

#[test]
fn what_is_no_selector_is_refused_with_what_was_expected() {
    let table = [
        ("a==b==c", "found '==', expected: ',' or 'end of string'"),
        ("a,", "found '', expected: !, identifier, or 'end of string'"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a in b", "found 'b', expected: '('"),
        ("a in (b", "found '', expected: ',' or ')'"),
        ("a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("!", "found '', expected: identifier"),
        ("!a=b", "found '==', expected: ',' or 'end of string'"),
        ("a=(b)", "found '(', expected: identifier"),
        ("a > b", "`b` is not a whole number"),
        ("-a", "`-a` is not a label key"),
        ("A.example/b/c", "`A.example/b/c` is not a label key"),
        ("a=b*", "`b*` is not a label value"),
    ];
    for (text, error) in table {
        assert_eq!(Selector::parse(text).unwrap_err().to_string(), error, "{text}");
    }
    assert!(Selector::parse(&format!("a={}", "x".repeat(64))).is_err());
    assert!(Selector::parse("node-role.kubernetes.io/control-plane").is_ok());
}

fn word() -> impl Strategy<Value = String> {
    "[a-c]([-._a-z0-9]{0,4}[a-z0-9])?"
}

fn any_requirement() -> impl Strategy<Value = Requirement> {
    let values = || prop::collection::btree_set(prop_oneof![Just(String::new()), word()], 1..4);
    let test = prop_oneof![
        Just(Test::Exists),
        Just(Test::Absent),
        values().prop_map(Test::In),
        values().prop_map(Test::NotIn),
        (-9i64..99).prop_map(Test::Above),
        (-9i64..99).prop_map(Test::Below),
    ];
    // Kubernetes has no negative numbers here: `-` cannot begin a value.
    (word(), test)
        .prop_filter(
            "negative limits cannot be written",
            |(_, test)| !matches!(test, Test::Above(limit) | Test::Below(limit) if *limit < 0),
        )
        .prop_map(|(key, test)| Requirement { key, test })
}

proptest! {
    #[test]
    fn a_written_selector_reads_back_as_itself(requirements in prop::collection::vec(any_requirement(), 0..5)) {
        let selector = Selector(requirements);
        prop_assert_eq!(Selector::parse(&selector.to_string()), Ok(selector));
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[ a-c!=(),<>./_0-9-]{0,24}") {
        let _ = Selector::parse(&text);
    }

    #[test]
    fn in_and_notin_are_opposites(key in word(), values in prop::collection::btree_set(word(), 1..4), pairs in prop::collection::vec((word(), word()), 0..6)) {
        let labels: Labels = pairs.into_iter().collect();
        let is_in = Selector(vec![Requirement { key: key.clone(), test: Test::In(values.clone()) }]);
        let is_not_in = Selector(vec![Requirement { key, test: Test::NotIn(values) }]);
        prop_assert_ne!(is_in.matches(&labels), is_not_in.matches(&labels));
    }
}
