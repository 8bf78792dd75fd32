//! From the bytes of a Service to its type, without what nobody looks at.

use std::borrow::Cow;

use bowline_cloud_provider::k8s::{Condition, LoadBalancerStatus, ObjectMeta, ServiceSpec, ServiceStatus};
use bowline_cloud_provider::{Service, facts, keys};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::KubeError;
use crate::shape::{Names, Shown, names};

/// The types of Services. The API server writes one into every Service, `ClusterIP` where none was asked for.
const TYPES: [&str; 4] = ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"];

/// The annotation with the copy of the whole object that `kubectl apply` keeps.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Reads a Service. The annotations of one that asks for a load balancer stay complete, because any difference in them is a reason to look at its balancer.
///
/// What every API server writes must be there. Where it is missing, something on the way took it off, and the rest would
/// read as a wish: a Service without a type as one that wants no balancer any more, one without ports as one that wants no
/// pools. So of a Service that cannot be understood nothing is taken that asks for anything: it is there, and whoever reads
/// its annotations finds them.
pub(crate) fn decode(bytes: &[u8]) -> Result<Shown<Service>, KubeError> {
    let error = match understood(bytes) {
        Ok(service) => return Ok(Shown::whole(service)),
        Err(error) => error,
    };
    let Names {
        namespace,
        name,
        uid,
        resource_version,
        annotations,
    } = names(bytes);
    let metadata = ObjectMeta {
        annotations,
        name: Some(name),
        namespace: Some(namespace),
        resource_version: Some(resource_version),
        uid: Some(uid),
        ..ObjectMeta::default()
    };
    let service = Service {
        metadata,
        ..Service::default()
    };
    // Without a version it is only not written.
    match nameless(&service.metadata) {
        None | Some("metadata.resourceVersion") => Ok(Shown::part(service, error)),
        Some(_) => Err(error),
    }
}

fn understood(bytes: &[u8]) -> Result<Service, KubeError> {
    let wire: WireService<'_> =
        serde_json::from_slice(bytes).map_err(|error| KubeError::Decode(error.to_string()))?;
    if wire.kind.as_ref().is_some_and(|kind| kind != "Service") {
        return Err(KubeError::Decode("it is no Service".into()));
    }
    let mut service = Service {
        metadata: wire.metadata.unwrap_or_default(),
        spec: wire.spec,
        status: wire.status.map(|status| ServiceStatus {
            load_balancer: status.load_balancer,
            conditions: status.conditions.and_then(ours),
        }),
    };
    match missing(&service) {
        Some(field) => Err(KubeError::missing(field)),
        None => {
            if asks_for_nothing(&service) {
                leave_out(&mut service);
            }
            tighten(&mut service);
            Ok(service)
        }
    }
}

/// The conditions that this program writes.
const OURS: [&str; 2] = [keys::CONDITION_RECONCILED, keys::CONDITION_ADDRESS_CHANGED];

// Around what is read as it stands: whether it is a Service, and the conditions that are ours. An API server stores, for
// example, conditions of others whose times are null.

#[derive(Deserialize)]
struct WireService<'a> {
    #[serde(borrow)]
    kind: Option<Cow<'a, str>>,
    metadata: Option<ObjectMeta>,
    spec: Option<ServiceSpec>,
    #[serde(borrow)]
    status: Option<WireStatus<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireStatus<'a> {
    load_balancer: Option<LoadBalancerStatus>,
    #[serde(borrow)]
    conditions: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireCondition<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    status: String,
    reason: String,
    message: String,
    #[serde(rename = "lastTransitionTime")]
    since: Option<Timestamp>,
}

/// The conditions that are ours, as far as they are there and can be read.
fn ours(conditions: &RawValue) -> Option<Vec<Condition>> {
    let conditions: Vec<&RawValue> = serde_json::from_slice(conditions.get().as_bytes()).ok()?;
    let read = conditions
        .iter()
        .filter_map(|condition| serde_json::from_slice::<WireCondition<'_>>(condition.get().as_bytes()).ok());
    let ours = read.filter(|it| OURS.contains(&&*it.kind)).map(|it| Condition {
        type_: it.kind.into_owned(),
        status: it.status,
        reason: it.reason,
        message: it.message,
        last_transition_time: it.since.unwrap_or(Timestamp::UNIX_EPOCH),
    });
    let mut ours: Vec<Condition> = ours.collect();
    ours.shrink_to_fit();
    (!ours.is_empty()).then_some(ours)
}

/// Whether nobody works for the Service: it wants no load balancer, and none is to be removed.
fn asks_for_nothing(service: &Service) -> bool {
    !facts::is_type(service, "LoadBalancer") && !facts::has_finalizer(service)
}

/// Leaves out what is looked at only of Services that somebody works for. Most Services of a cluster are others, and the largest
/// part of them is the copy that `kubectl apply` keeps.
fn leave_out(service: &mut Service) {
    if let Some(annotations) = &mut service.metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
    service
        .metadata
        .annotations
        .take_if(|annotations| annotations.is_empty());
    service.spec = service.spec.take().map(|spec| ServiceSpec {
        type_: spec.type_,
        load_balancer_class: spec.load_balancer_class,
        ..ServiceSpec::default()
    });
}

/// Takes off the room that reading left in lists, which begin with room for four: a Service is kept for as long as it lives.
/// The cluster IP only tells why there may be no ports.
fn tighten(service: &mut Service) {
    tight(&mut service.metadata.finalizers);
    if let Some(spec) = &mut service.spec {
        spec.cluster_ip = None;
        tight(&mut spec.ports);
        tight(&mut spec.external_ips);
        tight(&mut spec.ip_families);
        tight(&mut spec.load_balancer_source_ranges);
    }
    if let Some(status) = &mut service.status {
        let balancer = status.load_balancer.as_mut();
        let ingress = balancer.and_then(|balancer| {
            tight(&mut balancer.ingress);
            balancer.ingress.as_deref_mut()
        });
        for entry in ingress.unwrap_or_default() {
            tight(&mut entry.ports);
        }
    }
}

fn tight<T>(list: &mut Option<Vec<T>>) {
    if let Some(list) = list {
        list.shrink_to_fit();
    }
}

/// Which field that tells an object from all others is not there.
fn nameless(metadata: &ObjectMeta) -> Option<&'static str> {
    let names = [
        (&metadata.name, "metadata.name"),
        (&metadata.namespace, "metadata.namespace"),
        (&metadata.uid, "metadata.uid"),
        (&metadata.resource_version, "metadata.resourceVersion"),
    ];
    let nameless = names.into_iter().find(|(text, _)| is_empty(text));
    nameless.map(|(_, field)| field)
}

fn is_empty(text: &Option<String>) -> bool {
    text.as_deref().is_none_or(str::is_empty)
}

/// Which field is not there although every API server writes it.
fn missing(service: &Service) -> Option<&'static str> {
    if let Some(field) = nameless(&service.metadata) {
        return Some(field);
    }
    let Some(spec) = &service.spec else {
        return Some("spec");
    };
    let kind = spec.type_.as_deref().unwrap_or_default();
    if !TYPES.contains(&kind) {
        return Some("spec.type");
    }
    let ports = spec.ports.as_deref().unwrap_or_default();
    if ports.is_empty() && !may_lack_ports(spec, kind) {
        return Some("spec.ports");
    }
    for port in ports {
        if !(1..=65535).contains(&port.port) {
            return Some("spec.ports[].port");
        }
        if is_empty(&port.protocol) {
            return Some("spec.ports[].protocol");
        }
    }
    None
}

/// `ValidateService` of `pkg/apis/core/validation` asks all others for a port.
fn may_lack_ports(spec: &ServiceSpec, kind: &str) -> bool {
    kind == "ExternalName" || spec.cluster_ip.as_deref() == Some("None")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;

    fn service() -> Value {
        json!({
            "kind": "Service", "apiVersion": "v1",
            "metadata": {
                "name": "web", "namespace": "default", "uid": "5c9b", "resourceVersion": "4711",
                "managedFields": [{"manager": "kubectl"}]
            },
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "protocol": "TCP"}]},
            "status": {"loadBalancer": {}}
        })
    }

    fn read(spoil: impl FnOnce(&mut Value)) -> Result<Service, String> {
        let mut wire = service();
        spoil(&mut wire);
        let Shown { object, trouble } =
            decode(wire.to_string().as_bytes()).map_err(|error| error.to_string())?;
        trouble.map_or(Ok(Arc::unwrap_or_clone(object)), |trouble| {
            Err(trouble.to_string())
        })
    }

    fn take(object: &mut Value, key: &str) {
        object.as_object_mut().unwrap().remove(key);
    }

    #[test]
    fn what_an_api_server_writes_is_read() {
        assert!(read(|_| ()).is_ok());
        assert!(
            read(|wire| {
                take(wire, "kind");
                take(wire, "apiVersion");
                take(wire, "status");
            })
            .is_ok()
        );
        for spec in [
            json!({"type": "ExternalName", "externalName": "a.example"}),
            json!({"type": "ClusterIP", "clusterIP": "None"}),
            json!({"type": "NodePort", "ports": [{"port": 65535, "protocol": "UDP"}]}),
        ] {
            assert!(read(|wire| wire["spec"] = spec.clone()).is_ok(), "{spec}");
        }
    }

    #[test]
    fn no_more_is_kept_than_is_looked_at() {
        let service = read(|wire| {
            wire["metadata"]["managedFields"] = json!("of a form that nobody reads");
            // As the API server stores a condition that is patched in without a time.
            wire["status"]["conditions"] =
                json!([{"type": "Ready", "status": "True", "lastTransitionTime": null}]);
            let ours = json!({
                "type": "LoadBalancerReconciled", "status": "False", "reason": "quota", "message": "no more",
                "lastTransitionTime": "2026-02-03T08:15:00Z",
            });
            wire["status"]["conditions"].as_array_mut().unwrap().push(ours);
            wire["metadata"]["finalizers"] = json!(["one"]);
            wire["status"]["loadBalancer"]["ingress"] = json!([{"ip": "192.0.2.1"}]);
        })
        .unwrap();
        let trouble = facts::trouble(&service).unwrap();
        assert_eq!(trouble.last_transition_time.to_string(), "2026-02-03T08:15:00Z");
        let spec = service.spec.unwrap();
        assert_eq!(spec.ports.unwrap().capacity(), 1);
        assert_eq!(service.metadata.finalizers.unwrap().capacity(), 1);
        let ingress = service.status.unwrap().load_balancer.unwrap().ingress.unwrap();
        assert_eq!((ingress.len(), ingress.capacity()), (1, 1));
    }

    #[test]
    fn of_a_service_that_asks_for_nothing_little_is_kept() {
        let read = |kind: &str, finalizers: Value| {
            read(|wire| {
                wire["spec"]["type"] = json!(kind);
                wire["metadata"]["finalizers"] = finalizers;
                wire["metadata"]["annotations"] = json!({LAST_APPLIED: "{}", "a": "b"});
            })
            .unwrap()
        };
        let ours = json!([bowline_cloud_provider::keys::FINALIZER_LOAD_BALANCER]);
        for (service, is_whole) in [
            (read("LoadBalancer", json!([])), true),
            (read("ClusterIP", ours), true),
            (read("ClusterIP", json!([])), false),
        ] {
            let annotations = service.metadata.annotations.unwrap();
            assert_eq!(annotations.get("a").map(String::as_str), Some("b"));
            assert_eq!(annotations.contains_key(LAST_APPLIED), is_whole);
            assert_eq!(service.spec.unwrap().ports.is_some(), is_whole);
        }
    }

    /// What is missed, and how it was lost.
    type Case = (&'static str, fn(&mut Value));

    #[test]
    fn a_service_that_lost_a_part_on_its_way_is_not_understood() {
        let cases: Vec<Case> = vec![
            ("metadata.name", |wire| take(&mut wire["metadata"], "name")),
            ("metadata.name", |wire| wire["metadata"] = Value::Null),
            ("metadata.name", |wire| *wire = json!({})),
            ("metadata.namespace", |wire| {
                wire["metadata"]["namespace"] = json!("")
            }),
            ("metadata.uid", |wire| take(&mut wire["metadata"], "uid")),
            ("metadata.resourceVersion", |wire| {
                take(&mut wire["metadata"], "resourceVersion")
            }),
            ("spec", |wire| take(wire, "spec")),
            ("spec", |wire| wire["spec"] = Value::Null),
            ("spec.type", |wire| wire["spec"] = json!({})),
            ("spec.type", |wire| take(&mut wire["spec"], "type")),
            ("spec.type", |wire| wire["spec"]["type"] = Value::Null),
            ("spec.type", |wire| wire["spec"]["type"] = json!("")),
            ("spec.type", |wire| wire["spec"]["type"] = json!("Other")),
            ("spec.ports", |wire| take(&mut wire["spec"], "ports")),
            ("spec.ports", |wire| wire["spec"]["ports"] = Value::Null),
            ("spec.ports", |wire| wire["spec"]["ports"] = json!([])),
            ("spec.ports", |wire| {
                wire["spec"] = json!({"type": "ClusterIP", "clusterIP": "10.0.0.1"})
            }),
            ("spec.ports[].port", |wire| {
                wire["spec"]["ports"] = json!([{"protocol": "TCP"}])
            }),
            ("spec.ports[].port", |wire| {
                wire["spec"]["ports"][0]["port"] = json!(0)
            }),
            ("spec.ports[].port", |wire| {
                wire["spec"]["ports"][0]["port"] = json!(65536)
            }),
            ("spec.ports[].protocol", |wire| {
                take(&mut wire["spec"]["ports"][0], "protocol")
            }),
        ];
        for (field, spoil) in cases {
            let error = read(spoil).unwrap_err();
            assert!(error.contains(&format!("no `{field}`")), "{field}: {error}");
        }
        let part = decode(
            json!({"metadata": service()["metadata"], "spec": {"type": 7}})
                .to_string()
                .as_bytes(),
        );
        let part = part.unwrap().object;
        assert!(
            part.spec.is_none() && part.metadata.uid.as_deref() == Some("5c9b"),
            "{part:?}"
        );
        for odd in [json!([]), json!("web"), json!(7)] {
            assert!(read(|wire| wire["spec"] = odd.clone()).is_err(), "{odd}");
        }
        assert!(read(|wire| wire["kind"] = json!("Pod")).is_err());
    }
}
