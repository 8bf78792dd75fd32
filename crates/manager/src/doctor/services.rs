//! Services that ask for load balancers: how many there are, and how many wait. Why they do is told by a plan.

use std::sync::Arc;

use bowline_cloud_provider::{Service, ServiceKey, facts};
use bowline_kube_io::KubeError;

use super::{Category, Check, Topic, some_of, unread};

pub(super) static READ: Topic = Topic::new(Category::Services, "Services are read", "docs/reference/rbac.md");

pub(super) static SETTLED: Topic = Topic::new(
    Category::Services,
    "Services have their addresses",
    "docs/guides/troubleshoot.md#services",
);

/// Why no Service gets a load balancer from this manager.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unserved {
    /// The controller is switched off.
    Controller,
    /// The provider makes none, as it is configured.
    Provider,
}

/// The checks of this category.
pub(super) fn checks(
    services: Option<&Result<Vec<Arc<Service>>, KubeError>>,
    unserved: Option<Unserved>,
) -> Vec<Check> {
    match services {
        None => vec![
            READ.skipped("the API server does not answer"),
            SETTLED.skipped("Services are not read"),
        ],
        Some(Err(error)) => {
            vec![
                READ.failed(error.to_string(), unread(error)),
                SETTLED.skipped("Services are not read"),
            ]
        }
        Some(Ok(services)) => {
            let asking = services.iter().filter(|it| facts::is_type(it, "LoadBalancer"));
            let asking: Vec<&Service> = asking.map(|it| &**it).collect();
            let others = asking.iter().filter(|it| facts::class(it).is_some()).count();
            let mut seen = format!("{}, {} of type LoadBalancer", services.len(), asking.len());
            if others > 0 {
                seen.push_str(&format!(", {others} of these with a class, for others to serve"));
            }
            vec![READ.ok(seen), judge(services, unserved)]
        }
    }
}

fn judge(services: &[Arc<Service>], unserved: Option<Unserved>) -> Check {
    let name = |service: &Arc<Service>| ServiceKey::of(service).to_string();
    let waits = |it: &&Arc<Service>| facts::is_wanted(it) && facts::published_addresses(it).is_empty();
    let waiting: Vec<String> = services.iter().filter(waits).map(name).collect();
    let leaving = services.iter().filter(|it| facts::needs_cleanup(it));
    let leaving: Vec<String> = leaving.map(name).collect();
    if waiting.is_empty() && leaving.is_empty() {
        return SETTLED.ok("all");
    }
    let mut lines = Vec::new();
    if !waiting.is_empty() {
        lines.push(format!("without address: {}", some_of(waiting.iter().cloned())));
    }
    if !leaving.is_empty() {
        lines.push(format!(
            "the load balancer is to be removed: {}",
            some_of(leaving.iter().cloned())
        ));
    }
    let seen = format!("{} not settled", waiting.len() + leaving.len());
    let remedy = match unserved {
        None => {
            "run `plan`, with the same flags and --service NAMESPACE/NAME: it says what would be done, or why it cannot. Where it names steps and they \
             do not come about, the events of the Service and the log of the manager say what was refused"
        }
        Some(Unserved::Controller) => {
            "this manager serves no Services: --controllers switches service-lb-controller off"
        }
        Some(Unserved::Provider) => {
            "this manager makes no load balancers, as its cloud is configured: see the manual of the cloud"
        }
    };
    SETTLED.warning(seen, remedy).with(lines)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::Outcome;

    fn service(name: &str, spec: serde_json::Value, ip: Option<&str>, is_leaving: bool) -> Arc<Service> {
        let ingress: Vec<_> = ip.iter().map(|ip| json!({ "ip": ip })).collect();
        let mut service = json!({
            "metadata": { "namespace": "default", "name": name, "finalizers": ["service.kubernetes.io/load-balancer-cleanup"] },
            "spec": spec,
            "status": { "loadBalancer": { "ingress": ingress } },
        });
        if is_leaving {
            service["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Arc::new(serde_json::from_value(service).unwrap())
    }

    #[test]
    fn services_that_wait_are_named() {
        let balanced = || json!({ "type": "LoadBalancer" });
        let well = service("well", balanced(), Some("192.0.2.1"), false);
        let other = service(
            "other",
            json!({ "type": "LoadBalancer", "loadBalancerClass": "x" }),
            None,
            false,
        );
        let waiting = service("waiting", balanced(), None, false);
        let leaving = service("leaving", balanced(), Some("192.0.2.2"), true);
        let all = checks(Some(&Ok(vec![Arc::clone(&well), other])), None);
        assert_eq!(
            all[0].seen,
            "2, 2 of type LoadBalancer, 1 of these with a class, for others to serve"
        );
        assert_eq!(all[1].outcome, Outcome::Ok);
        let all = [well, waiting, leaving];
        let switched_off = judge(&all, Some(Unserved::Controller)).remedy;
        assert!(switched_off.contains("--controllers"), "{switched_off}");
        let check = judge(&all, None);
        assert_eq!(
            (check.outcome, check.seen.as_str()),
            (Outcome::Warning, "2 not settled")
        );
        assert_eq!(
            check.details,
            [
                "without address: default/waiting",
                "the load balancer is to be removed: default/leaving"
            ]
        );
    }

    #[test]
    fn without_services_nothing_is_judged() {
        let failed = checks(Some(&Err(KubeError::Timeout)), None);
        assert_eq!(
            (failed[0].outcome, failed[1].outcome),
            (Outcome::Failed, Outcome::Skipped)
        );
        assert!(
            checks(None, None)
                .iter()
                .all(|check| check.outcome == Outcome::Skipped)
        );
    }
}
