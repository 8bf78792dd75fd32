//! One port of a balancer at its home: its rule, the members of the rule, and its firewall rule.

use std::collections::BTreeSet;

use bowline_cloudstack_client::RuleUpdate;
use bowline_plan::{Impact, Refusal};

use crate::load_balancer::intent::{Identity, Port, Wanted};
use crate::load_balancer::members::Members;
use crate::load_balancer::names;
use crate::load_balancer::objects::{Filtering, FirewallId, NewRule, Rule, RuleState};
use crate::load_balancer::observe::observed::{Need, Observed, Unread, is_in_the_way};
use crate::load_balancer::plan::builder::{Builder, Stop};
use crate::load_balancer::plan::home::Home;
use crate::load_balancer::plan::members::{self, no_hosts};
use crate::load_balancer::plan::removal::Removal;
use crate::load_balancer::plan::{acl, firewall};
use crate::load_balancer::replaced_rules::OpenPort;
use crate::load_balancer::step::{CloudStep, Opening, RuleChange};
use crate::messages::DUPLICATE_REMOVED;
use crate::version::Abilities;

/// What there is on one port.
pub(super) struct Present<'a> {
    /// The rule that is the port's, or can be made so where it stands.
    pub(super) kept: Option<&'a Rule>,
    /// What is in its way.
    surplus: Vec<&'a Rule>,
}

/// One port, and what is decided about it by.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    pub(super) wanted: &'a Wanted,
    pub(super) home: &'a Home,
    pub(super) port: &'a Port,
    pub(super) abilities: Abilities,
    /// Whether the rules here have the names that Leaseweb's manager gives: it would see no rule of another name beside them.
    pub(super) as_leaseweb: bool,
    /// Whether rules that break the router are put right.
    pub(super) mends: bool,
    pub(super) removal: &'a Removal<'a>,
}

impl<'a> At<'a> {
    /// The name of the port's rule.
    fn name(self) -> String {
        let Port { protocol, port, .. } = self.port;
        match self.as_leaseweb {
            true => names::rule(&self.wanted.identity.leaseweb_name, *protocol, *port),
            false => self.port.name.clone(),
        }
    }

    /// Plans for one port. Whether it is a gap: the cloud has nothing to put in its rule's place, which was deleted, or is to be,
    /// and is made anew.
    pub(super) fn one(self, plan: &mut Builder<'_>) -> bool {
        let is_replaced = self.is_replaced();
        let (is_standing, is_complete) = match self.present(plan) {
            Present { kept: None, surplus } if !surplus.is_empty() && self.held(plan, &surplus).is_some() => {
                self.hold(plan, &surplus);
                (false, true)
            }
            Present { kept, surplus } if !surplus.is_empty() => {
                let cleared = self.clear(plan, kept, &surplus);
                plan.take(cleared);
                (kept.is_some(), kept.is_some())
            }
            Present { kept: None, .. } => {
                let created = match self.former(plan) {
                    Some(former) => {
                        plan.cloud(CloudStep::CreateRule(former.clone()));
                        self.tell_held(plan, &[]);
                        Ok(())
                    }
                    None => self.create(plan),
                };
                plan.take(created);
                (false, false)
            }
            Present { kept: Some(rule), .. } => {
                let is_standing = self.keep(plan, rule);
                (is_standing, is_standing && may_serve(plan, rule))
            }
        };
        let is_begun = !plan.steps.is_empty() || self.is_pending(plan);
        // What is open has a rule, so that the rules tell what is open.
        if is_standing {
            self.open(plan);
        }
        is_replaced && ((is_begun && !is_complete) || self.is_opening(plan))
    }

    /// Whether a port has a rule here, or had one that is made anew.
    pub(super) fn is_there(self, plan: &Builder<'_>) -> bool {
        let Present { kept, surplus } = self.present(plan);
        kept.is_some() || !surplus.is_empty() || self.is_replaced()
    }

    /// Whether a port's rule was taken away to be made anew, and serves not yet.
    pub(super) fn is_open_gap(self, plan: &Builder<'_>) -> bool {
        let serves = match self.present(plan) {
            Present { kept: None, surplus } => !surplus.is_empty(),
            Present { kept: Some(rule), .. } => may_serve(plan, rule),
        };
        !serves && self.is_replaced()
    }

    /// Whether a port takes the place of a rule that is deleted, or about to be.
    fn is_replaced(self) -> bool {
        let mut replaced = self.wanted.identity.replaced.ports();
        replaced
            .any(|open| open.address == self.home.address.id && self.wanted.follows(self.port, open.ingress))
    }

    /// Whether a write to a port's rule is under way.
    fn is_pending(self, plan: &Builder<'_>) -> bool {
        let here = (&self.home.address, Some(self.port.port));
        let is_own = |step: &CloudStep| match step {
            CloudStep::CreateRule(new) => new.at() == here && self.wanted.follows(self.port, new.ingress()),
            CloudStep::ChangeRule(rule, _) => {
                let mut rules = plan.observed.rules.iter();
                rule.at() == here && !rules.any(|known| known.id == rule.id && self.is_of_other_port(known))
            }
            _ => false,
        };
        plan.observed.pending.iter().any(|pending| is_own(&pending.step))
    }

    /// Whether a rule on the same number is another port's: one for TCP, one for UDP.
    fn is_of_other_port(self, rule: &Rule) -> bool {
        let ingress = rule.ingress(&self.wanted.identity.name);
        let mut ports = self.wanted.ports.iter().map(Port::ingress);
        ports.any(|other| other != self.port.ingress() && Some(other) == ingress)
    }

    /// Whether a port is being opened.
    fn is_opening(self, plan: &Builder<'_>) -> bool {
        plan.observed.pending.iter().any(|pending| match &pending.step {
            CloudStep::Open(new) => {
                let is_here = match &new.at.id {
                    FirewallId::Address(id) => *id == self.home.address.id,
                    FirewallId::Acl(_) => new.network == self.home.network.id,
                };
                is_here && new.ingress == self.port.ingress()
            }
            _ => false,
        })
    }

    /// Opens the firewall for the port, and closes it to all else.
    pub(super) fn open(self, plan: &mut Builder<'_>) {
        let Home { network, address, .. } = self.home;
        let sources = &self.wanted.sources;
        let Some(at) = network.firewall(address) else {
            return;
        };
        let new = Opening {
            at,
            network: network.id.clone(),
            ingress: self.port.ingress(),
            sources: sources.texts.clone(),
            stands_in: false,
        };
        let opened = match new.at.is_acl() {
            false => firewall::open(plan, new, &sources.cidrs),
            true => acl::open(plan, new, sources),
        };
        plan.take(opened);
    }

    pub(super) fn present<'b>(self, plan: &Builder<'b>) -> Present<'b> {
        let (home, port) = (self.home, self.port);
        let (balancer, name) = (&self.wanted.identity.name, self.name());
        let speaks_alike = |rule: &Rule| rule.ingress(balancer) == Some(port.ingress());
        let is_here =
            |rule: &&Rule| rule.address.id == home.address.id && rule.public_port == Some(port.port);
        let here = plan.observed.rules.iter().filter(is_here);
        let mut own: Vec<&Rule> = here.filter(|rule| !self.is_of_other_port(rule)).collect();
        own.sort_by_key(|rule| {
            (
                rule.state.is_going(),
                rule.name != name,
                !speaks_alike(rule),
                rule.private_port != Some(port.node_port),
                rule.state != RuleState::Active,
                rule.id.clone(),
            )
        });
        // One that speaks something else entirely cannot be changed into it.
        let is_usable = |rule: &Rule| !rule.state.is_going() && (rule.name == name || speaks_alike(rule));
        let is_kept = own.first().is_some_and(|first| is_usable(first));
        let surplus = own.split_off(usize::from(is_kept));
        Present {
            kept: own.pop(),
            surplus,
        }
    }

    /// Takes away what is in the way of a port's rule.
    fn clear(self, plan: &mut Builder<'_>, kept: Option<&Rule>, surplus: &[&Rule]) -> Result<(), Stop> {
        let Some(kept) = kept else {
            return self.replace(plan, surplus);
        };
        let ingress = |rule: &Rule| rule.ingress(&self.wanted.identity.name);
        // One for TCP and one for UDP, of which one is wanted no more, are no duplicates.
        let impact = if surplus.iter().any(|rule| ingress(rule) == ingress(kept)) {
            plan.notes.push(DUPLICATE_REMOVED.note(format!(
                "load balancer rule {} ({}) is kept, and the others on its port of {} are removed",
                kept.name, kept.id, self.home.address.ip
            )));
            Impact::None
        } else {
            Impact::Considerable
        };
        // What comes after it is read now, so that the whole plan can be told.
        plan.take(self.members_of(plan, kept));
        for rule in surplus {
            self.removal.rule(plan, rule, impact);
        }
        Ok(())
    }

    /// Deletes rules, the best of which is made anew as the port's. The port stays open, and what was there is written down
    /// first. Where the API may refuse the port's rule for what it is, as one for another protocol or one that it refused before, the rules
    /// are deleted only if it takes that rule beside them no more than in their place.
    fn replace(self, plan: &mut Builder<'_>, rules: &[&Rule]) -> Result<(), Stop> {
        let home = self.home;
        // What takes its place has to be possible.
        let members = self.new_members()?;
        let Identity { name, replaced, .. } = &self.wanted.identity;
        if members.is_none_or(|members| members.instances.is_empty()) {
            // The old members are better than none.
            return Err(no_hosts(members).into());
        }
        let new = self.new_rule();
        let is_in_the_way = |rule: &&Rule| is_in_the_way(plan.observed, rule, &new);
        let port = (home.address.id.clone(), self.port.port);
        // What is noted was decided on by an earlier look.
        let is_noted = self.is_replaced() || plan.own().takes_one_rule.contains(&port);
        if rules.iter().all(is_in_the_way) && !is_noted {
            plan.cloud(CloudStep::CreateRule(new));
            return Ok(());
        }
        let mut is_written = true;
        let mut known: BTreeSet<OpenPort> = BTreeSet::new();
        for rule in rules {
            let Some(now) = NewRule::again(rule, name) else {
                continue; // nobody could make it again
            };
            let port = now.open_port();
            self.removal.foresee(plan, &port);
            if home.network.filtering() == Filtering::Addresses {
                plan.take(plan.observed.firewall_of(&home.address.id)); // looked at when the new rule is there
            }
            if known.insert(port.clone()) && replaced.get(&port) != Some(&now) {
                plan.replaced.insert(now);
                is_written = false;
            }
        }
        if is_written {
            for rule in rules {
                plan.cloud(CloudStep::delete(rule, Impact::Considerable));
            }
        }
        Ok(())
    }

    /// Makes a rule the port's where it stands, and gives it its members; or takes it away, if it cannot be changed. Whether it
    /// stays.
    fn keep(self, plan: &mut Builder<'_>, rule: &Rule) -> bool {
        let (wanted, port) = (self.wanted, self.port);
        let is_good_enough = !wanted.says_cidrs && rule.cidrs.lets_everybody_in();
        let is_broken = self.mends && rule.breaks_router() && !wanted.nodes.is_empty();
        let cidrs_differ = is_broken || (!is_good_enough && !rule.cidrs.is_same(&wanted.cidrs.cidrs));
        let takes_cidrs = self.abilities.changes_cidrs && wanted.cidrs.can_be_updated_to();
        // The API changes the protocol too, and lists it from then on. The router goes on as before.
        if rule.private_port != Some(port.node_port)
            || rule.protocol(&wanted.identity.name) != Some(port.protocol)
            || (cidrs_differ && !takes_cidrs)
        {
            if self.held(plan, &[rule]).is_some() {
                self.hold(plan, &[rule]);
                return true;
            }
            let replaced = self.replace(plan, &[rule]);
            plan.take(replaced);
            return false;
        }
        let name = self.name();
        let is_same = rule.algorithm == wanted.algorithm && rule.name == name && !cidrs_differ;
        let members = members::change(plan, wanted, self.home.members.as_ref(), rule);
        let update = (!is_same).then(|| {
            RuleChange::Update(RuleUpdate {
                algorithm: Some(wanted.algorithm.clone()),
                protocol: Some(port.protocol.as_str().into()),
                cidrs: cidrs_differ.then(|| wanted.cidrs.texts.clone()),
                name: (rule.name != name).then_some(name),
            })
        });
        let sticks = self.sticks(plan, rule);
        // Whatever the API makes of all else, nobody is balanced over who left. But nothing reaches a router before what breaks it
        // is put right.
        let change = match is_broken {
            true => update.or(members),
            false => members.or(update),
        };
        // Last: all that a rule does is done by then, whatever becomes of it.
        let change = change.or(sticks);
        if let Some(change) = change {
            plan.cloud(CloudStep::change(rule, change));
        }
        true
    }

    /// What is to be done about the stickiness policies of a rule, if anything. Whatever cannot be costs the port nothing.
    fn sticks(self, plan: &mut Builder<'_>, rule: &Rule) -> Option<RuleChange> {
        let need = Need::Policies(rule.id.clone());
        if let Some(error) = plan.observed.unreadable.get(&need) {
            plan.left_out.push(Refusal::new(error.to_string()));
            return None;
        }
        let change = plan.take(self.stickiness(plan.observed, rule)).flatten()?;
        match plan.held(&CloudStep::change(rule, change.clone())) {
            Some(why) => {
                plan.left_out.push(why.clone());
                None
            }
            None => Some(change),
        }
    }

    /// The same, as far as policies are known. A new one takes the place of the other.
    fn stickiness(self, observed: &Observed, rule: &Rule) -> Result<Option<RuleChange>, Unread> {
        let Wanted {
            identity,
            stickiness,
            cannot_stick,
            ..
        } = self.wanted;
        if cannot_stick.is_some() {
            return Ok(None);
        }
        let Some(wanted) = stickiness else {
            if !identity.claim.is_sticky {
                return Ok(None);
            }
            let mut policies = observed.policies(&rule.id)?.iter();
            let own = policies.find(|policy| identity.is_own_policy(policy));
            return Ok(own.cloned().map(RuleChange::Unstick));
        };
        if wanted.refusal(&self.home.network).is_some() {
            return Ok(None);
        }
        let policies = observed.policies(&rule.id)?.iter();
        let policies = policies.filter(|policy| !policy.is_going());
        let (same, others): (Vec<_>, Vec<_>) = policies.partition(|policy| wanted.is_as(policy));
        // Beside two the server takes none.
        let mut surplus = same.iter().skip(1).chain(&others);
        Ok(match surplus.next() {
            Some(one) if same.len() + others.len() > 1 => Some(RuleChange::Unstick((*one).clone())),
            _ if same.is_empty() => Some(RuleChange::Stick(wanted.policy(&self.name()))),
            _ => None,
        })
    }

    /// What is wrong with the members of a rule.
    fn members_of(self, plan: &Builder<'_>, rule: &Rule) -> Result<Option<RuleChange>, Unread> {
        members::of_rule(plan.observed, self.wanted, self.home.members.as_ref(), rule)
    }

    /// The members of a new rule.
    fn new_members(self) -> Result<Option<&'a Members>, Unread> {
        match &self.home.members {
            None if !self.wanted.nodes.is_empty() => Err(Need::Instances.into()),
            members => Ok(members.as_ref()),
        }
    }

    fn create(self, plan: &mut Builder<'_>) -> Result<(), Stop> {
        if plan.observed.rules.is_empty() && self.wanted.nodes.is_empty() {
            return Err(no_hosts(self.home.members.as_ref()).into());
        }
        self.new_members()?;
        plan.cloud(CloudStep::CreateRule(self.new_rule()));
        Ok(())
    }

    fn new_rule(self) -> NewRule {
        let (wanted, home, port) = (self.wanted, self.home, self.port);
        // Servers before 4.18 refuse a list. That everybody may connect need not be said, so it is only said where it is
        // certain that it may be.
        let takes_cidrs = self.abilities.takes_cidrs;
        let is_sent = takes_cidrs.unwrap_or(!wanted.cidrs.cidrs.is_everything());
        NewRule {
            name: self.name(),
            protocol: port.protocol,
            algorithm: wanted.algorithm.clone(),
            address: home.address.clone(),
            public_port: port.port,
            private_port: port.node_port,
            network: home.network.id.clone(),
            cidrs: is_sent.then(|| wanted.cidrs.texts.clone()),
        }
    }

    /// Why the API refused a port's new rule, or to delete the rules that are in its place: they are not taken away for it.
    fn held<'b>(self, plan: &Builder<'b>, rules: &[&Rule]) -> Option<&'b Refusal> {
        let delete = |rule: &&Rule| CloudStep::delete(rule, Impact::Considerable);
        let create = std::iter::once(CloudStep::CreateRule(self.new_rule()));
        let mut steps = create.chain(rules.iter().map(delete));
        steps.find_map(|step| plan.held(&step))
    }

    /// The rule that was deleted for one that is refused: it is made again as it was, and the next try begins with its successor.
    fn former(self, plan: &Builder<'_>) -> Option<&'a NewRule> {
        self.held(plan, &[])?;
        let new = self.new_rule();
        let is_former = |before: &&NewRule| {
            before.at() == new.at() && **before != new && self.wanted.follows(self.port, before.ingress())
        };
        self.wanted.identity.replaced.iter().find(is_former)
    }

    /// Keeps rules that should have another one in their place. Their members follow the Nodes.
    fn hold(self, plan: &mut Builder<'_>, rules: &[&Rule]) {
        self.tell_held(plan, rules);
        for rule in rules.iter().filter(|rule| !rule.state.is_going()) {
            members::follow(plan, self.wanted, self.home.members.as_ref(), rule);
        }
    }

    /// Says why not all is as it is wanted, and which rules stay.
    fn tell_held(self, plan: &mut Builder<'_>, stay: &[&Rule]) {
        if let Some(why) = self.held(plan, stay) {
            let stays = stay
                .iter()
                .map(|rule| format!(": rule {} stays as it is", rule.name));
            let reason = format!("{}{}", why.reason, stays.collect::<String>());
            let told = Refusal {
                reason,
                ..why.clone()
            };
            plan.shortfalls.push(told);
        }
    }
}

/// Whether a rule has members, as far as is known.
pub(super) fn may_serve(plan: &Builder<'_>, rule: &Rule) -> bool {
    let members = plan.observed.members.get(&rule.id);
    members.is_none_or(|members| !members.is_empty())
}
