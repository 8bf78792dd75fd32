//! What the manager may do, asked of the API server rule by rule.

use std::collections::BTreeSet;

use bowline_cloud_provider::{CloudProvider, ClusterUid};
use bowline_kube_io::rbac::{Account, Named, Part, Question, questions};
use bowline_kube_io::{Kube, KubeError};
use futures::StreamExt as _;

use super::{Category, Check, Patient, Topic, no_answer, some_lines, timed};
use crate::config::{Config, Lookup};
use crate::controllers::ControllerName;

pub(super) static PERMISSIONS: Topic = Topic::new(
    Category::Kubernetes,
    "the manager has its permissions",
    "docs/reference/rbac.md",
);

pub(super) static ACCOUNTS: Topic = Topic::new(
    Category::Kubernetes,
    "the ServiceAccounts of the controllers have theirs",
    "docs/reference/rbac.md",
);

/// Questions at once.
const AT_ONCE: usize = 8;

/// What was found, and what may be done.
pub(super) struct Permitted {
    pub(super) checks: Vec<Check>,
    /// The questions that were answered with yes, as they are shown.
    pub(super) granted: BTreeSet<String>,
}

/// Asks for every permission. Those of other ServiceAccounts are not asked for: it would take a token of theirs, and to make
/// one is a write.
pub(super) async fn check(
    patient: &Patient<'_>,
    kube: Option<&Kube>,
    provider: Option<&dyn CloudProvider>,
) -> Permitted {
    let Some(kube) = kube else {
        return Permitted {
            checks: vec![PERMISSIONS.skipped("the API server does not answer")],
            granted: BTreeSet::new(),
        };
    };
    let config = patient.config;
    let needed = parts(config, patient.lookup, provider);
    let is_own = |part: &&Part| !config.service_accounts || part.account() == Account::Process;
    let own: Vec<Part> = needed.iter().filter(is_own).copied().collect();
    let asked = questions(&own, &named(config, provider));
    let count = asked.len();
    let answers = async {
        let all = asked.into_iter().map(|question| async move {
            let answer = kube.may(&question).await;
            (question, answer)
        });
        futures::stream::iter(all)
            .buffered(AT_ONCE)
            .collect::<Vec<_>>()
            .await
    };
    let mut granted = BTreeSet::new();
    let mut checks = vec![match timed(answers).await {
        None => PERMISSIONS.failed(no_answer(), "look at the API server"),
        Some((answers, _)) => {
            let needs = Needs {
                annotations: provider
                    .and_then(CloudProvider::load_balancer)
                    .is_none_or(|balancer| balancer.needs_annotations()),
                authorities: patient.lookup == Some(Lookup::Required),
            };
            let yes = answers.iter().filter(|(_, answer)| *answer == Ok(true));
            granted.extend(yes.map(|(question, _)| question.to_string()));
            judge(count, answers, needs, patient.is_manager)
        }
    }];
    if own.len() < needed.len() {
        checks.push(ACCOUNTS.skipped(
            "not asked under --use-service-account-credentials; ask with `kubectl auth can-i --list \
             --as=system:serviceaccount:kube-system:node-controller`, and the same for the others",
        ));
    }
    Permitted { checks, granted }
}

/// The parts that ask the API server for something in this installation.
fn parts(config: &Config, lookup: Option<Lookup>, provider: Option<&dyn CloudProvider>) -> Vec<Part> {
    let runs = |name| config.controllers.includes(name);
    let has_instances = provider.is_none_or(|provider| provider.instances().is_some());
    let balances =
        runs(ControllerName::Service) && provider.is_none_or(|provider| provider.load_balancer().is_some());
    let routes = runs(ControllerName::Route)
        && config.settings.routes.is_wanted
        && provider.is_some_and(|provider| provider.routes().is_some());
    let allots = match provider {
        Some(provider) => config.gives_node_networks(provider),
        None => runs(ControllerName::NodeIpam) && config.settings.node_networks.is_some(),
    };
    let marks = provider.is_some_and(|provider| provider.cluster_uid() == ClusterUid::Required);
    [
        (Part::Informers, true),
        (Part::Events, true),
        (Part::LeaderElection, config.election.is_some()),
        (Part::CloudNode, has_instances && runs(ControllerName::Node)),
        (
            Part::NodeLifecycle,
            has_instances && runs(ControllerName::NodeLifecycle),
        ),
        (Part::Service, balances),
        (Part::ServiceAnnotations, balances),
        (Part::Route, routes),
        (Part::NodeIpam, allots),
        (Part::Reviews, lookup.is_some()),
        (
            Part::ClientAuthorities,
            lookup.is_some_and(|it| it != Lookup::Skipped),
        ),
        (Part::ServiceAccounts, config.service_accounts),
        (Part::ClusterUid, marks),
    ]
    .into_iter()
    .filter_map(|(part, is_needed)| is_needed.then_some(part))
    .collect()
}

fn named(config: &Config, provider: Option<&dyn CloudProvider>) -> Named {
    let Some(election) = &config.election else {
        return Named::default();
    };
    let second = config.migration.as_ref().map(|migration| migration.lease.clone());
    Named {
        lease_namespace: election.namespace.clone(),
        leases: [Some(election.name.clone()), second]
            .into_iter()
            .flatten()
            .collect(),
        account: provider
            .and_then(CloudProvider::service_account)
            .map(str::to_owned),
    }
}

/// What depends on the configuration and the cloud.
#[derive(Clone, Copy)]
struct Needs {
    /// Whether a Service gets no load balancer before it is annotated.
    annotations: bool,
    /// Whether the process ends at its start where it cannot look up who vouches for clients.
    authorities: bool,
}

/// Whether the manager does its work without this, only less well.
fn is_spared(question: &Question, needs: Needs) -> bool {
    question.rules.iter().all(|rule| match rule.part {
        Part::Events | Part::Reviews => true,
        Part::ClientAuthorities => !needs.authorities || question.verb != "get",
        Part::LeaderElection => question.verb == "watch",
        Part::CloudNode | Part::NodeLifecycle => question.verb == "get",
        Part::ServiceAnnotations => !needs.annotations,
        _ => false,
    })
}

fn judge(
    count: usize,
    answers: Vec<(Question, Result<bool, KubeError>)>,
    needs: Needs,
    is_manager: bool,
) -> Check {
    let whose = if is_manager {
        ""
    } else {
        "; asked for the user of the kubeconfig, in the pod it is the manager's own"
    };
    let mut is_fatal = false;
    let mut lines = Vec::new();
    let mut unknown = None;
    for (question, answer) in answers {
        match answer {
            Ok(true) => {}
            Ok(false) => {
                is_fatal |= !is_spared(&question, needs);
                let loses: Vec<String> = question
                    .rules
                    .iter()
                    .map(|rule| format!("{}: {}", rule.part, rule.loses))
                    .collect();
                lines.push(format!(
                    "{question}, by the rule {}; without it {}",
                    question.rule(),
                    loses.join("; ")
                ));
            }
            Err(error) => unknown = Some(error),
        }
    }
    if let (Some(error), true) = (&unknown, lines.is_empty()) {
        return PERMISSIONS.failed(error.to_string(), "look at the API server");
    }
    if lines.is_empty() {
        return PERMISSIONS.ok(format!("all {count}{whose}"));
    }
    let seen = format!("{} of {count} are missing{whose}", lines.len());
    let remedy = "apply the manager's ClusterRole, its Role and their bindings of this release again, or add these rules";
    let check = match is_fatal {
        true => PERMISSIONS.failed(seen, remedy),
        false => PERMISSIONS.warning(seen, remedy),
    };
    check.with(some_lines(lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Outcome;

    const AUTHORITIES: &str = "get configmaps extension-apiserver-authentication in kube-system";

    fn judged(missing: &[&str]) -> Check {
        judged_with(true, missing)
    }

    fn judged_with(authorities: bool, missing: &[&str]) -> Check {
        let all = [
            Part::Informers,
            Part::CloudNode,
            Part::NodeLifecycle,
            Part::Events,
            Part::LeaderElection,
            Part::ServiceAnnotations,
            Part::ClientAuthorities,
        ];
        let asked = questions(&all, &named(&Config::default(), None));
        let answers = asked.into_iter().map(|question| {
            let is_allowed = !missing.contains(&question.to_string().as_str());
            (question, Ok(is_allowed))
        });
        let answers: Vec<_> = answers.collect();
        let needs = Needs {
            annotations: false,
            authorities,
        };
        judge(answers.len(), answers, needs, true)
    }

    #[test]
    fn what_is_missing_is_judged_by_what_stops_without_it() {
        assert_eq!(judged(&[]).outcome, Outcome::Ok);
        for (missing, outcome) in [
            ("delete nodes", Outcome::Failed),
            ("patch nodes/status", Outcome::Failed),
            ("get nodes", Outcome::Warning),
            ("create events", Outcome::Warning),
            ("patch services", Outcome::Warning),
            (
                "watch leases.coordination.k8s.io cloud-controller-manager in kube-system",
                Outcome::Warning,
            ),
            (
                "update leases.coordination.k8s.io cloud-controller-manager in kube-system",
                Outcome::Failed,
            ),
        ] {
            let check = judged(&[missing]);
            assert_eq!(check.outcome, outcome, "{missing}");
            assert!(check.details[0].starts_with(missing), "{:?}", check.details);
            assert!(check.details[0].contains("verbs: ["), "{:?}", check.details);
        }
        let both = judged(&["get nodes", "delete nodes"]);
        assert_eq!((both.outcome, both.details.len()), (Outcome::Failed, 2));
        assert!(both.seen.starts_with("2 of "), "{}", both.seen);
    }

    #[test]
    fn what_the_process_ends_without_has_failed() {
        let check = judged(&[AUTHORITIES]);
        assert_eq!(check.outcome, Outcome::Failed);
        assert!(check.details[0].contains("exit code 1"), "{:?}", check.details);
        assert_eq!(
            judged_with(false, &[AUTHORITIES]).outcome,
            Outcome::Warning,
            "where a failure is tolerated"
        );
        let later = AUTHORITIES.replace("get", "watch");
        assert_eq!(judged(&[&later]).outcome, Outcome::Warning);
    }

    #[test]
    fn the_parts_are_those_of_the_configuration() {
        let mut config = Config::default();
        let has = |config: &Config, part| parts(config, Some(Lookup::Required), None).contains(&part);
        assert!(has(&config, Part::LeaderElection) && !has(&config, Part::ServiceAccounts));
        assert!(has(&config, Part::NodeLifecycle) && has(&config, Part::Reviews));
        config.election = None;
        config.service_accounts = true;
        config.controllers = crate::controllers::ControllerSelection::parse(["service"]).unwrap();
        assert!(!has(&config, Part::LeaderElection) && has(&config, Part::ServiceAccounts));
        assert!(!has(&config, Part::NodeLifecycle) && has(&config, Part::Service));
        assert!(has(&config, Part::ClientAuthorities));
        assert!(!parts(&config, None, None).contains(&Part::Reviews));
        assert!(!parts(&config, Some(Lookup::Skipped), None).contains(&Part::ClientAuthorities));
    }
}
