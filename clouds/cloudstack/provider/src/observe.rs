//! What the cloud says about one Service's balancer.
//!
//! An observation grows: it begins with the Service's rules, and the planning says what else it needs to know ([`Unread`]).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::CloudError;
use jiff::Timestamp;
use tokio::time::Instant;

use crate::claim::Asking;
use crate::objects::{
    Abilities, AclItem, Address, AddressRef, AddressState, FirewallRule, Machine, Network, NewRule,
    PublicPort, Rule,
};
use crate::step::CloudStep;

pub(crate) mod asks;
mod broken;
mod declined;
mod facts;
mod jobs;
pub(crate) mod lists;
pub(crate) mod reads;
mod rules;
#[cfg(test)]
mod tests;
mod trust;
mod unclosed;
mod underway;
mod wire;

pub(crate) use facts::{Fact, Need, Unread};
pub(crate) use unclosed::Unclosed;

/// One observation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observed {
    /// The wall time of the look.
    pub(crate) now: Option<Timestamp>,
    /// When that was.
    pub(crate) looked: Option<Instant>,
    /// What may have been asked for under the Service's claim, and how long each stands in the way of another one.
    pub(crate) standing: BTreeMap<Asking, Duration>,
    /// What the server can do.
    pub(crate) abilities: Option<Abilities>,
    /// The rules that bear the name of the Service's balancer.
    pub(crate) rules: Vec<Rule>,
    /// Networks by ID; none if there is no such network.
    pub(crate) networks: BTreeMap<String, Option<Arc<Network>>>,
    /// Addresses by ID; none if nobody has such an address.
    pub(crate) addresses: BTreeMap<String, Option<Address>>,
    /// What there is under an address that was asked for by its text.
    pub(crate) looked_up: BTreeMap<String, Vec<Address>>,
    /// Rules of others on an address, by its ID.
    pub(crate) strangers: BTreeMap<String, Vec<Rule>>,
    /// Rules of others in networks that share an ACL list, by a network's ID.
    pub(crate) neighbours: BTreeMap<String, Vec<Rule>>,
    /// Firewalls by the ID of their address: only rules for a single port.
    pub(crate) firewalls: BTreeMap<String, Vec<FirewallRule>>,
    /// ACL lists by ID: only items that let a single port in.
    pub(crate) acls: BTreeMap<String, Vec<AclItem>>,
    /// Members by the ID of their rule.
    pub(crate) members: BTreeMap<String, BTreeSet<String>>,
    /// Rules whose members were found to be right a moment ago, for the same Nodes.
    pub(crate) trusted: BTreeSet<String>,
    /// The virtual machines of the same Nodes a moment ago, where not all Nodes name theirs.
    pub(crate) expected: Option<BTreeSet<String>>,
    /// All virtual machines.
    pub(crate) machines: Option<Arc<Vec<Machine>>>,
    /// Addresses that may have been associated for a claim that names none, by the ID of its network.
    pub(crate) recovered: BTreeMap<String, Vec<Address>>,
    /// How many calls the reading took.
    pub(crate) calls: usize,
    /// Jobs under way.
    pub(crate) pending: Vec<Pending>,
    /// They are an earlier sync's, and since when they are waited for. Nothing else is read before they end.
    pub(crate) inherits_since: Option<Instant>,
    /// How often they were asked after since the last one was started.
    pub(crate) polls: u32,
    /// How often something else was looked at again that the cloud does by itself.
    pub(crate) looks: u32,
    /// Why nothing more is begun.
    pub(crate) failure: Option<Failure>,
    /// What this reconcile made for a balancer that was not there before: it goes again after a failure.
    pub(crate) made: Made,
    /// Whether the balancer is to go: then what cannot be closed does not keep it.
    pub(crate) is_removal: bool,
    /// What could not be closed.
    pub(crate) unclosed: Unclosed,
    /// The IDs of addresses that the API does not take back: as long as rules are on them, or as long as they are on their way.
    pub(crate) unreleased: BTreeSet<String>,
    /// The IDs of addresses that are on their way, and on which the API makes no rule yet.
    pub(crate) unready: BTreeSet<String>,
    /// Rules that the API refused to make, and where.
    pub(crate) unmade: Vec<(PublicPort, NewRule)>,
    /// The names of rules that it refused because the Service has the port already, for another protocol.
    pub(crate) seconds: BTreeSet<String>,
    /// Rules that it refused before, and that are not tried now.
    pub(crate) declined: Option<Declined>,
    /// Whether the Service was changed since a rule of it was seen that breaks its router.
    pub(crate) is_changed: bool,
    /// The API takes no firewall rule beside another one for the same port, whatever the sources of both.
    pub(crate) takes_one_firewall_rule: bool,
    /// Rules as this reconcile wrote them, by ID.
    pub(crate) written: BTreeMap<String, Rule>,
    /// The IDs of what this reconcile deleted: a list that still has it is behind.
    pub(crate) gone: BTreeSet<String>,
    /// The address of the rule that it deleted last.
    pub(crate) cleared: Option<AddressRef>,
    /// The IDs of rules that were on addresses which this reconcile gave back: they should be gone.
    pub(crate) gone_along: BTreeSet<String>,
    /// Some of them are listed all the same, and not looked at for a while: the list may be behind.
    pub(crate) lingers: bool,
    /// What this reconcile opened: a list that does not have it yet is behind.
    pub(crate) opened: Vec<Opened>,
    /// Numbers for made-up IDs.
    pub(crate) made_up: u32,
}

/// A job under way.
#[derive(Debug, Clone)]
pub(crate) struct Pending {
    /// The job.
    pub(crate) job: String,
    /// What it does.
    pub(crate) step: CloudStep,
    /// The ID of what it makes, if that was told.
    pub(crate) id: Option<String>,
    /// When it was started.
    pub(crate) since: Instant,
    /// When something was heard of it for the last time.
    pub(crate) heard: Instant,
    /// How many answers in a row were none to the question.
    pub(crate) nonsense: u32,
    /// Whether it takes back what an earlier failure left.
    pub(crate) gives_back: bool,
}

/// A failed write.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// What to say of it.
    pub(crate) error: CloudError,
    /// Whether the API itself said so. If not, the write may have had its effect.
    pub(crate) is_definite: bool,
    /// Whether the write was to take back what an earlier failure left.
    pub(crate) gives_back: bool,
}

impl Failure {
    /// The API said so.
    pub(crate) fn definite(error: CloudError) -> Self {
        Self {
            error,
            is_definite: true,
            gives_back: false,
        }
    }

    /// Nobody knows what came of it.
    pub(crate) fn unknown(error: CloudError) -> Self {
        Self {
            is_definite: false,
            ..Self::definite(error)
        }
    }
}

/// Rules that the API refused to make in the place of others, or beside others.
#[derive(Debug, Clone)]
pub(crate) struct Declined {
    /// Where, and which.
    pub(crate) rules: Vec<(PublicPort, NewRule)>,
    /// The names of those that were refused because the Service has the port already, for another protocol.
    pub(crate) seconds: BTreeSet<String>,
    /// What it said.
    pub(crate) error: String,
}

/// A port that was opened.
#[derive(Debug, Clone)]
pub(crate) enum Opened {
    /// By a rule of the firewall of the address with this ID.
    Firewall(String, FirewallRule),
    /// By an item of the ACL list with this ID.
    Acl(String, AclItem),
}

impl Opened {
    fn id(&self) -> &str {
        match self {
            Self::Firewall(_, rule) => &rule.id,
            Self::Acl(_, item) => &item.id,
        }
    }
}

/// What is taken back after a failure.
#[derive(Debug, Clone, Default)]
pub(crate) struct Made {
    /// An address that was chosen automatically.
    pub(crate) address: Option<AddressRef>,
    /// Items of ACL lists: the list's ID and the item's.
    pub(crate) acl_items: Vec<(String, String)>,
    /// The cloud refused to choose an address: none was acquired.
    pub(crate) is_refused: bool,
    /// The IDs of addresses that it refused.
    pub(crate) refused: BTreeSet<String>,
    /// Taking it back failed too. It is not tried again in this reconcile.
    pub(crate) is_stuck: bool,
}

/// The time between two looks at something that the cloud does by itself.
pub(crate) const LOOK: Duration = Duration::from_secs(2);

/// How old a look may be for an address to be given back by it: somebody may have given it back and acquired it anew since.
pub(crate) const RECENT: Duration = Duration::from_secs(5);

/// The time between two looks for an address that was asked for without an answer.
pub(crate) const SEARCH: Duration = Duration::from_secs(10);

/// How long an address may be on its way before it is tried to use it as it is. Some servers go on with a job only when it is
/// asked after, and whoever comes after a restart does not know the job.
pub(crate) const TRIED: Duration = Duration::from_secs(4);

/// How long an address may be on its way before it is given back: to be acquired anew, if it is needed. Its job began before
/// whoever looks, and should it still end, the server gives the address back then.
pub(crate) const GIVEN_BACK: Duration = Duration::from_secs(10);

/// How long the jobs of an earlier sync are waited for. Then what they made is found as after a restart.
pub(crate) const INHERITED: Duration = Duration::from_secs(10);

/// How long an address may be on its way back before it is given back once more. That fails if the first time is still to come,
/// so it is not tried as soon.
pub(crate) const GIVEN_BACK_AGAIN: Duration = Duration::from_secs(20);

/// How long an address may be on its way before people are told.
pub(crate) const SLOW: Duration = Duration::from_secs(30);

/// How long an address may be on its way before a balancer goes on without it. Its job is not known any more: it may have been
/// lost with the server's process, or the server may work on it only when it is asked after.
pub(crate) const STUCK: Duration = Duration::from_secs(60);

/// How long a list may be behind what was done.
const BEHIND: Duration = Duration::from_secs(10);

/// How long a job, or anything else that the cloud does by itself, may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// How long a job may be unheard of while the cloud is in trouble, or out of reach.
const SILENCE: Duration = Duration::from_secs(60);

/// How many answers in a row may be none to the question after a job, as a refusal is, or a page of something in between. The
/// Go manager asked as often.
const TRIES: u32 = 3;

/// The longest time between two looks at jobs.
const LONGEST_POLL: Duration = Duration::from_secs(5);

impl Observed {
    /// Whether something is being written there.
    pub(crate) fn is_pending(&self, target: &str) -> bool {
        self.pending.iter().any(|pending| pending.step.target() == target)
    }

    /// Whether something that the cloud does by itself was looked at for so long.
    pub(crate) fn has_waited(&self, time: Duration) -> bool {
        LOOK * self.looks >= time
    }

    /// Whether an address is on its way to somebody, as far as is known.
    pub(crate) fn is_on_its_way(&self, id: &str) -> bool {
        let read = self.addresses.values().flatten();
        let mut known = read.chain(self.looked_up.values().flatten());
        known.any(|known| known.address.id == id && known.state == AddressState::Allocating)
    }

    /// How long to wait before the next look at the jobs: 0.2 s at first, five seconds in the end.
    pub(crate) fn next_poll(&self) -> Duration {
        let factor = 1.5_f64.powi(i32::try_from(self.polls.min(20)).unwrap_or(20));
        Duration::from_millis(200).mul_f64(factor).min(LONGEST_POLL)
    }

    /// An ID that no object has.
    pub(crate) fn made_up_id(&mut self, kind: &str) -> String {
        self.made_up += 1;
        format!("new-{kind}-{}", self.made_up)
    }

    /// Compares the rules with what was written before. A server that does not keep a change would be told it again and
    /// again. A list may be behind what was written: then what is known counts.
    ///
    /// # Errors
    ///
    /// A rule is not as it was written.
    pub(crate) fn check_written(&mut self, before: &Self) -> Result<(), CloudError> {
        self.rules.retain(|rule| !before.gone.contains(&rule.id));
        for rule in before.written.values() {
            if self.rules.iter().all(|found| found.id != rule.id) {
                self.rules.push(rule.clone());
            }
        }
        let is_kept = |written: &Rule, found: &Rule| {
            written.name == found.name
                && written.algorithm == found.algorithm
                && (found.protocol.is_empty() || written.protocol == found.protocol)
                && written.private_port == found.private_port
                && written.cidrs.is_same(&found.cidrs)
        };
        for found in &self.rules {
            if before
                .written
                .get(&found.id)
                .is_some_and(|written| !is_kept(written, found))
            {
                return Err(CloudError::transient(format!(
                    "load balancer rule {} ({}) is not as it was written: somebody else changes it, or the server does not keep the change",
                    found.name, found.id
                )));
            }
        }
        Ok(())
    }

    /// Hides rules whose address was given back, as long as the list may be behind. After that the server is one that leaves
    /// them, and they are deleted.
    pub(crate) fn hide_gone_along(&mut self, before: &Self) {
        self.gone_along.clone_from(&before.gone_along);
        if self.has_waited(BEHIND) {
            return;
        }
        let count = self.rules.len();
        self.rules.retain(|rule| !before.gone_along.contains(&rule.id));
        self.lingers = self.rules.len() < count;
    }

    /// The firewall of an address was listed.
    pub(crate) fn see_firewall(&mut self, address: &str, mut rules: Vec<FirewallRule>) {
        let opened = self.opened.iter().filter_map(|opened| match opened {
            Opened::Firewall(at, rule) if at == address => Some(rule),
            _ => None,
        });
        catch_up(&mut rules, opened, &self.gone, |rule| &rule.id);
        self.firewalls.insert(address.to_owned(), rules);
    }

    /// An ACL list was listed.
    pub(crate) fn see_acl(&mut self, list: &str, mut items: Vec<AclItem>) {
        let opened = self.opened.iter().filter_map(|opened| match opened {
            Opened::Acl(of, item) if of == list => Some(item),
            _ => None,
        });
        catch_up(&mut items, opened, &self.gone, |item| &item.id);
        self.acls.insert(list.to_owned(), items);
    }

    /// This reconcile opened a port.
    pub(crate) fn open(&mut self, opened: Opened) {
        // Without an ID nobody could tell it from what a list shows.
        if !opened.id().is_empty() {
            self.opened.push(opened);
        }
    }

    /// What was opened is closed.
    pub(crate) fn close(&mut self, id: &str) {
        self.opened.retain(|opened| opened.id() != id);
        self.gone.insert(id.to_owned());
    }

    /// A rule by its ID.
    pub(crate) fn rule_mut(&mut self, id: &str) -> Option<&mut Rule> {
        self.rules.iter_mut().find(|rule| rule.id == id)
    }
}

/// Adds to a list that may be behind what was opened, and takes off it what is gone.
fn catch_up<'a, T: Clone + 'a>(
    listed: &mut Vec<T>,
    opened: impl Iterator<Item = &'a T>,
    gone: &BTreeSet<String>,
    id: impl Fn(&T) -> &String,
) {
    for one in opened {
        if listed.iter().all(|known| id(known) != id(one)) {
            listed.push(one.clone());
        }
    }
    listed.retain(|one| !gone.contains(id(one)));
}
