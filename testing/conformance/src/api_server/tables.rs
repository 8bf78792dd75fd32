//! Tables, which are what kubectl asks for.

use serde_json::{Value, json};

use super::scope::{Scope, text};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

fn columns(table: &Value) -> Vec<&str> {
    assert_eq!(
        (&table["kind"], &table["apiVersion"]),
        (&json!("Table"), &json!("meta.k8s.io/v1"))
    );
    let columns = table["columnDefinitions"].as_array().unwrap();
    columns.iter().map(|column| text(&column["name"])).collect()
}

/// The cells of a row; the age, which changes, as a dash.
fn cells(table: &Value, row: usize) -> Value {
    let mut cells = table["rows"][row]["cells"].clone();
    let age = columns(table).iter().position(|name| *name == "Age").unwrap();
    assert!(!text(&cells[age]).is_empty());
    cells[age] = json!("-");
    cells
}

pub(super) async fn nodes_are_shown_as_a_person_sees_them(scope: Scope) {
    scope
        .new_node(
            "a",
            json!({
                "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
                "spec": {"unschedulable": true},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "nodeInfo": {"kubeletVersion": "v1.37.0", "osImage": "Some Linux", "kernelVersion": "6.1",
                        "containerRuntimeVersion": "containerd://2.0", "architecture": "amd64", "bootID": "",
                        "kubeProxyVersion": "", "machineID": "", "operatingSystem": "linux", "systemUUID": ""},
                    "addresses": [{"type": "ExternalIP", "address": "192.0.2.1"}],
                },
            }),
        )
        .await;
    let table = scope.get_as(&scope.own_nodes(), TABLE).await.granted();
    assert_eq!(
        columns(&table),
        [
            "Name",
            "Status",
            "Roles",
            "Age",
            "Version",
            "Internal-IP",
            "External-IP",
            "OS-Image",
            "Kernel-Version",
            "Container-Runtime"
        ]
    );
    let mut cells = cells(&table, 0);
    // Servers before 1.36 leave the architecture out.
    if cells[8] == "6.1" {
        cells[8] = json!("6.1 (amd64)");
    }
    assert_eq!(
        cells,
        json!([
            scope.node_name("a"),
            "Ready,SchedulingDisabled",
            "worker",
            "-",
            "v1.37.0",
            "<none>",
            "192.0.2.1",
            "Some Linux",
            "6.1 (amd64)",
            "containerd://2.0"
        ])
    );
    let object = &table["rows"][0]["object"];
    assert_eq!(
        (&object["kind"], &object["metadata"]["name"]),
        (&json!("PartialObjectMetadata"), &json!(scope.node_name("a")))
    );
}

pub(super) async fn services_are_shown_as_a_person_sees_them(scope: Scope) {
    let made = scope.new_balanced("a").await;
    let shown = scope.get_as(&scope.service("a"), TABLE).await.granted();
    assert_eq!(
        columns(&shown),
        [
            "Name",
            "Type",
            "Cluster-IP",
            "External-IP",
            "Port(s)",
            "Age",
            "Selector"
        ]
    );
    let ports = format!("80:{}/TCP", made["spec"]["ports"][0]["nodePort"]);
    let row = |external: &str| {
        json!([
            "a",
            "LoadBalancer",
            made["spec"]["clusterIP"],
            external,
            ports,
            "-",
            "app=x"
        ])
    };
    assert_eq!(cells(&shown, 0), row("<pending>"));
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"ip": "192.0.2.2"}]}}});
    scope
        .merge(&format!("{}/status", scope.service("a")), &status)
        .await
        .granted();
    let list = scope.get_as(&scope.services(), TABLE).await.granted();
    assert_eq!(cells(&list, 0), row("192.0.2.1,192.0.2.2"));
}
