//! Pods of a manager that are ready, while none of them leads: their logs say why.

use bowline_kube_io::Kube;
use bowline_kube_io::workloads::Pod;

use super::said::{LINES, LOOKED_AT, last_words};
use super::{Found, on_node};
use crate::deployed::Deployed;
use crate::doctor::{Check, some_of, timed};
use crate::why::{ETCD_FULL, FULL};

/// What the API server answers to a token that it does not take.
const REFUSED: &str = "Unauthorized";

/// What a process says of an API server that lets it wait.
const BUSY: &str = "too busy to answer (429)";

/// What to do about that.
const THROTTLED: &str = "the API server is busy, or limits the manager's account, so its pods cannot keep the lease, and to delete them does not help: whoever \
    runs the cluster looks at what floods it, and at its flow schemas (kubectl get flowschemas)";

/// A pod that is ready.
struct Idle<'a> {
    manager: &'a Deployed,
    pod: &'a Pod,
    /// The last line of its log.
    log: Option<String>,
}

/// The failure that nobody holds a lease, with what is known of the pods that should.
pub(in crate::doctor) async fn told(check: Check, kube: &Kube, found: Option<&Found>, lease: &str) -> Check {
    let managers = found
        .and_then(|it| it.managers.as_deref().ok())
        .unwrap_or_default();
    let mut all = Vec::new();
    for manager in managers {
        let takes_it = !manager.is_without_election() && manager.lease() == lease;
        let ready = manager
            .pods
            .iter()
            .filter(|pod| takes_it && manager.is_ready(pod));
        for pod in ready.take(LOOKED_AT) {
            let log = kube.pod_log(&pod.metadata, &manager.container.name, false, LINES);
            let log = timed(log).await.and_then(|(log, _)| last_words(&log.ok()?));
            all.push(Idle { manager, pod, log });
        }
    }
    tell(check, &all)
}

fn tell(mut check: Check, all: &[Idle<'_>]) -> Check {
    let Some(first) = all.first() else {
        return check;
    };
    let says = |it: &Idle<'_>, words: &str| it.log.as_ref().is_some_and(|log| log.contains(words));
    let refused = all.iter().find(|it| says(it, REFUSED));
    let is_full = all.iter().any(|it| says(it, ETCD_FULL));
    let is_throttled = all.iter().any(|it| says(it, BUSY));
    let Idle { manager, pod, .. } = refused.unwrap_or(first);
    let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
    let again = format!("kubectl -n {namespace} delete pod {name}");
    let remedy = match refused {
        Some(_) => format!(
            "the API server does not take the token of pod {name}: delete the pod, and the next one gets another token: {again}. If it is refused, \
             too, look at the ServiceAccount {}, and at the keys and the issuer that the API server checks tokens by",
            manager.account_name()
        ),
        None if is_full => FULL.to_owned(),
        None if is_throttled => THROTTLED.to_owned(),
        None => format!(
            "read its log: kubectl -n {namespace} logs {name}. `{REFUSED}` there says that the API server does not take its token; a log that \
             stands still, that the process hangs. In both cases delete the pod, and another one takes its place: {again}. `{BUSY}` there says \
             that the API server is flooded, or limits it: see its flow schemas. Where \
             there is no answer for the log, its Node does not answer: look at that"
        ),
    };
    let names = some_of(all.iter().map(|it| it.pod.metadata.name.clone()));
    check
        .seen
        .push_str(&format!(", although it is ready: pod {names}"));
    check.remedy = remedy;
    check.with(all.iter().map(line).collect())
}

fn line(idle: &Idle<'_>) -> String {
    let since = idle
        .manager
        .runs_since(idle.pod)
        .or(idle.pod.metadata.creation_timestamp);
    let since = since.map_or(String::new(), |it| format!(", runs since {it}"));
    let log = idle
        .log
        .as_ref()
        .map_or(String::new(), |it| format!(", its log ends with: {it}"));
    format!(
        "pod {}{}: ready{since}{log}",
        idle.pod.metadata.name,
        on_node(idle.pod)
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::{manager, pod, ready};
    use super::*;
    use crate::deployed::Program;
    use crate::doctor::leadership::LEASE;

    #[test]
    fn a_pod_that_is_ready_and_does_not_lead_is_told_with_its_log() {
        let ccm = manager("ccm", Program::Bowline, &[], &[pod("ccm-1", "c1", ready())]);
        let told = |log: Option<&str>| {
            let idle = Idle {
                manager: &ccm,
                pod: &ccm.pods[0],
                log: log.map(str::to_owned),
            };
            tell(LEASE.failed("renewed 185 s ago: nobody leads", "x"), &[idle])
        };
        let check = told(None);
        assert_eq!(
            check.seen,
            "renewed 185 s ago: nobody leads, although it is ready: pod ccm-1"
        );
        assert_eq!(check.details, ["pod ccm-1 on c1: ready"]);
        assert!(
            check.remedy.contains("kubectl -n kube-system logs ccm-1"),
            "{check:?}"
        );
        let check = told(Some("the lease could not be read err=\"Unauthorized\""));
        assert!(
            check.details[0].contains("its log ends with: the lease"),
            "{check:?}"
        );
        assert!(
            check
                .remedy
                .starts_with("the API server does not take the token of pod ccm-1"),
            "{check:?}"
        );
        let check = told(Some("the API server is too busy to answer (429): injected"));
        assert!(check.remedy.contains("flowschemas"), "{check:?}");
        let check = told(Some("err=\"etcdserver: mvcc: database space exceeded\""));
        assert!(check.remedy.ends_with("etcdctl alarm disarm"), "{check:?}");
        assert_eq!(tell(LEASE.failed("a", "b"), &[]).remedy, "b");
    }
}
