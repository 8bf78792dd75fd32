use super::*;

fn config(text: &str) -> CloudConfig {
    CloudConfig::Given {
        path: "/etc/cloud-sa/cloud-sa.json".to_owned(),
        contents: text.as_bytes().to_vec(),
    }
}

fn read(variables: &[(&str, &str)], config: &CloudConfig) -> Result<Options, OptionsError> {
    let environment: Environment = variables.iter().copied().collect();
    Options::read(&Given::default(), &environment, config)
}

const BOTH: [(&str, &str); 2] = [("PNAP_CLIENT_ID", "env-id"), ("PNAP_CLIENT_SECRET", "hunter2")];
const FILE: &str =
    r#"{"clientID":"f","clientSecret":"hunter2","location":"CHI","loadbalancer":"kube-vip://A"}"#;

#[test]
fn the_environment_beats_the_file_and_an_empty_variable_does_not() {
    let options = read(
        &[
            ("PNAP_CLIENT_ID", "e"),
            ("PNAP_LOCATION", "AUS"),
            ("PNAP_LOAD_BALANCER", "kube-vip://B"),
        ],
        &config(FILE),
    )
    .unwrap();
    assert_eq!(options.settings.credentials.client_id, "e");
    assert_eq!(options.location.as_deref(), Some("AUS"));
    let network = "B".to_owned();
    assert_eq!(options.load_balancing, LoadBalancing::KubeVip { network });

    let options = read(&[("PNAP_LOCATION", ""), ("PNAP_CLIENT_ID", " ")], &config(FILE)).unwrap();
    assert_eq!(options.location.as_deref(), Some("CHI"));
    assert_eq!(options.settings.credentials.client_id, "f");
}

#[test]
fn without_a_file_both_credentials_must_be_in_the_environment() {
    assert!(read(&BOTH, &CloudConfig::Absent).is_ok());
    for variables in [&BOTH[..1], &BOTH[1..], &[]] {
        let error = read(variables, &CloudConfig::Absent).unwrap_err();
        assert_eq!(error, OptionsError::NoFile);
        assert!(error.to_string().contains("--cloud-config"), "{error}");
    }
}

#[test]
fn a_missing_credential_is_told_with_every_place_it_was_looked_for_in() {
    let error = |variables: &[(&str, &str)], text| read(variables, &config(text)).unwrap_err().to_string();
    assert_eq!(
        error(&[], "{}"),
        "environment variable PNAP_CLIENT_ID or `clientID` in the cloud config is required: the variable is not set, and the \
         key is missing in /etc/cloud-sa/cloud-sa.json"
    );
    assert_eq!(
        error(&BOTH[..1], r#"{"clientSecret":" "}"#),
        "environment variable PNAP_CLIENT_SECRET or `clientSecret` in the cloud config is required: the variable is not set, \
         and the key is empty in /etc/cloud-sa/cloud-sa.json"
    );
    let misspelt = error(
        &[],
        r#"{"client_id":"a","clientSecert":"hunter2","region":"PHX"}"#,
    );
    assert!(
        misspelt.ends_with(
            "; key \"client_id\" is not known and has no effect: did you mean \"clientID\"?; key \"clientSecert\" is not \
             known and has no effect: did you mean \"clientSecret\"?; key \"region\" is not known and has no effect"
        ),
        "{misspelt}"
    );
}

#[test]
fn a_key_that_is_not_known_has_no_effect_and_is_told() {
    let file = r#"{"clientID":"a","clientSecret":"b","annotationIpLoaction":"x","hunter2":null}"#;
    assert_eq!(
        read(&[], &config(file)).unwrap().warnings,
        [
            "key \"annotationIpLoaction\" is not known and has no effect: did you mean \"annotationIPLocation\"?",
            "key (a text of 7 characters) is not known and has no effect",
        ]
    );
}

#[test]
fn where_the_credentials_are_set_is_known() {
    let source =
        |variables: &[(&str, &str)], config: &CloudConfig| read(variables, config).unwrap().settings.source;
    let path = "/etc/cloud-sa/cloud-sa.json";
    assert_eq!(
        source(&[], &config(FILE)),
        format!("`clientID` in {path} and `clientSecret` in {path}")
    );
    assert_eq!(
        source(&BOTH, &CloudConfig::Absent),
        "the variable PNAP_CLIENT_ID and the variable PNAP_CLIENT_SECRET"
    );
    assert_eq!(
        source(&BOTH[..1], &config(FILE)),
        format!("the variable PNAP_CLIENT_ID and `clientSecret` in {path}")
    );
}

#[test]
fn a_malformed_file_is_named_and_not_shown() {
    let error = read(&BOTH, &config("{\"clientSecret\": \"hunter2\",,}"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/etc/cloud-sa/cloud-sa.json") && !error.contains("hunter2"),
        "{error}"
    );
}

#[test]
fn the_port_is_checked_and_has_no_effect() {
    for (value, is_good) in [
        ("6443", true),
        ("0", true),
        ("65536", false),
        ("-1", false),
        ("https", false),
    ] {
        let mut variables = BOTH.to_vec();
        variables.push(("PNAP_API_SERVER_PORT", value));
        let result = read(&variables, &CloudConfig::Absent);
        assert_eq!(result.is_ok(), is_good, "{value}");
        if let Err(error) = result {
            let text = error.to_string();
            assert!(
                text.contains("PNAP_API_SERVER_PORT") && text.contains(value),
                "{text}"
            );
        }
    }
    let file = r#"{"clientID":"a","clientSecret":"b","apiServerPort":70000}"#;
    assert!(read(&[], &config(file)).is_err());
    let unset = r#"{"clientID":"a\n","clientSecret":"b","apiServerPort":"","kubeVipAnnotation":" "}"#;
    assert!(read(&[], &config(unset)).is_ok());
}

#[test]
fn urls_annotation_and_selector_of_the_file_count() {
    let file = r#"{"clientID":"a","clientSecret":"b","base-url":"http://127.0.0.1:9/x/",
        "token-url":"http://127.0.0.1:9/token","annotationIPLocation":"acme.io/site","serviceNodeSelector":"tier=edge"}"#;
    let options = read(&[], &config(file)).unwrap();
    assert_eq!(options.settings.base_url.as_str(), "http://127.0.0.1:9/x/");
    assert_eq!(options.settings.token_url.as_str(), "http://127.0.0.1:9/token");
    assert_eq!(options.location_annotation, "acme.io/site");
    assert_eq!(options.nodes, Selector::parse("tier=edge").unwrap());
    for wrong in [
        r#"{"clientID":"a","clientSecret":"b","serviceNodeSelector":"in in"}"#,
        r#"{"clientID":"a","clientSecret":"b","base-url":"api.example"}"#,
        r#"{"clientID":"a","clientSecret":"b","loadbalancer":"kube-vip://"}"#,
    ] {
        assert!(read(&[], &config(wrong)).is_err(), "{wrong}");
    }
}

#[test]
fn a_value_that_cannot_be_used_is_named_by_where_it_stands() {
    let file = |key: &str, value: &str| {
        config(&format!(
            r#"{{"clientID":"a","clientSecret":"b","{key}":"{value}"}}"#
        ))
    };
    for wrong in [
        "nonsense",
        "https:x",
        "http:///x",
        "http://a%zz/",
        "ftp://h",
        "http://:80",
    ] {
        for (variable, key) in [("PNAP_BASE_URL", "base-url"), ("PNAP_TOKEN_URL", "token-url")] {
            let error = read(&[BOTH[0], BOTH[1], (variable, wrong)], &CloudConfig::Absent).unwrap_err();
            let expected = format!("{variable} is not an absolute URL of http or https: ");
            assert!(error.to_string().starts_with(&expected), "{wrong}: {error}");
            let error = read(&[], &file(key, wrong)).unwrap_err();
            let expected = format!("{key} is not an absolute URL of http or https: ");
            assert!(error.to_string().starts_with(&expected), "{wrong}: {error}");
        }
        let given = Given {
            base_url: Some(wrong.to_owned()),
        };
        let error = Options::read(&given, &BOTH.into_iter().collect(), &CloudConfig::Absent).unwrap_err();
        assert!(
            error.to_string().starts_with("--base-url is not an absolute URL"),
            "{error}"
        );
    }
    let wrong = "kube-vip://a%zz";
    let error = read(
        &[BOTH[0], BOTH[1], ("PNAP_LOAD_BALANCER", wrong)],
        &CloudConfig::Absent,
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("PNAP_LOAD_BALANCER (a text of 15 characters): not a URL"),
        "{error}"
    );
    let error = read(&[], &file("loadbalancer", wrong)).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("loadbalancer (a text of 15 characters): not a URL"),
        "{error}"
    );
}

#[test]
fn the_flag_for_the_base_wins_over_everything() {
    let environment: Environment = BOTH
        .into_iter()
        .chain([("PNAP_BASE_URL", "http://env.example")])
        .collect();
    let given = Given {
        base_url: Some("http://flag.example".to_owned()),
    };
    let options = Options::read(&given, &environment, &CloudConfig::Absent).unwrap();
    assert_eq!(options.settings.base_url.as_str(), "http://flag.example/");
}

#[test]
fn nothing_that_is_shown_holds_the_secret() {
    let options = read(&[], &config(FILE)).unwrap();
    assert!(!format!("{options:?}").contains("hunter2"));
}

#[test]
fn exchanges_are_shown_only_if_somebody_says_true() {
    for (value, expected) in [
        ("true", true),
        (" TRUE ", true),
        ("false", false),
        ("1", false),
        ("", false),
    ] {
        let options = read(&[BOTH[0], BOTH[1], (DEBUG_VARIABLE, value)], &CloudConfig::Absent).unwrap();
        assert_eq!(options.shows_exchanges, expected, "{value:?}");
    }
}

#[test]
fn every_option_is_reported_with_its_value_and_where_it_came_from() {
    let file = r#"{"clientID":"a","clientSecret":"hunter2","apiServerPort":6443,"location":"CHI"}"#;
    let options = read(&[("PNAP_LOCATION", "AUS")], &config(file)).unwrap();
    let reported = |key: &str| {
        let (_, value, origin) = options.report.iter().find(|(option, ..)| *option == key).unwrap();
        format!("{value} {origin}")
    };
    assert_eq!(options.report.len(), Setting::ALL.len());
    assert_eq!(reported("apiServerPort"), "6443 file");
    assert_eq!(reported("location"), "AUS environment");
    assert_eq!(reported("clientSecret"), "(set) file");
    assert_eq!(
        reported("annotationIPLocation"),
        "phoenixnap.com/ip-location default"
    );
    let shown: Vec<String> = options
        .shown()
        .into_iter()
        .map(|it| format!("{} = {} ({})", it.name, it.value, it.origin))
        .collect();
    for line in [
        "clientID = a (file)",
        "clientSecret = <set> (file)",
        "location = AUS (environment)",
        "base-url = https://api.phoenixnap.com/ (default)",
    ] {
        assert!(shown.iter().any(|it| it == line), "{line}: {shown:#?}");
    }
    let without = read(&BOTH, &CloudConfig::Absent).unwrap();
    assert!(
        without
            .report
            .contains(&("apiServerPort", "0".to_owned(), Origin::Default))
    );
}

#[test]
fn a_switch_is_true_or_false_in_the_file_and_in_the_environment() {
    let with = |value: &str| {
        config(&format!(
            r#"{{"clientID":"a","clientSecret":"b","reservedIsShutDown":{value}}}"#
        ))
    };
    for (value, expected) in [
        ("true", true),
        ("\"TRUE\"", true),
        ("false", false),
        ("null", false),
        ("\"\"", false),
    ] {
        assert_eq!(
            read(&[], &with(value)).unwrap().reserved_is_shut_down,
            expected,
            "{value}"
        );
    }
    let options = read(&[("PNAP_RESERVED_IS_SHUT_DOWN", "false")], &with("true")).unwrap();
    assert!(!options.reserved_is_shut_down && !options.keeps_kube_vip_annotation);
    let error = read(&[], &with("\"yes\"")).unwrap_err().to_string();
    assert_eq!(
        error,
        "reservedIsShutDown `yes`: neither true nor false (in /etc/cloud-sa/cloud-sa.json)"
    );
    let error = read(&[("PNAP_KUBE_VIP_ANNOTATION", "1")], &with("true")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "PNAP_KUBE_VIP_ANNOTATION `1`: neither true nor false"
    );
    let error = read(&[("PNAP_BLOCK_DESCRIPTION", "{uid}")], &with("true")).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("PNAP_BLOCK_DESCRIPTION `{uid}`: only {namespace}"),
        "{error}"
    );
}

const SECRET: &str = "hunter2-7f3a9c1e5b2d";

#[test]
fn no_mistake_in_the_file_shows_what_stands_in_it() {
    let table = [
        ("not valid JSON", r#"{"clientSecret":"SECRET""clientID":"a"}"#),
        ("not valid JSON", r#"{"clientSecret":SECRET,"clientID":"a"}"#),
        ("not valid JSON", r#"{"clientSecret":"SECRET\x","clientID":"a"}"#),
        ("not valid JSON", "clientSecret: SECRET"),
        ("not valid JSON", "\u{feff}{\"clientSecret\":\"SECRET\"}"),
        ("not valid JSON", "{\"clientSecret\":\"SECRET\n\"}"),
        ("not valid JSON", r#"{"clientID":"a"} SECRET"#),
        ("the file ends too early", r#"{"clientSecret":"SECRET"#),
        ("not a JSON object", r#"["SECRET"]"#),
        ("not a JSON object", r#""SECRET""#),
        ("`clientSecret` is not a text", r#"{"clientSecret":["SECRET"]}"#),
        ("`clientSecret` is not a text", r#"{"clientSecret":{"SECRET":1}}"#),
        (
            "`clientID` in the cloud config is required",
            r#"{"SECRET":"a","clientSecret":"SECRET"}"#,
        ),
        (
            "apiServerPort",
            r#"{"clientID":"a","clientSecret":"b","apiServerPort":"SECRET"}"#,
        ),
        (
            "base-url is not",
            r#"{"clientID":"a","clientSecret":"b","base-url":"SECRET"}"#,
        ),
        (
            "base-url is not",
            r#"{"clientID":"a","clientSecret":"b","base-url":"ftp://u:SECRET@h"}"#,
        ),
        (
            "token-url is not",
            r#"{"clientID":"a","clientSecret":"b","token-url":"http://h:SECRET/"}"#,
        ),
        (
            "loadbalancer (a text of 20",
            r#"{"clientID":"a","clientSecret":"b","loadbalancer":"SECRET"}"#,
        ),
        (
            "loadbalancer (a text of",
            r#"{"clientID":"a","clientSecret":"b","loadbalancer":"kube-vip://N:SECRET"}"#,
        ),
        (
            "serviceNodeSelector (a text of",
            r#"{"clientID":"a","clientSecret":"b","serviceNodeSelector":"a in SECRET"}"#,
        ),
        (
            "serviceNodeSelector (a text of",
            r#"{"clientID":"a","clientSecret":"b","serviceNodeSelector":"SECRET=,SECRET_"}"#,
        ),
        (
            "serviceNodeSelector (a text of",
            r#"{"clientID":"a","clientSecret":"b","serviceNodeSelector":"a>SECRET"}"#,
        ),
        (
            "blockDescription (a text of",
            r#"{"clientID":"a","clientSecret":"b","blockDescription":"{SECRET}"}"#,
        ),
        (
            "reservedIsShutDown (a text of",
            r#"{"clientID":"a","clientSecret":"b","reservedIsShutDown":"SECRET"}"#,
        ),
    ];
    for (expected, text) in table {
        let text = text.replace("SECRET", SECRET);
        let error = read(&[], &config(&text)).unwrap_err();
        assert!(error.to_string().contains(expected), "{text}: {error}");
        let shown = format!("{error} {error:?}");
        for fragment in SECRET.as_bytes().windows(6) {
            let fragment = std::str::from_utf8(fragment).unwrap();
            assert!(!shown.contains(fragment), "{text}: {shown}");
        }
    }
    // A type that nobody knows switches balancing off, and is told.
    let text = format!(r#"{{"clientID":"a","clientSecret":"b","loadbalancer":"{SECRET}:x"}}"#);
    let options = read(&[], &config(&text)).unwrap();
    let shown = format!("{:?} {}", options.load_balancing, options.load_balancing);
    assert!(!shown.contains("hunter"), "{shown}");
}
