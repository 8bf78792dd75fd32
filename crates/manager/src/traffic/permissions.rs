//! Whether the person may do what a trial needs.

use bowline_kube_io::Kube;
use bowline_kube_io::rbac::Question;

use super::{PERMITTED, Wanted};
use crate::doctor::Check;

/// Asks the API server for each right; nothing is written.
pub(super) async fn check(kube: &Kube, wanted: &Wanted, namespace: &str) -> Check {
    let questions = questions(wanted, namespace);
    let mut denied = Vec::new();
    for question in &questions {
        match kube.may(question).await {
            Ok(true) => {}
            Ok(false) => denied.push(question.to_string()),
            Err(error) => {
                return PERMITTED.failed(format!("asking: {error}"), "see whether the kubeconfig is right");
            }
        }
    }
    match denied.is_empty() {
        true => PERMITTED.ok(format!("all {}", questions.len())),
        false => PERMITTED
            .failed(
                format!("{} of {} are missing", denied.len(), questions.len()),
                "use a kubeconfig that may do this, such as an administrator's; or --namespace, if only a namespace is lacking",
            )
            .with(denied),
    }
}

fn questions(wanted: &Wanted, namespace: &str) -> Vec<Question> {
    const MAKE: &[&str] = &["create", "patch", "delete"];
    let (everywhere, here) = (None, Some(namespace));
    let mut all = vec![
        question("", "nodes", &["list"], everywhere),
        question("", "namespaces", &["list"], everywhere),
    ];
    if wanted.namespace.is_none() {
        all.push(question("", "namespaces", &["create", "delete"], everywhere));
    }
    if wanted.excluded_node.is_some() {
        all.push(question("", "nodes", &["patch"], everywhere));
    }
    all.extend([
        question("", "services", &["list"], everywhere),
        question("", "services", MAKE, here),
        question("apps", "deployments", &["list"], everywhere),
        question("apps", "deployments", MAKE, here),
        question("", "pods", &["list"], here),
    ]);
    all.concat()
}

fn question(
    group: &'static str,
    resource: &'static str,
    verbs: &[&'static str],
    namespace: Option<&str>,
) -> Vec<Question> {
    let one = |verb: &&'static str| Question {
        verb,
        group,
        resource,
        namespace: namespace.map(str::to_owned),
        name: None,
        rules: Vec::new(),
    };
    verbs.iter().map(one).collect()
}
