//! When the route controller runs.

use std::time::Duration;

use bowline_manager::config::{Config, ControllerSettings, RangeFlags, Ranges, RouteSettings, RouteTiming};
use bowline_manager::controllers::ControllerSelection;

use crate::clouds::TestInstances;

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
