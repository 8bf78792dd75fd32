//! CloudStack: under the former manager's rights, and killed at every write.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use bowline_cloudstack_sim::kit::project::Project;
use bowline_cloudstack_sim::kit::{Clock, CloudService};
use bowline_cloudstack_sim::{AddressState, CloudstackSim, NicSpec, VmSpec};
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::deaths::Mortal;
use super::life::Life;
use super::site::{Cloud, Site, ended, named};

/// The role of the former manager as its manifest has it: not one verb more.
const ROLE: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:cloud-controller-manager"}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
- {apiGroups: [""], resources: [configmaps], verbs: [list, watch]}
- {apiGroups: [""], resources: [events], verbs: [create, patch, update]}
- {apiGroups: [""], resources: [nodes], verbs: ["*"]}
- {apiGroups: [""], resources: [nodes/status], verbs: [patch]}
- {apiGroups: [""], resources: [pods], verbs: [list, get]}
- {apiGroups: [""], resources: [services], verbs: [get, list, patch, update, watch]}
- {apiGroups: [""], resources: [services/status], verbs: [list, patch, update, watch]}
- {apiGroups: [""], resources: [serviceaccounts], verbs: [create]}
- {apiGroups: [""], resources: [endpoints], verbs: [create, get, list, watch, update]}
- {apiGroups: [""], resources: [persistentvolumes], verbs: [list, watch, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: "system:cloud-controller-manager:extension-apiserver-authentication-reader"
  namespace: kube-system
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects:
- {kind: ServiceAccount, name: cloud-controller-manager, namespace: kube-system}
"#;

/// A cloud, and a place in it.
pub(super) struct CloudStack {
    sim: CloudstackSim,
    /// Where the instances are.
    network: String,
    /// What Services ask for.
    address: Option<IpAddr>,
}

impl Cloud for CloudStack {
    const PROGRAM: &'static str = "cloudstack-ccm";
    const ROLE: &'static str = ROLE;

    fn new() -> Self {
        let sim = CloudstackSim::builder().clock(Clock::system()).build();
        Self {
            network: sim.network(),
            sim,
            address: None,
        }
    }

    fn api(&self) -> CloudService {
        self.sim.service()
    }

    /// The image names the cloud, and the manifest once more.
    fn flags(&self, url: &str, directory: &Path) -> Vec<String> {
        let path = directory.join("cloud-config");
        let text = format!(
            "[Global]\napi-url = {url}/client/api\napi-key = {}\nsecret-key = {}\n",
            CloudstackSim::API_KEY,
            CloudstackSim::SECRET_KEY
        );
        std::fs::write(&path, text).unwrap();
        vec![
            "--cloud-provider".to_owned(),
            "external-cloudstack".to_owned(),
            format!("--cloud-config={}", path.display()),
            "--cloud-provider=external-cloudstack".to_owned(),
        ]
    }

    fn add_instance(&self, name: &str) -> String {
        let id = self
            .sim
            .add_vm(VmSpec::with_nics(name, [NicSpec::on(&self.network)]));
        format!("external-cloudstack://{id}")
    }

    fn project(&self) -> &dyn Project {
        &self.sim
    }
}

impl Life for CloudStack {
    fn assert_initialised(&self, node: &Node) {
        let labels = node.metadata.labels.as_ref().unwrap();
        for (label, value) in [
            ("node.kubernetes.io/instance-type", "Medium4c8g"),
            ("beta.kubernetes.io/instance-type", "Medium4c8g"),
            ("topology.kubernetes.io/zone", "Zurich-1"),
            ("failure-domain.beta.kubernetes.io/zone", "Zurich-1"),
            ("topology.kubernetes.io/region", "Zurich-1"),
            ("failure-domain.beta.kubernetes.io/region", "Zurich-1"),
        ] {
            assert_eq!(labels[label], value, "{label}");
        }
    }

    fn service(&self, name: &str) -> Value {
        let mut service = named(name);
        if let Some(address) = self.address {
            service["spec"]["loadBalancerIP"] = json!(address);
        }
        service
    }

    fn is_spared(&self, instance: &str) -> bool {
        let rules = self.sim.rules();
        let mut members = rules.iter().map(|rule| self.sim.member_names(&rule.id));
        members.all(|names| names.iter().all(|name| name != instance))
    }

    fn change(&self) -> Option<Value> {
        let key = "service.beta.kubernetes.io/cloudstack-load-balancer-proxy-protocol";
        Some(json!({
            "metadata": { "annotations": { (key): "true" } },
            "spec": { "sessionAffinity": "ClientIP" },
        }))
    }

    fn is_changed(&self) -> bool {
        let rules = self.sim.rules();
        // A rule whose protocol changes is made anew: for a moment there is one less, and then one without members.
        let is_whole = rules.len() == 2;
        let mut rules = rules.iter();
        is_whole
            && rules.all(|rule| {
                let is_served = self.sim.member_names(&rule.id).len() == Self::INSTANCES.len();
                is_served && rule.protocol.as_deref() == Some("tcp-proxy") && rule.algorithm == "source"
            })
    }

    /// One address with a rule and an opening for each of the two ports, and every instance behind them.
    fn assert_whole(&self, addresses: &[String], what: &str) {
        assert_eq!(self.held(), addresses, "{what}");
        if let Some(address) = self.address {
            assert_eq!(addresses, [address.to_string()], "{what}");
        }
        let rules = self.sim.rules();
        assert_eq!((rules.len(), self.openings()), (2, 2), "{what}");
        for rule in rules {
            let mut members = self.sim.member_names(&rule.id);
            members.sort();
            assert_eq!(members, Self::INSTANCES, "{what}");
        }
        assert_eq!(self.sim.check_invariants(), Vec::<String>::new(), "{what}");
    }

    fn left(&self) -> Vec<String> {
        let rules = self.sim.rules().into_iter().map(|it| it.name);
        let openings = (0..self.openings()).map(|_| "an opening".to_owned());
        self.held().into_iter().chain(rules).chain(openings).collect()
    }
}

impl Mortal for CloudStack {
    /// An address that was asked for when the process died is waited for two minutes.
    fn patience(&self) -> Duration {
        Duration::from_secs(180)
    }

    /// An address, then a rule, its members and its opening for each of two ports; another protocol is another rule, which is asked
    /// for beside the old one first, with its members; and with the address everything on it goes.
    fn writes(&self) -> [u64; 3] {
        [7, 8, 1]
    }

    /// At an address that is taken at request: the finalizer, the claim with its mark, that it came, and the status; which
    /// rules are made anew; and the finalizer.
    fn object_writes(&self) -> [u64; 3] {
        [4, 1, 1]
    }
}

impl CloudStack {
    /// An address that nobody has yet.
    fn at_a_free_address() -> Self {
        Self {
            address: "203.0.113.77".parse().ok(),
            ..Self::new()
        }
    }

    /// Public addresses that somebody has, the router's own aside.
    fn held(&self) -> Vec<String> {
        let addresses = self.sim.addresses().into_iter();
        addresses
            .filter(|it| it.state != AddressState::Free && !it.is_source_nat)
            .map(|it| it.address.to_string())
            .collect()
    }

    fn openings(&self) -> usize {
        self.sim.firewall_rules().len()
    }
}

#[tokio::test]
async fn the_former_manifest_runs_unchanged_and_nothing_is_forbidden() {
    let Some(site) = Site::<CloudStack>::start().await else {
        return;
    };
    let mut manager = site.manager_with(&["--leader-elect=true", "--node-monitor-period=1s"]);
    site.lead_a_life(&manager).await;
    ended(&mut manager).await;
    site.assert_nothing_forbidden();
    site.assert_no_puts();
}

#[tokio::test]
async fn killed_at_any_write_it_leaves_one_balancer_for_a_service_that_lives_and_nothing_of_one_that_goes() {
    let Some(site) = Site::start_in(CloudStack::at_a_free_address()).await else {
        return;
    };
    site.die_at_every_write().await;
}
