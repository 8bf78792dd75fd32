//! Classes of Services, several clouds, and whose Nodes are looked at.

use bowline_manager::config::{Ownership, Platforms};

use super::*;

/// Without the `--cloud-provider` of the other tests counting.
fn several(words: &[&str]) -> Options {
    resolved(&[&["--cloud-provider=cloudscale,openstack"], words].concat())
}

fn wrong_of_several(words: &[&str]) -> Vec<String> {
    wrong(&[&["--cloud-provider=cloudscale,openstack"], words].concat())
}

#[test]
fn services_are_served_by_their_class() {
    assert_eq!(
        resolved(&[]).manager.service_classes.to_string(),
        "Services without a class"
    );
    let named = ["--load-balancer-class=b", "--load-balancer-class=example.com/a"];
    assert_eq!(
        resolved(&named).manager.service_classes.to_string(),
        "Services of class b or example.com/a, and those without a class"
    );
    let alone = ["--load-balancer-class=b", "--load-balancer-without-class=false"];
    assert_eq!(
        resolved(&alone).manager.service_classes.to_string(),
        "Services of class b"
    );
    let faults = wrong(&["--load-balancer-class=a b"]);
    assert!(
        faults[0].starts_with("--load-balancer-class: \"a b\" is no load balancer class"),
        "{faults:?}"
    );
    let faults = wrong(&["--load-balancer-without-class=false"]);
    assert!(faults[0].contains("leaves no Service to serve"), "{faults:?}");
}

#[test]
fn each_of_several_clouds_has_its_file_and_its_classes() {
    let options = several(&[
        "--cloud-config=openstack=/etc/cloud.conf",
        "--load-balancer-class=openstack=x/os",
    ]);
    let clouds = &options.provider.several;
    assert_eq!(clouds.len(), 2);
    assert_eq!(options.provider.config, None);
    assert_eq!(
        (clouds[0].name.as_str(), &clouds[0].config),
        ("cloudscale", &None)
    );
    assert_eq!(clouds[0].classes.to_string(), "Services without a class");
    assert_eq!(clouds[1].config.as_deref(), Some("/etc/cloud.conf".as_ref()));
    assert_eq!(clouds[1].classes.to_string(), "Services of class x/os");
    let all = options.manager.service_classes.to_string();
    assert_eq!(all, "Services of class x/os, and those without a class");
    assert_eq!(
        options.provider.names().collect::<Vec<_>>(),
        ["cloudscale", "openstack"]
    );
    assert!(
        options.manager.settings.ownership.is_some(),
        "Nodes of no cloud are left alone"
    );
}

#[test]
fn what_two_clouds_claim_and_what_names_no_cloud_is_refused() {
    for (words, fault) in [
        (
            &["--cloud-config=/etc/cloud.conf"][..],
            "it is CLOUD=PATH, where CLOUD is one of cloudscale, openstack",
        ),
        (&["--load-balancer-class=a"], "it is CLOUD=CLASS"),
        (&["--load-balancer-class=paper=a"], "it is CLOUD=CLASS"),
        (
            &[
                "--load-balancer-class=openstack=a",
                "--load-balancer-class=cloudscale=a",
            ],
            "gives class \"a\" to openstack and to cloudscale",
        ),
        (
            &["--cloud-provider=openstack,openstack"],
            "names \"openstack\" twice",
        ),
        (&["--cloud-provider=openstack,"], "has an empty name"),
        (
            &["--cloud-config=openstack=/a,openstack=/b"],
            "--cloud-config gives openstack two files",
        ),
    ] {
        let faults = wrong_of_several(words);
        assert!(faults.iter().any(|it| it.contains(fault)), "{faults:?}");
    }
}

#[test]
fn whose_nodes_are_looked_at_needs_the_gate_of_the_proposal() {
    const GATE: &str = "--feature-gates=CloudProviderNodeOwnership=true";
    let of = |words: &[&str]| resolved(words).manager.settings.ownership;
    assert_eq!(of(&[]), None);
    let wait = Duration::from_secs(30);
    let platforms = Platforms::OfProvider;
    assert_eq!(of(&[GATE]), Some(Ownership { platforms, wait }));
    let platforms = Platforms::All;
    assert_eq!(
        of(&[GATE, "--cloud-provider-platforms=*"]),
        Some(Ownership { platforms, wait })
    );
    let platforms = Platforms::These(["a".to_owned(), "b".to_owned()].into());
    let wait = Duration::ZERO;
    let words = [
        GATE,
        "--cloud-provider-platforms=a,b",
        "--node-lifecycle-wait-timeout=0s",
    ];
    assert_eq!(of(&words), Some(Ownership { platforms, wait }));
    // Which Nodes are members goes by the same.
    let of = |words: &[&str]| resolved(words).provider.beside.map(|it| it.platforms);
    assert_eq!(of(&[]), None);
    assert_eq!(of(&[GATE]), Some(Vec::new()));
    assert_eq!(of(&[GATE, "--cloud-provider-platforms=*"]), None);
    assert_eq!(of(&words), Some(vec!["a".to_owned(), "b".to_owned()]));
    let faults = wrong(&["--cloud-provider-platforms=a"]);
    assert!(
        faults[0].contains("needs the feature gate CloudProviderNodeOwnership"),
        "{faults:?}"
    );
    let faults = wrong(&[GATE, "--cloud-provider-platforms=a://"]);
    assert!(faults[0].contains("is no scheme of provider IDs"), "{faults:?}");
}
