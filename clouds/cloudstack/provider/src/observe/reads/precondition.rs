//! What a write requires is looked at once more right before it is sent: others write there at the same time.

use super::super::lists::firewall_of;
use super::super::{Fact, Failure, Observed};
use super::Reads;
use crate::apply::failed;
use crate::cidrs::Cidrs;
use crate::claim;
use crate::intent::Intent;
use crate::learn::Learned;
use crate::objects::{AclRef, FirewallId, FirewallRule};
use crate::step::{CloudStep, Precondition};

impl Reads {
    /// What was seen instead of what a step requires: the plan is made anew by it. `None` if the step may be sent.
    pub(crate) async fn obstacle(
        &self,
        intent: &Intent,
        observed: &Observed,
        step: &CloudStep,
    ) -> Option<Learned> {
        let identity = intent.identity();
        let seen = match step.precondition()? {
            Precondition::NoItemAlike {
                list,
                opening,
                sources,
            } => {
                let sources: Cidrs = sources.iter().collect();
                let is_alike = |item: &FirewallRule| {
                    !item.is_going && item.opening == opening && item.sources.is_same(&sources)
                };
                return self.unless(step, list, |items| !items.iter().any(is_alike)).await;
            }
            Precondition::Item { list, id } => {
                return self
                    .unless(step, list, |items| items.iter().any(|item| item.id == *id))
                    .await;
            }
            Precondition::Unneeded { list, item } => {
                let items = observed.firewalls.get(&FirewallId::Acl(list.id.clone()));
                let items = items.map_or(&[][..], Vec::as_slice);
                let users = self.users_of(identity, list, item, items).await;
                users.map(|users| (!users.is_empty()).then_some(Learned::Needed(users)))
            }
            Precondition::Alone(address) => self.not_alone(identity, observed, &address.id).await,
            Precondition::Fresh(since) => {
                let now = self.now();
                Ok((!claim::is_fresh(since, now)).then_some(Learned::Seen(Fact::Now(now))))
            }
        };
        seen.unwrap_or_else(|error| Some(Learned::Failed(Failure::unknown(error))))
    }

    /// The items of an ACL list, unless they are as they have to be.
    async fn unless(
        &self,
        step: &CloudStep,
        list: &AclRef,
        holds: impl FnOnce(&[FirewallRule]) -> bool,
    ) -> Option<Learned> {
        let id = FirewallId::Acl(list.id.clone());
        match firewall_of(&self.client, &id).await {
            Ok(items) if holds(&items) => None,
            Ok(items) => Some(Learned::Seen(Fact::Firewall(id, items))),
            Err(error) => Some(failed(step, &error)),
        }
    }
}
