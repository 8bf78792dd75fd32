//! Makes the writes: each is one command, which starts a job.

use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::{
    ApiError, Association, Class, Client, Deleted, JobId, Made, NewFilter, NewLoadBalancerRule, RuleId,
    Started,
};
use tokio::time::{Instant, timeout};

use crate::claim::VALIDITY;
use crate::intent::Identity;
use crate::learn::Learned;
use crate::objects::{FirewallId, FirewallRule, NewRule, Rule};
use crate::observe::asks::Asks;
use crate::observe::lists::{firewall_of, members_of, rules_of};
use crate::observe::{Fact, Failure, Pending, Seen};
use crate::step::{Acquisition, Closing, CloudStep, Opening, RuleChange};
use crate::verdict::verdict;

/// Makes writes for one reconcile.
pub(crate) struct Writer<'a> {
    pub(crate) client: &'a Client,
    pub(crate) identity: &'a Identity,
    pub(crate) observed: &'a Seen,
}

/// What a new rule of a firewall conflicts with.
enum InTheWay {
    /// What was not known.
    News(Fact),
    /// Rules for the same port that were known.
    Known,
}

/// The job of a command that was taken, and what it makes; `None` if nothing is left to do.
type Taken = Option<(JobId, Made)>;

fn making<Id: Into<Made>>(started: Started<Id>) -> Taken {
    Some((started.job, started.id.map_or(Made::Untold, Into::into)))
}

fn deleting(deleted: Deleted) -> Taken {
    match deleted {
        Deleted::Started(job) => Some((job, Made::Untold)),
        Deleted::AlreadyGone => None,
    }
}

impl Writer<'_> {
    /// Makes one write. Fails only if nothing was sent, because this process may not write now. Of a request for an address it
    /// is noted whether anything may come.
    pub(crate) async fn apply(&self, step: &CloudStep, asks: &Asks) -> Result<Learned, CloudError> {
        let since = Instant::now();
        let asking = step.asking();
        let sent = match &asking {
            Some(asking) => {
                asks.asked(&self.identity.uid, asking);
                timeout(VALIDITY, self.send(step)).await
            }
            None => Ok(self.send(step).await),
        };
        let error = match sent {
            Ok(Ok(taken)) => return Ok(self.taken(step, taken, since)),
            Ok(Err(error)) => error,
            Err(_) => {
                let told = CloudError::transient(format!("no answer within {} s", VALIDITY.as_secs()));
                return Ok(Learned::Failed(
                    Failure::new(step.said(told), false).unheard(true),
                ));
            }
        };
        if let Some(asking) = &asking {
            asks.answered(&self.identity.uid, asking, &error);
        }
        if error.class == Class::NotSent {
            return Err(error.into());
        }
        let mut learned = self.refused(step, &error).await;
        if let Learned::Failed(failure) = &mut learned {
            failure.is_definite &= asking.is_none() || !error.maybe_applied();
        }
        Ok(learned)
    }

    fn taken(&self, step: &CloudStep, taken: Taken, since: Instant) -> Learned {
        let Some((job, makes)) = taken else {
            return Learned::Gone;
        };
        Learned::Started(Box::new(Pending {
            job,
            step: step.clone(),
            makes,
            since,
            heard: since,
            nonsense: 0,
            is_rollback: self.observed.memory.own.failure.is_some(),
        }))
    }

    /// What to make of a refusal, be it the answer to the command or the outcome of its job. What is in the way may be what
    /// an earlier try made, whose answer was lost: then the cloud is only seen as it is.
    pub(crate) async fn refused(&self, step: &CloudStep, error: &ApiError) -> Learned {
        let seen = match (step, error.class) {
            (
                CloudStep::ChangeRule(rule, RuleChange::Assign(_) | RuleChange::Unassign(_)),
                Class::Invalid,
            ) => self.other_members(&rule.id).await,
            (CloudStep::CreateRule(new), Class::Invalid | Class::NotFound)
                if self.observed.is_on_its_way(&new.address.id) =>
            {
                return Learned::Unready;
            }
            (CloudStep::CreateRule(new), Class::Conflict) if error.is_rule_conflict() => {
                let known = &self.observed.memory.own.known;
                let mut rules = self.observed.rules.iter();
                match self.other_rules(new).await {
                    None if rules.any(|rule| known.is_in_the_way(rule, new)) => return Learned::OneRule,
                    news => news,
                }
            }
            // Only a conflict is a word about what is there. What the API takes from nobody is no reason to close anything.
            (CloudStep::Open(new), Class::Conflict) if !new.at.is_acl() && error.is_rule_conflict() => {
                match self.in_the_way_of(new).await {
                    Some(InTheWay::News(fact)) => Some(fact),
                    Some(InTheWay::Known) => return Learned::OneFirewallRule,
                    None => None,
                }
            }
            // A job of an earlier process may have come first.
            (CloudStep::Release { address, .. }, Class::Invalid | Class::NotFound) => {
                match self.client.public_ip_address(&address.id).await {
                    Ok(now) if now.as_ref().is_none_or(|now| now.is_free()) => return Learned::Gone,
                    _ => None,
                }
            }
            // Several Services may close what they shared.
            (CloudStep::Close(old), Class::Invalid | Class::NotFound) if old.at.is_acl() => {
                match firewall_of(self.client, &old.at.id).await {
                    Ok(items) if items.rules.iter().all(|known| known.id != old.rule.id) => {
                        return Learned::Gone;
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        seen.map_or_else(
            || verdict(self.identity, self.observed, step, error),
            Learned::Seen,
        )
    }

    /// The port may be taken by a rule of the Service itself.
    async fn other_rules(&self, new: &NewRule) -> Option<Fact> {
        let is_news = |rule: &Rule| {
            let is_there = rule.address.id == new.address.id && rule.public_port == Some(new.public_port);
            is_there && self.observed.rules.iter().all(|known| known.id != rule.id)
        };
        let mut rules = rules_of(self.client, &self.identity.name).await.ok()?;
        rules.retain(|rule| !self.observed.memory.own.rules.is_deleted(&rule.id));
        rules.iter().any(is_news).then_some(Fact::Rules(rules))
    }

    /// What a new rule of a firewall conflicts with, if that can be told: something that was not known, or else the rules for the
    /// same port. With a rule for several ports that is known nothing new is begun, so such a one is news.
    async fn in_the_way_of(&self, new: &Opening) -> Option<InTheWay> {
        let known = self.observed.firewalls.get(&new.at.id)?;
        let mut listed = firewall_of(self.client, &new.at.id).await.ok()?;
        if let Some(recent) = self.observed.memory.own.firewalls.get(&new.at.id) {
            recent.lay_over(&mut listed.rules, |rule| &rule.id);
        }
        let mut rules = listed.rules.iter().filter(|rule| rule.ingress == new.ingress);
        let is_known = |rule: &FirewallRule| known.iter().any(|known| known.id == rule.id);
        if !rules.clone().all(is_known) || listed.ranges != self.observed.ranges(&new.at.id) {
            return Some(InTheWay::News(Fact::Firewall(new.at.id.clone(), listed)));
        }
        rules.next().map(|_| InTheWay::Known)
    }

    /// A rule may have got the members from somebody else; then the difference is another one.
    async fn other_members(&self, rule: &RuleId) -> Option<Fact> {
        let members = members_of(self.client, rule).await.ok()?;
        let is_news = self.observed.members.get(rule) != Some(&members);
        is_news.then(|| Fact::Members(rule.clone(), members))
    }

    async fn send(&self, step: &CloudStep) -> Result<Taken, ApiError> {
        let client = self.client;
        Ok(match step {
            CloudStep::Associate(Acquisition { address, to, .. }) => {
                let to = match &to.vpc {
                    Some(vpc) => Association::Vpc(vpc.clone()),
                    None => Association::Network(to.network.clone()),
                };
                let ip = address.as_ref().map(|address| address.ip.as_str());
                making(client.associate_ip_address(&to, ip).await?)
            }
            CloudStep::Release { address, .. } => {
                deleting(client.disassociate_ip_address(&address.id).await?)
            }
            CloudStep::CreateRule(new) => {
                let new = NewLoadBalancerRule {
                    name: new.name.clone(),
                    algorithm: new.algorithm.clone(),
                    protocol: new.protocol.as_str().into(),
                    public_ip: new.address.id.clone(),
                    public_port: new.public_port,
                    private_port: new.private_port,
                    network: new.network.clone(),
                    cidrs: new.cidrs.clone(),
                };
                making(client.create_load_balancer_rule(&new).await?)
            }
            CloudStep::ChangeRule(rule, change) => {
                let id = &rule.id;
                let job = match change {
                    RuleChange::Update(to) => client.update_load_balancer_rule(id, to).await?,
                    RuleChange::Delete(_) => {
                        return Ok(deleting(client.delete_load_balancer_rule(id).await?));
                    }
                    RuleChange::Assign(added) => client.assign_to_load_balancer_rule(id, added).await?,
                    RuleChange::Unassign(left) => client.remove_from_load_balancer_rule(id, left).await?,
                };
                Some((job, Made::Untold))
            }
            CloudStep::Open(new) => {
                let filter = NewFilter {
                    protocol: new.ingress.protocol.to_string(),
                    port: new.ingress.port,
                    cidrs: new.sources.clone(),
                };
                match &new.at.id {
                    FirewallId::Address(id) => making(client.create_firewall_rule(id, &filter).await?),
                    FirewallId::Acl(id) => {
                        making(client.create_network_acl(id, &new.network, &filter).await?)
                    }
                }
            }
            CloudStep::Close(Closing { at, rule, .. }) => deleting(match at.id {
                FirewallId::Address(_) => client.delete_firewall_rule(&rule.id).await?,
                FirewallId::Acl(_) => client.delete_network_acl(&rule.id.as_str().into()).await?,
            }),
        })
    }
}
