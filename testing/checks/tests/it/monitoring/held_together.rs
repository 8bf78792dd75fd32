//! What can be said without promtool: rules, runbooks, guide, dashboard and the table of series name each other and nothing else.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::collections::{BTreeMap, BTreeSet};

use bowline_checks::monitoring::{Alert, DASHBOARD, alerts, dashboard, expressions, questions, root};

/// Labels that Prometheus itself sets.
const OF_TARGETS: &[&str] = &["instance", "job"];

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every series with its labels, from the page that a test of its own holds to the code.
fn series() -> BTreeMap<String, BTreeSet<String>> {
    let page = read("docs/reference/metrics.md");
    let (table, _) = page.split_once("## Not here").unwrap();
    let mut found = BTreeMap::new();
    for line in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = cells[1].trim_matches('`');
        let labels = cells[3]
            .split(", ")
            .map(|label| label.trim_matches('`').to_owned());
        let mut labels: BTreeSet<String> = labels.filter(|label| !label.is_empty()).collect();
        if cells[2].starts_with("histogram") {
            for end in ["_sum", "_count"] {
                found.insert(format!("{name}{end}"), labels.clone());
            }
            labels.insert("le".to_owned());
            found.insert(format!("{name}_bucket"), labels);
        } else {
            found.insert(name.to_owned(), labels);
        }
    }
    assert!(found.len() > 80, "only {} series", found.len());
    found
}

/// The series that Prometheus itself makes.
const OF_PROMETHEUS: &[&str] = &["up", ALERTS];

/// The one of the alerts that fire, with labels of its own.
const ALERTS: &str = "ALERTS";
const OF_ALERTS: &[&str] = &["alertname", "alertstate"];

/// The words of PromQL that are used here.
const WORDS: &[&str] = &[
    "abs",
    "absent",
    "avg_over_time",
    "and",
    "by",
    "changes",
    "count",
    "group_left",
    "histogram_quantile",
    "increase",
    "last_over_time",
    "max",
    "max_over_time",
    "min",
    "on",
    "rate",
    "sort_desc",
    "sum",
    "without",
    "timestamp",
    "unless",
    "or",
    "offset",
    "without",
];

/// What an expression names that is not there: series, and labels that no series of it has.
fn unknown(expression: &str, series: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut names = Vec::new();
    let (mut word, mut is_text, mut is_escaped, mut depth) = (String::new(), false, false, 0);
    let mut ranges = 0;
    for letter in expression.chars().chain([' ']) {
        if is_text {
            is_text = letter != '"' || is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
        } else if letter.is_ascii_alphanumeric() || letter == '_' {
            word.push(letter);
        } else {
            if !word.is_empty() && ranges == 0 {
                names.push((std::mem::take(&mut word), depth > 0));
            }
            word.clear();
            match letter {
                '"' => is_text = true,
                '[' => ranges += 1,
                ']' => ranges -= 1,
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
        }
    }
    let names: Vec<(String, bool)> = names
        .into_iter()
        .filter(|(name, _)| !name.starts_with(|first: char| first.is_ascii_digit()))
        .collect();
    let used: Vec<&BTreeSet<String>> = names.iter().filter_map(|(name, _)| series.get(name)).collect();
    let has_alerts = names
        .iter()
        .any(|(name, is_in_braces)| name == ALERTS && !is_in_braces);
    let is_label = |name: &str| {
        OF_TARGETS.contains(&name)
            || has_alerts && OF_ALERTS.contains(&name)
            || used.iter().any(|labels| labels.contains(name))
    };
    let is_known = |(name, is_in_braces): &(String, bool)| {
        is_label(name)
            || !is_in_braces
                && (series.contains_key(name)
                    || WORDS.contains(&name.as_str())
                    || OF_PROMETHEUS.contains(&name.as_str()))
    };
    let mut unknown: Vec<String> = names
        .iter()
        .filter(|name| !is_known(name))
        .map(|(name, _)| name.clone())
        .collect();
    if used.is_empty() {
        unknown.push("no series at all".to_owned());
    }
    unknown
}

fn runbook(alert: &Alert) -> String {
    format!("docs/runbooks/{}.md", alert.name)
}

#[test]
fn every_series_and_label_that_a_query_names_exists() {
    let series = series();
    let mut faults = Vec::new();
    let mut check = |of: &str, expression: &str| {
        let unknown = unknown(expression, &series);
        if !unknown.is_empty() {
            faults.push(format!("{of}: {}: {expression}", unknown.join(", ")));
        }
    };
    let mut pages = vec!["docs/guides/monitor.md".to_owned()];
    for alert in alerts().unwrap() {
        check(&alert.name, &alert.expression);
        pages.push(runbook(&alert));
    }
    pages.dedup();
    for page in pages {
        let text = read(&page);
        let queries = expressions(&text);
        assert!(
            page.contains("NotWorking") || !queries.is_empty(),
            "{page}: no query"
        );
        for query in queries {
            check(&page, query);
        }
    }
    assert_eq!(faults, [""; 0]);
}

#[test]
fn a_series_or_label_that_does_not_exist_is_found() {
    let series = series();
    for (expression, faults) in [
        ("sum by (name) (controller_ready)", &[][..]),
        ("rate(cloud_api_requests_total{code=~\"5..|x{y}\"}[5m])", &[]),
        ("controller_redy", &["controller_redy", "no series at all"]),
        ("sum by (node) (controller_ready)", &["node"]),
        ("controller_ready{provider=\"x\"}", &["provider"]),
        ("sum_over(controller_ready)", &["sum_over"]),
        (
            "load_balancer_settle_duration_seconds",
            &["load_balancer_settle_duration_seconds", "no series at all"],
        ),
    ] {
        assert_eq!(unknown(expression, &series), faults, "{expression}");
    }
}

#[test]
fn every_alert_is_whole_and_has_its_runbook() {
    let alerts = alerts().unwrap();
    let names: BTreeSet<&str> = alerts.iter().map(|alert| alert.name.as_str()).collect();
    assert!((8..=13).contains(&names.len()), "{names:?}");
    let mut seen = BTreeSet::new();
    for alert in &alerts {
        let Alert { name, labels, .. } = alert;
        assert!(seen.insert((name, labels)), "{name} twice with {labels:?}");
        assert!(name.starts_with("Bowline"), "{name}");
        assert!(alert.duration.ends_with(['m', 'h']), "{name}");
        assert!(
            ["warning", "critical"].contains(&labels["severity"].as_str()),
            "{name}"
        );
        for annotation in ["summary", "description", "runbook_url"] {
            assert!(!alert.annotations[annotation].is_empty(), "{name}: {annotation}");
        }
        let has_value = alert.annotations["description"].contains("$value");
        assert!(
            has_value || alert.expression.starts_with("absent(") || alert.expression.ends_with("== 0"),
            "{name}: no number"
        );
        assert_eq!(alert.annotations["runbook_url"], runbook(alert));
        let page = read(&runbook(alert));
        for heading in [
            format!("# {name}"),
            "## Meaning".into(),
            "## Impact".into(),
            "## Look".into(),
            "## Do".into(),
        ] {
            assert!(page.lines().any(|line| line == heading), "{name}: no {heading}");
        }
        if let Some(cause) = labels.get("cause") {
            assert!(
                page.contains(&format!("| `{cause}` |")),
                "{name}: the runbook does not explain {cause}"
            );
        }
    }
}

#[test]
fn every_runbook_has_its_alert_and_stands_in_the_guide() {
    let alerts = alerts().unwrap();
    let expected: BTreeSet<String> = alerts.iter().map(runbook).collect();
    let found: BTreeSet<String> = std::fs::read_dir(root().join("docs/runbooks"))
        .unwrap()
        .map(|entry| format!("docs/runbooks/{}", entry.unwrap().file_name().display()))
        .collect();
    assert_eq!(found, expected);
    let guide = read("docs/guides/monitor.md");
    for name in alerts.iter().map(|alert| &alert.name) {
        let link = format!("| [{name}](../runbooks/{name}.md) |");
        assert!(guide.contains(&link), "{link}");
    }
}

/// What came of a sync is explained where a person looks for it.
#[test]
fn every_reason_of_an_unsettled_service_is_explained() {
    let page = read("docs/reference/metrics.md");
    let line = page
        .lines()
        .find(|line| line.starts_with("| `load_balancers_unsettled` "));
    let runbook = read("docs/runbooks/BowlineServiceNotSettled.md");
    let reasons = [
        "pending",
        "waiting",
        "no_nodes",
        "quota",
        "refused",
        "invalid",
        "conflict",
        "throttled",
        "failed",
        "kubernetes",
    ];
    for reason in reasons {
        assert!(line.unwrap().contains(reason), "{reason}");
        assert!(runbook.contains(&format!("| `{reason}` |")), "{reason}");
    }
    assert!(read("docs/runbooks/BowlineCloudCredentialsRefused.md").contains("| `denied` |"));
}

#[test]
fn the_dashboard_comes_out_of_the_ten_questions() {
    let questions = questions(&read("docs/guides/monitor.md"));
    assert_eq!(questions.len(), 10);
    for question in &questions {
        assert!(!question.queries.is_empty(), "{}", question.title);
        for query in &question.queries {
            assert!(["", "s", "1/s", "B"].contains(&query.unit.as_str()), "{query:?}");
        }
    }
    let expected = dashboard(&questions);
    assert!(
        read(DASHBOARD) == expected,
        "{DASHBOARD} is stale: run `cargo run -p bowline-checks --bin monitoring -- dashboard`"
    );
    // No label of a Service, Node or object: such a query would show nothing.
    assert!(!expected.contains("service=") && !expected.contains("node="));
}
