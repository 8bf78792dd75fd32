//! phoenixNAP: under the former manager's rights, killed at every write, and two at once.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use bowline_phoenixnap_sim::kit::CloudService;
use bowline_phoenixnap_sim::kit::project::Project;
use bowline_phoenixnap_sim::{NetworkSpec, PhoenixnapSim, Scope, ServerSpec, Tag};
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::deaths::Mortal;
use super::life::Life;
use super::site::{Cloud, Site, ended, named};
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
"#;

impl Cloud for PhoenixnapSim {
    const PROGRAM: &'static str = "cloud-provider-phoenixnap";
    const ROLE: &'static str = ROLE;

    /// Below a path.
    fn new() -> Self {
        let sim = Self::builder()
            .credentials(CLIENT, SECRET, Scope::ALL)
            .prefix("/x")
            .build();
        sim.add_network(NetworkSpec::with_id(NETWORK, "vips"));
        sim
    }

    fn api(&self) -> CloudService {
        self.service()
    }

    /// As the former manifest and chart have them; the file is as the former manager's own sample has it, with a comma too
    /// many.
    fn flags(&self, url: &str, directory: &Path) -> Vec<String> {
        let path = directory.join("cloud-sa.json");
        let text = format!(
            "{{\n  \"clientID\": \"{CLIENT}\",\n  \"clientSecret\": \"{SECRET}\",\n  \"location\": \"NLD\",\n  \
             \"loadbalancer\": \"kube-vip:///{NETWORK}\",\n  \"base-url\": \"{url}/x/\",\n  \
             \"token-url\": \"{url}/x{}\",\n}}\n",
            Self::TOKEN_PATH
        );
        std::fs::write(&path, text).unwrap();
        vec![
            "--cloud-provider=PhoenixNAP".to_owned(),
            "--authentication-skip-lookup=true".to_owned(),
            format!("--cloud-config={}", path.display()),
        ]
    }

    /// Under a hostname that begins with a capital letter, which a Node's name cannot.
    fn add_instance(&self, name: &str) -> String {
        let n = 71 + self.servers().len();
        let spec = ServerSpec {
            public_addresses: Some(vec![format!("192.0.2.{n}"), format!("2001:db8:7::{n}")]),
            ..ServerSpec::new(hostname(name))
        };
        format!("phoenixnap://{}", self.add_server(spec))
    }

    fn project(&self) -> &dyn Project {
        self
    }
}

impl Life for PhoenixnapSim {
    const LINGERS: bool = true;

    fn assert_initialised(&self, node: &Node) {
        let server = self.server_named(node.metadata.name.as_ref().unwrap()).unwrap();
        let status = node.status.as_ref().unwrap();
        let shown = status.addresses.iter().flatten().map(|it| &it.address);
        let wanted = std::iter::once(&server.hostname);
        let wanted = wanted
            .chain(&server.public_addresses)
            .chain(&server.private_addresses);
        assert!(shown.eq(wanted), "{status:?}");
    }

    /// What a Service can ask for is its address, and that is there from its beginning to its end.
    fn change(&self) -> Option<Value> {
        None
    }

    /// One block, and the address in it.
    fn assert_whole(&self, addresses: &[String], what: &str) {
        let blocks = self.blocks();
        assert_eq!((blocks.len(), addresses.len()), (1, 1), "{what}: {blocks:?}");
        let address: IpAddr = addresses[0].parse().unwrap();
        assert!(blocks[0].cidr.contains(&address), "{what}");
    }

    fn left(&self) -> Vec<String> {
        self.blocks().into_iter().map(|it| it.cidr.to_string()).collect()
    }

    /// Nodes carry the ID of their server. kube-vip completes the entry in the status, and a change of the Service leaves that as
    /// it is.
    async fn meanwhile(site: &Site<Self>, manager: &Running) {
        for name in Self::INSTANCES {
            let server = site.cloud.server_named(name).unwrap();
            manager
                .until("the server's ID", async || {
                    let annotations = site.node(name).await.unwrap().metadata.annotations;
                    annotations.is_some_and(|it| it.get("phoenixnap.com/server-id") == Some(&server.id))
                })
                .await;
        }
        let service = site.service("web").await.unwrap();
        let address = service.spec.unwrap().load_balancer_ip;
        assert_eq!(address, site.served(manager, "web").await.pop());
        let annotations = service.metadata.annotations.unwrap_or_default();
        assert!(annotations.is_empty(), "the claim is taken back: {annotations:?}");
        let entry = json!({ "ip": address, "ipMode": "VIP", "ports": [{ "port": 8080, "protocol": "TCP" }] });
        site.patch_service_status("web", json!({ "loadBalancer": { "ingress": [entry] } }))
            .await;
        let lists = site.journal().count_operation("ip-blocks.list");
        let annotation = json!({ "metadata": { "annotations": { "kube-vip.io/vipHost": "worker-1" } } });
        site.patch_service("web", annotation).await;
        manager
            .until("it has looked", async || {
                site.journal().count_operation("ip-blocks.list") > lists
            })
            .await;
        let status = site.service("web").await.unwrap().status.unwrap();
        let ingress = status.load_balancer.unwrap().ingress.unwrap();
        assert_eq!(ingress[0].ports.as_ref().map(Vec::len), Some(1));
    }
}

impl Mortal for PhoenixnapSim {
    /// Names for the tags, a block with its tags, and its way to the network; nothing; and the same way back.
    fn writes(&self) -> [u64; 3] {
        [7, 0, 3]
    }

    /// The finalizer, the claim, the address, the status; nothing; the address and the finalizer.
    fn object_writes(&self) -> [u64; 3] {
        [4, 0, 2]
    }

    fn forget(&self) {
        for tag in self.tags() {
            self.remove_tag(&tag.name);
        }
    }

    /// A process that dies between its claim and the purchase leaves the question open for two minutes.
    fn patience(&self) -> Duration {
        Duration::from_secs(180)
    }

    /// A block that is marked is swept away within a minute.
    fn hasten(&self) {
        for block in self.blocks() {
            if block.tags.contains(&Tag::new("delete", "true")) {
                self.remove_block(&block.id);
            }
        }
    }
}

fn hostname(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

#[tokio::test]
async fn the_former_manifest_runs_unchanged_and_nothing_is_forbidden() {
    let Some(site) = Site::<PhoenixnapSim>::start().await else {
        return;
    };
    let flags = ["--leader-elect=false", "--node-monitor-period=1s"];
    let mut manager = site.manager_in(&flags, &[("PNAP_DEBUG", "true")]);
    site.lead_a_life(&manager).await;
    ended(&mut manager).await;
    site.assert_nothing_forbidden();
    site.assert_no_puts();
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
async fn killed_at_any_write_it_leaves_one_block_for_a_service_that_lives_and_none_for_one_that_goes() {
    let Some(site) = Site::<PhoenixnapSim>::start().await else {
        return;
    };
    site.die_at_every_write().await;
    let bought = site.journal().count_operation("ip-blocks.create");
    assert_eq!(bought, 18, "one for each Service");
}

#[tokio::test]
async fn two_processes_without_a_lease_buy_one_block_for_each_service() {
    let Some(site) = Site::<PhoenixnapSim>::start().await else {
        return;
    };
    site.cloud.api().set_latency(Duration::from_millis(30));
    let flags = ["--leader-elect=false"];
    let mut managers = [site.manager_with(&flags), site.manager_with(&flags)];
    for manager in &managers {
        manager.until_logged("service-lb-controller").await;
    }
    let names = ["a", "b", "c", "d"];
    for name in names {
        site.add_service(named(name)).await;
    }
    let mut found = BTreeSet::new();
    for name in names {
        found.extend(site.served(&managers[0], name).await);
    }
    assert_eq!(found.len(), names.len());
    assert_eq!(site.cloud.blocks().len(), names.len());
    for name in names {
        site.delete_service(name).await;
    }
    for name in names {
        site.gone(&managers[0], name).await;
    }
    site.bare(&managers[0], || {}).await;
    assert_eq!(site.journal().count_operation("ip-blocks.create"), names.len());
    for manager in &mut managers {
        ended(manager).await;
    }
}
