//! The chart in a real cluster: installed where nothing is, over each Go manager's manifest, and taken out again. Needs the
//! built programs; says so when they are missing.

use bowline_checks::chart::{CLOUDS, Helm, HelmError, Release, chart};
use bowline_control_plane::{ControlPlane, Options, Version, binaries_or_skip};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{PodTemplateSpec, Service};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

const NAMESPACE: &str = "kube-system";
const ROLE: &str = "system:cloud-controller-manager";

struct Cluster {
    plane: ControlPlane,
    helm: Helm,
}

/// What runs the program, whatever kind it is of.
#[derive(Debug)]
struct Workload {
    metadata: ObjectMeta,
    selector: LabelSelector,
    template: PodTemplateSpec,
}

impl Workload {
    fn image(&self) -> &str {
        let containers = &self.template.spec.as_ref().unwrap().containers;
        assert_eq!(containers.len(), 1);
        containers[0].image.as_deref().unwrap()
    }

    /// The names of its volumes.
    fn volumes(&self) -> Vec<&str> {
        let volumes = self.template.spec.as_ref().unwrap().volumes.iter().flatten();
        let mut names: Vec<&str> = volumes.map(|it| it.name.as_str()).collect();
        names.sort_unstable();
        names
    }
}

impl Cluster {
    async fn start() -> Option<Self> {
        let helm = Helm::or_skip()?;
        let version = Version::wanted().unwrap();
        binaries_or_skip(version)?;
        let options = Options {
            version,
            ..Options::default()
        };
        let plane = ControlPlane::start(options).await.unwrap();
        Some(Self { plane, helm })
    }

    fn client(&self) -> Client {
        self.plane.client()
    }

    /// Installs or upgrades the release; answers what is told about it.
    fn upgrade(&self, values: &Value, more: &[&str]) -> String {
        let told = self.try_to_upgrade(values, more);
        told.unwrap_or_else(|error| panic!("{values}: {error}"))
    }

    fn try_to_upgrade(&self, values: &Value, more: &[&str]) -> Result<String, HelmError> {
        let chart = chart();
        let release = Release {
            chart: &chart,
            name: "bowline",
            namespace: NAMESPACE,
        };
        self.helm
            .upgrade(release, values, self.plane.admin().path(), more)
    }

    fn uninstall(&self) {
        let kubeconfig = format!("--kubeconfig={}", self.plane.admin().path().display());
        let words = ["uninstall", "bowline", "--namespace", NAMESPACE, &kubeconfig];
        self.helm.run(&words).unwrap();
    }

    /// All that runs a manager, of both kinds.
    async fn workloads(&self) -> Vec<Workload> {
        let sets: Api<DaemonSet> = Api::namespaced(self.client(), NAMESPACE);
        let deployments: Api<Deployment> = Api::namespaced(self.client(), NAMESPACE);
        let mut all = Vec::new();
        for set in sets.list(&ListParams::default()).await.unwrap() {
            let spec = set.spec;
            all.push(Workload {
                metadata: set.metadata,
                selector: spec.selector,
                template: spec.template,
            });
        }
        for deployment in deployments.list(&ListParams::default()).await.unwrap() {
            let spec = deployment.spec;
            all.push(Workload {
                metadata: deployment.metadata,
                selector: spec.selector,
                template: spec.template,
            });
        }
        all
    }

    #[track_caller]
    fn only(mut all: Vec<Workload>) -> Workload {
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    /// What the role of the manager is about.
    async fn resources(&self) -> Vec<String> {
        let roles: Api<ClusterRole> = Api::all(self.client());
        let rules = roles.get(ROLE).await.unwrap().rules.into_iter().flatten();
        rules
            .flat_map(|rule| rule.resources.unwrap_or_default())
            .collect()
    }
}

/// Values with which the Secret comes along.
fn with_credentials(cloud: &str) -> Value {
    match cloud {
        "cloudscale" => json!({ "cloud": cloud, "accessToken": "t" }),
        "phoenixnap" => {
            json!({ "cloud": cloud, "cloudConfig": { "global": { "clientID": "i", "clientSecret": "s" } } })
        }
        "cloudstack" => json!({ "cloud": cloud, "cloudConfig": { "global": {
            "api-url": "https://cloud.example/client/api", "api-key": "k", "secret-key": "s",
        } } }),
        _ => {
            json!({ "cloud": cloud, "cloudConfig": { "global": { "auth-url": "https://cloud.example/v3" } } })
        }
    }
}

/// On one cluster, because a start is most of what each of them would cost; each leaves it as it was.
#[tokio::test]
async fn the_chart_installs_takes_over_and_refuses_on_a_real_cluster() {
    let Some(cluster) = Cluster::start().await else {
        return;
    };
    every_cloud_installs_where_nothing_is_and_leaves_nothing_behind(&cluster).await;
    monitoring_without_its_operator_is_refused_with_the_remedy(&cluster);
    admission_policies_refuse_on_request(&cluster).await;
    every_go_manager_s_manifest_is_taken_over_and_goes_back(&cluster).await;
}

async fn every_cloud_installs_where_nothing_is_and_leaves_nothing_behind(cluster: &Cluster) {
    for cloud in CLOUDS {
        let told = cluster.upgrade(&with_credentials(cloud), &[]);
        let workload = Cluster::only(cluster.workloads().await);
        let name = workload.metadata.name.as_deref().unwrap();
        assert!(told.contains(&format!("/{name} ")), "{told}");
        assert!(workload.image().starts_with("registry.example/bowline:"));
        // The same again changes nothing.
        cluster.upgrade(&with_credentials(cloud), &[]);
        let again = Cluster::only(cluster.workloads().await);
        assert_eq!(workload.metadata.generation, again.metadata.generation, "{cloud}");
        cluster.uninstall();
        assert!(cluster.workloads().await.is_empty(), "{cloud}");
        let roles: Api<ClusterRole> = Api::all(cluster.client());
        assert!(roles.get_opt(ROLE).await.unwrap().is_none(), "{cloud}");
    }
}

fn monitoring_without_its_operator_is_refused_with_the_remedy(cluster: &Cluster) {
    for (value, kind) in [("podMonitor", "PodMonitor"), ("prometheusRule", "PrometheusRule")] {
        let mut values = with_credentials("cloudscale");
        values[value] = json!({ "enabled": true });
        let words = cluster.try_to_upgrade(&values, &[]).unwrap_err().to_string();
        assert!(
            words.contains(&format!("the cluster has no kind {kind}")),
            "{words}"
        );
        assert!(words.contains(&format!("set {value}.enabled=false")), "{words}");
    }
}

async fn every_go_manager_s_manifest_is_taken_over_and_goes_back(cluster: &Cluster) {
    for (cloud, former) in [
        ("cloudscale", include_str!("../../former/cloudscale.yaml")),
        ("phoenixnap", include_str!("../../former/phoenixnap.yaml")),
        ("cloudstack", include_str!("../../former/cloudstack.yaml")),
        ("openstack", include_str!("../../former/openstack.yaml")),
    ] {
        cluster.plane.apply(former).await.unwrap();
        let before = Cluster::only(cluster.workloads().await);
        assert!(!before.image().contains("bowline"));

        // Whoever forgets half of it does no harm, and runs it again.
        let values = json!({ "cloud": cloud });
        let forgotten = cluster.try_to_upgrade(&values, &["--take-ownership"]);
        let words = forgotten.unwrap_err().to_string();
        assert!(words.contains("conflict with"), "{cloud}: {words}");
        let still = Cluster::only(cluster.workloads().await);
        assert_eq!(still.image(), before.image(), "{cloud}");

        cluster.upgrade(&values, &["--take-ownership", "--server-side=false"]);
        let after = Cluster::only(cluster.workloads().await);
        assert_eq!(after.metadata.uid, before.metadata.uid, "{cloud}");
        assert_eq!(after.selector, before.selector, "{cloud}");
        assert!(after.image().starts_with("registry.example/bowline:"), "{cloud}");
        // What the former manifest mounts is mounted once, and nothing of it is left over.
        assert_eq!(after.volumes(), before.volumes(), "{cloud}");
        assert!(
            !cluster.resources().await.contains(&"endpoints".to_owned()),
            "{cloud}"
        );

        cluster.uninstall();
        cluster.plane.apply(former).await.unwrap();
        let back = Cluster::only(cluster.workloads().await);
        assert_eq!(back.image(), before.image(), "{cloud}");
        assert!(cluster.resources().await.contains(&"nodes".to_owned()), "{cloud}");
        remove(cluster).await;
    }
}

async fn admission_policies_refuse_on_request(cluster: &Cluster) {
    let mut values = with_credentials("cloudscale");
    values["admissionPolicies"] = json!({ "enabled": true, "action": "Deny" });
    values["flags"] =
        json!({ "load-balancer-class": "example.com/ours", "load-balancer-without-class": false });
    cluster.upgrade(&values, &[]);
    let services: Api<Service> = Api::default_namespaced(cluster.client());
    let of_class = |class: Option<&str>| -> Service {
        serde_json::from_value(json!({
            "metadata": {
                "name": "web",
                "annotations": { "k8s.cloudscale.ch/loadbalancer-flavour": "lb-standard" },
            },
            "spec": { "type": "LoadBalancer", "loadBalancerClass": class, "ports": [{ "port": 80 }] },
        }))
        .unwrap()
    };
    let careless = of_class(Some("example.com/ours"));
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    // The API server may need a while until it goes by a new policy.
    let deadline = Instant::now() + Duration::from_secs(60);
    let said = loop {
        match services.create(&dry, &careless).await {
            Err(error) => break error.to_string(),
            Ok(_) => assert!(Instant::now() < deadline, "nobody complains"),
        }
    };
    assert!(
        said.contains("(is it k8s.cloudscale.ch/loadbalancer-flavor?)"),
        "{said}"
    );
    for anothers in [None, Some("example.com/theirs")] {
        services.create(&dry, &of_class(anothers)).await.unwrap();
    }
    cluster.uninstall();
    while let Err(error) = services.create(&dry, &careless).await {
        assert!(Instant::now() < deadline, "still refused: {error}");
    }
}

/// Makes room for the next manifest.
async fn remove(cluster: &Cluster) {
    let sets: Api<DaemonSet> = Api::namespaced(cluster.client(), NAMESPACE);
    let deployments: Api<Deployment> = Api::namespaced(cluster.client(), NAMESPACE);
    let (delete, all) = (kube::api::DeleteParams::background(), ListParams::default());
    sets.delete_collection(&delete, &all).await.unwrap();
    deployments.delete_collection(&delete, &all).await.unwrap();
    assert!(cluster.workloads().await.is_empty());
}
