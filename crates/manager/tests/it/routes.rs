//! When the route controller runs.

use std::time::Duration;

use bowline_manager::End;
use bowline_manager::config::{Config, ControllerSettings, RangeFlags, Ranges, RouteSettings, RouteTiming};
use bowline_manager::controllers::ControllerSelection;
use serde_json::json;

use crate::clouds::TestInstances;
use crate::process::{Process, SECOND, api_server, pass, until};

const TIMING: RouteTiming = RouteTiming::Periodic(Duration::from_secs(10));

fn config(is_wanted: bool, cluster_cidr: &str) -> Config {
    Config {
        settings: ControllerSettings {
            routes: RouteSettings::new(is_wanted, cluster_cidr, TIMING),
            ..ControllerSettings::default()
        },
        ..Config::default()
    }
}

/// The same with node IPAM.
fn with_node_ipam(cluster_cidr: &str) -> Config {
    let mut config = config(true, cluster_cidr);
    config.settings.node_networks = Some(Ranges::new(&RangeFlags {
        cluster_cidr,
        allocator: "RangeAllocator",
        ..RangeFlags::default()
    }));
    config
}

fn cloud(has_routes: bool) -> TestInstances {
    TestInstances {
        has_instances: !has_routes,
        has_routes,
        ..TestInstances::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_with_routes_has_the_route_loop() {
    let api = api_server();
    let config = config(true, "10.200.0.0/16");
    assert_eq!(config.check(&cloud(true)), Ok(()));
    let mut process = Process::with(&api, "a", config, cloud(true));
    api.apply_json(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "node-1" },
        "spec": { "podCIDR": "10.200.1.0/24", "podCIDRs": ["10.200.1.0/24"] },
    }))
    .unwrap();
    let is_routed = || {
        let node = api.object("Node", "", "node-1").unwrap();
        node["status"]["conditions"][0]["reason"] == "RouteCreated"
    };
    assert!(until("routed", is_routed).await <= 11 * SECOND);
    assert_eq!(
        process.healthz(),
        "[+]leaderElection ok\n[+]node-route-controller ok\nhealthz check passed\n"
    );
    let series = process.metrics.render().unwrap();
    let line = r#"running_managed_controllers{manager="cloud-controller-manager",name="route"} 1"#;
    assert!(series.lines().any(|found| found == line), "{series}");
    assert_eq!(process.stop().await, End::Stopped);
}

#[tokio::test(start_paused = true)]
async fn without_routes_the_other_loops_run() {
    let api = api_server();
    let config = config(true, "");
    assert_eq!(config.check(&cloud(false)), Ok(()));
    let process = Process::with(&api, "a", config, cloud(false));
    until("the controllers run", || process.healthz().contains("lifecycle")).await;
    assert!(!process.healthz().contains("node-route-controller"));
}

#[tokio::test(start_paused = true)]
async fn routes_that_are_not_wanted_need_no_pod_network() {
    let api = api_server();
    let config = config(false, "");
    assert_eq!(config.check(&cloud(true)), Ok(()));
    let process = Process::with(&api, "a", config, cloud(true));
    process.leading().await;
    pass(30).await;
    assert_eq!(process.healthz(), "[+]leaderElection ok\nhealthz check passed\n");
    assert_eq!(process.cloud_calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn node_ipam_runs_when_it_is_asked_for() {
    let api = api_server();
    let config = with_node_ipam("10.200.0.0/16");
    let mut process = Process::with(&api, "a", config, cloud(true));
    api.apply_json(json!({"apiVersion": "v1", "kind": "Node", "metadata": { "name": "node-1" }}))
        .unwrap();
    let is_routed = || {
        let node = api.object("Node", "", "node-1").unwrap();
        node["spec"]["podCIDRs"] == json!(["10.200.0.0/24"])
            && node["status"]["conditions"][0]["reason"] == "RouteCreated"
    };
    until("networked and routed", is_routed).await;
    assert_eq!(
        process.healthz(),
        "[+]leaderElection ok\n[+]node-route-controller ok\n[+]node-ipam-controller ok\nhealthz check passed\n"
    );
    let series = process.metrics.render().unwrap();
    let line = r#"running_managed_controllers{manager="cloud-controller-manager",name="nodeipam"} 1"#;
    assert!(series.lines().any(|found| found == line), "{series}");
    assert_eq!(process.stop().await, End::Stopped);
}

/// Its Go manager has no such controller, and its manifests say `--allocate-node-cidrs` for the routes.
#[tokio::test(start_paused = true)]
async fn node_ipam_is_named_where_the_provider_leaves_pod_networks_to_others() {
    for (controllers, runs) in [(&["*"][..], false), (&["*", "nodeipam"], true)] {
        let api = api_server();
        let mut config = with_node_ipam("10.200.0.0/16");
        config.controllers = ControllerSelection::parse(controllers.iter().copied()).unwrap();
        let cloud = TestInstances {
            leaves_node_networks: true,
            ..cloud(true)
        };
        let process = Process::with(&api, "a", config, cloud);
        until("routes run", || process.healthz().contains("route-controller ok")).await;
        assert_eq!(process.healthz().contains("node-ipam-controller"), runs);
    }
}

/// Its manifests say `--allocate-node-cidrs` beside networks that node IPAM could not use.
#[test]
fn what_node_ipam_cannot_use_is_refused_only_where_it_runs() {
    let check = |controllers: &[&str], leaves_node_networks| {
        let mut config = with_node_ipam("fd00:244::/32");
        config.controllers = ControllerSelection::parse(controllers.iter().copied()).unwrap();
        let cloud = TestInstances {
            leaves_node_networks,
            ..cloud(true)
        };
        config.check(&cloud)
    };
    assert_eq!(check(&["*"], true), Ok(()));
    assert_eq!(check(&["*", "-nodeipam"], false), Ok(()));
    for (controllers, leaves) in [(&["*"][..], false), (&["*", "nodeipam"], true)] {
        assert_eq!(
            check(controllers, leaves).unwrap_err().to_string(),
            "a node network of /64 is more than 16 bits longer than the cluster CIDR fd00:244::/32; node-ipam-controller needs \
             this: correct the flags, or leave --allocate-node-cidrs out where another program gives Nodes their pod networks"
        );
    }
}

#[test]
fn routes_without_a_usable_pod_network_are_refused_with_the_remedy() {
    let text = |cidr: &str| config(true, cidr).check(&cloud(true)).unwrap_err().to_string();
    assert_eq!(
        text(""),
        "--cluster-cidr: no network is given; the route controller of provider nimbus needs the pod networks of the cluster: \
         give them, or switch the controller off by --configure-cloud-routes=false"
    );
    assert!(text("10.200.0.0").contains("is not a network"));
    assert!(text("10.1.0.0/16,10.2.0.0/16").contains("of one family"));
    assert!(text("10.1.0.0/16,fd00::/48,10.2.0.0/16").contains("3 networks"));
    let without_loop = Config {
        controllers: ControllerSelection::parse(["*", "-route"]).unwrap(),
        ..config(true, "")
    };
    assert_eq!(without_loop.check(&cloud(true)), Ok(()));
}
