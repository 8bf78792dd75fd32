//! A real API server that has the policies, each cloud's in a namespace of its own, and tells what it says to a Service.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bowline_checks::admission::{Part, Policy, policies};
use bowline_cloud_provider::Service;
use bowline_control_plane::{ControlPlane, Options, Version, binaries_or_skip};
use http::{Method, Request};
use kube::client::Body;
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// The API server may need a while until it goes by a new policy.
const DEADLINE: Duration = Duration::from_secs(60);

/// The servers that run, each with what its policies do to a Service that they complain of. To start one and have it take up
/// the policies costs more than all that a test asks it, so tests share them: what they make there has names of its own.
static RUNNING: Mutex<Vec<(&str, Weak<ControlPlane>)>> = Mutex::const_new(Vec::new());

pub(crate) struct ApiServer {
    /// Ends with the last test that has it.
    _plane: Arc<ControlPlane>,
    client: kube::Client,
}

/// What the API server says to a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

impl Answer {
    /// All that is said, in one text.
    pub(crate) fn said(&self) -> String {
        let message = self.body["message"].as_str().unwrap_or_default();
        format!("{}\n{message}", self.warnings.join("\n"))
    }

    fn is_unsaid(&self) -> bool {
        self.said().trim().is_empty()
    }

    #[track_caller]
    pub(crate) fn is_silent(&self) {
        assert!(self.status < 300 && self.warnings.is_empty(), "{self:?}");
    }
}

impl ApiServer {
    /// One with all policies, which runs already or is started. An error in an expression counts as a complaint here, so that
    /// none goes unseen.
    pub(crate) async fn start(action: &'static str) -> Option<Self> {
        let version = Version::wanted().unwrap();
        binaries_or_skip(version)?;
        let mut running = RUNNING.lock().await;
        let shared = running.iter().find(|it| it.0 == action);
        if let Some(plane) = shared.and_then(|it| it.1.upgrade()) {
            return Some(Self::of(plane).await);
        }
        let options = Options {
            version,
            ..Options::default()
        };
        let plane = Arc::new(ControlPlane::start(options).await.unwrap());
        let server = Self::of(Arc::clone(&plane)).await;
        server.take_up_policies(action).await;
        running.retain(|it| it.0 != action);
        running.push((action, Arc::downgrade(&plane)));
        Some(server)
    }

    /// With a client of its own: a client's tasks end with the test that made it.
    async fn of(plane: Arc<ControlPlane>) -> Self {
        let kubeconfig = Kubeconfig::from_yaml(plane.admin().text()).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default())
            .await
            .unwrap();
        Self {
            client: kube::Client::try_from(config).unwrap(),
            _plane: plane,
        }
    }

    async fn take_up_policies(&self, action: &str) {
        for policy in policies() {
            let name = format!("bowline-{}-{}", policy.cloud, policy.part.name());
            let namespace = json!({ "metadata": { "name": policy.cloud } });
            self.send(Method::POST, "/api/v1/namespaces", &namespace).await;
            let group = "/apis/admissionregistration.k8s.io/v1";
            let path = format!("{group}/validatingadmissionpolicies");
            let made = self.send(Method::POST, &path, &object(&policy, &name)).await;
            assert_eq!(made.status, 201, "{made:?}");
            made.is_silent();
            let binding = json!({
                "metadata": { "name": name },
                "spec": {
                    "policyName": name,
                    "validationActions": [action],
                    "matchResources": {
                        "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": policy.cloud } },
                    },
                },
            });
            let path = format!("{group}/validatingadmissionpolicybindings");
            let bound = self.send(Method::POST, &path, &binding).await;
            assert_eq!(bound.status, 201, "{bound:?}");
        }
        self.wait_until_policies_count().await;
    }

    /// Until a Service with something wrong, and a change that comes too late, are complained of in every namespace.
    async fn wait_until_policies_count(&self) {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        let wrong = [
            ("cloudscale", "k8s.cloudscale.ch/loadbalancer-ip-mode"),
            ("phoenixnap", "phoenixnap.com/ip-locations"),
            (
                "cloudstack",
                "service.beta.kubernetes.io/cloudstack-load-balancer-ip-mode",
            ),
            ("openstack", "loadbalancer.openstack.org/keep-floatingip"),
        ];
        for (cloud, key) in wrong {
            let wrong = service(&[(key, "nonsense")]);
            while self.create(cloud, &wrong).await.is_unsaid() {
                assert!(tokio::time::Instant::now() < deadline, "no policy for {cloud}");
            }
        }
        // What is looked at in updates only stands in policies of its own.
        let late = [
            (
                "cloudscale",
                "k8s.cloudscale.ch/loadbalancer-uuid",
                "k8s.cloudscale.ch/loadbalancer-flavor",
                ["lb-standard", "lb-flex-4-2"],
            ),
            ("phoenixnap", "", "phoenixnap.com/ip-location", ["NLD", "ASH"]),
            (
                "openstack",
                "loadbalancer.openstack.org/load-balancer-id",
                "loadbalancer.openstack.org/flavor-id",
                ["small", "large"],
            ),
        ];
        for (cloud, id, key, [before, after]) in late {
            let mut settled = if id.is_empty() {
                service(&[(key, before)])
            } else {
                service(&[(key, before), (id, "1a2b3c4d-1a2b-3c4d-5e6f-1a2b3c4d5e6f")])
            };
            settled["metadata"]["name"] = "settled".into();
            if id.is_empty() {
                settled["spec"]["loadBalancerIP"] = "192.0.2.7".into();
            }
            let path = format!("/api/v1/namespaces/{cloud}/services");
            let made = self.send(Method::POST, &path, &settled).await;
            assert_eq!(made.status, 201, "{made:?}");
            let status = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": "192.0.2.7" }] } } });
            let served = self
                .send(Method::PATCH, &format!("{path}/settled/status"), &status)
                .await;
            assert_eq!(served.status, 200, "{served:?}");
            let path = format!("{path}/settled?dryRun=All");
            let change = json!({ "metadata": { "annotations": { key: after } } });
            while self.send(Method::PATCH, &path, &change).await.is_unsaid() {
                assert!(
                    tokio::time::Instant::now() < deadline,
                    "no policy for updates of {cloud}"
                );
            }
        }
    }

    /// What is said to a new Service. Nothing is kept.
    pub(crate) async fn create(&self, cloud: &str, service: &Value) -> Answer {
        let path = format!("/api/v1/namespaces/{cloud}/services?dryRun=All");
        self.send(Method::POST, &path, service).await
    }

    /// Until the API server's cache holds this object as the store does.
    pub(crate) async fn wait_until_cached(&self, path: &str) {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        let version = async |query| {
            let read = self
                .send(Method::GET, &format!("{path}{query}"), &Value::Null)
                .await;
            read.body["metadata"]["resourceVersion"].clone()
        };
        while version("").await != version("?resourceVersion=0").await {
            assert!(tokio::time::Instant::now() < deadline, "{path} is not cached");
        }
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: &Value) -> Answer {
        let request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header(
                "content-type",
                if method == Method::PATCH {
                    "application/merge-patch+json"
                } else {
                    "application/json"
                },
            )
            .body(Body::from(body.to_string().into_bytes()))
            .unwrap();
        let response = self.client.send(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let warnings = parts.headers.get_all("warning").iter();
        let body = body.collect_bytes().await.unwrap();
        Answer {
            status: parts.status.as_u16(),
            warnings: warnings
                .map(|it| warning(&String::from_utf8_lossy(it.as_bytes())))
                .collect(),
            body: serde_json::from_slice(&body).unwrap_or_default(),
        }
    }
}

/// The text in a header `299 - "text"`.
fn warning(header: &str) -> String {
    let text = header
        .strip_prefix("299 - \"")
        .and_then(|text| text.strip_suffix('"'));
    text.unwrap_or(header).replace("\\\"", "\"").replace("\\\\", "\\")
}

/// The policy as the API server takes it, with errors that count.
fn object(policy: &Policy, name: &str) -> Value {
    let named = |entries: &[(&'static str, String)]| -> Vec<Value> {
        let entries = entries.iter();
        entries
            .map(|(name, expression)| json!({ "name": name, "expression": expression }))
            .collect()
    };
    let validations: Vec<Value> = policy
        .validations
        .iter()
        .map(|it| json!({ "expression": it.expression, "message": it.message, "messageExpression": it.said }))
        .collect();
    json!({
        "metadata": { "name": name },
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [{
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": policy.operations,
                    "resources": ["services"],
                }],
            },
            "matchConditions": named(&policy.conditions),
            "variables": named(&policy.variables),
            "validations": validations,
        },
    })
}

/// A Service with a load balancer and these annotations.
pub(crate) fn service(annotations: &[(&str, &str)]) -> Value {
    let annotations: serde_json::Map<String, Value> = annotations
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).into()))
        .collect();
    json!({
        "metadata": { "name": "web", "annotations": annotations },
        "spec": {
            "type": "LoadBalancer",
            "ports": [{ "name": "http", "port": 80, "protocol": "TCP" }],
        },
    })
}

/// The same for a reader, which sees what the API server fills in.
pub(crate) fn as_read(service: &Value) -> Service {
    let mut service: Service = serde_json::from_value(service.clone()).unwrap();
    service.metadata.uid = Some("u-1".to_owned());
    service.metadata.namespace = Some("default".to_owned());
    let spec = service.spec.get_or_insert_default();
    spec.session_affinity.get_or_insert_with(|| "None".to_owned());
    for (number, port) in spec.ports.iter_mut().flatten().enumerate() {
        port.protocol.get_or_insert_with(|| "TCP".to_owned());
        port.node_port
            .get_or_insert(30_000 + i32::try_from(number).unwrap());
    }
    service
}

/// What the reader of this cloud complains of.
pub(crate) fn complaints(cloud: &str, service: &Value) -> Vec<String> {
    let service = as_read(service);
    match cloud {
        "cloudscale" => bowline_cloudscale::complaints(&service),
        "cloudstack" => bowline_cloudstack::complaints(&service),
        "openstack" => bowline_openstack::complaints(&service),
        // Its reader takes every text.
        _ => Vec::new(),
    }
}

pub(crate) fn policy(cloud: &str, part: Part) -> Policy {
    policies()
        .into_iter()
        .find(|it| it.cloud == cloud && it.part == part)
        .unwrap()
}
