//! Values, their schema and the page about them agree.

use std::collections::BTreeSet;
use std::path::Path;

use bowline_checks::chart::{chart, with_flags};
use serde_json::Value;
use tempfile::TempDir;

fn read(file: &str) -> String {
    std::fs::read_to_string(chart().join(file)).unwrap()
}

/// A chart that a test may change.
pub(crate) fn copy_of_the_chart() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    copy(&chart(), directory.path());
    directory
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// The names of values, with dots, down to where a schema knows names.
fn names(value: &Value, schema: &Value, prefix: &str, found: &mut BTreeSet<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let path = format!("{prefix}{name}");
        let schema = &schema["properties"][name];
        if schema["properties"].is_object() {
            names(value, schema, &format!("{path}."), found);
        }
        found.insert(path);
    }
}

#[test]
fn every_value_has_a_schema_and_every_name_in_the_schema_a_value() {
    let values: Value = serde_saphyr::from_str(&read("values.yaml")).unwrap();
    let schema: Value = serde_json::from_str(&read("values.schema.json")).unwrap();
    let mut present = BTreeSet::new();
    names(&values, &schema, "", &mut present);
    let mut described = BTreeSet::new();
    let mut left = vec![(String::new(), &schema)];
    while let Some((prefix, schema)) = left.pop() {
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            described.insert(format!("{prefix}{name}"));
            left.push((format!("{prefix}{name}."), inner));
        }
    }
    // Of Helm, and of the former chart.
    for name in ["global", "serviceMonitor"] {
        described.remove(name);
    }
    assert_eq!(present, described);
}

#[test]
fn every_value_is_explained_on_the_page() {
    let values: Value = serde_saphyr::from_str(&read("values.yaml")).unwrap();
    let page = read("README.md");
    for name in values.as_object().unwrap().keys() {
        assert!(page.contains(&format!("`{name}")), "{name} is not in README.md");
    }
}

#[test]
fn the_schema_knows_every_flag_and_no_other() {
    let schema = read("values.schema.json");
    assert!(
        with_flags(&schema) == schema,
        "values.schema.json is stale: run `cargo xtask manifests`"
    );
}
