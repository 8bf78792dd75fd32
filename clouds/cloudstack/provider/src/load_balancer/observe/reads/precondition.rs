//! What a write requires is looked at once more right before it is sent: others write there at the same time. An ACL list
//! serves several Services, and its steps share a lane: so what is looked at then still holds when the write is sent.

use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::ApiError;

use super::Reads;
use crate::load_balancer::cidrs::Cidrs;
use crate::load_balancer::claim;
use crate::load_balancer::intent::Intent;
use crate::load_balancer::objects::{Firewall, FirewallRule, FirewallRuleId};
use crate::load_balancer::observe::failures::Failure;
use crate::load_balancer::observe::learn::Learned;
use crate::load_balancer::observe::lists::firewall_of;
use crate::load_balancer::observe::observed::{Fact, Observed, Pending};
use crate::load_balancer::observe::verdict::failure;
use crate::load_balancer::step::{CloudStep, Precondition};

/// Why it could not be seen whether something is as it has to be.
enum Unseen {
    /// The API's answer to the question, which counts as one to the step.
    Said(ApiError),
    Unknown(CloudError),
}

impl From<CloudError> for Unseen {
    fn from(error: CloudError) -> Self {
        Self::Unknown(error)
    }
}

impl Reads {
    /// What was seen instead of what a step requires: the plan is made anew by it. `None` if the step may be sent.
    pub(crate) async fn obstacle(
        &self,
        intent: &Intent,
        observed: &Observed,
        step: &CloudStep,
    ) -> Option<Learned> {
        for precondition in step.preconditions() {
            let seen = self.instead(intent, observed, precondition).await;
            match seen {
                Ok(None) => {}
                Ok(seen) => return seen,
                Err(Unseen::Said(error)) => return Some(Learned::Failed(failure(step, &error))),
                Err(Unseen::Unknown(error)) => return Some(Learned::Failed(Failure::new(error, false))),
            }
        }
        None
    }

    /// What is seen instead; `None` if it is as it has to be.
    async fn instead(
        &self,
        intent: &Intent,
        observed: &Observed,
        precondition: Precondition<'_>,
    ) -> Result<Option<Learned>, Unseen> {
        let identity = intent.identity();
        match precondition {
            Precondition::YoungClaim(since) => {
                let now = self.now();
                let is_old = !claim::is_fresh(since, now);
                Ok(is_old.then_some(Learned::Seen(Fact::Now(now))))
            }
            Precondition::Alone(address) => Ok(self.not_alone(identity, observed, &address.id).await?),
            Precondition::NoneAlike(new) => {
                let sources: Cidrs = new.sources.iter().collect();
                let is_alike = |item: &FirewallRule| {
                    !item.is_going && item.ingress == new.ingress && item.sources.is_same(&sources)
                };
                self.unless(&new.at, |items| !items.iter().any(is_alike)).await
            }
            Precondition::NotGoing(item) => {
                let is_going = self.is_closing(item);
                Ok(is_going.then(|| Learned::Seen(Fact::Going(item.clone()))))
            }
            Precondition::Twin(at, twin) => {
                self.unless(at, |items| items.iter().any(|item| item.id == *twin))
                    .await
            }
            Precondition::Unused(at, rule) => {
                let items = observed.firewalls.get(&at.id).map_or(&[][..], Vec::as_slice);
                let users = self.users_of(identity, at, rule, items).await?;
                Ok((!users.is_empty()).then_some(Learned::Needed(users)))
            }
        }
    }

    /// Whether a job of this process deletes an item.
    fn is_closing(&self, item: &FirewallRuleId) -> bool {
        let is_it = |job: &Pending| job.step.closed() == Some(item.as_str());
        self.underway.any(|jobs| jobs.iter().any(is_it))
    }

    /// The rules of a firewall, unless they are as they have to be.
    async fn unless(
        &self,
        at: &Firewall,
        holds: impl FnOnce(&[FirewallRule]) -> bool,
    ) -> Result<Option<Learned>, Unseen> {
        let items = firewall_of(&self.client, &at.id).await.map_err(Unseen::Said)?;
        Ok((!holds(&items.rules)).then(|| Learned::Seen(Fact::Firewall(at.id.clone(), items))))
    }
}
