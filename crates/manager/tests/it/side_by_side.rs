//! Several managers in one cluster, and several clouds in one manager.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};

use bowline_cloud_provider::several::{Cloud, Several};
use bowline_cloud_provider::{
    AbsenceProof, AddressType, CloudProvider, FoundBy, Instance, InstanceAnswer, InstanceMetadata,
    InstanceQuery, InstanceResult, InstanceState, InstancesV2, LoadBalancer, NodeAddress, PowerState,
    ServiceClasses,
};
use bowline_kube_api::KubeApi;
use bowline_manager::config::{Config, ElectionConfig, Ownership, Platforms};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::process::{Process, SECOND, api_server, pass, until};

/// A cloud that is no more than the names of its machines.
#[derive(Clone)]
struct Machines {
    name: &'static str,
    machines: Arc<Mutex<BTreeSet<&'static str>>>,
    /// It takes questions and never answers.
    hangs: bool,
}

impl Machines {
    fn of(name: &'static str, machines: &[&'static str]) -> Self {
        Self {
            name,
            machines: Arc::new(Mutex::new(machines.iter().copied().collect())),
            hangs: false,
        }
    }

    fn answer(&self, query: &InstanceQuery) -> InstanceAnswer {
        let id = query.node.provider_id.as_deref();
        let own = id.map(|id| id.strip_prefix(self.name).and_then(|id| id.strip_prefix("://")));
        let (name, found_by) = match own {
            Some(None) => return InstanceAnswer::Foreign,
            Some(Some(name)) => (name, FoundBy::Id),
            None => (query.node.name.as_str(), FoundBy::Name),
        };
        if !self.machines.lock().unwrap().contains(name) {
            return InstanceAnswer::Absent(AbsenceProof::new("404"));
        }
        InstanceAnswer::Present(Box::new(Instance {
            metadata: InstanceMetadata {
                provider_id: Some(format!("{}://{name}", self.name)),
                addresses: vec![NodeAddress::new(AddressType::InternalIp, "10.0.0.1")],
                ..InstanceMetadata::default()
            },
            power: PowerState::On,
            state: InstanceState::default(),
            found_by,
        }))
    }
}

impl InstancesV2 for Machines {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        let answers = queries.iter().map(|query| Ok(self.answer(query))).collect();
        match self.hangs {
            true => Box::pin(std::future::pending()),
            false => Box::pin(async { answers }),
        }
    }
}

impl CloudProvider for Machines {
    fn name(&self) -> &'static str {
        self.name
    }

    fn has_cluster_id(&self) -> bool {
        true
    }

    fn instances(&self) -> Option<Arc<dyn InstancesV2>> {
        Some(Arc::new(self.clone()))
    }

    fn load_balancer(&self) -> Option<Arc<dyn LoadBalancer>> {
        None
    }
}

fn config(lease: &str) -> Config {
    let election = ElectionConfig {
        name: lease.to_owned(),
        ..ElectionConfig::default()
    };
    let mut config = Config {
        election: Some(election),
        ..Config::default()
    };
    config.settings.ownership = Some(Ownership {
        platforms: Platforms::OfProvider,
        wait: 30 * SECOND,
    });
    config
}

fn put(api: &KubeApi, name: &str, id: Option<&str>, is_new: bool, ready: &str) {
    let taint = json!({ "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule" });
    let node = json!({
        "kind": "Node", "apiVersion": "v1", "metadata": { "name": name },
        "spec": { "providerID": id, "taints": if is_new { json!([taint]) } else { json!([]) } },
        "status": { "conditions": [{ "type": "Ready", "status": ready }] },
    });
    api.apply_json(node).unwrap();
}

fn id(api: &KubeApi, node: &str) -> Option<Value> {
    let node = api.object("Node", "", node)?;
    let is_new = node["spec"]["taints"]
        .as_array()
        .is_some_and(|taints| !taints.is_empty());
    (!is_new).then(|| node["spec"]["providerID"].clone())
}

/// What was told of Nodes.
fn told(api: &KubeApi) -> Vec<String> {
    let events = api.objects("Event").into_iter();
    let of_nodes = events.filter(|event| event["involvedObject"]["kind"] == "Node");
    of_nodes
        .map(|event| format!("{} {}", event["involvedObject"]["name"], event["reason"]))
        .collect()
}

/// Nodes of two clouds, of bare metal, and of nobody.
async fn each_node_is_its_own_clouds(api: &KubeApi, one: &Machines) {
    put(api, "a", None, true, "True");
    put(api, "b", None, true, "True");
    put(api, "c", Some("one://c"), false, "True");
    put(api, "metal", Some("metal://1"), true, "True");
    put(api, "edge", None, false, "Unknown");
    until("both are initialized", || {
        id(api, "a") == Some(json!("one://a")) && id(api, "b") == Some(json!("two://b"))
    })
    .await;
    one.machines.lock().unwrap().remove("a");
    put(api, "a", Some("one://a"), false, "Unknown");
    until("a is gone", || api.object("Node", "", "a").is_none()).await;
    pass(600).await;
    for node in ["b", "c", "edge", "metal"] {
        assert!(api.object("Node", "", node).is_some(), "{node}");
    }
    assert_eq!(id(api, "metal"), None, "its taint is for its own manager");
    let told = told(api);
    let is_of_a = |line: &String| line.starts_with("\"a\"") || line.contains("Synced");
    assert!(told.iter().all(is_of_a), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn two_managers_do_nothing_to_each_other_s_nodes() {
    let api = api_server();
    let (one, two) = (Machines::of("one", &["a", "c"]), Machines::of("two", &["b"]));
    let asked = || Arc::new(AtomicUsize::new(0));
    let first = Process::with_provider(&api, "first", config("one"), Arc::new(one.clone()), asked());
    let second = Process::with_provider(&api, "second", config("two"), Arc::new(two), asked());
    each_node_is_its_own_clouds(&api, &one).await;
    for process in [&first, &second] {
        let page = process.metrics.render().unwrap();
        let skipped =
            "cloudprovider_node_ownership_skipped_total{controller=\"node\",reason=\"scheme_mismatch\"}";
        assert!(page.contains(skipped), "{page}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_clouds_in_one_process_are_one_lease_and_each_has_its_nodes() {
    let api = api_server();
    let (one, two) = (Machines::of("one", &["a", "c"]), Machines::of("two", &["b"]));
    let cloud = |cloud: &Machines, serves_unclassed| Cloud {
        provider: Arc::new(cloud.clone()),
        classes: ServiceClasses::new([], serves_unclassed).unwrap(),
    };
    let clouds = Several::new(vec![cloud(&one, true), cloud(&two, false)], true).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let _process = Process::with_provider(&api, "both", config("both"), Arc::new(clouds), asked);
    each_node_is_its_own_clouds(&api, &one).await;
    assert_eq!(api.objects("Lease").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_one_cloud_shows_does_not_vouch_for_the_credentials_of_another() {
    let api = api_server();
    // With these credentials the first cloud shows nothing of what is there.
    let (one, two) = (Machines::of("one", &[]), Machines::of("two", &["b"]));
    let cloud = |cloud: &Machines, serves_unclassed| Cloud {
        provider: Arc::new(cloud.clone()),
        classes: ServiceClasses::new([], serves_unclassed).unwrap(),
    };
    let clouds = Several::new(vec![cloud(&one, true), cloud(&two, false)], true).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let process = Process::with_provider(&api, "both", config("both"), Arc::new(clouds), asked);
    put(&api, "a", Some("one://a"), false, "Unknown");
    put(&api, "c", Some("one://c"), false, "True");
    put(&api, "b", Some("two://b"), false, "True");
    let frozen = || {
        process
            .metrics
            .render()
            .unwrap()
            .contains("node_deletions_frozen 1\n")
    };
    until("the deletion is frozen", frozen).await;
    pass(600).await;
    assert!(api.object("Node", "", "a").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_hangs_delays_no_deletion_of_another() {
    // With a Node that vouches for the credentials of its cloud, and without one.
    for vouched in [true, false] {
        let api = api_server();
        let (one, two) = (Machines::of("one", &["c"]), Machines::of("two", &["b"]));
        let two = Machines { hangs: true, ..two };
        let cloud = |cloud: &Machines, serves_unclassed| Cloud {
            provider: Arc::new(cloud.clone()),
            classes: ServiceClasses::new([], serves_unclassed).unwrap(),
        };
        let clouds = Several::new(vec![cloud(&one, true), cloud(&two, false)], true).unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let _process = Process::with_provider(&api, "both", config("both"), Arc::new(clouds), asked);
        put(&api, "b", Some("two://b"), false, "True");
        put(&api, "lost", Some("two://lost"), false, "Unknown");
        if vouched {
            put(&api, "c", Some("one://c"), false, "True");
        }
        until("it leads", || !api.objects("Lease").is_empty()).await;
        pass(10).await;
        put(&api, "a", Some("one://a"), false, "Unknown");
        let lost = Instant::now();
        until("a is gone", || api.object("Node", "", "a").is_none()).await;
        let took = lost.elapsed();
        assert!(took >= 5 * SECOND && took <= 6 * SECOND, "{took:?}");
        assert!(api.object("Node", "", "lost").is_some());
    }
}
