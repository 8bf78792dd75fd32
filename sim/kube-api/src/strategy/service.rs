//! Services (`pkg/registry/core/service`, `SetDefaults_Service`).

mod allocate;
mod validate;

use serde_json::{Value, json};

use super::{Change, Context, Part, Strategy};
use crate::column::Column;
use crate::field::FieldError;
use crate::kind::{DEFAULT, Kind, ListMerge};
use crate::names::NameRule;
use crate::path::{at, copy, flag, list, list_mut, number, remove, set, text, texts};
use crate::status::Status;

pub(super) use validate::is_cidr;

pub(super) const SERVICE: Kind = Kind {
    kind: "Service",
    plural: "services",
    singular: "service",
    short_names: &["svc"],
    categories: &["all"],
    has_status: true,
    create_on_update: true,
    returns_deleted: true,
    registry: "services/specs",
    names: NameRule::Label1035,
    merge: &[
        ("spec.ports", ListMerge::ByKey("port")),
        ("status.conditions", ListMerge::ByKey("type")),
    ],
    ..DEFAULT
};

/// Seconds a client sticks to an endpoint by default (`DefaultClientIPServiceAffinitySeconds`).
const AFFINITY_SECONDS: i64 = 10_800;

pub(super) struct Service;

impl Strategy for Service {
    fn default(&self, object: &mut Value) {
        let default = |object: &mut Value, field: &str, value: &str| {
            if text(object, field).is_empty() {
                set(object, field, value);
            }
        };
        default(object, "spec.sessionAffinity", "None");
        match text(object, "spec.sessionAffinity") {
            "None" => {
                remove(object, "spec.sessionAffinityConfig");
            }
            "ClientIP" if at(object, "spec.sessionAffinityConfig.clientIP.timeoutSeconds").is_none() => {
                set(
                    object,
                    "spec.sessionAffinityConfig.clientIP.timeoutSeconds",
                    AFFINITY_SECONDS,
                );
            }
            _ => {}
        }
        default(object, "spec.type", "ClusterIP");
        for port in list_mut(object, "spec.ports").into_iter().flatten() {
            default(port, "protocol", "TCP");
            if matches!(at(port, "targetPort"), None | Some(Value::String(_)) if text(port, "targetPort").is_empty())
                || at(port, "targetPort") == Some(&json!(0))
            {
                set(port, "targetPort", number(port, "port"));
            }
        }
        if externally_accessible(object) {
            default(object, "spec.externalTrafficPolicy", "Cluster");
        }
        if needs_cluster_ip(object) {
            default(object, "spec.internalTrafficPolicy", "Cluster");
        } else {
            remove(object, "spec.internalTrafficPolicy");
        }
        if is_load_balancer(object) {
            if at(object, "spec.allocateLoadBalancerNodePorts").is_none() {
                set(object, "spec.allocateLoadBalancerNodePorts", true);
            }
            for ingress in list_mut(object, "status.loadBalancer.ingress")
                .into_iter()
                .flatten()
            {
                if !text(ingress, "ip").is_empty() {
                    default(ingress, "ipMode", "VIP");
                }
            }
        }
        if at(object, "status.loadBalancer").is_none() {
            set(object, "status.loadBalancer", json!({}));
        }
    }

    fn finish(&self, object: &mut Value) {
        // Go structs without `omitempty` (`Condition` of apimachinery's `meta/v1/types.go`), and no validation asks for them.
        for condition in list_mut(object, "status.conditions").into_iter().flatten() {
            for (key, zero) in [
                ("lastTransitionTime", Value::Null),
                ("reason", json!("")),
                ("message", json!("")),
            ] {
                if condition.get(key).is_none() {
                    set(condition, key, zero);
                }
            }
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({"loadBalancer": {}}));
    }

    fn allocate(&self, object: &mut Value, cx: &mut Context<'_>) -> Result<(), Status> {
        allocate::on_create(object, cx)
    }

    fn reallocate(&self, new: &mut Value, old: &Value, cx: &mut Context<'_>) -> Result<(), Status> {
        allocate::on_update(new, old, cx)
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, part: Part) {
        if part == Part::Status {
            copy(new, old, "spec");
            return;
        }
        copy(new, old, "status");
        drop_what_the_type_has_no_use_for(new, old);
    }

    fn name_rule(&self, declared: NameRule, minor: u32) -> NameRule {
        // RelaxedServiceNameValidation, on by default from 1.36.
        if minor >= 36 { NameRule::Label } else { declared }
    }

    fn validate(&self, object: &Value, errors: &mut Vec<FieldError>) {
        validate::spec(object, errors);
    }

    fn validate_update(&self, change: &Change<'_>, errors: &mut Vec<FieldError>) {
        let Change { new, old, part, .. } = *change;
        match part {
            Part::Main => validate::change(new, old, errors),
            Part::Status => validate::status(new, errors),
        }
    }

    fn fields(&self, object: &Value) -> Vec<(&'static str, String)> {
        self.field_names()
            .iter()
            .map(|field| (*field, text(object, field).to_owned()))
            .collect()
    }

    fn field_names(&self) -> &'static [&'static str] {
        &["spec.clusterIP", "spec.type"]
    }

    fn columns(&self) -> &'static [Column] {
        const {
            &[
                Column::name(),
                Column::text("Type"),
                Column::text("Cluster-IP"),
                Column::text("External-IP"),
                Column::text("Port(s)"),
                Column::text("Age"),
                Column::wide("Selector"),
            ]
        }
    }

    fn cells(&self, object: &Value, age: &dyn Fn(&str) -> String) -> Vec<Value> {
        let or_none = |text: String| {
            if text.is_empty() {
                "<none>".to_owned()
            } else {
                text
            }
        };
        let ports = list(object, "spec.ports")
            .iter()
            .map(|port| match number(port, "nodePort") {
                0 => format!("{}/{}", number(port, "port"), text(port, "protocol")),
                node => format!("{}:{node}/{}", number(port, "port"), text(port, "protocol")),
            });
        let selector = at(object, "spec.selector")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let selector = selector.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
        vec![
            text(object, "metadata.name").into(),
            text(object, "spec.type").into(),
            or_none(
                texts(object, "spec.clusterIPs")
                    .first()
                    .copied()
                    .unwrap_or_default()
                    .to_owned(),
            )
            .into(),
            external_ip(object).into(),
            or_none(ports.collect::<Vec<_>>().join(",")).into(),
            age(text(object, "metadata.creationTimestamp")).into(),
            or_none(selector.collect::<Vec<_>>().join(",")).into(),
        ]
    }
}

fn external_ip(object: &Value) -> String {
    let external = texts(object, "spec.externalIPs");
    match text(object, "spec.type") {
        "ExternalName" => text(object, "spec.externalName").to_owned(),
        "LoadBalancer" => {
            let ingress =
                list(object, "status.loadBalancer.ingress")
                    .iter()
                    .map(|ingress| match text(ingress, "ip") {
                        "" => text(ingress, "hostname"),
                        ip => ip,
                    });
            let mut all: Vec<&str> = ingress.filter(|place| !place.is_empty()).collect();
            all.sort_unstable();
            all.dedup();
            let shown = all.join(",");
            match (shown.is_empty(), external.is_empty()) {
                (true, true) => "<pending>".to_owned(),
                (false, true) => shown,
                (true, false) => external.join(","),
                (false, false) => format!("{shown},{}", external.join(",")),
            }
        }
        _ if external.is_empty() => "<none>".to_owned(),
        _ => external.join(","),
    }
}

/// On a change of type, clears what was allocated or defaulted for the old one and not changed by the client
/// (`dropTypeDependentFields`).
fn drop_what_the_type_has_no_use_for(new: &mut Value, old: &Value) {
    let same = |new: &Value, field: &str| at(new, field) == at(old, field);
    if needs_cluster_ip(old) && !needs_cluster_ip(new) {
        if same(new, "spec.clusterIP") && same(new, "spec.clusterIPs") {
            remove(new, "spec.clusterIP");
            remove(new, "spec.clusterIPs");
        }
        for field in ["spec.ipFamilies", "spec.ipFamilyPolicy"] {
            if same(new, field) {
                remove(new, field);
            }
        }
    }
    if has_node_ports(old) && !has_node_ports(new) {
        let had: Vec<i64> = list(old, "spec.ports")
            .iter()
            .map(|port| number(port, "nodePort"))
            .collect();
        let known =
            |port: &Value| matches!(number(port, "nodePort"), node if node == 0 || had.contains(&node));
        if list(new, "spec.ports").iter().all(known) {
            for port in list_mut(new, "spec.ports").into_iter().flatten() {
                remove(port, "nodePort");
            }
        }
    }
    if needs_health_check_port(old) && !needs_health_check_port(new) && same(new, "spec.healthCheckNodePort")
    {
        remove(new, "spec.healthCheckNodePort");
    }
    if is_load_balancer(old) && !is_load_balancer(new) {
        for field in ["spec.allocateLoadBalancerNodePorts", "spec.loadBalancerClass"] {
            if same(new, field) {
                remove(new, field);
            }
        }
    }
    if externally_accessible(old) && !externally_accessible(new) && same(new, "spec.externalTrafficPolicy") {
        remove(new, "spec.externalTrafficPolicy");
    }
    if !is_load_balancer(new) {
        set(new, "status.loadBalancer", json!({}));
    }
}

fn is_load_balancer(object: &Value) -> bool {
    text(object, "spec.type") == "LoadBalancer"
}

fn is_headless(object: &Value) -> bool {
    texts(object, "spec.clusterIPs") == ["None"]
}

fn needs_cluster_ip(object: &Value) -> bool {
    text(object, "spec.type") != "ExternalName"
}

/// Types whose ports carry node ports, whether they are allocated or not.
fn has_node_ports(object: &Value) -> bool {
    matches!(text(object, "spec.type"), "NodePort" | "LoadBalancer")
}

/// Whether missing node ports are allocated.
fn allocates_node_ports(object: &Value) -> bool {
    match text(object, "spec.type") {
        "NodePort" => true,
        "LoadBalancer" => {
            at(object, "spec.allocateLoadBalancerNodePorts").is_none()
                || flag(object, "spec.allocateLoadBalancerNodePorts")
        }
        _ => false,
    }
}

fn needs_health_check_port(object: &Value) -> bool {
    is_load_balancer(object) && text(object, "spec.externalTrafficPolicy") == "Local"
}

fn externally_accessible(object: &Value) -> bool {
    has_node_ports(object)
        || (text(object, "spec.type") == "ClusterIP" && !list(object, "spec.externalIPs").is_empty())
}
