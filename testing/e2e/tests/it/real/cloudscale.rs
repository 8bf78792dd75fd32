//! cloudscale.ch: how the program comes to it, and killed at every write.

use std::path::Path;

use bowline_cloudscale_sim::kit::CloudService;
use bowline_cloudscale_sim::kit::project::Project;
use bowline_cloudscale_sim::{Access, CloudscaleSim, ServerSpec};
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::deaths::Mortal;
use super::life::Life;
use super::site::{self, Cloud};

pub(super) type Site = site::Site<CloudscaleSim>;

const TOKEN: &str = "Hn3pVd8yGc6tWq1zXe9uRs5b";

/// The role of the cloudscale manager as its released manifest has it, word by word: not one verb more.
pub(super) const ROLE: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:cloud-controller-manager"}
rules:
- {apiGroups: [""], resources: [events], verbs: [create, patch, update]}
- {apiGroups: [""], resources: [nodes], verbs: ["*"]}
- {apiGroups: [""], resources: [nodes/status], verbs: [patch]}
- {apiGroups: [""], resources: [services], verbs: [list, patch, update, watch]}
- {apiGroups: [""], resources: [services/status], verbs: [list, patch, update, watch]}
- {apiGroups: [""], resources: [serviceaccounts], verbs: [create]}
- {apiGroups: [""], resources: [persistentvolumes], verbs: [get, list, update, watch]}
- {apiGroups: [""], resources: [endpoints], verbs: [create, get, list, watch, update]}
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
"#;

impl Cloud for CloudscaleSim {
    const PROGRAM: &'static str = "cloudscale-cloud-controller-manager";
    const ROLE: &'static str = ROLE;

    fn new() -> Self {
        Self::builder().token(TOKEN, Access::ReadWrite).build()
    }

    fn api(&self) -> CloudService {
        self.service()
    }

    fn flags(&self, _url: &str, _directory: &Path) -> Vec<String> {
        ["--allow-untagged-cloud", "--concurrent-service-syncs=2"]
            .map(str::to_owned)
            .into()
    }

    fn variables(&self, url: &str) -> Vec<(String, String)> {
        let url = ("CLOUDSCALE_API_URL".to_owned(), url.to_owned());
        vec![("CLOUDSCALE_ACCESS_TOKEN".to_owned(), TOKEN.to_owned()), url]
    }

    fn add_instance(&self, name: &str) -> String {
        format!("cloudscale://{}", self.add_server(ServerSpec::new(name)))
    }

    fn project(&self) -> &dyn Project {
        self
    }
}

impl Life for CloudscaleSim {
    fn assert_initialised(&self, node: &Node) {
        let labels = node.metadata.labels.as_ref().unwrap();
        assert_eq!(labels["topology.kubernetes.io/zone"], "rma1");
        let status = node.status.as_ref().unwrap();
        let addresses = status.addresses.iter().flatten();
        let kinds: Vec<&str> = addresses.map(|it| it.type_.as_str()).collect();
        assert_eq!(kinds, ["Hostname", "ExternalIP", "ExternalIP", "InternalIP"]);
    }

    fn change(&self) -> Option<Value> {
        let key = "k8s.cloudscale.ch/loadbalancer-timeout-member-data-ms";
        Some(json!({ "metadata": { "annotations": { (key): "120000" } } }))
    }

    fn is_changed(&self) -> bool {
        self.listeners()
            .iter()
            .all(|it| it.timeout_member_data_ms == 120_000)
    }

    fn assert_whole(&self, addresses: &[String], what: &str) {
        let balancers = self.load_balancers();
        assert_eq!(balancers.len(), 1, "{what}");
        let vips = balancers[0].vips.iter();
        let vips: Vec<String> = vips.map(|vip| vip.address.to_string()).collect();
        assert_eq!(addresses, vips, "{what}");
        let found = [self.pools().len(), self.members().len()];
        assert_eq!(found, [2, 4], "{what}");
        let found = [self.listeners().len(), self.health_monitors().len()];
        assert_eq!(found, [2, 2], "{what}");
    }

    fn left(&self) -> Vec<String> {
        self.load_balancers().into_iter().map(|it| it.name).collect()
    }
}

impl Mortal for CloudscaleSim {
    /// A balancer, then for each of two ports a pool, two members, a listener and a monitor; a time for each listener; and
    /// with the balancer everything goes.
    fn writes(&self) -> [u64; 3] {
        [11, 2, 1]
    }

    /// The finalizer, the annotations that name the balancer, and the status; nothing; and the finalizer.
    fn object_writes(&self) -> [u64; 3] {
        [3, 0, 1]
    }
}

#[tokio::test]
async fn killed_at_any_write_it_leaves_one_balancer_for_a_service_that_lives_and_nothing_of_one_that_goes() {
    let Some(site) = Site::start().await else {
        return;
    };
    site.die_at_every_write().await;
}
