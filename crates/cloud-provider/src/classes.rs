//! Whose a Service is, by its `spec.loadBalancerClass`.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::{Service, facts};

/// The classes of Services that a manager serves. By default those without a class, as upstream does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceClasses {
    named: BTreeSet<String>,
    serves_unclassed: bool,
}

/// Why a text is no class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no load balancer class: it is a name of up to 63 letters, digits, '-', '_' and '.', perhaps with a DNS subdomain and '/' before \
     it, such as internal-vip or example.com/internal-vip"
)]
pub struct ClassError(pub String);

static UPSTREAM: ServiceClasses = ServiceClasses {
    named: BTreeSet::new(),
    serves_unclassed: true,
};

impl Default for ServiceClasses {
    fn default() -> Self {
        UPSTREAM.clone()
    }
}

impl ServiceClasses {
    /// These classes, and Services without one if `serves_unclassed`.
    ///
    /// # Errors
    ///
    /// One of them is no class that the API server takes.
    pub fn new(named: impl IntoIterator<Item = String>, serves_unclassed: bool) -> Result<Self, ClassError> {
        let named: BTreeSet<String> = named.into_iter().collect();
        match named.iter().find(|class| !is_qualified(class)) {
            Some(wrong) => Err(ClassError(wrong.clone())),
            None => Ok(Self {
                named,
                serves_unclassed,
            }),
        }
    }

    /// Those of all these Services, whoever serves them.
    #[must_use]
    pub fn all_of(services: &[Arc<Service>]) -> Self {
        let named = services.iter().filter_map(|it| facts::class(it));
        Self {
            named: named.map(str::to_owned).collect(),
            serves_unclassed: true,
        }
    }

    /// No class but none, as upstream's service controller has it.
    #[must_use]
    pub fn upstream() -> &'static Self {
        &UPSTREAM
    }

    /// What both serve.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            named: self.named.intersection(&other.named).cloned().collect(),
            serves_unclassed: self.serves_unclassed && other.serves_unclassed,
        }
    }

    /// What one of the two serves.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self {
            named: self.named.union(&other.named).cloned().collect(),
            serves_unclassed: self.serves_unclassed || other.serves_unclassed,
        }
    }

    /// What these serve and the others do not.
    #[must_use]
    pub fn except(&self, others: &Self) -> Self {
        Self {
            named: self.named.difference(&others.named).cloned().collect(),
            serves_unclassed: self.serves_unclassed && !others.serves_unclassed,
        }
    }

    /// Whether no Service can be of these.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && !self.serves_unclassed
    }

    /// Whether the Service's class is one of these. The API server clears the class with the type `LoadBalancer`.
    #[must_use]
    pub fn serves(&self, service: &Service) -> bool {
        match facts::class(service) {
            Some(class) => self.named.contains(class),
            None => self.serves_unclassed,
        }
    }

    /// Whether the Service is one of these by its class or, where the API server has cleared that with the type, by what whoever
    /// served it has noted.
    #[must_use]
    pub fn served(&self, service: &Service) -> bool {
        match facts::is_type(service, "LoadBalancer") {
            true => self.serves(service),
            false => match facts::noted_class(service) {
                Some(noted) => self.named.contains(noted),
                None => self.serves(service),
            },
        }
    }

    /// The class of these that the Service had, where it asks another controller by now.
    #[must_use]
    pub fn lost<'a>(&self, service: &'a Service) -> Option<&'a str> {
        let noted = facts::noted_class(service).filter(|noted| self.named.contains(*noted));
        noted.filter(|_| self.leaves_to_others(service))
    }

    /// Whether the Service asks another controller for a load balancer.
    #[must_use]
    pub fn leaves_to_others(&self, service: &Service) -> bool {
        facts::is_type(service, "LoadBalancer") && !self.serves(service)
    }

    /// Whether the Service asks this program for a load balancer.
    #[must_use]
    pub fn wants_load_balancer(&self, service: &Service) -> bool {
        facts::is_type(service, "LoadBalancer") && self.serves(service)
    }

    /// Whether a load balancer is to be there: the Service asks for one and is not being deleted.
    #[must_use]
    pub fn is_wanted(&self, service: &Service) -> bool {
        self.wants_load_balancer(service) && service.metadata.deletion_timestamp.is_none()
    }

    /// Whether the Service asks this program for a load balancer, or for its removal.
    #[must_use]
    pub fn concern(&self, service: &Service) -> bool {
        self.wants_load_balancer(service) || facts::needs_cleanup(service) && self.served(service)
    }

    /// The same, of a Service that may not have been read: it may ask for anything.
    #[must_use]
    pub fn may_concern(&self, service: &Service) -> bool {
        service.spec.is_none() || self.concern(service)
    }
}

/// Such as `Services of class example.com/a, and those without a class`.
impl fmt::Display for ServiceClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<&str> = self.named.iter().map(String::as_str).collect();
        match (named.as_slice(), self.serves_unclassed) {
            ([], true) => f.write_str("Services without a class"),
            ([], false) => f.write_str("no Services"),
            (named, true) => write!(
                f,
                "Services of class {}, and those without a class",
                named.join(" or ")
            ),
            (named, false) => write!(f, "Services of class {}", named.join(" or ")),
        }
    }
}

/// Whether a text is a qualified name, which is what the API server asks of a class.
fn is_qualified(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_outer = |c: char| c.is_ascii_alphanumeric();
    name.len() <= 63
        && name.chars().all(is_inner)
        && name.starts_with(is_outer)
        && name.ends_with(is_outer)
        && prefix.is_none_or(is_subdomain)
}

/// Whether a text is a subdomain of RFC 1123.
pub(crate) fn is_subdomain(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_label = |label: &str| {
        label.starts_with(is_inner)
            && label.ends_with(is_inner)
            && label.chars().all(|c| is_inner(c) || c == '-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn service(spec: Value, is_going: bool) -> Service {
        let going = is_going.then_some("2026-01-01T00:00:00Z");
        let object = json!({
            "metadata": { "deletionTimestamp": going, "finalizers": ["service.kubernetes.io/load-balancer-cleanup"] },
            "spec": spec,
        });
        serde_json::from_value(object).unwrap()
    }

    fn of_class(class: Option<&str>) -> Service {
        service(
            json!({ "type": "LoadBalancer", "loadBalancerClass": class }),
            false,
        )
    }

    fn classes(named: &[&str], serves_unclassed: bool) -> ServiceClasses {
        ServiceClasses::new(named.iter().map(|it| (*it).to_owned()), serves_unclassed).unwrap()
    }

    #[test]
    fn a_class_is_a_qualified_name() {
        for good in [
            "internal-vip",
            "example.com/internal-vip",
            "A_1.b",
            "x.example.com/0",
        ] {
            assert!(is_qualified(good), "{good}");
        }
        for bad in [
            "",
            "/a",
            "a/",
            "a/b/c",
            "Example.com/a",
            "-a",
            "a b",
            "a.",
            &"a".repeat(64),
        ] {
            let error = ServiceClasses::new([bad.to_owned()], true).unwrap_err();
            assert_eq!(error, ClassError(bad.to_owned()));
        }
    }

    #[test]
    fn who_is_served_is_decided_by_class_alone() {
        for (classes, of_a, of_b, of_none) in [
            (classes(&[], true), false, false, true),
            (classes(&["a"], true), true, false, true),
            (classes(&["a", "b"], false), true, true, false),
        ] {
            for (class, is_ours) in [(Some("a"), of_a), (Some("b"), of_b), (None, of_none)] {
                let service = of_class(class);
                assert_eq!(classes.is_wanted(&service), is_ours, "{classes}: {class:?}");
                assert_eq!(classes.concern(&service), is_ours, "{classes}: {class:?}");
                assert_eq!(
                    classes.leaves_to_others(&service),
                    !is_ours,
                    "{classes}: {class:?}"
                );
            }
        }
        assert!(classes(&[], false).is_empty() && !classes(&["a"], false).is_empty());
    }

    #[test]
    fn a_service_that_goes_concerns_whoever_serves_its_class() {
        let going = service(json!({ "type": "LoadBalancer", "loadBalancerClass": "a" }), true);
        assert!(!ServiceClasses::default().concern(&going) && classes(&["a"], false).concern(&going));
        assert!(!classes(&["a"], false).is_wanted(&going));
        let plain = service(json!({ "type": "ClusterIP" }), false);
        assert!(ServiceClasses::default().concern(&plain));
        assert!(
            !classes(&["a"], false).concern(&plain),
            "it may be that of whoever serves those without"
        );
        assert!(classes(&["a"], false).may_concern(&Service::default()));
    }

    #[test]
    fn what_lost_its_class_with_its_type_is_removed_by_whoever_noted_that_class() {
        let noted = |spec: Value, class: &str| {
            let mut noted = service(spec, false);
            let note = (crate::keys::ANNOTATION_CLASS.to_owned(), class.to_owned());
            noted.metadata.annotations = Some([note].into_iter().collect());
            noted
        };
        let plain = noted(json!({ "type": "ClusterIP" }), "a");
        assert!(classes(&["a"], false).concern(&plain) && classes(&["a"], true).concern(&plain));
        assert!(
            !classes(&["b"], true).concern(&plain),
            "whoever serves Services without a class, too"
        );
        // Whoever serves it by now may use the same load balancer.
        let gone_on = noted(json!({ "type": "LoadBalancer", "loadBalancerClass": "b" }), "a");
        assert!(!classes(&["a"], false).concern(&gone_on));
        assert_eq!(classes(&["a"], false).lost(&gone_on), Some("a"));
        assert_eq!(classes(&["a"], true).lost(&plain), None);
        assert_eq!(classes(&["b"], true).lost(&gone_on), None);
    }

    #[test]
    fn classes_are_told_in_words() {
        for (classes, text) in [
            (classes(&[], true), "Services without a class"),
            (
                classes(&["x/a"], true),
                "Services of class x/a, and those without a class",
            ),
            (classes(&["a", "b"], false), "Services of class a or b"),
        ] {
            assert_eq!(classes.to_string(), text);
        }
    }
}
