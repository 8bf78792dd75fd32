//! A stand-in for kube-vip in ARP mode, without the ARP.
//!
//! A cloud without load balancers sends a Service's traffic to the instance that announces its address. kube-vip does that on
//! real nodes: for each Service of type `LoadBalancer` with a `spec.loadBalancerIP`, one node that runs answers for the
//! address, and another one takes over when it falls silent. Here the simulated cloud is told who does. The rest is as with
//! kube-vip: the node's name goes into an annotation, the address and its ports go into the status, and both are written
//! again if somebody has written over them. Real ones need some seconds to notice that a node is lost, the time of a lease.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_kit::dataplane::Transport;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::api::{Api, ApiError, Change, Patch, follow};
use crate::cloud::{Announcement, Announcer, Cloud, Instance};
use crate::narrative::Narrator;
use crate::service::{self, Port};

/// Where the announcing node's name is written.
const HOST: &str = "kube-vip.io/vipHost";

/// After a write that failed.
const PAUSE: Duration = Duration::from_millis(500);

/// Services by UID.
type Wishes = BTreeMap<String, Wish>;

/// A Service whose address is to be announced.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wish {
    name: String,
    path: String,
    address: IpAddr,
    ports: Vec<Port>,
    /// What the Service says now about who announces it.
    host: Option<String>,
    /// `status.loadBalancer.ingress` as it is now.
    ingress: Value,
}

/// Plays kube-vip on all nodes. Drop it to stop.
pub(crate) async fn run(
    api: Api,
    cloud: Arc<dyn Cloud>,
    instances: watch::Receiver<Vec<Instance>>,
    narrator: Narrator,
) {
    let Some(announcer) = cloud.announcer() else {
        return;
    };
    let wishes = watch::Sender::new(Wishes::new());
    let wanted = wishes.subscribe();
    let mut services = Wishes::new();
    let watching = follow(api.clone(), "/api/v1/services", |change: Change<'_>| {
        change.keep(&mut services, Wish::read);
        wishes.send_replace(services.clone());
    });
    tokio::select! {
        biased;
        () = announce(&api, announcer, wanted, instances, &narrator) => {}
        () = watching => {}
    }
}

/// Keeps the announcements, and what Services say about them, as they should be.
async fn announce(
    api: &Api,
    announcer: &dyn Announcer,
    mut wanted: watch::Receiver<Wishes>,
    mut instances: watch::Receiver<Vec<Instance>>,
    narrator: &Narrator,
) {
    let mut announced: BTreeMap<String, Announcement> = BTreeMap::new();
    loop {
        let wishes = wanted.borrow_and_update().clone();
        let next = assign(&announced, &wishes, &instances.borrow_and_update());
        announcer.announce(next.values().cloned().collect());
        differences(&announced, &next)
            .iter()
            .for_each(|line| narrator.tell(line));
        announced = next;
        let mut has_failed = false;
        for (uid, announcement) in &announced {
            if let Some(wish) = wishes.get(uid) {
                let result = wish.publish(api, &announcement.instance, narrator).await;
                // One that is gone is told by the watch.
                has_failed |= result.is_err_and(|error| !error.is_not_found());
            }
        }
        tokio::select! {
            biased;
            changed = wanted.changed() => if changed.is_err() { return },
            changed = instances.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(PAUSE), if has_failed => {}
        }
    }
}

/// Who announces what: who did, as long as its instance runs, else the first one that does.
fn assign(
    announced: &BTreeMap<String, Announcement>,
    wishes: &Wishes,
    instances: &[Instance],
) -> BTreeMap<String, Announcement> {
    let running = || instances.iter().filter(|instance| instance.is_on);
    let assigned = wishes.iter().filter_map(|(uid, wish)| {
        let before = announced.get(uid).map(|announcement| &announcement.instance);
        let instance = running()
            .find(|instance| Some(&instance.name) == before)
            .or_else(|| running().next())?;
        let announcement = Announcement {
            address: wish.address,
            instance: instance.name.clone(),
            ports: wish.ports.clone(),
        };
        Some((uid.clone(), announcement))
    });
    assigned.collect()
}

/// What has changed, in words.
fn differences(
    before: &BTreeMap<String, Announcement>,
    after: &BTreeMap<String, Announcement>,
) -> Vec<String> {
    let place = |announcement: &Announcement| (announcement.address, announcement.instance.clone());
    let lost = before.iter().filter(|(uid, _)| !after.contains_key(*uid));
    let lost = lost.map(|(_, it)| format!("vip     {} is announced by nobody any more", it.address));
    let found = after
        .iter()
        .filter(|(uid, it)| before.get(*uid).map(place) != Some(place(it)));
    let found = found.map(|(_, it)| format!("vip     {} is announced by {}", it.address, it.instance));
    lost.chain(found).collect()
}

impl Wish {
    /// What a Service asks for; `None` if it has no address that could be announced.
    fn read(service: &Value) -> Option<Self> {
        let (metadata, spec) = (&service["metadata"], &service["spec"]);
        if spec["type"] != "LoadBalancer" {
            return None;
        }
        let (namespace, name) = (metadata["namespace"].as_str()?, metadata["name"].as_str()?);
        Some(Self {
            name: name.to_owned(),
            path: format!("/api/v1/namespaces/{namespace}/services/{name}"),
            address: spec["loadBalancerIP"].as_str()?.parse().ok()?,
            ports: service::ports(service),
            host: metadata["annotations"][HOST].as_str().map(str::to_owned),
            ingress: service["status"]["loadBalancer"]["ingress"].clone(),
        })
    }

    /// Writes into the Service who announces it, and where it can be reached, as far as it does not say so.
    async fn publish(&self, api: &Api, instance: &str, narrator: &Narrator) -> Result<(), ApiError> {
        if self.host.as_deref() != Some(instance) {
            let patch = json!({ "metadata": { "annotations": { HOST: instance } } });
            api.patch(&self.path, Patch::Merge, &patch).await?;
            let name = &self.name;
            narrator.tell(format!("vip     service {name} is annotated {HOST}={instance}"));
        }
        if !self.is_shown() {
            let patch = json!({ "status": { "loadBalancer": { "ingress": [self.entry()] } } });
            api.patch(&format!("{}/status", self.path), Patch::Merge, &patch)
                .await?;
            let (name, entry) = (&self.name, self.entry());
            narrator.tell(format!("vip     service {name} has the status entry {entry}"));
        }
        Ok(())
    }

    /// Whether the status says it, whatever an API server adds to that.
    fn is_shown(&self) -> bool {
        let shown = self.ingress.as_array().map(Vec::as_slice).unwrap_or_default();
        let wanted = self.entry();
        matches!(shown, [entry] if entry["ip"] == wanted["ip"] && entry["ports"] == wanted["ports"])
    }

    fn entry(&self) -> Value {
        let ports = self.ports.iter().map(|port| {
            let protocol = match port.transport {
                Transport::Tcp => "TCP",
                Transport::Udp => "UDP",
            };
            json!({ "port": port.port, "protocol": protocol })
        });
        json!({ "ip": self.address.to_string(), "ports": ports.collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Value {
        json!({
            "metadata": { "namespace": "default", "name": "web", "uid": "1" },
            "spec": {
                "type": "LoadBalancer",
                "loadBalancerIP": "127.10.1.2",
                "ports": [
                    { "port": 8080, "protocol": "TCP", "nodePort": 30080 },
                    { "port": 99, "protocol": "SCTP", "nodePort": 30099 },
                ],
            },
        })
    }

    fn instance(name: &str, is_on: bool) -> Instance {
        Instance {
            name: name.to_owned(),
            is_on,
            provider_id: String::new(),
            instance_type: String::new(),
            zone: None,
            region: String::new(),
            addresses: Vec::new(),
        }
    }

    #[test]
    fn only_a_balanced_service_with_an_address_is_announced() {
        let wish = Wish::read(&service()).unwrap();
        assert_eq!(wish.path, "/api/v1/namespaces/default/services/web");
        assert_eq!(wish.address, IpAddr::from([127, 10, 1, 2]));
        for (field, value) in [
            ("type", json!("NodePort")),
            ("loadBalancerIP", json!("")),
            ("loadBalancerIP", Value::Null),
        ] {
            let mut other = service();
            other["spec"][field] = value;
            assert_eq!(Wish::read(&other), None, "{other}");
        }
    }

    #[test]
    fn an_address_moves_only_when_its_instance_falls_silent() {
        let wishes = Wishes::from([("1".to_owned(), Wish::read(&service()).unwrap())]);
        let mut announced = BTreeMap::new();
        let mut told = Vec::new();
        for (first, second) in [(true, true), (false, true), (true, true), (false, false)] {
            let instances = [instance("a", first), instance("b", second)];
            let next = assign(&announced, &wishes, &instances);
            told.push(differences(&announced, &next).join(", "));
            announced = next;
        }
        assert_eq!(
            told,
            [
                "vip     127.10.1.2 is announced by a",
                "vip     127.10.1.2 is announced by b",
                "",
                "vip     127.10.1.2 is announced by nobody any more"
            ]
        );
    }

    #[test]
    fn an_entry_without_ports_is_written_over_and_a_fuller_one_is_not() {
        let shown = |ingress: Value| {
            let mut service = service();
            service["status"]["loadBalancer"]["ingress"] = ingress;
            Wish::read(&service).unwrap().is_shown()
        };
        let ports = json!([{ "port": 8080, "protocol": "TCP" }]);
        assert!(shown(
            json!([{ "ip": "127.10.1.2", "ipMode": "VIP", "ports": ports }])
        ));
        assert!(!shown(json!([{ "ip": "127.10.1.2" }])));
        assert!(!shown(json!([{ "ip": "127.10.1.3", "ports": ports }])));
        assert!(!shown(Value::Null));
    }
}
