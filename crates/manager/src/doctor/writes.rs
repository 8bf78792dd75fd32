//! Whether the API server takes the manager's writes: admission may refuse what a role allows.

use bowline_cloud_provider::ServiceKey;
use bowline_kube_io::rbac::Question;
use bowline_kube_io::{Kube, KubeError};

use super::{Category, Check, Objects, Topic, no_answer, timed};

pub(super) static ADMITTED: Topic = Topic::new(
    Category::Kubernetes,
    "kubernetes.admission",
    "writes are admitted",
    "docs/runbooks/BowlineKubernetesFailing.md#look",
);

/// Tries one of each kind of write, with what changes nothing, as a dry run; only those that whoever asks may make.
pub(super) async fn check(kube: Option<&Kube>, objects: &Objects) -> Check {
    let Some(kube) = kube else {
        return ADMITTED.skipped("the API server does not answer");
    };
    let node = objects.nodes().first();
    let service = objects
        .services()
        .iter()
        .find(|service| objects.classes.is_wanted(service));
    let mut tried = Vec::new();
    for part in ["", "/status"] {
        if let Some(node) = node
            && may_patch(kube, if part.is_empty() { "nodes" } else { "nodes/status" }).await
        {
            let answer = timed(kube.rehearse_node(node, part)).await;
            tried.push((format!("patch nodes{part} {}", node.name), answer.map(|it| it.0)));
        }
        if let Some(service) = service
            && may_patch(
                kube,
                if part.is_empty() {
                    "services"
                } else {
                    "services/status"
                },
            )
            .await
        {
            let answer = timed(kube.rehearse_service(service, part)).await;
            let key = ServiceKey::of(service);
            tried.push((format!("patch services{part} {key}"), answer.map(|it| it.0)));
        }
    }
    judge(tried)
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
    matches!(timed(kube.may(&question)).await, Some((Ok(true), _)))
}

/// What the API server says where a webhook that acts elsewhere would have to be asked.
const NO_REHEARSAL: &str = "does not support dry run";

/// The answers; `None`: there was none in time.
fn judge(tried: Vec<(String, Option<Result<(), KubeError>>)>) -> Check {
    let (mut admitted, mut refused, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    let mut unanswered = Vec::new();
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
            Some(Err(error)) => refused.push(format!("{what}: {error}")),
            None => unanswered.push(format!("{what}: {}", no_answer())),
        }
    }
    if !refused.is_empty() {
        return ADMITTED
            .failed(
                format!("a dry run was refused for {}", refused.len()),
                "the text names the webhook or the policy that refuses, or cannot be reached: repair it, or have it leave the manager's writes out",
            )
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
    use crate::doctor::Outcome;

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
