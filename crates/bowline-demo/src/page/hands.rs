//! What the buttons do: each thing that a reader could do with a command of the tour, and the plan for it first.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::board::Board;
use super::cluster::Service;
use crate::api::{Api, ApiError, Patch};
use crate::cloud::{Cloud, Instance};
use crate::manager::{Life, Manager};
use crate::narrative::Narrator;
use crate::web::{COLLECTION, NAMESPACE, PATH, PORT, SERVICE, service};
use crate::what_if::{self, Change, WhatIf};

/// How long a plan may take before the change is made without one.
const PLAN: Duration = Duration::from_secs(3);

/// The first and the last port that a reader can add.
const PORTS: std::ops::RangeInclusive<u16> = PORT + 1..=PORT + 4;

/// What can be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    StopServer(String),
    StartServer(String),
    DeleteServer(String),
    BreakApi,
    MendApi,
    AddPort,
    RemovePort,
    DeleteService,
    CreateService,
    KillManager,
}

impl Deed {
    /// The path of its button, behind `/do/`.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let (word, server) = match path.split_once('/') {
            Some((_, "")) => return None,
            Some((word, server)) => (word, Some(server.to_owned())),
            None => (path, None),
        };
        Some(match (word, server) {
            ("stop-server", Some(server)) => Self::StopServer(server),
            ("start-server", Some(server)) => Self::StartServer(server),
            ("delete-server", Some(server)) => Self::DeleteServer(server),
            ("break-api", None) => Self::BreakApi,
            ("mend-api", None) => Self::MendApi,
            ("add-port", None) => Self::AddPort,
            ("remove-port", None) => Self::RemovePort,
            ("delete-service", None) => Self::DeleteService,
            ("create-service", None) => Self::CreateService,
            ("kill-manager", None) => Self::KillManager,
            _ => return None,
        })
    }
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// There is no such thing any more, or it is as it would be.
    #[error("{0}")]
    Pointless(String),
    /// The API server did not do it.
    #[error("the API server: {0}")]
    Api(#[from] ApiError),
}

/// Whoever presses the buttons.
pub(crate) struct Hands {
    pub(super) api: Api,
    pub(super) cloud: Arc<dyn Cloud>,
    pub(super) manager: Arc<Manager>,
    pub(super) board: Board,
    pub(super) narrator: Narrator,
    /// One thing at a time.
    busy: Mutex<()>,
}

impl Hands {
    pub(crate) fn new(
        api: Api,
        cloud: Arc<dyn Cloud>,
        manager: Arc<Manager>,
        board: Board,
        narrator: Narrator,
    ) -> Self {
        Self {
            api,
            cloud,
            manager,
            board,
            narrator,
            busy: Mutex::new(()),
        }
    }

    /// Does it; what was done, in a sentence.
    pub(super) async fn act(&self, deed: Deed) -> Result<String, Refusal> {
        let closed = self.board.lock().closed.clone();
        if let Some(why) = closed {
            return Err(Refusal::Pointless(why));
        }
        let _one_at_a_time = self.busy.lock().await;
        match deed {
            Deed::StopServer(name) => self.switch(&name, false).await,
            Deed::StartServer(name) => self.switch(&name, true).await,
            Deed::DeleteServer(name) => self.delete_server(&name).await,
            Deed::BreakApi => self.outage(true).await,
            Deed::MendApi => self.outage(false).await,
            Deed::AddPort => self.add_port().await,
            Deed::RemovePort => self.remove_port().await,
            Deed::DeleteService => self.delete_service().await,
            Deed::CreateService => self.create_service().await,
            Deed::KillManager => self.kill_manager(),
        }
    }

    async fn switch(&self, name: &str, is_on: bool) -> Result<String, Refusal> {
        let instance = self.instance(name)?;
        let word = if is_on { "on" } else { "off" };
        if instance.is_on == is_on {
            return Err(Refusal::Pointless(format!("{name} is powered {word} already")));
        }
        let ready = if is_on { "True" } else { "Unknown" };
        let change = what_if::changed("Node", None, name, move |node| {
            set_ready(node, ready);
            true
        });
        self.plan(&format!("{name} is powered {word}"), change).await;
        self.cloud.project().switch_instance(name, is_on);
        Ok(self.done(&format!("{name} is powered {word}")))
    }

    async fn delete_server(&self, name: &str) -> Result<String, Refusal> {
        self.instance(name)?;
        if self.cloud.instances().len() == 1 {
            return Err(Refusal::Pointless(format!("{name} is the last server: it stays")));
        }
        let change = what_if::changed("Node", None, name, |_| false);
        self.plan(&format!("once the Node {name} is deleted"), change)
            .await;
        self.cloud.project().delete_instance(name);
        Ok(self.done(&format!("{name} is deleted")))
    }

    async fn outage(&self, is_on: bool) -> Result<String, Refusal> {
        if self.cloud.has_outage() == is_on {
            let state = if is_on { "broken" } else { "in order" };
            return Err(Refusal::Pointless(format!("the cloud's API is {state} already")));
        }
        self.cloud.set_outage(is_on);
        if is_on {
            return Ok(self.done("every API call fails from now on"));
        }
        let said = self.done("the API works again");
        // What was left undone is planned anew, while the manager still waits for its next try.
        let unsettled = self.board.lock().plans.last().is_some_and(|plan| plan.is_stuck());
        if unsettled {
            self.plan("the API works again", Arc::new(|_, _| true)).await;
        }
        Ok(said)
    }

    async fn add_port(&self) -> Result<String, Refusal> {
        let service = self.service()?;
        let enough = || Refusal::Pointless("the Service has enough ports".to_owned());
        let port = next_port(&service).ok_or_else(enough)?;
        let mut added = json!({
            "name": format!("port-{port}"), "protocol": "TCP", "port": port, "targetPort": PORT,
        });
        let change = |added: &Value| json!([{ "op": "add", "path": "/spec/ports/-", "value": added }]);
        // The node port is part of the plan, so it is chosen first, by the API server as always.
        let dry = format!("{PATH}?dryRun=All");
        if let Ok(chosen) = self.api.patch(&dry, Patch::Json, &change(&added)).await {
            let ports = chosen["spec"]["ports"].as_array().cloned().unwrap_or_default();
            let mut ports = ports.into_iter().filter(|it| it["port"] == port);
            added = ports.next().unwrap_or(added);
        }
        let planned = added.clone();
        let view = of_service(move |service| append(&mut service["spec"]["ports"], &planned));
        self.plan(&format!("port {port} is added"), view).await;
        let change = change(&added);
        self.api.patch(PATH, Patch::Json, &change).await?;
        Ok(self.said(&format!("port {port} is added to the Service {SERVICE}")))
    }

    async fn remove_port(&self) -> Result<String, Refusal> {
        let service = self.service()?;
        let none = || Refusal::Pointless("the Service has its first port only".to_owned());
        let port = last_port(&service).ok_or_else(none)?;
        let index = service
            .ports
            .iter()
            .position(|it| it.port == port)
            .ok_or_else(none)?;
        let change = of_service(move |service| {
            if let Some(ports) = service["spec"]["ports"].as_array_mut() {
                ports.retain(|it| it["port"] != port);
            }
        });
        self.plan(&format!("port {port} is removed"), change).await;
        let path = format!("/spec/ports/{index}");
        // Only if it is still that one: somebody may be at work with kubectl.
        let change = json!([
            { "op": "test", "path": format!("{path}/port"), "value": port },
            { "op": "remove", "path": path },
        ]);
        self.api.patch(PATH, Patch::Json, &change).await?;
        Ok(self.said(&format!("port {port} is removed from the Service {SERVICE}")))
    }

    async fn delete_service(&self) -> Result<String, Refusal> {
        self.service()?;
        let change = of_service(|service| {
            service["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        });
        self.plan(&format!("the Service {SERVICE} is deleted"), change)
            .await;
        self.api.delete(PATH).await?;
        Ok(self.said(&format!("the Service {SERVICE} is deleted")))
    }

    /// As the story does: the plan needs the UID and the node port of a Service that is there.
    async fn create_service(&self) -> Result<String, Refusal> {
        self.api.create(COLLECTION, &service()).await?;
        let change = what_if::balanced(NAMESPACE, SERVICE);
        self.plan(&format!("the Service {SERVICE} is made again"), change)
            .await;
        let change = json!({ "spec": { "type": "LoadBalancer" } });
        self.api.patch(PATH, Patch::Merge, &change).await?;
        Ok(self.said(&format!("the Service {SERVICE} is made again")))
    }

    fn kill_manager(&self) -> Result<String, Refusal> {
        if !matches!(self.manager.life(), Life::Runs(_)) {
            return Err(Refusal::Pointless("the manager does not run now".to_owned()));
        }
        self.manager.kill();
        let text = "the manager is killed, without a word to anybody; it will be started again";
        self.narrator.tell(format!("manager (by hand) {text}"));
        Ok(text.to_owned())
    }

    /// Shows what the change would lead to; the Service may not need anything.
    async fn plan(&self, why: &str, change: Change) {
        if !matches!(self.api.find(PATH).await, Ok(Some(_))) {
            return;
        }
        let plan = async {
            let view = WhatIf::start(self.api.clone(), change).await?;
            self.manager.plan(&view.url(), NAMESPACE, SERVICE).await
        };
        let error = match tokio::time::timeout(PLAN, plan).await {
            Ok(Ok(plan)) => {
                self.board.planned(why, &plan);
                return;
            }
            Ok(Err(error)) => format!("{error:#}"),
            Err(_) => format!("the cloud does not answer in {} s", PLAN.as_secs()),
        };
        let object = format!("{NAMESPACE}/{SERVICE}");
        self.board.lock().plans.show_failure(&object, why, &error);
    }

    fn instance(&self, name: &str) -> Result<Instance, Refusal> {
        let mut instances = self.cloud.instances().into_iter();
        let found = instances.find(|instance| instance.name == name);
        found.ok_or_else(|| Refusal::Pointless(format!("there is no server {name}")))
    }

    /// The demo's own Service.
    fn service(&self) -> Result<Service, Refusal> {
        let known = self.board.lock();
        let own = known.services.values().find(|it| is_own(it)).cloned();
        match own {
            Some(service) if service.is_being_deleted => Err(Refusal::Pointless(format!(
                "the Service {SERVICE} is being deleted"
            ))),
            Some(service) => Ok(service),
            None => Err(Refusal::Pointless(format!("there is no Service {SERVICE}"))),
        }
    }

    /// Told in the terminal as well.
    fn done(&self, what: &str) -> String {
        self.narrator.tell(format!("cloud   (by hand) {what}"));
        what.to_owned()
    }

    fn said(&self, what: &str) -> String {
        self.narrator.tell(format!("service (by hand) {what}"));
        what.to_owned()
    }
}

/// Whether it is the demo's own Service: others are left to whoever made them.
pub(super) fn is_own(service: &Service) -> bool {
    service.namespace == NAMESPACE && service.name == SERVICE
}

/// The port that would be added.
pub(super) fn next_port(service: &Service) -> Option<u16> {
    PORTS
        .into_iter()
        .find(|port| service.ports.iter().all(|it| it.port != *port))
}

/// The port that would be removed: the highest one, but for the first.
pub(super) fn last_port(service: &Service) -> Option<u16> {
    let added = service
        .ports
        .iter()
        .map(|it| it.port)
        .filter(|port| PORTS.contains(port));
    added.max()
}

fn of_service(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Change {
    what_if::changed("Service", Some(NAMESPACE), SERVICE, move |service| {
        change(service);
        true
    })
}

fn append(list: &mut Value, item: &Value) {
    if let Some(list) = list.as_array_mut() {
        list.push(item.clone());
    }
}

fn set_ready(node: &mut Value, status: &str) {
    let conditions = node["status"]["conditions"].as_array_mut();
    for condition in conditions.into_iter().flatten() {
        if condition["type"] == "Ready" {
            condition["status"] = json!(status);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeds_are_known_by_their_path() {
        assert_eq!(Deed::parse("break-api"), Some(Deed::BreakApi));
        assert_eq!(
            Deed::parse("stop-server/a"),
            Some(Deed::StopServer("a".to_owned()))
        );
        for path in ["", "break-api/now", "stop-server", "stop-server/", "format-disk"] {
            assert_eq!(Deed::parse(path), None, "{path}");
        }
    }

    #[test]
    fn ports_are_added_one_after_the_other_and_taken_back_in_turn() {
        let with = |ports: &[u16]| {
            let ports: Vec<_> = ports
                .iter()
                .map(|port| json!({ "port": port, "nodePort": 30000 }))
                .collect();
            let metadata = json!({ "namespace": "default", "name": "web" });
            Service::read(&json!({ "metadata": metadata, "spec": { "ports": ports } })).unwrap()
        };
        assert_eq!(
            (next_port(&with(&[8080])), last_port(&with(&[8080]))),
            (Some(8081), None)
        );
        let some = with(&[8080, 8081, 8083]);
        assert_eq!((next_port(&some), last_port(&some)), (Some(8082), Some(8083)));
        assert_eq!(next_port(&with(&[8080, 8081, 8082, 8083, 8084])), None);
    }
}
