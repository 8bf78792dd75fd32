//! Whether the API server takes the manager's writes: admission may refuse what a role allows.

use std::sync::Arc;

use bowline_cloud_provider::{Node, Readiness, Service, ServiceKey, facts, keys};
use bowline_kube_io::rbac::Question;
use bowline_kube_io::{DELETIONS, Kube, KubeError, LeaseLock};

use super::managers::Found;
use super::{Check, Objects, Outcome, Patient, no_answer, permissions, timed};
use crate::config::ElectionConfig;
use crate::why::{self, Cause, ETCD_FULL, FULL};

/// How many objects in trouble are tried, each with two requests.
const TRIED: usize = 3;

topics! { pub(super) Kubernetes:
    ADMITTED = "kubernetes.admission", "writes are admitted", "docs/runbooks/BowlineKubernetesFailing.md#look";
}

/// Whether nothing is written because etcd is full.
pub(super) fn are_for_etcd(check: &Check) -> bool {
    check.remedy == FULL
}

/// That nothing is written because etcd is full, whatever the object.
pub(super) async fn refused_by_etcd(patient: &Patient<'_>, kube: &Kube, objects: &Objects) -> Option<Cause> {
    let check = tried(patient, kube, objects).await;
    cause(Some(check).filter(are_for_etcd)?)
}

/// Tries each kind of write, with what changes nothing, as a dry run; only those that the manager may make, or whoever asks.
pub(super) async fn check(
    patient: &Patient<'_>,
    kube: Option<&Kube>,
    objects: &Objects,
    found: Option<&Found>,
) -> Check {
    let Some(kube) = kube else {
        return ADMITTED.skipped("the API server does not answer");
    };
    let (kube, unseen) = permissions::as_the_manager(patient, kube, found).await;
    let mut check = tried(patient, &kube, objects).await;
    if check.outcome != Outcome::Skipped {
        check.details.extend(unseen);
    }
    check
}

async fn tried(patient: &Patient<'_>, kube: &Kube, objects: &Objects) -> Check {
    let nodes = to_try(objects.nodes(), |node| {
        node.is_uninitialized() || node.readiness != Readiness::Ready
    });
    let is_wanted = |service: &&Arc<Service>| objects.classes.is_wanted(service);
    let services: Vec<_> = objects.services().iter().filter(is_wanted).cloned().collect();
    let services = to_try(&services, |service| why::is_troubled(service, &objects.classes));
    let mut tried = of_nodes(kube, nodes.into_iter().map(|node| &**node).collect()).await;
    for service in services {
        tried.extend(of_service(kube, service).await);
    }
    tried.extend(of_lease(patient, kube).await);
    judge(tried)
}

/// Tries to note deletions of Nodes on the lease, without which none is deleted.
async fn of_lease(patient: &Patient<'_>, kube: &Kube) -> Option<Tried> {
    let notes = patient.config.settings.node_lifecycle.notes_deletions();
    let ElectionConfig { namespace, name, .. } = patient.config.election.as_ref().filter(|_| notes)?;
    let question = Question {
        verb: "update",
        group: "coordination.k8s.io",
        resource: "leases",
        namespace: Some(namespace.clone()),
        name: Some(name.clone()),
        rules: Vec::new(),
    };
    if !may(kube, &question).await {
        return None;
    }
    let lock = LeaseLock::new(kube.clone(), namespace, name, "");
    let answer = timed(lock.rehearse_note()).await;
    let what = format!("update leases {namespace}/{name} with the annotation {DELETIONS}");
    Some((what, answer.map(|it| it.0)))
}

/// What keeps the lease from bearing the note that is written before a Node is deleted, if anything does.
pub(super) async fn refused_of_lease(patient: &Patient<'_>, kube: &Kube) -> Option<Cause> {
    cause(judge(of_lease(patient, kube).await.into_iter().collect()))
}

/// What was tried, and the answer; `None`: there was none in time.
type Tried = (String, Option<Result<(), KubeError>>);

/// Of those in trouble a few, because a policy may refuse the writes to some objects only; else one.
fn to_try<T>(all: &[Arc<T>], is_troubled: impl Fn(&T) -> bool) -> Vec<&Arc<T>> {
    let troubled: Vec<_> = all.iter().filter(|it| is_troubled(it)).take(TRIED).collect();
    match troubled.is_empty() {
        true => all.iter().take(1).collect(),
        false => troubled,
    }
}

/// Tries the writes to one Service.
async fn of_service(kube: &Kube, service: &Service) -> Vec<Tried> {
    let mut tried = Vec::new();
    for (part, resource) in [("", "services"), ("/status", "services/status")] {
        if may_patch(kube, resource).await {
            let has_note = facts::noted_class(service).or(facts::class(service)).is_some();
            let mut answer = rehearsed(kube, service, part).await;
            if let Some(Err(error)) = &mut answer
                && has_note
                && let Some(Ok(())) = rehearsed(&kube.without_class_note(), service, part).await
            {
                tell_note(error);
            }
            let with = match puts_finalizer_on(service, part) {
                true => format!(" with the finalizer {}", keys::FINALIZER_LOAD_BALANCER),
                false => String::new(),
            };
            tried.push((
                format!("patch services{part} {}{with}", ServiceKey::of(service)),
                answer,
            ));
        }
    }
    tried
}

/// Whether the manager's next write to this part puts the finalizer on.
fn puts_finalizer_on(service: &Service, part: &str) -> bool {
    let is_leaving = service.metadata.deletion_timestamp.is_some();
    let is_wanted = facts::is_type(service, "LoadBalancer") && !is_leaving;
    part == "/status" && is_wanted && !facts::has_finalizer(service)
}

async fn rehearsed(kube: &Kube, service: &Service, part: &str) -> Option<Result<(), KubeError>> {
    let answer = match puts_finalizer_on(service, part) {
        true => timed(kube.rehearse_finalizer(service)).await,
        false => timed(kube.rehearse_service(service, part)).await,
    };
    answer.map(|it| it.0)
}

/// Names the annotation that a policy denies, which it seldom does itself.
fn tell_note(error: &mut KubeError) {
    if let KubeError::Forbidden(text) | KubeError::Invalid(text) = error {
        let note = keys::ANNOTATION_CLASS;
        text.push_str(&format!(
            "; without the annotation {note} it is taken: so is every other edit once that annotation is removed, or the policy allows it"
        ));
    }
}

/// What refuses the writes to one Service, if anything does.
pub(super) async fn refused(kube: &Kube, service: &Service) -> Option<Cause> {
    cause(judge(of_service(kube, service).await))
}

/// What refuses the writes to one Node, if anything does.
pub(super) async fn refused_of_node(kube: &Kube, node: &Node) -> Option<Cause> {
    cause(judge(of_nodes(kube, vec![node]).await))
}

/// Tries the writes to these Nodes.
async fn of_nodes(kube: &Kube, nodes: Vec<&Node>) -> Vec<Tried> {
    let mut tried = Vec::new();
    for (part, resource) in [("", "nodes"), ("/status", "nodes/status")] {
        if !nodes.is_empty() && may_patch(kube, resource).await {
            for node in &nodes {
                let answer = timed(kube.rehearse_node(node, part)).await;
                tried.push((format!("patch nodes{part} {}", node.name), answer.map(|it| it.0)));
            }
        }
    }
    tried
}

fn cause(check: Check) -> Option<Cause> {
    let is_refused = check.outcome == Outcome::Failed;
    is_refused.then(|| {
        let text = format!(
            "the API server refuses the manager's writes: {}",
            check.details.join("; ")
        );
        Cause::found(ADMITTED.id, Outcome::Failed, text, check.remedy)
    })
}

async fn may_patch(kube: &Kube, resource: &'static str) -> bool {
    let question = Question {
        verb: "patch",
        group: "",
        resource,
        namespace: None,
        name: None,
        rules: Vec::new(),
    };
    may(kube, &question).await
}

async fn may(kube: &Kube, question: &Question) -> bool {
    matches!(timed(kube.may(question)).await, Some((Ok(true), _)))
}

/// What the API server says where a webhook that acts elsewhere would have to be asked.
const NO_REHEARSAL: &str = "does not support dry run";

/// What to do about writes that nobody refuses and that fail all the same.
const FAILING: &str = "whoever runs the control plane looks at the API server and its log, at etcd, and at webhooks that take too long";

fn judge(tried: Vec<Tried>) -> Check {
    let (mut admitted, mut refused, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    let (mut unanswered, mut is_of_server) = (Vec::new(), true);
    for (what, answer) in tried {
        match answer {
            Some(Ok(())) => admitted.push(what),
            // It is another object by now.
            Some(Err(KubeError::Conflict(_) | KubeError::NotFound(_))) => {}
            Some(Err(error)) if error.to_string().contains(NO_REHEARSAL) => {
                unknown.push(format!("{what}: {error}"))
            }
            Some(Err(
                error @ (KubeError::Transport(_)
                | KubeError::Timeout
                | KubeError::Throttled { .. }
                | KubeError::Unauthorized(_)),
            )) => unanswered.push(format!("{what}: {error}")),
            Some(Err(error)) => {
                is_of_server &= matches!(error, KubeError::Server { code: 500.., .. });
                refused.push(format!("{what}: {error}"));
            }
            None => unanswered.push(format!("{what}: {}", no_answer())),
        }
    }
    if refused.iter().any(|it| it.contains(ETCD_FULL)) {
        return ADMITTED
            .failed("the API server writes nothing, because etcd is full", FULL)
            .with([refused, unknown, unanswered].concat());
    }
    if !refused.is_empty() {
        let remedy = match is_of_server && !refused.iter().any(|it| it.contains("webhook")) {
            true => FAILING,
            false => {
                "the text names the webhook or the policy that refuses, or cannot be reached: repair it, or have it leave the manager's writes out"
            }
        };
        return ADMITTED
            .failed(format!("a dry run was refused for {}", refused.len()), remedy)
            .with([refused, unknown, unanswered].concat());
    }
    if !unknown.is_empty() {
        return ADMITTED
            .skipped(
                "cannot be tried: a webhook takes no part in dry runs. Events and log tell what it refuses",
            )
            .with(unknown);
    }
    if !unanswered.is_empty() {
        return ADMITTED
            .skipped("the API server did not answer, so it is not known what it admits")
            .with(unanswered);
    }
    match admitted.is_empty() {
        true => ADMITTED.skipped("there is no Node and no Service that the manager may write to"),
        false => ADMITTED.ok(format!(
            "as a dry run that changes nothing: {}",
            admitted.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_trouble_is_tried_before_what_is_well() {
        let all: Vec<Arc<u32>> = (1..10).map(Arc::new).collect();
        let tried = |is_troubled: fn(&u32) -> bool| {
            let tried = to_try(&all, is_troubled).into_iter();
            tried.map(|it| **it).collect::<Vec<_>>()
        };
        assert_eq!(tried(|it| *it > 4), [5, 6, 7]);
        assert_eq!(tried(|it| *it == 9), [9]);
        assert_eq!(tried(|_| false), [1]);
    }

    #[test]
    fn what_admission_refuses_is_told_and_a_webhook_without_dry_runs_as_such() {
        let node = || ("patch nodes n1".to_owned(), Some(Ok(())));
        let service = |text: &str| {
            let error = KubeError::Invalid(text.to_owned());
            ("patch services default/web".to_owned(), Some(Err(error)))
        };
        let check = judge(vec![node()]);
        assert_eq!(check.outcome, Outcome::Ok);
        assert!(check.seen.ends_with("patch nodes n1"), "{}", check.seen);

        let check = judge(vec![
            node(),
            service("admission webhook \"a.b\" denied the request: no"),
        ]);
        assert_eq!(check.outcome, Outcome::Failed);
        assert_eq!(
            check.details,
            ["patch services default/web: admission webhook \"a.b\" denied the request: no"]
        );

        let code_500 = KubeError::Server {
            code: 504,
            message: "Timeout: request did not complete".to_owned(),
        };
        let check = judge(vec![(
            "patch services default/web".to_owned(),
            Some(Err(code_500)),
        )]);
        assert!(check.remedy.contains("looks at the API server"), "{check:?}");

        let check = judge(vec![node(), service("etcdserver: mvcc: database space exceeded")]);
        assert!(check.remedy.contains("etcdctl alarm disarm"), "{check:?}");

        let check = judge(vec![
            node(),
            service("admission webhook \"a.b\" does not support dry run"),
        ]);
        assert_eq!(check.outcome, Outcome::Skipped);
        assert!(check.details[0].contains("a.b"), "{:?}", check.details);

        let replaced = (
            "patch nodes n2".to_owned(),
            Some(Err(KubeError::Conflict("uid".to_owned()))),
        );
        assert_eq!(judge(vec![replaced]).outcome, Outcome::Skipped);
        assert_eq!(
            judge(vec![("patch nodes n1".to_owned(), None)]).outcome,
            Outcome::Skipped
        );
    }
}
