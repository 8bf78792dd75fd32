//! What is in the way where the API says no. It may be what an earlier try made, whose answer was lost.

use bowline_cloud_provider::ServiceKey;
use bowline_cloudstack_client::{ApiError, Class, Client, PublicIpId, RuleQuery};

use crate::load_balancer::intent::Identity;
use crate::load_balancer::names;
use crate::load_balancer::objects::{FirewallRule, NewRule, Rule, RuleId};
use crate::load_balancer::observe::learn::Learned;
use crate::load_balancer::observe::lists::{firewall_of, members_of};
use crate::load_balancer::observe::observed::{Fact, Seen, conflict, was_refused};
use crate::load_balancer::observe::verdict::verdict;
use crate::load_balancer::observe::wire;
use crate::load_balancer::step::{CloudStep, Opening, RuleChange};

/// What to make of a refusal, be it the answer to the command or the outcome of its job. What is in the way may be what
/// an earlier try made, whose answer was lost: then the cloud is only seen as it is.
pub(crate) async fn refused(
    client: &Client,
    identity: &Identity,
    observed: &Seen,
    step: &CloudStep,
    error: &ApiError,
) -> Learned {
    let mut there = Vec::new();
    let seen = match (step, error.class) {
        (CloudStep::ChangeRule(rule, RuleChange::Assign(_) | RuleChange::Unassign(_)), Class::Invalid) => {
            other_members(client, observed, &rule.id).await
        }
        (CloudStep::CreateRule(new), Class::Invalid | Class::NotFound)
            if observed.is_on_its_way(&new.address.id) =>
        {
            Some(Fact::Unready(new.address.id.clone()))
        }
        (CloudStep::CreateRule(new), Class::Conflict) if error.is_rule_conflict() => {
            let balancer = match identity.is_of_leaseweb(&new.name, &new.address) {
                true => &identity.leaseweb_name,
                false => &identity.name,
            };
            there = rules_on(client, &new.address.id).await;
            other_rules(balancer, observed, new, &there)
        }
        // Only a conflict is a word about what is there. What the API takes from nobody is no reason to close anything.
        (CloudStep::Open(new), Class::Conflict) if !new.at.is_acl() && error.is_rule_conflict() => {
            in_the_way_of(client, observed, new).await
        }
        // A job of an earlier process may have come first.
        (CloudStep::Release { address, .. }, Class::Invalid | Class::NotFound) => {
            match client.public_ip_address(&address.id).await {
                Ok(now) if now.as_ref().is_none_or(|now| now.is_free()) => return Learned::Gone,
                _ => None,
            }
        }
        // Several Services may close what they shared.
        (CloudStep::Close(old), Class::Invalid | Class::NotFound) if old.at.is_acl() => {
            match firewall_of(client, &old.at.id).await {
                Ok(items) if items.rules.iter().all(|known| known.id != old.rule.id) => {
                    return Learned::Gone;
                }
                _ => None,
            }
        }
        _ => None,
    };
    if let Some(seen) = seen {
        return Learned::Seen(seen);
    }
    let mut told = verdict(identity, observed, step, error);
    if let CloudStep::CreateRule(new) = step
        && let Learned::Refused(why) | Learned::Held(why) = &mut told
        && let Some(whose) = who_has_the_port(identity, new, &there)
    {
        why.reason.push_str(&whose);
    }
    told
}

/// Which rule has the port of a new one, for people. The API tells an ID, if that.
fn who_has_the_port(identity: &Identity, new: &NewRule, there: &[Rule]) -> Option<String> {
    let mut rules = there.iter();
    let rule = rules.find(|rule| rule.at() == new.at() && !identity.is_own_rule(rule))?;
    let owner = identity.owner_of(&rule.name);
    let owner = owner.map_or(String::new(), |owner| {
        format!(" of service {}", ServiceKey::of(&owner))
    });
    Some(format!(": the port has load balancer rule {}{owner}", rule.name))
}

/// The port may be taken by a rule of the Service itself: one that was not known, or else one for another protocol.
fn other_rules(balancer: &str, observed: &Seen, new: &NewRule, there: &[Rule]) -> Option<Fact> {
    let is_known = |rule: &Rule| observed.rules.iter().any(|known| known.id == rule.id);
    let is_news = |rule: &&Rule| {
        let is_own = names::is_rule(balancer, &rule.name) && !observed.memory.own.rules.is_deleted(&rule.id);
        is_own && !is_known(rule)
    };
    let news: Vec<Rule> = there.iter().filter(is_news).cloned().collect();
    if news.iter().any(|rule| rule.public_port == Some(new.public_port)) {
        return Some(Fact::Rules(observed.rules.iter().cloned().chain(news).collect()));
    }
    conflict(observed, new)
}

/// The rules on an address, whosever they are; none if they cannot be listed.
async fn rules_on(client: &Client, address: &PublicIpId) -> Vec<Rule> {
    let rules = client.load_balancer_rules(&RuleQuery::On(address.clone())).await;
    rules.unwrap_or_default().iter().map(wire::rule).collect()
}

/// What a new rule of a firewall conflicts with, if that can be told: something that was not known, or else the rules for the
/// same port. With a rule for several ports that is known nothing new is begun, so such a one is news.
async fn in_the_way_of(client: &Client, observed: &Seen, new: &Opening) -> Option<Fact> {
    let known = observed.firewalls.get(&new.at.id)?;
    let mut listed = firewall_of(client, &new.at.id).await.ok()?;
    if let Some(recent) = observed.memory.own.firewalls.get(&new.at.id) {
        recent.lay_over(&mut listed.rules, |rule| &rule.id);
    }
    let mut rules = listed.rules.iter().filter(|rule| rule.ingress == new.ingress);
    let is_known = |rule: &FirewallRule| known.iter().any(|known| known.id == rule.id);
    if !rules.clone().all(is_known) || listed.ranges != observed.ranges(&new.at.id) {
        return Some(Fact::Firewall(new.at.id.clone(), listed));
    }
    // When they were gone it was refused all the same.
    let is_theirs = rules.next().is_some() && !was_refused(observed, &CloudStep::Open(new.clone()));
    is_theirs.then(|| Fact::TakesOneFirewallRule(new.at.id.clone(), new.ingress))
}

/// A rule may have got the members from somebody else; then the difference is another one.
async fn other_members(client: &Client, observed: &Seen, rule: &RuleId) -> Option<Fact> {
    let members = members_of(client, rule).await.ok()?;
    let is_news = observed.members.get(rule) != Some(&members);
    is_news.then(|| Fact::Members(rule.clone(), members))
}
