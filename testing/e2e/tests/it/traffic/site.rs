//! What runs in a cluster beside the manager: a controller of Deployments and one of namespaces, kubelets, a kube-proxy on each Node, the
//! workload, and, where no manager and no simulated cloud have it, a load balancer. All on the loopback interface.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_kube_api::KubeApi;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// How often the parts of the cluster look what there is to do.
const PERIOD: Duration = Duration::from_millis(5);

const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

/// How the cluster is.
#[derive(Clone, Default)]
pub(crate) struct Behaviour {
    /// There is a load balancer here, without a manager and a cloud.
    pub(crate) balances: bool,
    /// It gets an address.
    pub(crate) gives_no_address: bool,
    /// It does not let clients in.
    pub(crate) is_closed: bool,
    /// It lets go of a Service that is deleted.
    pub(crate) keeps: bool,
    /// The image cannot be pulled.
    pub(crate) pulls_nothing: bool,
    /// Nodes that answer at no port.
    pub(crate) silent: Vec<String>,
    /// kube-proxy has the workload see the Node, whatever the policy.
    pub(crate) loses_source: bool,
}

/// The cluster, as long as this lives.
pub(crate) struct Site {
    pub(crate) api: KubeApi,
    shared: Arc<Shared>,
    _actors: AbortOnDropHandle<()>,
}

struct Shared {
    api: KubeApi,
    behaviour: Mutex<Behaviour>,
    block: u8,
    turn: AtomicUsize,
}

/// Who answers at an address.
#[derive(Clone, PartialEq)]
enum Role {
    Balancer { service: String },
    NodePort { service: String, node: String },
    HealthCheck { service: String, node: String },
}

/// The second octet of loopback addresses that no other site has.
pub(crate) fn block() -> u8 {
    static TAKEN: AtomicU8 = AtomicU8::new(0);
    // Another run of these tests may be under way on this machine.
    u8::try_from(std::process::id() % 150).unwrap() + 90 + TAKEN.fetch_add(1, Ordering::Relaxed) % 15
}

impl Site {
    /// With these Nodes, each with an address of its own.
    pub(crate) fn start(behaviour: Behaviour, nodes: &[&str]) -> Self {
        let block = block();
        let api = KubeApi::builder()
            .seed(u64::from(block) << 32 | u64::from(std::process::id()))
            .build();
        for (number, name) in (1..).zip(nodes) {
            let address = Ipv4Addr::new(127, block, 0, number).to_string();
            let node = json!({
                "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
                "status": {
                    "conditions": [{ "type": "Ready", "status": "True" }],
                    "addresses": [{ "type": "InternalIP", "address": address }],
                },
            });
            api.apply_json(node).unwrap();
        }
        Self::beside(api, behaviour, block)
    }

    /// In a cluster that is there.
    pub(crate) fn beside(api: KubeApi, behaviour: Behaviour, block: u8) -> Self {
        let shared = Arc::new(Shared {
            api: api.clone(),
            behaviour: Mutex::new(behaviour),
            block,
            turn: AtomicUsize::new(0),
        });
        let actors = tokio::spawn(act(Arc::clone(&shared)));
        Self {
            api,
            shared,
            _actors: AbortOnDropHandle::new(actors),
        }
    }

    /// Changes how it is.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.shared.behaviour.lock().unwrap());
    }
}

async fn act(shared: Arc<Shared>) {
    let mut open: BTreeMap<SocketAddr, (Role, AbortOnDropHandle<()>)> = BTreeMap::new();
    let mut pods = 0;
    loop {
        let behaviour = shared.behaviour.lock().unwrap().clone();
        shared.run_deployments(&behaviour, &mut pods);
        shared.api.empty_namespaces();
        if behaviour.balances {
            shared.run_balancer(&behaviour);
        }
        let wanted = shared.openings(&behaviour);
        open.retain(|address, (role, _)| wanted.get(address) == Some(role));
        for (address, role) in wanted {
            if open.contains_key(&address) {
                continue;
            }
            if let Ok(listener) = TcpListener::bind(address).await {
                let task = tokio::spawn(listen(listener, Arc::clone(&shared), role.clone()));
                open.insert(address, (role, AbortOnDropHandle::new(task)));
            }
        }
        tokio::time::sleep(PERIOD).await;
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn key(object: &Value) -> String {
    format!(
        "{}/{}",
        text(object, "/metadata/namespace"),
        text(object, "/metadata/name")
    )
}

fn port(value: &Value) -> Option<u16> {
    value
        .as_u64()
        .and_then(|port| u16::try_from(port).ok())
        .filter(|port| *port > 0)
}

impl Shared {
    fn nodes(&self) -> Vec<Value> {
        self.api.objects("Node")
    }

    fn address_of(&self, node: &str) -> Option<IpAddr> {
        let node = self.api.object("Node", "", node)?;
        let mut all = node["status"]["addresses"].as_array()?.iter();
        let internal = all.find(|it| it["type"] == "InternalIP")?;
        internal["address"].as_str()?.parse().ok()
    }

    fn services(&self) -> Vec<Value> {
        let mut all = self.api.objects("Service");
        all.retain(|it| it["spec"]["type"] == "LoadBalancer");
        all
    }

    fn service(&self, wanted: &str) -> Option<Value> {
        self.services().into_iter().find(|it| key(it) == wanted)
    }

    /// Pods come and go at once, on the Nodes in turn.
    fn run_deployments(&self, behaviour: &Behaviour, made: &mut usize) {
        let mut wanted = BTreeSet::new();
        for deployment in self.api.objects("Deployment") {
            let (namespace, labels) = (
                text(&deployment, "/metadata/namespace"),
                &deployment["spec"]["template"]["metadata"]["labels"],
            );
            let replicas = deployment["spec"]["replicas"].as_u64().unwrap_or(1) as usize;
            let mut own = self.pods_of(namespace, labels);
            while own.len() < replicas {
                *made += 1;
                let pod = self.pod(&deployment, *made, &own, behaviour);
                let Ok(pod) = self.api.apply_json(pod) else { break };
                own.push(pod);
            }
            own.truncate(replicas);
            wanted.extend(own.iter().map(key));
        }
        for pod in self.api.objects("Pod") {
            if !wanted.contains(&key(&pod)) {
                self.api.delete(
                    "Pod",
                    text(&pod, "/metadata/namespace"),
                    text(&pod, "/metadata/name"),
                );
            }
        }
    }

    fn pods_of(&self, namespace: &str, labels: &Value) -> Vec<Value> {
        let mut pods = self.api.objects("Pod");
        pods.retain(|it| text(it, "/metadata/namespace") == namespace && it["metadata"]["labels"] == *labels);
        pods
    }

    fn pod(&self, deployment: &Value, number: usize, others: &[Value], behaviour: &Behaviour) -> Value {
        let template = &deployment["spec"]["template"];
        let nodes = self.nodes();
        let load = |node: &str| others.iter().filter(|it| it["spec"]["nodeName"] == node).count();
        let node = nodes
            .iter()
            .map(|it| text(it, "/metadata/name"))
            .min_by_key(|name| load(name));
        let mut spec = template["spec"].clone();
        spec["nodeName"] = json!(node);
        let status = match behaviour.pulls_nothing {
            false => json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] }),
            true => json!({
                "phase": "Pending",
                "conditions": [{ "type": "Ready", "status": "False", "reason": "ContainersNotReady" }],
                "containerStatuses": [{
                    "name": "workload",
                    "state": { "waiting": { "reason": "ImagePullBackOff", "message": "Back-off pulling image" } },
                }],
            }),
        };
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("{}-{number}", text(deployment, "/metadata/name")),
                "namespace": deployment["metadata"]["namespace"],
                "labels": template["metadata"]["labels"],
            },
            "spec": spec, "status": status,
        })
    }

    fn run_balancer(&self, behaviour: &Behaviour) {
        for mut service in self.services() {
            let is_leaving = service["metadata"]["deletionTimestamp"].is_string();
            let finalizers = match is_leaving && !behaviour.keeps {
                true => json!([]),
                false => json!([FINALIZER]),
            };
            let ingress = match behaviour.gives_no_address {
                true => json!([]),
                false => json!([{ "ip": self.balancer() }]),
            };
            if service["metadata"]["finalizers"] == finalizers
                && service["status"]["loadBalancer"]["ingress"] == ingress
            {
                continue;
            }
            service["metadata"]["finalizers"] = finalizers;
            service["status"] = json!({ "loadBalancer": { "ingress": ingress } });
            // Somebody may have changed it in between: then the next time.
            let _ = self.api.apply_json(service);
        }
    }

    fn balancer(&self) -> IpAddr {
        Ipv4Addr::new(127, self.block, 1, 1).into()
    }

    /// Where somebody answers.
    fn openings(&self, behaviour: &Behaviour) -> BTreeMap<SocketAddr, Role> {
        let mut all = BTreeMap::new();
        for service in self.services() {
            let spec = &service["spec"];
            let name = key(&service);
            for node in self.nodes() {
                let node = text(&node, "/metadata/name").to_owned();
                let Some(address) = self
                    .address_of(&node)
                    .filter(|_| !behaviour.silent.contains(&node))
                else {
                    continue;
                };
                let is_local = spec["externalTrafficPolicy"] == "Local";
                let pods = self.pods_of(text(&service, "/metadata/namespace"), &spec["selector"]);
                // Elsewhere kube-proxy drops what comes.
                let takes = !is_local || pods.iter().any(|pod| text(pod, "/spec/nodeName") == node);
                if let Some(port) = port(&spec["ports"][0]["nodePort"]).filter(|_| takes) {
                    let role = Role::NodePort {
                        service: name.clone(),
                        node: node.clone(),
                    };
                    all.insert(SocketAddr::new(address, port), role);
                }
                if let Some(port) = port(&spec["healthCheckNodePort"]) {
                    let role = Role::HealthCheck {
                        service: name.clone(),
                        node,
                    };
                    all.insert(SocketAddr::new(address, port), role);
                }
            }
            let has_balancer = behaviour.balances && !behaviour.gives_no_address && !behaviour.is_closed;
            if let Some(port) = port(&spec["ports"][0]["port"]).filter(|_| has_balancer) {
                all.insert(
                    SocketAddr::new(self.balancer(), port),
                    Role::Balancer { service: name },
                );
            }
        }
        all
    }

    /// Which pod answers, with its Node.
    fn chosen(&self, role: &Role) -> Option<(String, String)> {
        let (Role::Balancer { service } | Role::NodePort { service, .. } | Role::HealthCheck { service, .. }) =
            role;
        let service = self.service(service)?;
        let is_local = service["spec"]["externalTrafficPolicy"] == "Local";
        let mut pods = self.pods_of(
            text(&service, "/metadata/namespace"),
            &service["spec"]["selector"],
        );
        let silent = self.behaviour.lock().unwrap().silent.clone();
        pods.retain(|pod| {
            let on = text(pod, "/spec/nodeName");
            match role {
                Role::Balancer { .. } if is_local => {
                    let node = self.api.object("Node", "", on).unwrap_or_default();
                    let is_excluded =
                        node["metadata"]["labels"]["node.kubernetes.io/exclude-from-external-load-balancers"]
                            .is_string();
                    !is_excluded && !silent.iter().any(|it| it == on)
                }
                Role::Balancer { .. } => true,
                Role::HealthCheck { node, .. } => on == node,
                Role::NodePort { node, .. } => !is_local || on == node,
            }
        });
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let pod = pods.get(turn % pods.len().max(1))?;
        Some((
            text(pod, "/metadata/name").to_owned(),
            text(pod, "/spec/nodeName").to_owned(),
        ))
    }

    /// What a client is answered; `None`: nothing.
    fn answer(&self, role: &Role, client: SocketAddr) -> Option<String> {
        let chosen = self.chosen(role);
        if matches!(role, Role::HealthCheck { .. }) {
            let status = if chosen.is_some() {
                "200 OK"
            } else {
                "503 Service Unavailable"
            };
            return Some(format!("HTTP/1.0 {status}\r\ncontent-length: 0\r\n\r\n"));
        }
        let (pod, node) = chosen?;
        let (Role::Balancer { service } | Role::NodePort { service, .. } | Role::HealthCheck { service, .. }) =
            role;
        let is_local = self.service(service)?["spec"]["externalTrafficPolicy"] == "Local";
        let is_seen = is_local && !self.behaviour.lock().unwrap().loses_source;
        let source = match is_seen {
            true => client.ip(),
            false => self.address_of(&node)?,
        };
        Some(format!(
            "HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\n\r\nHostname: {pod}\nIP: 10.0.0.1\nRemoteAddr: {source}:4711\nGET / HTTP/1.0\n"
        ))
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>, role: Role) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                let Ok((stream, client)) = accepted else { return };
                connections.spawn(reply(stream, client, Arc::clone(&shared), role.clone()));
            }
        }
    }
}

async fn reply(mut stream: TcpStream, client: SocketAddr, shared: Arc<Shared>, role: Role) {
    let mut asked = Vec::new();
    let mut piece = [0; 1024];
    while !asked.windows(4).any(|it| it == b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(length) if length > 0 => asked.extend_from_slice(&piece[..length]),
            _ => return,
        }
    }
    if let Some(answer) = shared.answer(&role, client) {
        // Who went away early does no harm.
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}
