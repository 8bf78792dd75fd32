//! The rules as questions that an access review answers.

use std::fmt;

use super::{NAMESPACE, Part, RULES, Rule, Scope};

/// The names of objects that rules are about and that an operator chooses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Named {
    /// The namespace of the leases.
    pub lease_namespace: String,
    /// The leases.
    pub leases: Vec<String>,
    /// The ServiceAccount of the provider's own writes.
    pub account: Option<String>,
}

/// May this be done? Of several rules that ask the same, one question is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The verb.
    pub verb: &'static str,
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The resource, with its subresource.
    pub resource: &'static str,
    /// The namespace; `None`: in all of them, or for objects that have none.
    pub namespace: Option<String>,
    /// The object's name; `None`: any.
    pub name: Option<String>,
    /// The rules that it comes from.
    pub rules: Vec<&'static Rule>,
}

impl Question {
    /// Whether the answer to both is the same.
    fn is_same(&self, other: &Self) -> bool {
        (self.verb, self.group, self.resource) == (other.verb, other.group, other.resource)
            && (&self.namespace, &self.name) == (&other.namespace, &other.name)
    }

    /// The rule that a role needs, as people write it.
    pub fn rule(&self) -> String {
        let Self {
            verb,
            group,
            resource,
            ..
        } = self;
        let names = self
            .name
            .as_ref()
            .map_or(String::new(), |name| format!("resourceNames: [{name:?}], "));
        format!("{{apiGroups: [{group:?}], resources: [{resource:?}], {names}verbs: [{verb:?}]}}")
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in {namespace}"),
            None => Ok(()),
        }
    }
}

/// What these parts need, as questions in the table's order.
pub fn questions(parts: &[Part], named: &Named) -> Vec<Question> {
    let mut all: Vec<Question> = Vec::new();
    for rule in RULES.iter().filter(|rule| parts.contains(&rule.part)) {
        let namespace = match (rule.scope, rule.part) {
            (Scope::Cluster, _) => None,
            (Scope::System, Part::LeaderElection) => Some(named.lease_namespace.clone()),
            (Scope::System, _) => Some(NAMESPACE.to_owned()),
        };
        for name in names(rule, named) {
            for &verb in rule.verbs {
                let question = Question {
                    verb,
                    group: rule.group,
                    resource: rule.resource,
                    namespace: namespace.clone(),
                    name: name.clone(),
                    rules: vec![rule],
                };
                match all.iter_mut().find(|other| other.is_same(&question)) {
                    Some(same) => same.rules.push(rule),
                    None => all.push(question),
                }
            }
        }
    }
    all
}

/// The objects that a rule is about in this installation.
fn names(rule: &Rule, named: &Named) -> Vec<Option<String>> {
    let fixed = rule.names.iter().map(|&name| name.to_owned());
    let names: Vec<String> = match rule.part {
        _ if rule.names.is_empty() => return vec![None],
        Part::LeaderElection => named.leases.clone(),
        Part::ServiceAccounts => fixed.chain(named.account.clone()).collect(),
        _ => fixed.collect(),
    };
    names.into_iter().map(Some).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(parts: &[Part]) -> Vec<String> {
        let named = Named {
            lease_namespace: "ccm".to_owned(),
            leases: vec!["mine".to_owned()],
            account: Some("cloud".to_owned()),
        };
        questions(parts, &named).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_several_parts_need_is_asked_once() {
        assert_eq!(
            asked(&[Part::CloudNode, Part::NodeLifecycle, Part::NodeIpam]),
            ["get nodes", "patch nodes", "patch nodes/status", "delete nodes"]
        );
        let named = Named::default();
        let patch = &questions(&[Part::CloudNode, Part::NodeLifecycle], &named)[1];
        let parts: Vec<Part> = patch.rules.iter().map(|rule| rule.part).collect();
        assert_eq!(parts, [Part::CloudNode, Part::NodeLifecycle]);
    }

    #[test]
    fn the_lease_and_the_accounts_are_those_of_the_installation() {
        assert_eq!(
            asked(&[Part::LeaderElection]),
            [
                "create leases.coordination.k8s.io in ccm",
                "get leases.coordination.k8s.io mine in ccm",
                "update leases.coordination.k8s.io mine in ccm",
                "watch leases.coordination.k8s.io mine in ccm",
            ]
        );
        let accounts = asked(&[Part::ServiceAccounts]);
        assert_eq!(accounts.len(), 9, "{accounts:?}");
        assert!(accounts.contains(&"create serviceaccounts/token cloud in kube-system".to_owned()));
        assert_eq!(asked(&[Part::ClusterUid]), ["get namespaces kube-system"]);
    }

    #[test]
    fn a_question_names_the_rule_that_would_answer_it() {
        let named = Named {
            leases: vec!["mine".to_owned()],
            ..Named::default()
        };
        let rules: Vec<String> = questions(&[Part::LeaderElection], &named)
            .iter()
            .map(Question::rule)
            .collect();
        assert_eq!(
            rules[..2],
            [
                r#"{apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"]}"#,
                r#"{apiGroups: ["coordination.k8s.io"], resources: ["leases"], resourceNames: ["mine"], verbs: ["get"]}"#,
            ]
        );
    }
}
