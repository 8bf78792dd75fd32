//! The command lines of the manifests that Go managers are deployed with, word for word.

use bowline_manager::controllers::ControllerName;

use super::{line, read};
use crate::args::{Invocation, LoggingFormat, Options};

fn understood(words: &[&str]) -> Options {
    match read(&line(words)) {
        Invocation::Run(options) => *options,
        other => panic!("{words:?}: {other:?}"),
    }
}

/// `deploy/latest.yml` of cloudscale-ch/cloudscale-cloud-controller-manager, with the path of its image.
#[test]
fn cloudscale_s_daemon_set() {
    let options = understood(&[
        "/bin/cloudscale-cloud-controller-manager",
        "--allow-untagged-cloud",
        "--v=3",
        "--concurrent-service-syncs=2",
    ]);
    assert_eq!(options.provider.name, "cloudscale");
    assert_eq!(options.program, "cloudscale-cloud-controller-manager");
    assert!(options.provider.allows_untagged);
    assert_eq!(options.deprecated_flags, ["allow-untagged-cloud"]);
    assert_eq!(options.logging.verbosity, 3);
    let workers = ("concurrent-service-syncs", "2".to_owned());
    assert!(options.flags.contains(&workers));
}

/// `deploy/template/deployment.yaml` of phoenixnap/k8s-cloud-provider-bmc.
#[test]
fn phoenixnap_s_deployment() {
    let options = understood(&[
        "./cloud-provider-phoenixnap",
        "--cloud-provider=phoenixnap",
        "--leader-elect=false",
        "--authentication-skip-lookup=true",
        "--cloud-config=/etc/cloud-sa/cloud-sa.json",
    ]);
    assert_eq!(options.provider.name, "phoenixnap");
    assert_eq!(options.program, "cloud-provider-phoenixnap");
    assert_eq!(
        options.provider.config.as_deref(),
        Some("/etc/cloud-sa/cloud-sa.json".as_ref())
    );
    assert_eq!(options.manager.election, None);
}

/// `deployment.yaml` of apache/cloudstack-kubernetes-provider: the image's entry point and the manifest's arguments.
#[test]
fn cloudstack_s_deployment() {
    let options = understood(&[
        "/app/cloudstack-ccm",
        "--cloud-provider",
        "external-cloudstack",
        "--leader-elect=true",
        "--cloud-provider=external-cloudstack",
        "--cloud-config=/config/cloud-config",
    ]);
    assert_eq!(options.provider.name, "external-cloudstack");
    assert_eq!(options.program, "cloudstack-ccm");
    assert!(options.manager.election.is_some());
}

/// The chart `cloud-controller-manager` of apache/cloudstack-kubernetes-provider, which has no `command`, and a provider of a name
/// that the Go manager does not know: an extra argument has the right one.
#[test]
fn cloudstack_s_chart_with_the_right_name_at_the_end() {
    let mut words = vec![
        "/bin/cloud-controller-manager",
        "--v=2",
        "--cloud-config=/etc/config/cloud.conf",
        "--cloud-provider=cloudstack",
        "--cluster-name=kubernetes",
        "--controllers=cloud-node,cloud-node-lifecycle,route,service",
        "--bind-address=127.0.0.1",
    ];
    assert_eq!(understood(&words).provider.name, "cloudstack");
    words.push("--cloud-provider=external-cloudstack");
    assert_eq!(understood(&words).provider.name, "external-cloudstack");
}

/// `openstack-cloud-controller-manager-ds.yaml` of kubernetes/cloud-provider-openstack, its variables filled in, behind
/// the entry point of our image: the manifest has no `command`.
#[test]
fn openstack_s_daemon_set() {
    let options = understood(&[
        "/bin/cloud-controller-manager",
        "/bin/openstack-cloud-controller-manager",
        "--v=1",
        "--cluster-name=kubernetes",
        "--cloud-config=/etc/config/cloud.conf",
        "--cloud-provider=openstack",
        "--use-service-account-credentials=false",
        "--bind-address=127.0.0.1",
    ]);
    assert_eq!(options.provider.name, "openstack");
    assert_eq!(options.program, "openstack-cloud-controller-manager");
    assert_eq!(options.manager.cluster_name, "kubernetes");
    assert_eq!(
        options
            .serving
            .map(|serving| serving.address.to_string())
            .as_deref(),
        Some("127.0.0.1")
    );
}

/// The chart `openstack-cloud-controller-manager` with its default values, which has no `command` either.
#[test]
fn openstack_s_chart() {
    let options = understood(&[
        "/bin/cloud-controller-manager",
        "/bin/openstack-cloud-controller-manager",
        "--v=2",
        "--cloud-config=/etc/kubernetes/cloud-config",
        "--cluster-name=kubernetes",
        "--cloud-provider=openstack",
        "--use-service-account-credentials=false",
        "--controllers=cloud-node,cloud-node-lifecycle,route,service",
        "--bind-address=127.0.0.1",
    ]);
    assert!(
        ControllerName::ALL
            .into_iter()
            .all(|one| options.manager.controllers.includes(one) == (one != ControllerName::NodeIpam))
    );
}

/// Flags as people write them in charts and static pods: quoted values, underscores, both forms of a value, repetitions.
#[test]
fn a_static_pod_with_every_way_to_write_a_flag() {
    let options = understood(&[
        "cloud-controller-manager",
        "--cloud-provider",
        "cloudscale",
        "--kubeconfig=/etc/kubernetes/controller-manager.conf",
        "--authentication-kubeconfig=/etc/kubernetes/controller-manager.conf",
        "--authorization-kubeconfig=/etc/kubernetes/controller-manager.conf",
        "--authorization_always_allow_paths=/healthz,/metrics",
        "--allocate-node-cidrs=false",
        "--configure-cloud-routes=false",
        "--controllers=*",
        "--controllers=-route",
        "--feature-gates=LoggingBetaOptions=true",
        "--feature-gates=APIServerIdentity=false",
        "--kube-api-qps=50",
        "--kube-api-burst=100",
        "--leader-elect-resource-name=cloudscale",
        "--min-resync-period=24h",
        "--node-status-update-frequency=1m",
        "--profiling=false",
        "--secure-port=10258",
        "--tls-min-version=VersionTLS12",
        "--logging-format=json",
        "-v",
        "2",
    ]);
    assert!(!options.manager.controllers.includes(ControllerName::Route));
    assert_eq!(options.idle_gates, ["APIServerIdentity"]);
    assert!(options.idle_flags.contains(&"min-resync-period"));
    assert_eq!(options.logging.format, LoggingFormat::Json);
    assert_eq!(
        options.serving.unwrap().access.always_allowed,
        ["/healthz", "/metrics"]
    );
}
