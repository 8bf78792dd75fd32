//! The chart in `deploy/chart`, rendered by the real Helm. Needs it built; says so when it is missing.

mod admission;
mod clouds;
mod credentials;
mod documents;
mod former;
mod manifests;
mod monitoring;
mod refused;
mod released;
mod workload;

use std::path::Path;

use bowline_checks::chart::{Helm, HelmError, Release, chart};
use serde_json::{Value, json};

/// What is rendered when nothing else is said.
pub(crate) fn release(chart: &Path) -> Release<'_> {
    Release {
        chart,
        name: "bowline",
        namespace: "kube-system",
    }
}

/// The objects that the chart makes of these values.
pub(crate) fn rendered(helm: &Helm, values: &Value) -> Vec<Value> {
    rendered_as(helm, release(&chart()), values)
}

pub(crate) fn rendered_as(helm: &Helm, release: Release<'_>, values: &Value) -> Vec<Value> {
    let text = helm
        .template(release, values, &[])
        .unwrap_or_else(|error| panic!("{error}\n{values}"));
    parsed(&text)
}

pub(crate) fn parsed(text: &str) -> Vec<Value> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    documents.into_iter().filter(|it| !it.is_null()).collect()
}

/// Why the chart refuses these values.
pub(crate) fn refusal(helm: &Helm, values: &Value) -> String {
    match helm.template(release(&chart()), values, &[]) {
        Err(HelmError::Refused(words)) => words,
        Err(other) => panic!("{other}"),
        Ok(text) => panic!("{values} was accepted:\n{text}"),
    }
}

/// Values for a cloud, with these on top.
pub(crate) fn of(cloud: &str, mut values: Value) -> Value {
    values["cloud"] = cloud.into();
    values
}

pub(crate) fn all_of<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|it| it["kind"] == kind).collect()
}

#[track_caller]
pub(crate) fn only<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let [one] = all_of(objects, kind)[..] else {
        panic!("not one {kind}");
    };
    one
}

/// What runs the program.
#[track_caller]
pub(crate) fn workload(objects: &[Value]) -> &Value {
    let mut found = objects
        .iter()
        .filter(|it| it["kind"] == "DaemonSet" || it["kind"] == "Deployment");
    let one = found.next().unwrap_or_else(|| panic!("nothing runs the program"));
    assert!(found.next().is_none());
    one
}

pub(crate) fn pod(objects: &[Value]) -> &Value {
    &workload(objects)["spec"]["template"]["spec"]
}

pub(crate) fn container(objects: &[Value]) -> &Value {
    &pod(objects)["containers"][0]
}

/// The entry of a list with this name.
#[track_caller]
pub(crate) fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let mut entries = list.as_array().into_iter().flatten();
    entries
        .find(|it| it["name"] == name)
        .unwrap_or_else(|| panic!("no {name} in {list}"))
}

/// The command line, as one line.
pub(crate) fn line(objects: &[Value]) -> String {
    let container = container(objects);
    let words = ["command", "args"].map(|field| container[field].as_array().cloned().unwrap_or_default());
    let words: Vec<String> = words
        .concat()
        .iter()
        .map(|word| word.as_str().unwrap().to_owned())
        .collect();
    words.join(" ")
}

pub(crate) fn nothing() -> Value {
    json!({})
}
