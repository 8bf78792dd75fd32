//! The alerts and the dashboard as objects of the cluster.

use bowline_checks::chart::{Helm, chart};
use serde_json::{Value, json};

use crate::chart::{all_of, nothing, of, only, parsed, rendered};

#[test]
fn nothing_of_the_monitoring_is_made_unless_it_is_asked_for() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let objects = rendered(&helm, &of("openstack", nothing()));
    for kind in ["PrometheusRule", "PodMonitor", "ConfigMap"] {
        assert!(all_of(&objects, kind).is_empty(), "{kind}");
    }
}

#[test]
fn the_alerts_are_those_of_the_file_with_the_address_of_the_runbooks() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let file = std::fs::read_to_string(chart().join("files/rules.yaml")).unwrap();
    let rendered_with = |url: &str| {
        let labels = json!({ "release": "prometheus" });
        let values = json!({ "prometheusRule": { "enabled": true, "labels": labels, "runbookURL": url } });
        let objects = rendered(&helm, &of("cloudscale", values));
        let rule = only(&objects, "PrometheusRule");
        assert_eq!(rule["metadata"]["labels"]["release"], "prometheus");
        rule["spec"].clone()
    };
    assert_eq!(rendered_with(""), parsed(&file)[0]);
    let moved = rendered_with("https://wiki.example/bowline/");
    let rules = moved["groups"][0]["rules"].as_array().unwrap();
    assert!(!rules.is_empty());
    for rule in rules {
        let expected = format!(
            "https://wiki.example/bowline/{}.md",
            rule["alert"].as_str().unwrap()
        );
        assert_eq!(rule["annotations"]["runbook_url"], expected);
    }
}

#[test]
fn the_dashboard_is_a_config_map_for_grafanas_sidecar() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let objects = rendered(
        &helm,
        &of("phoenixnap", json!({ "dashboard": { "enabled": true } })),
    );
    let map = only(&objects, "ConfigMap");
    assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
    let text = map["data"]["bowline.json"].as_str().unwrap();
    let dashboard: Value = serde_json::from_str(text).unwrap();
    assert_eq!(dashboard["title"], "Bowline");
}
