//! What the manager may do, asked of the API server rule by rule.

use bowline_cloud_provider::{CloudProvider, ClusterUid};
use bowline_kube_io::rbac::{Account, NAMESPACE, Named, Part, Question, questions};
use bowline_kube_io::{Kube, KubeError, UserInfo};
use futures::StreamExt as _;

use super::managers::Found;
use super::{ASK_AS_ANOTHER, Check, Patient, Topic, no_answer, some_lines, timed};
use crate::config::{Config, Lookup};
use crate::controllers::ControllerName;

topics! { pub(super) Kubernetes:
    PERMISSIONS = "kubernetes.permissions", "the manager has its permissions", "docs/reference/rbac.md";
    ACCOUNTS = "kubernetes.controller-accounts", "the ServiceAccounts of the controllers have theirs",
        "docs/reference/rbac.md";
}

/// Questions at once.
const AT_ONCE: usize = 8;

/// Whose permissions are asked for.
enum Whose {
    /// Those of whoever asks: in the manager's pod they are its own.
    Own,
    /// Those of a ServiceAccount.
    Account(UserInfo),
}

impl Whose {
    async fn may(&self, kube: &Kube, question: &Question) -> Result<bool, KubeError> {
        match self {
            Self::Own => kube.may(question).await,
            Self::Account(user) => kube.may_somebody(user, question).await,
        }
    }
}

/// Asks for every permission of the manager: outside of its pod for those of its ServiceAccount, as far as the caller may ask for
/// others.
pub(super) async fn check(
    patient: &Patient<'_>,
    kube: Option<&Kube>,
    provider: Option<&dyn CloudProvider>,
    found: Option<&Found>,
) -> Vec<Check> {
    let Some(kube) = kube else {
        return vec![PERMISSIONS.skipped("the API server does not answer")];
    };
    let config = patient.config;
    let needed = parts(config, patient.lookup, provider);
    let is_own = |part: &&Part| !config.service_accounts || part.account() == Account::Process;
    let own: Vec<Part> = needed.iter().filter(is_own).copied().collect();
    let named = named(config, provider);
    let asked = questions(&own, &named);
    let needs = Needs {
        annotations: provider
            .and_then(CloudProvider::load_balancer)
            .is_none_or(|balancer| balancer.needs_annotations()),
        authorities: patient.lookup == Some(Lookup::Required),
    };
    let (whose, remark) = match subject(patient, kube, found).await {
        Ok(subject) => subject,
        Err(reason) => return vec![PERMISSIONS.skipped(reason)],
    };
    let mut checks = vec![match answers(kube, &whose, asked).await {
        None => PERMISSIONS.failed(no_answer(), "look at the API server"),
        Some(answers) if !patient.is_manager && is_of_reader(&whose, &answers) => PERMISSIONS.skipped(format!(
            "it is not known which ServiceAccount the manager has, and you may only read, so {ASK_AS_ANOTHER}"
        )),
        Some(answers) => judge(&PERMISSIONS, &answers, needs, &remark),
    }];
    if own.len() < needed.len() {
        checks.push(of_accounts(kube, &whose, &needed, &named, needs).await);
    }
    checks
}

/// Whether the answers are about somebody who asks and is no manager: one that may write nothing of what a manager writes.
fn is_of_reader(whose: &Whose, answers: &Answers) -> bool {
    let is_write = |question: &Question| !["get", "list", "watch"].contains(&question.verb);
    let mut writes = answers.iter().filter(|(question, _)| is_write(question));
    matches!(whose, Whose::Own) && writes.all(|(_, answer)| matches!(answer, Ok(false)))
}

/// Whose permissions count, and how that is told; or why nobody can tell. What a person may not do says nothing of the manager.
async fn subject(
    patient: &Patient<'_>,
    kube: &Kube,
    found: Option<&Found>,
) -> Result<(Whose, String), String> {
    if patient.is_manager {
        return Ok((Whose::Own, String::new()));
    }
    let account = account(kube, found).await;
    let may_ask = Question {
        verb: "create",
        group: "authorization.k8s.io",
        resource: "subjectaccessreviews",
        namespace: None,
        name: None,
        rules: Vec::new(),
    };
    match account {
        Some((namespace, name, of)) if matches!(timed(kube.may(&may_ask)).await, Some((Ok(true), _))) => Ok((
            Whose::Account(UserInfo::service_account(namespace, name)),
            format!("; asked for the ServiceAccount {namespace}/{name} of {of}"),
        )),
        Some(_) => Err(format!(
            "you may not ask for the permissions of others (create subjectaccessreviews.authorization.k8s.io), so {ASK_AS_ANOTHER}"
        )),
        None => Ok((
            Whose::Own,
            "; asked for the user of the kubeconfig, because no manager is found: in the pod it is the manager's own".to_owned(),
        )),
    }
}

/// Namespace and name of the manager's ServiceAccount, and what names it.
async fn account<'a>(kube: &Kube, found: Option<&'a Found>) -> Option<(&'a str, &'a str, String)> {
    let managers = found
        .and_then(|it| it.managers.as_deref().ok())
        .unwrap_or_default();
    if let Some(manager) = managers.iter().min_by_key(|it| it.program) {
        return Some((
            manager.namespace.as_str(),
            manager.account_name(),
            manager.object(),
        ));
    }
    // Where nothing is deployed, or the process runs elsewhere, the account of all manifests may be there.
    let there = timed(kube.has("serviceaccounts", NAMESPACE, ACCOUNT)).await;
    matches!(there, Some((Ok(true), _))).then(|| (NAMESPACE, ACCOUNT, "the manifests".to_owned()))
}

/// The API server as the manager meets it, as far as the caller may act for its ServiceAccount; else what is not seen, because a policy may
/// be about that account alone.
pub(super) async fn as_the_manager(
    patient: &Patient<'_>,
    kube: &Kube,
    found: Option<&Found>,
) -> (Kube, Option<String>) {
    if patient.is_manager {
        return (kube.clone(), None);
    }
    let Some((namespace, name, _)) = account(kube, found).await else {
        let unknown = "asked for the user of the kubeconfig, because no manager is found: what refuses its ServiceAccount alone is not seen";
        return (kube.clone(), Some(unknown.to_owned()));
    };
    let may_act = Question {
        verb: "impersonate",
        group: "",
        resource: "serviceaccounts",
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        rules: Vec::new(),
    };
    match timed(kube.may(&may_act)).await {
        Some((Ok(true), _)) => (kube.acting_as(namespace, name), None),
        _ => (
            kube.clone(),
            Some(format!(
                "asked for the user of the kubeconfig, who may not impersonate the ServiceAccount {namespace}/{name}: what refuses that one alone is not seen"
            )),
        ),
    }
}

/// The ServiceAccount of all manifests.
pub(super) const ACCOUNT: &str = "cloud-controller-manager";

type Answers = Vec<(Question, Result<bool, KubeError>)>;

async fn answers(kube: &Kube, whose: &Whose, asked: Vec<Question>) -> Option<Answers> {
    let all = asked.into_iter().map(|question| async move {
        let answer = whose.may(kube, &question).await;
        (question, answer)
    });
    let answers = futures::stream::iter(all).buffered(AT_ONCE).collect::<Vec<_>>();
    timed(answers).await.map(|(answers, _)| answers)
}

/// The ServiceAccounts of single controllers. Only who may ask for others can tell: to ask as one of them takes a token of its, and to
/// make one is a write.
async fn of_accounts(kube: &Kube, whose: &Whose, needed: &[Part], named: &Named, needs: Needs) -> Check {
    if matches!(whose, Whose::Own) {
        return ACCOUNTS.skipped(
            "not asked under --use-service-account-credentials; ask with `kubectl auth can-i --list \
             --as=system:serviceaccount:kube-system:node-controller`, and the same for the others",
        );
    }
    let mut all = Vec::new();
    let mut names = Vec::new();
    for account in [Account::Node, Account::Service, Account::Route, Account::Provider] {
        let name = account
            .name()
            .or(named.account.as_deref())
            .unwrap_or("service-controller");
        let parts: Vec<Part> = needed
            .iter()
            .filter(|part| part.account() == account)
            .copied()
            .collect();
        if parts.is_empty() {
            continue;
        }
        let whose = Whose::Account(UserInfo::service_account(NAMESPACE, name));
        match answers(kube, &whose, questions(&parts, named)).await {
            None => return ACCOUNTS.failed(no_answer(), "look at the API server"),
            Some(answers) => all.extend(answers),
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let remark = format!("; asked for {} in {NAMESPACE}", names.join(", "));
    judge(&ACCOUNTS, &all, needs, &remark)
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

fn judge(topic: &'static Topic, answers: &Answers, needs: Needs, whose: &str) -> Check {
    let count = answers.len();
    let mut is_fatal = false;
    let mut lines = Vec::new();
    let mut unknown = None;
    for (question, answer) in answers {
        match answer {
            Ok(true) => {}
            Ok(false) => {
                is_fatal |= !is_spared(question, needs);
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
        return topic.failed(error.to_string(), "look at the API server");
    }
    if lines.is_empty() {
        return topic.ok(format!("all {count}{whose}"));
    }
    let seen = format!("{} of {count} are missing{whose}", lines.len());
    let remedy = "apply the manager's ClusterRole, its Role and their bindings of this release again, or add these rules";
    let check = match is_fatal {
        true => topic.failed(seen, remedy),
        false => topic.warning(seen, remedy),
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
        judge(&PERMISSIONS, &answers, needs, "")
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
