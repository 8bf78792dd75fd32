//! Holds the graph against the table. Pure: data in, faults out.

use std::collections::BTreeSet;

use super::graph::Graph;
use super::table::{ANYTHING, ARROWS, FREE, IMPURE, NOWHERE, PURE, WRAPPED};

/// All faults, in a stable order, each a sentence that names both ends.
pub(super) fn faults(graph: &Graph) -> Vec<String> {
    let mut faults = Vec::new();
    for (key, folder, package) in graph.ours() {
        arrows_of(graph, folder, &package.needs, &mut faults);
        wrapped(graph, folder, &package.needs, &mut faults);
        if any(PURE, folder) {
            linked(graph, key, folder, IMPURE, "is pure", &mut faults);
        }
        if !any(FREE, folder) {
            linked(graph, key, folder, NOWHERE, "is shipped", &mut faults);
        }
    }
    faults.extend(cycle(graph));
    faults
}

fn arrows_of(graph: &Graph, folder: &str, needs: &BTreeSet<String>, faults: &mut Vec<String>) {
    let Some((may_use, star)) = ARROWS
        .iter()
        .find_map(|(row, may_use)| Some((may_use, matched(row, folder)?)))
    else {
        faults.push(format!("{folder} has no row in the table"));
        return;
    };
    for target in needs
        .iter()
        .filter_map(|key| graph.packages.get(key)?.folder.as_deref())
    {
        let allowed = may_use.iter().any(|pattern| {
            // The star of the row, where it has one, must stand for the same cloud on both sides.
            *pattern == ANYTHING
                || matched(pattern, target).is_some_and(|it| star.is_none() || it.is_none() || it == star)
        });
        if !allowed {
            faults.push(format!("{folder} may not depend on {target}"));
        }
    }
}

fn wrapped(graph: &Graph, folder: &str, needs: &BTreeSet<String>, faults: &mut Vec<String>) {
    if any(FREE, folder) {
        return;
    }
    for package in needs.iter().filter_map(|key| graph.packages.get(key)) {
        for rule in WRAPPED {
            if rule.names.contains(&package.name.as_str()) && !any(rule.only, folder) {
                faults.push(format!(
                    "{folder} may not depend on {}: {}",
                    package.name, rule.because
                ));
            }
        }
    }
}

fn linked(graph: &Graph, key: &str, folder: &str, banned: &[&str], what: &str, faults: &mut Vec<String>) {
    for name in banned {
        if let Some(path) = graph.path_to(key, |package| package.name == *name) {
            faults.push(format!(
                "{folder} {what} and may not link {name}: {}",
                path.join(" -> ")
            ));
        }
    }
}

/// One cycle among our crates, tests' needs included, when there is one. (Cargo lets tests close a cycle.)
fn cycle(graph: &Graph) -> Option<String> {
    let mut left: BTreeSet<&str> = graph.ours().map(|(key, _, _)| key).collect();
    // What uses nothing that is left cannot be part of a cycle.
    while let Some(done) = left
        .iter()
        .copied()
        .find(|key| uses_of(graph, key, &left).is_none())
    {
        left.remove(done);
    }
    let mut path: Vec<&str> = vec![left.first()?];
    loop {
        let next = uses_of(graph, path.last()?, &left)?;
        if let Some(start) = path.iter().position(|key| *key == next) {
            let names = path.iter().skip(start).chain([&next]);
            let names: Vec<&str> = names
                .filter_map(|key| graph.packages.get(*key)?.folder.as_deref())
                .collect();
            return Some(format!("a cycle, tests included: {}", names.join(" -> ")));
        }
        path.push(next);
    }
}

/// One of the given crates that this one uses.
fn uses_of<'a>(graph: &Graph, key: &str, among: &BTreeSet<&'a str>) -> Option<&'a str> {
    let package = graph.packages.get(key)?;
    package
        .needs
        .iter()
        .chain(&package.tests_need)
        .find_map(|next| among.get(next.as_str()).copied())
}

fn any(patterns: &[&str], folder: &str) -> bool {
    patterns.iter().any(|pattern| matched(pattern, folder).is_some())
}

/// Whether the folder fits the pattern, and what its star stands for.
fn matched<'a>(pattern: &str, folder: &'a str) -> Option<Option<&'a str>> {
    let Some((before, after)) = pattern.split_once('*') else {
        return (pattern == folder).then_some(None);
    };
    let star = folder.strip_prefix(before)?.strip_suffix(after)?;
    (!star.is_empty() && !star.contains('/')).then_some(Some(star))
}

#[cfg(test)]
mod tests {
    use super::super::graph::Package;
    use super::*;

    /// A graph from lines of `folder-or-name: needs ~ tests-need`; our folders contain a slash or are `xtask`.
    fn graph(text: &str) -> Graph {
        let mut graph = Graph::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (key, rest) = line.split_once(':').unwrap();
            let (needs, tests_need) = rest.split_once('~').unwrap_or((rest, ""));
            let list = |words: &str| {
                words
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect::<BTreeSet<_>>()
            };
            for outside in list(needs).iter().chain(&list(tests_need)) {
                graph
                    .packages
                    .entry(outside.clone())
                    .or_insert_with(|| package(outside));
            }
            let entry = graph
                .packages
                .entry(key.to_owned())
                .or_insert_with(|| package(key));
            entry.needs = list(needs);
            entry.tests_need = list(tests_need);
        }
        graph
    }

    fn package(key: &str) -> Package {
        let ours = key.contains('/') || key == "xtask";
        Package {
            name: key.to_owned(),
            folder: ours.then(|| key.to_owned()),
            ..Package::default()
        }
    }

    fn faults_of(text: &str) -> Vec<String> {
        faults(&graph(text))
    }

    #[test]
    fn the_intended_layout_has_no_fault() {
        let layout = "
            crates/plan: serde
            crates/transport: hyper-rustls
            crates/cloud-http: crates/transport
            crates/kube-io: crates/transport
            crates/cloud-provider: crates/plan
            crates/controllers: crates/cloud-provider crates/plan crates/kube-io
            crates/manager: crates/controllers crates/kube-io crates/cloud-provider
            clouds/acme/client: crates/cloud-http
            clouds/acme/provider: clouds/acme/client crates/cloud-provider ~ clouds/acme/sim testing/conformance
            clouds/acme/sim: sim/cloud-kit
            sim/kube-api: sim/cloud-kit
            crates/bowline: crates/manager clouds/acme/provider anyhow
            crates/bowline-demo: crates/manager clouds/acme/provider clouds/acme/sim sim/kube-api
            testing/conformance: clouds/acme/sim kube
            xtask: anyhow clap
        ";
        assert_eq!(faults_of(layout), Vec::<String>::new());
    }

    #[test]
    fn a_simulator_may_not_use_the_client_of_its_cloud() {
        let found = faults_of("clouds/acme/sim: clouds/acme/client\nclouds/acme/client:");
        assert_eq!(found, ["clouds/acme/sim may not depend on clouds/acme/client"]);
    }

    #[test]
    fn a_provider_may_use_its_own_client_only() {
        let found = faults_of("clouds/acme/provider: clouds/other/client\nclouds/other/client:");
        assert_eq!(
            found,
            ["clouds/acme/provider may not depend on clouds/other/client"]
        );
    }

    #[test]
    fn the_program_may_use_every_provider_but_no_simulator() {
        let found = faults_of("crates/bowline: clouds/acme/provider clouds/other/provider clouds/acme/sim");
        assert_eq!(found, ["crates/bowline may not depend on clouds/acme/sim"]);
    }

    #[test]
    fn nothing_shipped_depends_on_test_code_except_in_its_tests() {
        let found = faults_of("crates/manager: testing/e2e\ncrates/controllers: ~ testing/e2e\ntesting/e2e:");
        assert_eq!(found, ["crates/manager may not depend on testing/e2e"]);
    }

    #[test]
    fn a_pure_crate_may_not_link_a_runtime_through_another_crate() {
        let found = faults_of("crates/plan: middle\nmiddle: tokio");
        assert_eq!(
            found,
            ["crates/plan is pure and may not link tokio: crates/plan -> middle -> tokio"]
        );
    }

    #[test]
    fn a_pure_crate_may_use_a_runtime_in_its_tests() {
        assert_eq!(faults_of("crates/plan: serde ~ tokio"), Vec::<String>::new());
    }

    #[test]
    fn only_the_wrapper_may_name_a_wrapped_crate() {
        let found = faults_of("crates/controllers: kube\nclouds/acme/client: hyper-rustls");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("clouds/acme/client may not depend on hyper-rustls: "),
            "{found:?}"
        );
        assert!(
            found[1].starts_with("crates/controllers may not depend on kube: "),
            "{found:?}"
        );
    }

    #[test]
    fn a_crate_without_a_row_is_a_fault() {
        assert_eq!(
            faults_of("crates/utils:"),
            ["crates/utils has no row in the table"]
        );
        assert_eq!(
            faults_of("clouds/acme/deep/client:"),
            ["clouds/acme/deep/client has no row in the table"]
        );
    }

    #[test]
    fn a_cycle_closed_by_tests_is_a_fault() {
        let found = faults_of("crates/kube-io: ~ testing/conformance\ntesting/conformance: crates/kube-io");
        assert_eq!(
            found,
            ["a cycle, tests included: crates/kube-io -> testing/conformance -> crates/kube-io"]
        );
    }
}
