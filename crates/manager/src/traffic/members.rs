//! Members that come and go: with the policy Local a Node is one while it has a pod.

use std::collections::BTreeSet;

use bowline_cloud_provider::keys::LABEL_EXCLUDE_FROM_BALANCERS;
use bowline_kube_io::{KubeError, NodePatch};
use tokio::time::{Instant, sleep};

use super::ask::ask;
use super::ground::Ground;
use super::objects::REPLICAS;
use super::{ADDED, EXCLUDED, Halt, Names, REMOVED, Trial};
use crate::doctor::Check;

const LATE: &str = "see with `explain` whether the load balancer knows of it, and whether it may ask the health check port of the Service";

impl Trial<'_> {
    /// Takes one pod away, and brings it back.
    pub(super) async fn try_members(
        &self,
        names: &Names,
        mut ground: Ground<'_>,
        checks: &mut Vec<Check>,
    ) -> Result<(), Halt> {
        self.go_on()?;
        self.progress.is_at("taking a member away");
        checks.push(match self.remove_one(names, &mut ground).await {
            Ok(check) => check,
            Err(Halt::Late(error)) => REMOVED.failed(error, LATE),
            Err(halt) => return Err(halt),
        });
        self.go_on()?;
        self.progress.is_at("bringing a member back");
        checks.push(match self.add_one(names, &mut ground).await {
            Ok(check) => check,
            Err(Halt::Late(error)) => ADDED.warning(error, LATE),
            Err(halt) => return Err(halt),
        });
        if self.wanted.excluded_node.is_some() {
            self.go_on()?;
            self.progress.is_at("keeping a Node out of load balancers");
            checks.push(match self.exclude(names, &ground).await {
                Ok(check) => check,
                Err(Halt::Late(error)) => EXCLUDED.failed(error, LATE),
                Err(halt) => return Err(halt),
            });
        }
        Ok(())
    }

    async fn remove_one(&self, names: &Names, ground: &mut Ground<'_>) -> Result<Check, Halt> {
        self.scale(names, REPLICAS - 1).await.map_err(late)?;
        ground.pods = self.pods_again(names, REPLICAS - 1).await?;
        let steady = self.steady(ground.address, |answer| {
            match ground.pods.contains_key(&answer.pod) {
                true => Ok(()),
                false => Err(format!("pod {} answers still", answer.pod)),
            }
        });
        let steady = steady.await?;
        let left: Vec<String> = ground
            .pods
            .iter()
            .map(|(pod, node)| format!("{pod} on {node}"))
            .collect();
        Ok(REMOVED.ok(format!(
            "all connections are answered by {}{}",
            left.join(", "),
            steady.missed()
        )))
    }

    async fn add_one(&self, names: &Names, ground: &mut Ground<'_>) -> Result<Check, Halt> {
        self.scale(names, REPLICAS).await.map_err(late)?;
        ground.pods = self.pods_again(names, REPLICAS).await?;
        let pods = ground.pods.keys().cloned().collect();
        let took = self.until_heard(ground, pods).await?;
        Ok(ADDED.ok(format!("both pods answer, after {took} s")))
    }

    /// Labels the Node as a person would, and takes the label off again.
    async fn exclude(&self, names: &Names, ground: &Ground<'_>) -> Result<Check, Halt> {
        let Some(name) = &self.wanted.excluded_node else {
            return Ok(EXCLUDED.skipped("no Node is named"));
        };
        let Some(node) = self.node(name).await.map_err(late)? else {
            return Ok(EXCLUDED.failed(format!("there is no Node {name}"), "name another one"));
        };
        if node.labels.value(LABEL_EXCLUDE_FROM_BALANCERS).is_some() {
            return Ok(EXCLUDED.skipped(format!("Node {name} has the label already, and keeps it")));
        }
        let on: BTreeSet<String> = ground
            .pods
            .iter()
            .filter(|(_, on)| *on == name.as_str())
            .map(|(pod, _)| pod.clone())
            .collect();
        if on.is_empty() || on.len() == ground.pods.len() {
            return Ok(EXCLUDED.skipped(format!(
                "of the two pods, one has to be on Node {name}: {} are",
                on.len()
            )));
        }
        let mut patch = NodePatch::default();
        patch
            .labels
            .insert(LABEL_EXCLUDE_FROM_BALANCERS.to_owned(), Some(names.name.clone()));
        self.kube.patch_node(&node, &patch).await.map_err(late)?;
        let steady = self.steady(ground.address, |answer| match on.contains(&answer.pod) {
            false => Ok(()),
            true => Err(format!("Node {name} is asked still")),
        });
        let steady = steady.await?;
        self.include(names).await.map_err(late)?;
        let took = self.until_heard(ground, on).await?;
        Ok(EXCLUDED.ok(format!(
            "Node {name} was asked no more{}, and again {took} s after the label was gone",
            steady.missed()
        )))
    }

    /// Takes our own label off the Node, if it is there.
    pub(super) async fn include(&self, names: &Names) -> Result<(), KubeError> {
        let Some(name) = &self.wanted.excluded_node else {
            return Ok(());
        };
        let Some(node) = self.node(name).await? else {
            return Ok(());
        };
        if node.labels.value(LABEL_EXCLUDE_FROM_BALANCERS) != Some(names.name.as_str()) {
            return Ok(());
        }
        let mut patch = NodePatch::default();
        patch.labels.insert(LABEL_EXCLUDE_FROM_BALANCERS.to_owned(), None);
        self.kube.patch_node(&node, &patch).await.map(drop)
    }

    async fn pods_again(
        &self,
        names: &Names,
        wanted: usize,
    ) -> Result<std::collections::BTreeMap<String, String>, Halt> {
        let mut checks = Vec::new();
        let pods = self.wait_for_pods(names, wanted, &mut checks).await;
        pods.map_err(|halt| match (halt, checks.pop()) {
            (Halt::Failed, Some(check)) => Halt::Late(check.seen),
            (halt, _) => halt,
        })
    }

    /// Asks until each of these pods has answered; gives the seconds that it took.
    async fn until_heard(&self, ground: &Ground<'_>, mut silent: BTreeSet<String>) -> Result<u64, Halt> {
        let begun = Instant::now();
        while !silent.is_empty() {
            self.go_on()?;
            if let Ok(answer) = ask(ground.address).await {
                silent.remove(&answer.pod);
            }
            if begun.elapsed() >= self.patience && !silent.is_empty() {
                let pods: Vec<String> = silent.into_iter().collect();
                return Err(Halt::Late(format!(
                    "{} did not answer within {} s; a load balancer that goes by the client's address may never ask it",
                    pods.join(" and "),
                    self.patience.as_secs()
                )));
            }
            sleep(self.pause.min(std::time::Duration::from_millis(50))).await;
        }
        Ok(begun.elapsed().as_secs())
    }
}

fn late(error: KubeError) -> Halt {
    Halt::Late(error.to_string())
}
