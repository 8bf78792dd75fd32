//! What a provider wants written to its Service.

use bowline_plan::{Impact, Lane, Step};

use crate::k8s::Service;
use crate::load_balancer::LoadBalancerStatus;

/// A write to its Service that a provider wants, run by the service controller. Each is tested by UID and resource version, so
/// a decision made from an old object never lands on a newer one, unless others change it faster than the sync can go and leave
/// alone what is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KubeWrite {
    /// Sets annotations of the Service, in this order; `None` removes one.
    AnnotateService(Vec<(String, Option<String>)>),
    /// Sets or clears `spec.loadBalancerIP`, if the field still holds what the decision was made from.
    SetLoadBalancerIp {
        /// The field's value as it was seen; empty if it was not set.
        seen: String,
        /// The new value; empty clears the field.
        ip: String,
        /// Annotations of the Service that are set in the same write; `None` removes one.
        annotations: Vec<(String, Option<String>)>,
    },
    /// Shows in the Service's status where it is served already, before the place is taken away that the status shows so far. At the
    /// end the controller publishes by itself.
    PublishStatus(LoadBalancerStatus),
}

const PUBLISH: &str = "publish-address";

impl KubeWrite {
    /// The annotations that it sets or removes.
    #[must_use]
    pub fn annotations(&self) -> &[(String, Option<String>)] {
        match self {
            Self::AnnotateService(annotations) | Self::SetLoadBalancerIp { annotations, .. } => annotations,
            Self::PublishStatus(_) => &[],
        }
    }

    /// Changes the Service as the write would.
    pub fn predict(&self, service: &mut Service) {
        match self {
            Self::AnnotateService(annotations) => annotate(service, annotations),
            Self::SetLoadBalancerIp { ip, annotations, .. } => {
                annotate(service, annotations);
                service.spec.get_or_insert_default().load_balancer_ip =
                    Some(ip.clone()).filter(|ip| !ip.is_empty());
            }
            Self::PublishStatus(status) => {
                let status = Some(status.into());
                service.status.get_or_insert_default().load_balancer = status;
            }
        }
    }

    /// The label with the names of the annotations alone, for what is said of a failure: a value may be a time, and be another one at
    /// each try.
    #[must_use]
    pub fn outline(&self) -> String {
        self.label_with(|annotations| {
            let names: Vec<&str> = annotations.iter().map(|(key, _)| key.as_str()).collect();
            names.join(", ")
        })
    }

    fn label_with(&self, told: impl Fn(&[(String, Option<String>)]) -> String) -> String {
        match self {
            Self::AnnotateService(annotations) => format!("annotate-service({})", told(annotations)),
            Self::SetLoadBalancerIp { ip, annotations, .. } => {
                let verb = if ip.is_empty() { "clear" } else { "set" };
                let values: Vec<String> = std::iter::once(ip.clone())
                    .chain(std::iter::once(told(annotations)))
                    .filter(|text| !text.is_empty())
                    .collect();
                match values.as_slice() {
                    [] => format!("{verb}-load-balancer-ip"),
                    values => format!("{verb}-load-balancer-ip({})", values.join(", ")),
                }
            }
            Self::PublishStatus(status) => {
                let shown = status.ingress.iter();
                let shown: Vec<&str> = shown
                    .filter_map(|entry| entry.ip.as_deref().or(entry.hostname.as_deref()))
                    .collect();
                format!("{PUBLISH}({})", shown.join(", "))
            }
        }
    }

    /// Whether a label is that of a write that shows an address.
    #[must_use]
    pub fn publishes(label: &str) -> bool {
        label.starts_with(PUBLISH)
    }

    /// Whether two versions of a Service are the same in what this writes to, so that a write meant for one fits the other.
    #[must_use]
    pub fn fits_both(&self, one: &Service, other: &Service) -> bool {
        let address = |service: &Service| service.spec.as_ref()?.load_balancer_ip.clone();
        let annotation =
            |service: &Service, key: &str| service.metadata.annotations.as_ref()?.get(key).cloned();
        let mut keys = self.annotations().iter().map(|(key, _)| key);
        address(one) == address(other) && keys.all(|key| annotation(one, key) == annotation(other, key))
    }
}

fn annotate(service: &mut Service, annotations: &[(String, Option<String>)]) {
    if annotations.is_empty() {
        return;
    }
    let present = service.metadata.annotations.get_or_insert_default();
    for (key, value) in annotations {
        match value {
            Some(value) => present.insert(key.as_str(), value.clone()),
            None => present.remove(key),
        };
    }
}

fn assignments(annotations: &[(String, Option<String>)]) -> String {
    let list: Vec<String> = annotations
        .iter()
        .map(|(key, value)| {
            value
                .as_ref()
                .map_or_else(|| format!("{key}-"), |value| format!("{key}={value}"))
        })
        .collect();
    list.join(", ")
}

impl Step for KubeWrite {
    fn label(&self) -> String {
        self.label_with(assignments)
    }

    fn object(&self) -> String {
        "service".to_owned()
    }

    fn impact(&self) -> Impact {
        Impact::None
    }

    fn lanes(&self) -> Vec<Lane> {
        // Two writes to one object with one resource version would refuse each other.
        vec![Lane::new(format!("kubernetes/{}", self.object()))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicted_annotations_are_those_of_the_write() {
        let mut service = Service::default();
        KubeWrite::AnnotateService(vec![
            ("a".into(), Some("1".into())),
            ("b".into(), Some("2".into())),
        ])
        .predict(&mut service);
        KubeWrite::AnnotateService(vec![("a".into(), None)]).predict(&mut service);
        let written = crate::Pairs::from([("b", "2".to_owned())]);
        assert_eq!(service.metadata.annotations, Some(written));
    }

    #[test]
    fn a_cleared_address_is_absent_and_not_empty() {
        let mut service = Service::default();
        KubeWrite::SetLoadBalancerIp {
            seen: String::new(),
            ip: "192.0.2.1".into(),
            annotations: vec![("a".into(), Some("1".into()))],
        }
        .predict(&mut service);
        KubeWrite::SetLoadBalancerIp {
            seen: "192.0.2.1".into(),
            ip: String::new(),
            annotations: vec![("a".into(), None)],
        }
        .predict(&mut service);
        assert_eq!(service.spec.unwrap().load_balancer_ip, None);
        assert_eq!(service.metadata.annotations, Some(crate::Pairs::default()));
    }
}
