//! Takes away what a trial made, and proves that nothing is left.

use bowline_cloud_provider::orphans::Found;
use bowline_kube_io::{TrialKind, TrialObject};

use super::{CLOUD_GONE, Earlier, GONE, Trial};
use crate::doctor::Check;

const HOW: &str = "see with `explain` what the Service waits for; a manager that runs goes on with it. Then remove what is left:";

impl Trial<'_> {
    /// Deletes all that this trial made, waits until it is gone, and looks into the cloud.
    pub(super) async fn take_away(&self) -> Vec<Check> {
        self.progress.is_at("removing all that was made");
        let names = self.names();
        let mut uids = Vec::new();
        if let Err(error) = self.look(async || self.include(&names).await.map(Some)).await {
            let seen = format!("the label of the Node cannot be removed{error}");
            return vec![GONE.failed(seen, format!("{HOW} {}", self.commands()))];
        }
        // Services first: the namespace goes only when the load balancer is gone, and would not say so.
        for kind in [TrialKind::Service, TrialKind::Deployment, TrialKind::Namespace] {
            let mut left = Vec::new();
            let gone = self
                .look(async || {
                    left = self.of_kind(kind, &names).await?;
                    for object in &left {
                        if !uids.contains(&object.uid) {
                            self.kube.delete_for_trial(object).await?;
                            uids.push(object.uid.clone());
                        }
                    }
                    Ok(left.is_empty().then_some(()))
                })
                .await;
            if let Err(error) = gone {
                let seen = format!("{} after {} s{error}", kept(kind, &left), self.patience.as_secs());
                let mut why = Vec::new();
                if kind == TrialKind::Service {
                    why = (self.explain)(names.service()).await;
                }
                return vec![GONE.failed(seen, format!("{HOW} {}", self.commands())).with(why)];
            }
        }
        let gone = match names.owns_namespace {
            true => format!("Service, workload and namespace {} are gone", names.namespace),
            false => format!("Service and workload are gone from namespace {}", names.namespace),
        };
        vec![GONE.ok(gone), self.cloud_gone(&uids).await]
    }

    /// Lists what is in the cloud, as `orphans` does. A cloud may show for a while what is gone.
    async fn cloud_gone(&self, uids: &[String]) -> Check {
        self.progress.is_at("looking for what is left in the cloud");
        let search = match &self.search {
            Ok(search) => search,
            Err(why) => return CLOUD_GONE.skipped(format!("the cloud cannot be asked: {why}")),
        };
        let service = self.names().service();
        let mut left = Vec::new();
        let mut unasked = None;
        let gone = self
            .look(async || {
                let survey = search.survey().await;
                let survey = survey.and_then(|survey| match survey.unread.first() {
                    Some(unread) => Err(format!("reading the cloud: {}", unread.error())),
                    None => Ok(survey),
                });
                let survey = match survey {
                    Ok(survey) => survey,
                    Err(error) => {
                        unasked = Some(error);
                        return Ok(None);
                    }
                };
                unasked = None;
                let all = survey
                    .removals
                    .iter()
                    .flat_map(|(orphans, _)| orphans)
                    .chain(&survey.others);
                let is_ours =
                    |it: &&Found| uids.contains(&it.owner.uid) || it.owner.key.as_ref() == Some(&service);
                left = all.filter(is_ours).map(ToString::to_string).collect();
                Ok(left.is_empty().then_some(()))
            })
            .await;
        match (gone, unasked) {
            (Ok(()), _) => CLOUD_GONE.ok("the cloud lists nothing of the Service"),
            (Err(_), Some(why)) => CLOUD_GONE.skipped(why),
            (Err(_), None) => CLOUD_GONE.failed(
                left.join(", "),
                "see with `orphans` what is left, and delete it with `orphans --delete`",
            ),
        }
    }
}

impl Earlier {
    /// Removes it as a trial removes what it made, with the means of this one.
    pub async fn remove(&self, trial: &Trial<'_>) -> Vec<Check> {
        let wanted = super::Wanted {
            namespace: (!self.names.owns_namespace).then(|| self.names.namespace.clone()),
            excluded_node: self.excluded.clone(),
            ..super::Wanted::default()
        };
        let other = Trial {
            kube: trial.kube.clone(),
            wanted,
            run: self.names.run.clone(),
            patience: trial.patience,
            pause: trial.pause,
            search: Err("of an earlier trial, `orphans` shows what is left there".to_owned()),
            explain: trial.explain,
            progress: trial.progress.clone(),
            interrupt: trial.interrupt.clone(),
        };
        other.take_away().await
    }
}

/// What is there still.
fn kept(kind: TrialKind, left: &[TrialObject]) -> String {
    let left: Vec<String> = left
        .iter()
        .map(|object| match object.finalizers.as_slice() {
            [] => object.name.clone(),
            finalizers => format!("{} (its finalizers: {})", object.name, finalizers.join(", ")),
        })
        .collect();
    match left.is_empty() {
        true => format!("it is not known which {} are left", kind.plural()),
        false => format!("{} {} there still", kind.plural(), left.join(", ")),
    }
}
