//! OpenStack: under the former manager's rights, killed at every write, and with routes.

use std::path::Path;

use bowline_openstack_sim::kit::project::Project;
use bowline_openstack_sim::kit::{Clock, CloudService};
use bowline_openstack_sim::{OpenstackSim, ServerSpec};
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::deaths::Mortal;
use super::life::Life;
use super::site::{self, Cloud, ended};

type Site = site::Site<OpenstackSim>;

/// The password of the user.
const PASSWORD: &str = "Tb6xQn2wLr9vKz4mYs8d";

/// The role of the former manager as its released manifest has it: not one verb more.
const ROLE: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:cloud-controller-manager"}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
- {apiGroups: [""], resources: [events], verbs: [create, patch, update]}
- {apiGroups: [""], resources: [nodes], verbs: ["*"]}
- {apiGroups: [""], resources: [nodes/status], verbs: [patch]}
- {apiGroups: [""], resources: [services], verbs: [list, patch, update, watch]}
- {apiGroups: [""], resources: [services/status], verbs: [patch]}
- {apiGroups: [""], resources: [serviceaccounts], verbs: [create, get]}
- {apiGroups: [""], resources: [serviceaccounts/token], verbs: [create]}
- {apiGroups: [""], resources: [persistentvolumes], verbs: ["*"]}
- {apiGroups: [""], resources: [endpoints], verbs: [create, get, list, watch, update]}
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [secrets], verbs: [list, get, watch]}
"#;

impl Cloud for OpenstackSim {
    const PROGRAM: &'static str = "openstack-cloud-controller-manager";
    const ROLE: &'static str = ROLE;

    fn new() -> Self {
        Self::builder()
            .user("demo", PASSWORD)
            .clock(Clock::system())
            .build()
    }

    fn api(&self) -> CloudService {
        self.service()
    }

    /// As the former manifest has them.
    fn flags(&self, url: &str, directory: &Path) -> Vec<String> {
        let path = directory.join("cloud.conf");
        let text = format!(
            "[Global]\nauth-url = {url}/identity\nusername = demo\npassword = {PASSWORD}\ntenant-name = demo\n\
             domain-id = default\nregion = RegionOne\n[LoadBalancer]\ncreate-monitor = true\nmanage-security-groups = true\n\
             [Route]\nrouter-id = {}\n[BlockStorage]\nbs-version = v3\n",
            self.home().router
        );
        std::fs::write(&path, text).unwrap();
        vec![
            "--cluster-name=kubernetes".to_owned(),
            "--cloud-provider=openstack".to_owned(),
            "--use-service-account-credentials=false".to_owned(),
            format!("--cloud-config={}", path.display()),
            // Where a router is named, the pod networks have to be, too.
            "--cluster-cidr=10.200.0.0/16".to_owned(),
        ]
    }

    fn add_instance(&self, name: &str) -> String {
        format!("openstack:///{}", self.add_server(ServerSpec::new(name)))
    }

    fn project(&self) -> &dyn Project {
        self
    }
}

impl Life for OpenstackSim {
    fn assert_initialised(&self, node: &Node) {
        let labels = node.metadata.labels.as_ref().unwrap();
        for (label, value) in [
            ("node.kubernetes.io/instance-type", "m1.small"),
            ("topology.kubernetes.io/zone", "nova"),
            ("topology.kubernetes.io/region", "RegionOne"),
        ] {
            assert_eq!(labels[label], value, "{label}");
        }
        let status = node.status.as_ref().unwrap();
        let addresses = status.addresses.iter().flatten();
        let kinds: Vec<&str> = addresses.map(|it| it.type_.as_str()).collect();
        assert_eq!(kinds, ["InternalIP"]);
    }

    fn change(&self) -> Option<Value> {
        let key = "loadbalancer.openstack.org/timeout-member-data";
        Some(json!({ "metadata": { "annotations": { (key): "120000" } } }))
    }

    fn is_changed(&self) -> bool {
        let listeners = self.listeners();
        listeners
            .iter()
            .all(|it| it.settings.timeout_member_data_ms == 120_000)
    }

    /// A load balancer behind a floating IP, with a listener, a pool and a monitor for each of the two ports and every
    /// instance behind them; and one security group.
    fn assert_whole(&self, addresses: &[String], what: &str) {
        let balancers = self.load_balancers();
        assert_eq!(balancers.len(), 1, "{what}");
        let floating = self.floating_ips();
        let held: Vec<String> = floating.iter().map(|it| it.address.address.to_string()).collect();
        assert_eq!(addresses, held, "{what}");
        assert_eq!(floating[0].target.unwrap().port, balancers[0].vip.port, "{what}");
        let found = [
            self.listeners().len(),
            self.pools().len(),
            self.health_monitors().len(),
        ];
        assert_eq!(found, [2, 2, 2], "{what}");
        assert_eq!(self.members().len(), 2 * Self::INSTANCES.len(), "{what}");
        let groups = self.snapshot()["security_groups"].take();
        assert_eq!(groups.as_array().map(Vec::len), Some(1), "{what}");
        assert_eq!(groups[0]["servers"], json!(Self::INSTANCES), "{what}");
    }

    fn left(&self) -> Vec<String> {
        self.leftovers()
    }
}

impl Mortal for OpenstackSim {
    /// The load balancer with everything in it, a floating IP, and a security group with its two rules, which two ports get;
    /// a time for each listener; and the floating IP, the load balancer, and the group, which two ports lose.
    fn writes(&self) -> [u64; 3] {
        [7, 2, 5]
    }

    /// The finalizer, the annotations that name the load balancer and its address, and the status; nothing; and the
    /// finalizer.
    fn object_writes(&self) -> [u64; 3] {
        [4, 0, 1]
    }
}

#[tokio::test]
async fn the_former_manifest_runs_unchanged_and_nothing_is_forbidden() {
    let Some(site) = Site::start().await else {
        return;
    };
    let mut manager = site.manager_with(&["--node-monitor-period=1s"]);
    site.lead_a_life(&manager).await;
    ended(&mut manager).await;
    site.assert_nothing_forbidden();
    site.assert_no_puts();
}

#[tokio::test]
async fn killed_at_any_write_it_leaves_one_balancer_for_a_service_that_lives_and_nothing_of_one_that_goes() {
    let Some(site) = Site::start().await else {
        return;
    };
    site.die_at_every_write().await;
}

#[tokio::test]
async fn the_next_leader_finishes_what_the_last_one_began() {
    let Some(site) = Site::start().await else {
        return;
    };
    // Time enough to be interrupted.
    site.cloud
        .set_behaviour(|it| it.lb_create_time = std::time::Duration::from_secs(3));
    let mut first = site.manager_with(&["--leader-elect=true"]);
    for name in OpenstackSim::INSTANCES {
        site.join(name).await;
        site.initialised(&first, name).await;
    }
    site.add_service(site::web()).await;
    first
        .until("it is in the middle", async || {
            !site.cloud.load_balancers().is_empty()
        })
        .await;
    ended(&mut first).await;
    assert!(site.cloud.floating_ips().is_empty(), "it was done already");
    let second = site.manager_with(&["--leader-elect=true"]);
    let addresses = site.served(&second, "web").await;
    site.unchanged(|| site.journal().writes().len()).await;
    site.cloud.assert_whole(&addresses, "after the hand-over");
    let made = site.journal().count_operation("octavia.loadbalancers.create");
    assert_eq!(made, 1);
    site.assert_sound("after the hand-over");
}

#[tokio::test]
async fn nodes_get_their_routes_on_the_router_and_lose_them() {
    let Some(site) = Site::start().await else {
        return;
    };
    let router = site.cloud.home().router;
    let routes = || {
        let routes = site.cloud.router(router).unwrap().routes;
        let shown = routes
            .iter()
            .map(|it| format!("{} via {}", it.destination, it.nexthop));
        shown.collect::<Vec<String>>()
    };
    let flags = [
        "--allocate-node-cidrs=true",
        "--controllers=*,node-ipam-controller",
    ];
    let manager = site.manager_with(&flags);
    site.join("n1").await;
    site.initialised(&manager, "n1").await;
    manager
        .until("routed", async || {
            let conditions = site.node("n1").await.unwrap().status.unwrap().conditions;
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|it| it.type_ == "NetworkUnavailable" && it.status == "False")
        })
        .await;
    assert_eq!(routes(), ["10.200.0.0/24 via 10.0.0.11"]);
    let pairs = &site.cloud.snapshot()["address_pairs"];
    assert_eq!(pairs["n1"], json!(["10.200.0.0/24"]));
    site.delete_node("n1").await;
    manager
        .until("its route is gone", async || routes().is_empty())
        .await;
    site.assert_nothing_forbidden();
}
