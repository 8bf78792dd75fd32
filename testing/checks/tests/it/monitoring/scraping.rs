//! The job that the guide shows finds every cloud's pod, at an address that can be asked.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::collections::BTreeMap;

use bowline_checks::monitoring::root;
use regex_lite::Regex;
use serde_json::Value;

const CLOUDS: [&str; 4] = ["cloudscale", "cloudstack", "openstack", "phoenixnap"];

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The relabelling of the guide's job.
fn rules() -> Vec<Value> {
    let guide = read("docs/guides/monitor.md");
    let mut blocks = guide
        .split("```yaml\n")
        .filter(|block| block.contains("scrape_configs:"));
    let (block, _) = blocks.next().unwrap().split_once("```").unwrap();
    let job = &yaml(block)["scrape_configs"][0];
    job["relabel_configs"].as_array().unwrap().clone()
}

/// Where a target with these labels is asked; `None` if it is not kept. The two actions that the guide uses are as Prometheus
/// has them: an expression fits as a whole or not at all.
fn address(rules: &[Value], container: &str, phase: &str, ip: &str) -> Option<String> {
    let mut labels = BTreeMap::from([
        ("__meta_kubernetes_pod_container_name", container.to_owned()),
        ("__meta_kubernetes_pod_phase", phase.to_owned()),
        ("__meta_kubernetes_pod_ip", ip.to_owned()),
        ("__address__", ip.to_owned()),
    ]);
    for rule in rules {
        let source = labels[rule["source_labels"][0].as_str().unwrap()].clone();
        let expression = rule["regex"].as_str().unwrap_or("(.*)");
        let found = Regex::new(&format!("^(?s:{expression})$")).unwrap();
        match (
            rule["action"].as_str().unwrap_or("replace"),
            found.captures(&source),
        ) {
            ("keep", None) => return None,
            ("replace", Some(parts)) => {
                let replacement = rule["replacement"].as_str().unwrap();
                assert_eq!(rule["target_label"], "__address__");
                labels.insert("__address__", replacement.replace("$1", &parts[1]));
            }
            ("keep", Some(_)) | ("replace", None) => {}
            (action, _) => panic!("what does {action} do?"),
        }
    }
    labels.remove("__address__")
}

#[test]
fn every_cloud_s_container_is_kept_and_no_other() {
    let rules = rules();
    for cloud in CLOUDS {
        let preset = yaml(&read(&format!("deploy/chart/presets/{cloud}.yaml")));
        let name = preset["name"].as_str().unwrap();
        assert_eq!(
            address(&rules, name, "Running", "10.0.0.5").as_deref(),
            Some("10.0.0.5:10258"),
            "{name}"
        );
    }
    for name in ["kube-controller-manager", "cloud-provider", "coredns"] {
        assert_eq!(address(&rules, name, "Running", "10.0.0.5"), None, "{name}");
    }
}

#[test]
fn an_ipv6_address_stands_in_brackets() {
    let at = address(&rules(), "cloud-controller-manager", "Running", "fd00::5");
    assert_eq!(at.as_deref(), Some("[fd00::5]:10258"));
}

/// One that was evicted stays in the list of pods, with the address of its node: it would count as a process that is down.
#[test]
fn a_pod_that_has_ended_is_not_scraped_and_one_that_does_not_start_is() {
    let rules = rules();
    for (phase, is_kept) in [
        ("Pending", true),
        ("Running", true),
        ("Failed", false),
        ("Succeeded", false),
    ] {
        let at = address(&rules, "cloud-controller-manager", phase, "10.0.0.5");
        assert_eq!(at.is_some(), is_kept, "{phase}");
    }
}
