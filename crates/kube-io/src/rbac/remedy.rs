//! What a person can do about a refused request.

use http::Method;

use super::RULES;

/// What a request asks for, in the words of RBAC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    verb: &'static str,
    group: String,
    /// With its subresource.
    resource: String,
    namespace: Option<String>,
}

impl Asked {
    /// Reads it from the request; `None` if the path is that of no resource.
    pub(crate) fn of(method: &Method, path: &str) -> Option<Self> {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut segments = path.trim_start_matches('/').split('/');
        let group = match segments.next()? {
            "api" => String::new(),
            "apis" => segments.next()?.to_owned(),
            _ => return None,
        };
        segments.next()?; // the version
        let mut rest: Vec<&str> = segments.collect();
        let mut namespace = None;
        // The Namespace itself is `/namespaces/NAME`, what is in it comes below.
        if let ["namespaces", name, _, ..] = rest[..] {
            namespace = Some(name.to_owned());
            rest.drain(..2);
        }
        let (resource, is_named) = match rest[..] {
            [resource] => (resource.to_owned(), false),
            [resource, _] => (resource.to_owned(), true),
            [resource, _, subresource] => (format!("{resource}/{subresource}"), true),
            _ => return None,
        };
        let verb = match *method {
            Method::GET if is_named => "get",
            Method::GET if query.split('&').any(|pair| pair == "watch=true") => "watch",
            Method::GET => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => return None,
        };
        Some(Self {
            verb,
            group,
            resource,
            namespace,
        })
    }

    /// The API server's refusal with what to do about it. Refusals of other kinds have the same code, such as those of
    /// admission or of a namespace that is going away; a role would not help them, so their text stays as it is.
    pub(crate) fn explain(&self, refusal: &str) -> String {
        let Self {
            verb,
            group,
            resource,
            namespace,
        } = self;
        if !refusal.contains(&format!("cannot {verb} resource {resource:?}")) {
            return refusal.to_owned();
        }
        let mut reasons: Vec<String> = Vec::new();
        for rule in RULES {
            if (rule.group, rule.resource) == (group.as_str(), resource.as_str()) && rule.verbs.contains(verb)
            {
                reasons.push(format!("{}: {}", rule.part, rule.loses));
            }
        }
        if reasons.is_empty() {
            return refusal.to_owned(); // no manager needs it, and whoever asks may have good reasons not to have it
        }
        let place = namespace.as_ref().map_or(String::new(), |namespace| {
            format!(" in the namespace {namespace}")
        });
        let reasons = reasons.join("; ");
        format!(
            "{refusal}; allow it to this user with the rule \
             {{apiGroups: [{group:?}], resources: [{resource:?}], verbs: [{verb:?}]}}{place}, without it {reasons}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(method: &Method, path: &str) -> String {
        Asked::of(method, path).map_or("nothing".to_owned(), |asked| {
            format!(
                "{} {}.{} {}",
                asked.verb,
                asked.resource,
                asked.group,
                asked.namespace.unwrap_or_default()
            )
        })
    }

    #[test]
    fn a_request_is_read_as_verb_resource_and_namespace() {
        for (method, path, words) in [
            (Method::GET, "/api/v1/nodes?limit=100", "list nodes. "),
            (
                Method::GET,
                "/api/v1/nodes?watch=true&timeoutSeconds=5",
                "watch nodes. ",
            ),
            (Method::GET, "/api/v1/nodes/n1", "get nodes. "),
            (Method::PATCH, "/api/v1/nodes/n1/status", "patch nodes/status. "),
            (Method::DELETE, "/api/v1/nodes/n1", "delete nodes. "),
            (
                Method::PATCH,
                "/api/v1/namespaces/shop/services/web",
                "patch services. shop",
            ),
            (
                Method::POST,
                "/api/v1/namespaces/default/events",
                "create events. default",
            ),
            (
                Method::PUT,
                "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/ccm",
                "update leases.coordination.k8s.io kube-system",
            ),
            (
                Method::POST,
                "/api/v1/namespaces/kube-system/serviceaccounts/node-controller/token",
                "create serviceaccounts/token. kube-system",
            ),
            (
                Method::POST,
                "/apis/authentication.k8s.io/v1/tokenreviews",
                "create tokenreviews.authentication.k8s.io ",
            ),
            (Method::GET, "/api/v1/namespaces/kube-system", "get namespaces. "),
            (Method::GET, "/version", "nothing"),
            (Method::GET, "/healthz", "nothing"),
        ] {
            assert_eq!(asked(&method, path), words, "{method} {path}");
        }
    }

    /// To let a person with view rights read every Secret is no remedy for a command that he runs.
    #[test]
    fn what_no_manager_needs_is_not_asked_to_be_allowed() {
        let asked = Asked::of(&Method::GET, "/api/v1/namespaces/kube-system/secrets/c").unwrap();
        let refusal = r#"secrets "c" is forbidden: User "viewer" cannot get resource "secrets" in API group "" in the namespace "kube-system""#;
        assert_eq!(asked.explain(refusal), refusal);
    }

    #[test]
    fn a_refusal_names_the_rule_and_what_stops_without_it() {
        let asked = Asked::of(&Method::DELETE, "/api/v1/nodes/n1").unwrap();
        let refusal = r#"nodes "n1" is forbidden: User "u" cannot delete resource "nodes" in API group "" at the cluster scope"#;
        assert_eq!(
            asked.explain(refusal),
            format!(
                r#"{refusal}; allow it to this user with the rule {{apiGroups: [""], resources: ["nodes"], verbs: ["delete"]}}, without it cloud-node-lifecycle: Nodes whose instance is gone stay"#
            )
        );
    }

    #[test]
    fn a_refusal_that_no_role_would_help_is_left_as_it_is() {
        let asked = Asked::of(&Method::POST, "/api/v1/namespaces/old/events").unwrap();
        let refusal = r#"events "a" is forbidden: unable to create new content in namespace old because it is being terminated"#;
        assert_eq!(asked.explain(refusal), refusal);
    }
}
