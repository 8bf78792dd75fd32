//! What has to be so before a manager is installed: `doctor --pre`.
//!
//! The checks of a deployed manager are left out: nobody leads yet, no Node is initialised, no Service has its address.

pub(super) mod cluster;
pub(super) mod nodes;
pub(super) mod services;

use std::sync::Arc;

use bowline_cloud_provider::CloudProvider;

use super::{
    Check, Cloud, Outcome, Patient, answers, ask_each, cloud, kubernetes, managers, objects, some_lines,
};

topics! { pub(super) Cloud:
    ALLOWED = "cloud.allowance", "the credentials may do what a manager does, and quotas leave room",
        "docs/guides/troubleshoot.md#the-cloud";
    PODS = "cloud.from-pods", "the manager's pods reach the API server and the cloud",
        "docs/guides/doctor.md#in-the-pod";
}

/// Makes all checks that make sense before a manager is installed, in the order in which they are told. Nothing is written, to the
/// cloud or to Kubernetes.
///
/// # Cancellation
///
/// May be dropped at any await.
pub async fn examine_before(patient: &Patient<'_>) -> Vec<Check> {
    let progress = &patient.progress;
    progress.is_at("asking the API server");
    let (answer, kube, version) = kubernetes::answers(patient.kube.as_ref(), patient.follows).await;
    let provider = patient.cloud.provider();
    let mut objects = objects(patient, kube, version).await;
    progress.is_at("looking for other managers");
    let found = managers::find(kube).await;
    let mut checks = vec![
        answer,
        cluster::alone(patient, kube, found.as_ref()).await,
        cluster::permissions(patient, kube, found.as_ref()).await,
        cluster::installs(kube).await,
    ];
    if let Cloud::Refused(error) = &patient.cloud {
        checks.splice(0..0, cloud::refused(error, None));
    }
    let place_of_clocks = checks.len();
    // Whoever has no provider ID is looked for by its name, as a Node that waits for its cloud.
    let as_they_are = objects.nodes.clone();
    for node in objects.nodes.iter_mut().flatten().flatten() {
        if node.provider_id.is_none() && !node.is_uninitialized() {
            Arc::make_mut(node).taints.push(nodes::uninitialized());
        }
    }
    progress.is_at("asking the cloud about instances and load balancers");
    let answers = answers::ask(&patient.cloud, objects.nodes()).await;
    checks.extend(cloud::checks(patient, answers.as_ref(), &objects).await);
    checks.push(allowed(provider).await);
    checks.push(PODS.skipped(match patient.is_manager {
        true => "not asked of other Nodes: this is one pod",
        false => {
            "asked from this computer alone; a pod may have another network, proxy or DNS. Run `doctor` in the manager's pod once it is there"
        }
    }));
    checks.insert(place_of_clocks, kubernetes::clocks(patient, kube));
    progress.is_at("looking at Nodes");
    checks.extend(nodes::checks(
        patient.is_manager,
        as_they_are.as_ref(),
        provider,
        answers.as_ref(),
    ));
    checks.push(nodes::versions(kube, version).await);
    progress.is_at("making plans of Services");
    let now = kube.map(|kube| kube.clock().now());
    let is_read = checks
        .iter()
        .any(|check| *check.topic == cloud::LOAD_BALANCERS && check.outcome == Outcome::Ok);
    checks.extend(services::checks(patient, &objects, now, is_read).await);
    checks
}

/// What the credentials may do, and what is left of quotas, where the cloud tells it.
async fn allowed(provider: Option<&dyn CloudProvider>) -> Check {
    let Some(provider) = provider else {
        return ALLOWED.skipped("there is no provider");
    };
    let asked = provider.allowance();
    if asked.is_empty() {
        return ALLOWED.skipped(
            "this cloud tells neither what credentials may do nor what is left of a quota: the first write shows both",
        );
    }
    let (all, failed) = ask_each(asked).await;
    let failed: Vec<String> = failed.iter().map(|it| it.error().to_string()).collect();
    let lacking = all.iter().filter(|it| it.is_lacking).count();
    let check = match (lacking, failed.is_empty()) {
        (0, true) => ALLOWED.ok("as far as the cloud tells"),
        (0, false) => ALLOWED.warning(failed.join("; "), "follow the text"),
        _ => ALLOWED.failed(
            format!("{lacking} of {} are not so", all.len()),
            "have whoever owns the project give these credentials the role that is missing, or raise the limit",
        ),
    };
    let failed = failed.into_iter().filter(|_| lacking > 0);
    let told = some_lines(all.into_iter().map(|it| it.text).collect());
    check.with(failed.chain(told).collect())
}
