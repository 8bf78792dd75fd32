//! What is asked of a provider beside Services: about instances, and to start.

use std::sync::Arc;

use bowline_cloud_kit::journal::Mark;
use bowline_cloud_provider::{
    FoundBy, Instance, InstanceAnswer, InstanceQuery, InstanceResult, LoadBalancerStatus, Node, PowerState,
    Purpose,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::path::text;
use super::stage::Stage;
use super::text::words;
use super::{Complaint, ScenarioCloud};
use crate::{Outcome, Run};

impl<C: ScenarioCloud> Stage<'_, C> {
    /// `ask PURPOSE NODE[=PROVIDER-ID] ... [-> END]`: all in one batch, and each answer is so. `*` is all Nodes of the cluster.
    pub(super) async fn ask(&mut self, rest: &str) -> Result<(), Complaint> {
        let (what, end) = rest.split_once("->").unwrap_or((rest, "present"));
        let words = words(what);
        let (purpose, names) = words.split_first().ok_or("ask PURPOSE NODE")?;
        let purpose = match purpose.as_str() {
            "metadata" => Purpose::Metadata,
            "existence" => Purpose::Existence,
            "check" => Purpose::CredentialCheck,
            other => return Err(format!("nobody asks about {other}")),
        };
        let mut nodes: Vec<Arc<Node>> = Vec::new();
        for name in names {
            match name.as_str() {
                "*" => nodes.extend(
                    self.cloud_mut()
                        .nodes()
                        .into_iter()
                        .flatten()
                        .map(|it| Arc::clone(it)),
                ),
                name => nodes.push(Arc::new(named(name))),
            }
        }
        if nodes.is_empty() {
            return Err("about which Nodes?".to_owned());
        }
        let queries = nodes.into_iter().map(|node| InstanceQuery { node, purpose });
        let queries: Vec<InstanceQuery> = queries.collect();
        let instances = self.cloud().provider().and_then(|it| it.instances());
        let instances = instances.ok_or("there are no instances")?;
        let (mark, begun) = (self.double()?.journal().mark(), Instant::now());
        let answers = instances.instances(&queries).await;
        let answers: Vec<Value> = answers.into_iter().map(answered).collect();
        self.did(Outcome::Settled(LoadBalancerStatus::default()), mark, begun)?;
        for answer in &answers {
            is_so(answer, end.trim())?;
        }
        let body = match &answers[..] {
            [only] => only.clone(),
            _ => json!(answers),
        };
        self.answered = json!({ "body": body });
        Ok(())
    }

    /// `start [-> settled|failed[: TEXT]]`: as the program does it.
    pub(super) async fn start(&mut self, rest: &str) -> Result<(), Complaint> {
        let (mark, begun) = (self.double()?.journal().mark(), Instant::now());
        let outcome = match self.cloud_mut().start().await {
            Ok(()) => Outcome::Settled(LoadBalancerStatus::default()),
            Err(text) => Outcome::Failed(text),
        };
        self.did(outcome, mark, begun)?;
        match rest.strip_prefix("->") {
            Some(end) => self.ended(end.trim()),
            None => self.ended("settled"),
        }
    }

    fn did(&mut self, outcome: Outcome, mark: Mark, begun: Instant) -> Result<(), Complaint> {
        let mut entries = self.double()?.journal().since(mark);
        entries.retain(|entry| !C::is_noise(entry));
        let run = Run {
            outcome,
            ..Run::default()
        };
        self.ran(&[run], &entries, begun.elapsed());
        Ok(())
    }
}

/// `NAME` or `NAME=PROVIDER-ID`
fn named(word: &str) -> Node {
    match word.split_once('=') {
        Some((name, id)) => Node {
            provider_id: Some(id.into()),
            ..Node::named(name)
        },
        None => Node::named(word),
    }
}

/// An answer as JSON.
fn answered(answer: InstanceResult) -> Value {
    match answer {
        Ok(InstanceAnswer::Present(instance)) => present(&instance),
        Ok(InstanceAnswer::Absent(proof)) => json!({ "is": "absent", "text": proof.to_string() }),
        Ok(InstanceAnswer::Foreign) => json!({ "is": "foreign" }),
        Err(error) => {
            json!({ "is": "error", "kind": format!("{:?}", error.kind()), "text": error.to_string() })
        }
    }
}

fn present(instance: &Instance) -> Value {
    let metadata = &instance.metadata;
    let addresses = metadata.addresses.iter();
    let addresses: Vec<String> = addresses
        .map(|it| format!("{} {}", text(&json!(it.kind)), it.address))
        .collect();
    json!({
        "is": "present",
        "id": metadata.provider_id,
        "type": metadata.instance_type,
        "zone": metadata.zone,
        "region": metadata.region,
        "addresses": addresses,
        "labels": metadata.additional_labels,
        "moving": metadata.moving_labels,
        "power": if instance.power == PowerState::On { "on" } else { "off" },
        "found_by": if instance.found_by == FoundBy::Id { "id" } else { "name" },
    })
}

/// Whether an answer is `present`, `absent`, `foreign`, `error`, `not-found` or `any`, the last ones with `: TEXT` in them.
fn is_so(answer: &Value, end: &str) -> Result<(), Complaint> {
    let (how, wanted) = end.split_once(": ").unwrap_or((end, ""));
    let is_so = match how {
        "any" => true,
        "not-found" => answer["kind"] == "NotFound",
        "present" | "absent" | "foreign" | "error" => answer["is"] == how,
        other => return Err(format!("no answer is {other:?}")),
    };
    match is_so && text(&answer["text"]).contains(wanted) {
        true => Ok(()),
        false => Err(format!("expected: {end}\nseen: {answer:#}")),
    }
}
