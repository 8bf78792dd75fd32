//! What a write requires is looked at once more right before it is sent: others write there at the same time. An ACL list
//! serves several Services, and its steps share a lane: so what is looked at then still holds when the write is sent.

use super::super::lists::firewall_of;
use super::super::{Fact, Failure, Observed, Pending};
use super::Reads;
use crate::apply::failed;
use crate::cidrs::Cidrs;
use crate::claim;
use crate::intent::Intent;
use crate::learn::Learned;
use crate::objects::{Firewall, FirewallRule, FirewallRuleId};
use crate::step::{Closing, CloudStep};

impl Reads {
    /// What was seen instead of what a step requires: the plan is made anew by it. `None` if the step may be sent.
    pub(crate) async fn obstacle(
        &self,
        intent: &Intent,
        observed: &Observed,
        step: &CloudStep,
    ) -> Option<Learned> {
        let identity = intent.identity();
        let seen = match step {
            // What lets in the same is in the list from the moment that its command was taken.
            CloudStep::Open(new) if new.at.is_acl() => {
                let sources: Cidrs = new.sources.iter().collect();
                let is_alike = |item: &FirewallRule| {
                    !item.is_going && item.ingress == new.ingress && item.sources.is_same(&sources)
                };
                let is_new = |items: &[FirewallRule]| !items.iter().any(is_alike);
                return self.unless(step, &new.at, is_new).await;
            }
            // Another Service behind the list deletes it already. Before that job begins it is listed as if it stayed.
            CloudStep::Close(Closing {
                at,
                rule,
                is_replaced: true,
                ..
            }) if at.is_acl() && self.is_closing(&rule.id) => {
                return Some(Learned::Seen(Fact::Going(rule.id.clone())));
            }
            // The one that stays instead is there.
            CloudStep::Close(Closing {
                at, twin: Some(twin), ..
            }) => {
                let has_twin = |items: &[FirewallRule]| items.iter().any(|item| item.id == *twin);
                return self.unless(step, at, has_twin).await;
            }
            // Nobody else relies on it.
            CloudStep::Close(Closing { at, rule, .. }) if at.is_acl() => {
                let items = observed.firewalls.get(&at.id).map_or(&[][..], Vec::as_slice);
                let users = self.users_of(identity, at, rule, items).await;
                users.map(|users| (!users.is_empty()).then_some(Learned::Needed(users)))
            }
            // The address is what it was, and no rules of others are on it, which would go with it.
            CloudStep::Release { address, .. } => self.not_alone(identity, observed, &address.id).await,
            // A process that stood still must not ask for what others have looked for meanwhile.
            CloudStep::Associate(new) => {
                let now = self.now();
                let is_old = !claim::is_fresh(new.since, now);
                Ok(is_old.then_some(Learned::Seen(Fact::Now(now))))
            }
            _ => return None,
        };
        seen.unwrap_or_else(|error| Some(Learned::Failed(Failure::new(error, false))))
    }

    /// Whether a job of this process deletes an item.
    fn is_closing(&self, item: &FirewallRuleId) -> bool {
        let is_it = |job: &Pending| job.step.closed() == Some(item.as_str());
        self.underway.any(|jobs| jobs.iter().any(is_it))
    }

    /// The rules of a firewall, unless they are as they have to be.
    async fn unless(
        &self,
        step: &CloudStep,
        at: &Firewall,
        holds: impl FnOnce(&[FirewallRule]) -> bool,
    ) -> Option<Learned> {
        match firewall_of(&self.client, &at.id).await {
            Ok(items) if holds(&items.rules) => None,
            Ok(items) => Some(Learned::Seen(Fact::Firewall(at.id.clone(), items))),
            Err(error) => Some(failed(step, &error)),
        }
    }
}
