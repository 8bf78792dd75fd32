//! phoenixNAP: under the former manager's rights and the shipped ones, killed at every write, and two at once.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bowline_phoenixnap_sim::kit::{Fault, Server as CloudServer};
use bowline_phoenixnap_sim::{NetworkSpec, PhoenixnapSim, Scope, ServerSpec, ServerStatus};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::plane::Plane;
use super::rbac::{assert_writes_of_a_life, ended};
use super::scenarios::{addresses, web};
use crate::deploy;
use crate::process::program::Running;

const NETWORK: &str = "6598f7c2d2a94b6e0f1c1234";
const CLIENT: &str = "3b0cf4f0-5a50-4b39-8f0c-6a2a0c4c9f11";
const SECRET: &str = "kX2vQm97LtRw0aZsYpB3";

/// The role of the former manager as its manifest has it: not one verb more, and no lease.
const ROLE: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:cloud-controller-manager"}
rules:
- {apiGroups: [""], resources: [namespaces], verbs: [get]}
- {apiGroups: [""], resources: [nodes], verbs: ["*"]}
- {apiGroups: [""], resources: [nodes/status], verbs: [patch]}
- {apiGroups: [""], resources: [services], verbs: [get, list, watch, create, update, patch]}
- {apiGroups: [""], resources: [services/status], verbs: [list, watch, update, patch]}
- {apiGroups: [""], resources: [endpoints, configmaps, events], verbs: [create, get, list, watch, update, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:cloud-controller-manager"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:cloud-controller-manager"}
subjects:
- {kind: ServiceAccount, name: cloud-controller-manager, namespace: kube-system}
"#;

/// A real API server, and the cloud below a path on a loopback port.
struct Site {
    plane: Plane,
    sim: PhoenixnapSim,
    cloud: CloudServer,
    directory: TempDir,
}

impl Site {
    async fn start(what: &str, manifests: &str) -> Option<Self> {
        let plane = Plane::start_with(what, manifests).await?;
        let sim = PhoenixnapSim::builder()
            .credentials(CLIENT, SECRET, Scope::ALL)
            .prefix("/x")
            .build();
        sim.add_network(NetworkSpec::new("vips").id(NETWORK));
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        Some(Self {
            plane,
            cloud: sim.serve(listener).unwrap(),
            sim,
            directory: tempfile::tempdir().unwrap(),
        })
    }

    /// The file as the former manager's own sample has it, with a comma too many.
    fn config(&self) -> PathBuf {
        let url = self.cloud.url();
        let text = format!(
            "{{\n  \"clientID\": \"{CLIENT}\",\n  \"clientSecret\": \"{SECRET}\",\n  \"location\": \"NLD\",\n  \
             \"loadbalancer\": \"kube-vip:///{NETWORK}\",\n  \"base-url\": \"{url}/x/\",\n  \
             \"token-url\": \"{url}/x{}\",\n}}\n",
            PhoenixnapSim::TOKEN_PATH
        );
        let path = self.directory.path().join("cloud-sa.json");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Starts the program as the former manifest and chart do.
    fn manager(&self, more: &[&str], variables: &[(&str, &str)]) -> Running {
        let config = format!("--cloud-config={}", self.config().display());
        let mut flags = vec![
            "--cloud-provider=PhoenixNAP",
            "--authentication-skip-lookup=true",
            &config,
        ];
        flags.extend(more);
        self.plane
            .manager_called("cloud-provider-phoenixnap", &flags, variables)
    }

    async fn join(&self, name: &str, server: ServerSpec) -> String {
        let id = self.sim.add_server(server);
        let taint = json!({ "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule" });
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
            "spec": { "taints": [taint] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        self.plane.add_node(node).await;
        id
    }

    /// The Service's address, once it is in its status.
    async fn served(&self, manager: &Running, name: &str) -> String {
        manager
            .until("the address", async || {
                !addresses(&self.plane.service(name).await.unwrap()).is_empty()
            })
            .await;
        addresses(&self.plane.service(name).await.unwrap()).remove(0)
    }

    async fn gone(&self, manager: &Running, name: &str) {
        manager
            .until("the service is gone", async || {
                self.plane.service(name).await.is_none()
            })
            .await;
        manager
            .until("its block is gone", async || self.sim.blocks().is_empty())
            .await;
    }

    /// Everything that a manager of phoenixNAP does.
    async fn lead_a_life(&self, manager: &Running) {
        let spec = ServerSpec::new("Worker-1")
            .private(["10.9.0.3"])
            .public(["192.0.2.71", "2001:db8:7::71"]);
        let id = self.join("worker-1", spec).await;
        manager
            .until("the node is initialised", async || {
                let node = self.plane.node("worker-1").await.unwrap();
                node.spec.unwrap().taints.unwrap_or_default().is_empty()
            })
            .await;
        let node = self.plane.node("worker-1").await.unwrap();
        assert_eq!(node.spec.unwrap().provider_id, Some(format!("phoenixnap://{id}")));
        assert_eq!(node.metadata.annotations.unwrap()["phoenixnap.com/server-id"], id);
        let shown: Vec<String> = node
            .status
            .unwrap()
            .addresses
            .unwrap()
            .into_iter()
            .map(|it| it.address)
            .collect();
        assert_eq!(shown, ["Worker-1", "192.0.2.71", "2001:db8:7::71", "10.9.0.3"]);

        self.plane.add_service(web()).await;
        let address = self.served(manager, "web").await;
        let service = self.plane.service("web").await.unwrap();
        assert_eq!(service.spec.unwrap().load_balancer_ip, Some(address.clone()));
        let annotations = service.metadata.annotations.unwrap_or_default();
        assert!(annotations.is_empty(), "the claim is taken back: {annotations:?}");
        // kube-vip completes the entry, and a change of the Service leaves that as it is.
        let entry = json!({ "ip": address, "ipMode": "VIP", "ports": [{ "port": 8080, "protocol": "TCP" }] });
        self.plane
            .patch_service_status("web", json!({ "loadBalancer": { "ingress": [entry] } }))
            .await;
        let lists = self.sim.journal().count_operation("ip-blocks.list");
        let annotation = json!({ "metadata": { "annotations": { "kube-vip.io/vipHost": "worker-1" } } });
        self.plane.patch_service("web", annotation).await;
        manager
            .until("it has looked", async || {
                self.sim.journal().count_operation("ip-blocks.list") > lists
            })
            .await;
        let ports = || async {
            let status = self.plane.service("web").await.unwrap().status.unwrap();
            status.load_balancer.unwrap().ingress.unwrap()[0]
                .ports
                .clone()
                .unwrap_or_default()
                .len()
        };
        assert_eq!(ports().await, 1);

        self.sim.set_server_status(&id, ServerStatus::PoweredOff);
        self.plane.set_ready("worker-1", "Unknown").await;
        manager
            .until("it is tainted", async || {
                let spec = self.plane.node("worker-1").await.unwrap().spec.unwrap();
                let taints = spec.taints.unwrap_or_default();
                taints
                    .iter()
                    .any(|it| it.key == "node.cloudprovider.kubernetes.io/shutdown")
            })
            .await;
        self.sim.set_server_status(&id, ServerStatus::PoweredOn);
        self.plane.set_ready("worker-1", "True").await;
        self.plane.add_node(lost("lost")).await;
        manager
            .until("the lost node goes", async || {
                self.plane.node("lost").await.is_none()
            })
            .await;
        assert_eq!(ports().await, 1, "what kube-vip wrote is still there");
        self.plane.delete_service("web").await;
        self.gone(manager, "web").await;
        manager
            .until("the events are written", async || {
                let events = self.plane.reasons("web").await;
                events.contains(&"DeletedLoadBalancer".to_owned())
            })
            .await;
        assert_eq!(self.sim.check_invariants(), Vec::<String>::new());
    }
}

/// A Node whose server never was.
fn lost(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
        "spec": { "providerID": "phoenixnap://64f0c2a9be11d37a5c90e1b4" },
        "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }] },
    })
}

fn named(name: &str) -> Value {
    let mut service = web();
    service["metadata"]["name"] = json!(name);
    service
}

#[tokio::test]
async fn a09_a10_a14_a36_a37_the_former_manifest_runs_unchanged_and_nothing_is_forbidden() {
    let Some(site) = Site::start("the former manifest of phoenixNAP", ROLE).await else {
        return;
    };
    let flags = ["--leader-elect=false", "--node-monitor-period=1s"];
    let mut manager = site.manager(&flags, &[("PNAP_DEBUG", "true")]);
    site.lead_a_life(&manager).await;
    ended(&mut manager).await;
    site.plane.assert_nothing_forbidden();
    let puts: Vec<_> = site
        .plane
        .requests()
        .into_iter()
        .filter(|it| it.verb == "update")
        .collect();
    assert!(
        puts.is_empty(),
        "a PUT writes other people's fields back: {puts:?}"
    );
    let log = manager.log();
    let shown = |words: &[&str]| {
        log.iter()
            .any(|line| line.contains("HTTP exchange") && words.iter().all(|word| line.contains(word)))
    };
    assert!(
        shown(&["/x/ips/v1/ip-blocks", "cidrBlockSize"]),
        "{}",
        log.join("\n")
    );
    assert!(shown(&["openid-connect/token", "***"]));
    assert!(
        !log.iter()
            .any(|line| line.contains(SECRET) || line.contains("access_token"))
    );
}

#[tokio::test]
async fn the_shipped_role_is_enough_for_phoenixnap_and_nothing_is_forbidden() {
    let manifest = std::fs::read_to_string(deploy::root().join("phoenixnap/deployment.yaml")).unwrap();
    let Some(site) = Site::start("the shipped role of phoenixNAP", &manifest).await else {
        return;
    };
    let mut manager = site.manager(&["--node-monitor-period=1s"], &[]);
    site.lead_a_life(&manager).await;
    ended(&mut manager).await;
    assert_writes_of_a_life(&site.plane);
}

#[tokio::test]
async fn killed_at_any_write_it_leaves_one_block_for_a_service_that_lives_and_none_for_one_that_goes() {
    let Some(site) = Site::start("death at every write", ROLE).await else {
        return;
    };
    let flags = ["--leader-elect=false"];
    for (is_removal, writes) in [(false, 7), (true, 3)] {
        for k in 1..=writes {
            let name = format!("web-{is_removal}-{k}");
            let what = format!("removal {is_removal}, write {k}");
            for tag in site.sim.tags() {
                site.sim.remove_tag(&tag.name);
            }
            let mut manager = site.manager(&flags, &[]);
            if is_removal {
                site.plane.add_service(named(&name)).await;
                site.served(&manager, &name).await;
            }
            // The write is carried out, and its answer never comes.
            let fault = site.sim.faults().add(Fault::write().nth(k).hang_after());
            if is_removal {
                site.plane.delete_service(&name).await;
            } else {
                site.plane.add_service(named(&name)).await;
            }
            manager
                .until("the write", async || site.sim.faults().struck(fault) > 0)
                .await;
            manager.signal(Signal::KILL);
            manager.ended().await;
            site.sim.faults().clear();

            let mut next = site.manager(&flags, &[]);
            if !is_removal {
                let address = site.served(&next, &name).await;
                let blocks = site.sim.blocks();
                assert_eq!(blocks.len(), 1, "{what}: {blocks:?}");
                assert!(
                    blocks[0]
                        .cidr
                        .contains(&address.parse::<std::net::IpAddr>().unwrap()),
                    "{what}"
                );
                // Removal has its own turn; this one is quick without a block.
                site.sim.remove_block(&blocks[0].id);
                site.plane.delete_service(&name).await;
            }
            site.gone(&next, &name).await;
            assert_eq!(site.sim.check_invariants(), Vec::<String>::new(), "{what}");
            // It may have had nothing to do, and be young still.
            next.signal(Signal::KILL);
            next.ended().await;
        }
    }
    let bought = site.sim.journal().count_operation("ip-blocks.create");
    assert_eq!(bought, 10, "one for each Service");
}

#[tokio::test]
async fn two_processes_without_a_lease_buy_one_block_for_each_service() {
    let Some(site) = Site::start("two processes at once", ROLE).await else {
        return;
    };
    site.sim
        .service()
        .set_latency(std::time::Duration::from_millis(30));
    let flags = ["--leader-elect=false"];
    let mut managers = [site.manager(&flags, &[]), site.manager(&flags, &[])];
    for manager in &managers {
        manager.until_logged("service-lb-controller").await;
    }
    let names = ["a", "b", "c", "d"];
    for name in names {
        site.plane.add_service(named(name)).await;
    }
    let mut found = BTreeSet::new();
    for name in names {
        found.insert(site.served(&managers[0], name).await);
    }
    assert_eq!(found.len(), names.len());
    assert_eq!(site.sim.blocks().len(), names.len());
    for name in names {
        site.plane.delete_service(name).await;
    }
    for name in names {
        site.gone(&managers[0], name).await;
    }
    assert_eq!(
        site.sim.journal().count_operation("ip-blocks.create"),
        names.len()
    );
    for manager in &mut managers {
        ended(manager).await;
    }
}
