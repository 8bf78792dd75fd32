//! The plain manifests are what the chart makes.

use bowline_checks::chart::{CLOUDS, Helm, chart, manifests, root};
use serde_json::json;

use crate::chart::{all_of, of, parsed, rendered, workload};

#[test]
fn the_plain_manifests_are_what_the_chart_makes() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    for plain in manifests(&helm).unwrap() {
        let present = std::fs::read_to_string(root().join(plain.path)).unwrap();
        assert!(
            present == plain.text,
            "{} is stale: run `cargo xtask manifests`",
            plain.path
        );
        assert!(!parsed(&plain.text).is_empty());
    }
}

#[test]
fn helm_finds_no_fault_in_the_chart() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    for cloud in CLOUDS {
        let set = format!("--set=cloud={cloud}");
        helm.run(&["lint", "--strict", "--quiet", &set, chart().to_str().unwrap()])
            .unwrap_or_else(|error| panic!("{cloud}: {error}"));
    }
}

#[test]
fn a_release_marks_its_objects_and_leaves_selectors_alone() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    for cloud in CLOUDS {
        let objects = rendered(&helm, &of(cloud, json!({ "commonLabels": { "team": "sea" } })));
        for object in &objects {
            let labels = &object["metadata"]["labels"];
            assert_eq!(labels["app.kubernetes.io/instance"], "bowline", "{object}");
            assert_eq!(labels["team"], "sea", "{object}");
        }
        let set = workload(&objects);
        let selector = set["spec"]["selector"]["matchLabels"].as_object().unwrap();
        assert_eq!(selector.len(), 1, "{selector:?}");
        assert_eq!(set["spec"]["template"]["metadata"]["labels"], json!(selector));
    }
}

#[test]
fn rights_of_the_go_manager_are_there_on_request_only() {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    for cloud in CLOUDS {
        let has_endpoints = |legacy: bool| {
            let objects = rendered(&helm, &of(cloud, json!({ "rbac": { "legacy": legacy } })));
            let roles = all_of(&objects, "ClusterRole");
            roles
                .iter()
                .any(|role| role["rules"].to_string().contains("endpoints"))
        };
        assert!(!has_endpoints(false), "{cloud}");
        assert!(has_endpoints(true), "{cloud}");
    }
}
