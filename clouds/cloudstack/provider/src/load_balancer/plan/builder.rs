//! A plan as it is put together by decisions that each know a part of it.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_cloud_provider::{KubeWrite, LoadBalancerPlan, LoadBalancerStatus, LoadBalancerStep};
use bowline_plan::{Answer, Note, Plan, Refusal};
use jiff::Timestamp;

use crate::load_balancer::claim::{Claim, Claimed, Subject};
use crate::load_balancer::evidence;
use crate::load_balancer::intent::Identity;
use crate::load_balancer::objects::{Address, AddressRef, IngressPort, Network, Place, PublicIpId, Rule};
use crate::load_balancer::observe::observed::{Need, Pending, Seen, Unread};
use crate::load_balancer::observe::remembered::Remembered;
use crate::load_balancer::observe::times::{LOOK, POLLS, RELEASED, SEARCH, SLOW, STUCK, TRIED};
use crate::load_balancer::replaced_rules::ReplacedRules;
use crate::load_balancer::step::CloudStep;
use crate::messages::{ADDRESS_KEPT, ADDRESS_PENDING, ADDRESS_SOUGHT, LEFT_OPEN};

/// What is done about an address that is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It is used as it is: whether the API makes a rule on it decides.
    Tried,
    /// It is waited for, or released.
    Waits,
    /// The balancer goes on without it.
    Stuck,
}

/// Why a decision goes no further for now.
pub(super) enum Stop {
    /// It lacks facts.
    Unread(Unread),
    /// What is asked for cannot be.
    Refused(Refusal),
    /// What is planned comes first, or what is waited for.
    Planned,
}

impl From<Unread> for Stop {
    fn from(unread: Unread) -> Self {
        Self::Unread(unread)
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// A plan as it is put together.
#[derive(Clone)]
pub(super) struct Builder<'a> {
    pub(super) identity: &'a Identity,
    pub(super) observed: &'a Seen,
    pub(super) needs: BTreeSet<Need>,
    pub(super) steps: Vec<CloudStep>,
    /// The claim as it is to be written on the Service before the plan can go on; all of it in one write.
    pub(super) claim: Claim,
    /// The same of rules that are to be deleted while their ports stay open.
    pub(super) replaced: ReplacedRules,
    pub(super) notes: Vec<Note>,
    pub(super) waiting: Option<String>,
    /// How long a claim still stands in the way.
    pub(super) blocked: Option<Duration>,
    pub(super) refusal: Option<Refusal>,
    /// Whether something is not decided, because what it takes cannot be read.
    pub(super) is_blind: bool,
    /// Why not all is as it is wanted when the rest is done.
    pub(super) shortfalls: Vec<Refusal>,
    /// Why not all members are there that are wanted. The ports serve by the others.
    pub(super) left_out: Vec<Refusal>,
    pub(super) settled: Option<LoadBalancerStatus>,
    /// What the status shows before anything else is written.
    pub(super) publish: Option<LoadBalancerStatus>,
    /// When to look again once it is settled.
    pub(super) again: Option<Duration>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(identity: &'a Identity, observed: &'a Seen) -> Self {
        Self {
            identity,
            observed,
            needs: BTreeSet::new(),
            steps: Vec::new(),
            claim: identity.claim.clone(),
            replaced: identity.replaced.clone(),
            notes: Vec::new(),
            waiting: None,
            blocked: None,
            refusal: None,
            is_blind: false,
            shortfalls: Vec::new(),
            left_out: Vec::new(),
            settled: None,
            publish: None,
            again: None,
        }
    }

    /// Why the API refused a write before, which is held back.
    pub(super) fn held(&self, step: &CloudStep) -> Option<&'a Refusal> {
        let memory = &self.observed.memory;
        let refused = memory.refusals.first(|refused| refused.is_same(step));
        refused.or_else(|| memory.stuck(step))
    }

    /// Whether the API does not take an address back, at least for now.
    pub(super) fn keeps(&self, address: &AddressRef, is_live: bool) -> bool {
        let is_unreleased = self.own().unreleased.contains(&address.id);
        is_unreleased || self.held(&CloudStep::release(address, is_live)).is_some()
    }

    /// Plans a write, unless it is held back, one to the same thing is under way, or it is planned already.
    pub(super) fn cloud(&mut self, step: CloudStep) {
        if let Some(why) = self.held(&step) {
            self.shortfalls.push(why.clone());
            return;
        }
        if let Some(closed) = step.closed()
            && self.own().close_attempts.rests(closed)
        {
            self.wait(format!(
                "{} failed, and is tried again",
                bowline_plan::Step::label(&step)
            ));
            return;
        }
        let mut going = self.observed.going.iter();
        let is_going = going.any(|item| step.closed() == Some(item.as_str()));
        if !is_going && !self.observed.is_pending(&step.target()) {
            self.add(step);
        }
    }

    /// Releases an address. If that is the only one (`is_only`), it is written on the Service first, unless that goes too: the job may
    /// have to wait for others, and whoever comes after a restart must not use what then goes.
    pub(super) fn release(&mut self, address: &AddressRef, is_live: bool, is_only: bool) {
        let claim = &self.identity.claim;
        if is_only && self.identity.stays && claim.names(&address.id) && !claim.is_going(&address.id) {
            self.claim.insert(Claimed::Going(address.id.clone()));
            return;
        }
        self.cloud(CloudStep::release(address, is_live));
    }

    pub(super) fn add(&mut self, step: CloudStep) {
        if !self.steps.contains(&step) {
            self.steps.push(step);
        }
    }

    pub(super) fn own(&self) -> &'a Remembered {
        &self.observed.memory.own
    }

    /// What is to be written on the Service, in one write.
    pub(super) fn annotations(&self) -> Vec<(String, Option<String>)> {
        let texts =
            |claim: &Claim, replaced: &ReplacedRules| claim.texts().into_iter().chain([replaced.text()]);
        let before = texts(&self.identity.noted, &self.identity.replaced);
        let after = texts(&self.claim, &self.replaced).zip(before);
        let changed = after.filter(|(after, before)| after != before);
        changed.map(|((key, text), _)| (key.to_owned(), text)).collect()
    }

    /// What was decided. If it was not, what that takes is read, or people are told; the decisions beside it go on.
    pub(super) fn take<T>(&mut self, decided: Result<T, impl Into<Stop>>) -> Option<T> {
        match decided.map_err(Into::into) {
            Ok(decided) => return Some(decided),
            Err(Stop::Unread(Unread(needs))) => needs.into_iter().for_each(|need| self.need(need)),
            Err(Stop::Refused(refusal)) => {
                self.refusal.get_or_insert(refusal);
            }
            Err(Stop::Planned) => {}
        }
        None
    }

    pub(super) fn need(&mut self, need: Need) {
        if need
            .opened()
            .is_some_and(|id| self.own().close_attempts.rests(id))
        {
            self.wait("what lets ports in could not be listed, and is tried again".to_owned());
        } else if self.observed.unreadable.contains_key(&need) {
            self.is_blind = true;
        } else {
            self.needs.insert(need);
        }
    }

    /// Reads beside the rest what will be needed next. Where it cannot be read, that counts when it is needed.
    pub(super) fn foresee<T>(&mut self, fact: Result<T, Unread>) {
        if let Err(Unread(needs)) = fact {
            let unreadable = &self.observed.unreadable;
            self.needs
                .extend(needs.into_iter().filter(|need| !unreadable.contains_key(need)));
        }
    }

    /// What is planned by a decision, apart from the rest. One that lacks what cannot be read takes nothing away.
    pub(super) fn apart<T>(&mut self, decide: impl FnOnce(&mut Self) -> T) -> (T, Vec<CloudStep>) {
        let before = std::mem::take(&mut self.steps);
        let was_blind = std::mem::take(&mut self.is_blind);
        let decided = decide(self);
        let mut steps = std::mem::replace(&mut self.steps, before);
        if self.is_blind {
            steps.retain(|step| !step.takes_away() || step.changes_members());
        }
        self.is_blind |= was_blind;
        (decided, steps)
    }

    /// Decides on something that nothing else leans on.
    pub(super) fn part<T>(&mut self, decide: impl FnOnce(&mut Self) -> T) -> T {
        let (decided, steps) = self.apart(decide);
        steps.into_iter().for_each(|step| self.add(step));
        decided
    }

    pub(super) fn wait(&mut self, reason: String) {
        self.waiting.get_or_insert(reason);
    }

    /// Waits for an address that is being acquired or released.
    pub(super) fn wait_for_address(&mut self, address: &AddressRef) {
        let reason = format!("public IP {} is being acquired or released", address.ip);
        if self.own().on_the_way.time(&address.id) >= SLOW {
            self.notes.push(ADDRESS_PENDING.note(pending(address)));
        }
        self.wait(reason);
    }

    /// The time, to date claims.
    pub(super) fn now(&self) -> Timestamp {
        let now = self.identity.now;
        self.observed.now.map_or(now, |seen| seen.max(now))
    }

    /// Claims by its ID what the cloud chose.
    pub(super) fn choose(&mut self, id: &PublicIpId, network: &Network) {
        self.claim.retain(|claimed| !matches!(claimed, Claimed::Any(_)));
        self.claim.insert(Claimed::Address(id.clone()));
        self.leads(id, network);
    }

    /// Notes where an address leads that is claimed.
    pub(super) fn leads(&mut self, id: &PublicIpId, network: &Network) {
        self.claim.leads(id, Place::of(network));
    }

    /// The same by a rule that is on it, as far as that tells.
    pub(super) fn leads_by(&mut self, rule: &Rule) {
        let id = &rule.address.id;
        let vpc = match (
            self.observed.known_network(&rule.network),
            self.observed.known_address(id),
        ) {
            (Some(network), _) => network.vpc.clone(),
            (None, Some(address)) => address.vpc.clone(),
            (None, None) => return,
        };
        if !rule.network.is_empty() {
            let network = rule.network.clone();
            self.claim.leads(id, Place { network, vpc });
        }
    }

    /// The same for one that goes: by its rules, else by where it leads now.
    pub(super) fn leads_as_it_does(&mut self, id: &PublicIpId, rules: &[&Rule]) {
        rules.iter().for_each(|rule| self.leads_by(rule));
        if let Some(address) = self.observed.known_address(id)
            && self.claim.place(id).is_none()
        {
            // One of a VPC need not tell a tier.
            let network = address.network.clone().unwrap_or_else(|| "-".into());
            let vpc = address.vpc.clone();
            self.claim.leads(id, Place { network, vpc });
        }
    }

    /// Says that an address is not released.
    pub(super) fn keep(&mut self, address: &AddressRef, why: &str) {
        self.notes
            .push(ADDRESS_KEPT.note(format!("public IP {} is not released: {why}", address.ip)));
    }

    /// Claims by its ID alone what was asked for, and came: whether that had still to be done.
    pub(super) fn came(&mut self, id: &PublicIpId) -> bool {
        let is_news = self.identity.claim.asked(id).is_some();
        if is_news {
            self.claim.insert(Claimed::Address(id.clone()));
        }
        is_news
    }

    /// Whether nothing else may be asked for yet, and nothing may end: what was asked for is looked for meanwhile, unless it came.
    pub(super) fn is_blocked(&mut self) -> Result<bool, Unread> {
        let mut is_blocked = false;
        for request in self.identity.claim.open_requests() {
            let Some(left) = self.own().known.standing.get(&request) else {
                continue;
            };
            if let Subject::Address(id) = &request.subject
                && evidence::is_taken(self.observed, id)?
            {
                self.came(id);
                continue;
            }
            is_blocked = true;
            let mut pending = self.observed.pending.iter();
            if pending.any(|pending| pending.step.address_request().as_ref() == Some(&request)) {
                continue; // its job tells
            }
            self.blocked = self.blocked.max(Some(*left));
            self.notes.push(ADDRESS_SOUGHT.note(format!(
                "a public IP was asked for at {:.0}, and what came of it is not known; it is looked for, and for two minutes \
                 neither is another one asked for nor is the service let go",
                request.since
            )));
        }
        Ok(is_blocked)
    }

    /// What to do about an address that is on its way to the Service, by a job that is not known. `is_own`: nobody else can want
    /// it.
    pub(super) fn bring(&mut self, address: &Address, is_own: bool) -> Arrival {
        let id = &address.address.id;
        let own = self.own();
        let time = own.on_the_way.time(id);
        if !own.unready.contains(id) && time >= TRIED {
            return Arrival::Tried;
        }
        if self.is_stuck(address) {
            return Arrival::Stuck;
        }
        if is_own && time >= RELEASED && !own.unreleased.contains(id) {
            // Should it come after all, the server releases it then.
            self.notes.push(ADDRESS_PENDING.note(pending(&address.address)));
            self.release(&address.address, false, true);
        } else {
            self.wait_for_address(&address.address);
        }
        Arrival::Waits
    }

    /// Whether an address is on its way and waited for no longer. Its job is not known.
    pub(super) fn is_stuck(&self, address: &Address) -> bool {
        address.state.is_on_the_way() && self.own().on_the_way.time(&address.address.id) >= STUCK
    }

    /// Whether it is tried no more to close something of a balancer that goes; then people are told.
    pub(super) fn has_given_up(&mut self, id: &str, what: &str, ingress: IngressPort) -> bool {
        let refusals = &self.observed.memory.refusals;
        let refused = refusals.first(|step| step.closed() == Some(id));
        let refused = refused.filter(|_| self.own().known.is_removal);
        let error = self.own().close_attempts.given_up(id);
        let Some(error) = error.or(refused.map(|why| why.reason.as_str())) else {
            return false;
        };
        self.notes.push(LEFT_OPEN.note(format!(
            "{what} {id} for {ingress} is left, and the load balancer goes without it: {error}"
        )));
        true
    }

    /// Whether anything is to be written, to the cloud or on the Service.
    pub(super) fn has_writes(&self) -> bool {
        !self.steps.is_empty() || !self.annotations().is_empty() || self.publish.is_some()
    }

    /// Whether there is nothing to do so far, and nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.has_only_jobs() && self.observed.pending.is_empty()
    }

    /// Whether there is nothing to do so far but to wait for jobs.
    pub(super) fn has_only_jobs(&self) -> bool {
        self.needs.is_empty()
            && !self.has_writes()
            && self.waiting.is_none()
            && self.blocked.is_none()
            && self.refusal.is_none()
            && !self.is_blind
    }

    pub(super) fn finish(self) -> LoadBalancerPlan<CloudStep> {
        let mut publishes = None;
        let annotations = self.annotations();
        let mut steps: Vec<_> = self.steps.into_iter().map(LoadBalancerStep::Cloud).collect();
        if !annotations.is_empty() {
            // Alone: it is done at once, and what comes after it shall not overtake jobs of the same wave.
            steps = vec![LoadBalancerStep::Kube(KubeWrite::AnnotateService(annotations))];
        } else if let Some(status) = self.publish {
            // Neither waits for the other: either may be refused, or hang.
            steps.insert(0, LoadBalancerStep::Kube(KubeWrite::PublishStatus(status)));
        }
        let wait = |after, reason: String| Answer::Wait { after, reason };
        let look_again = |reason: &str| Answer::LookAgain {
            reason: reason.to_owned(),
        };
        let pending = self.observed.pending.as_slice();
        let is_begun = !pending.is_empty();
        let answer = if !self.needs.is_empty() {
            look_again("more has to be read")
        } else if !steps.is_empty() {
            Answer::apply_or(steps, || Answer::Settled(LoadBalancerStatus::empty()))
        } else if is_begun {
            let label = |pending: &Pending| bowline_plan::Step::label(&pending.step);
            let jobs: Vec<String> = pending.iter().map(label).collect();
            let pause = self.observed.memory.pause(POLLS);
            wait(pause, format!("jobs under way: {}", jobs.join(", ")))
        } else if let Some(refusal) = self.refusal {
            Answer::Refused(refusal)
        } else if let Some(reason) = self.waiting {
            wait(LOOK, reason)
        } else if let Some(left) = self.blocked {
            // A moment more, so that the last look is not too early.
            let after = SEARCH.min(left + Duration::from_millis(100));
            let reason = "a public IP that was asked for, and no answer came";
            wait(after, reason.to_owned())
        } else if let Some(shortfall) = Refusal::all(self.shortfalls.iter().chain(&self.left_out)) {
            publishes = self.settled; // the rest serves
            Answer::Refused(shortfall)
        } else if let Some(status) = self.settled {
            Answer::Settled(status)
        } else {
            // A failure is told by the next look.
            look_again("a write or a read failed")
        };
        Plan {
            lacks: None,
            answer,
            notes: self.notes,
            again: self.again,
            publishes,
        }
    }
}

/// What is said of an address that is on its way for long.
pub(super) fn pending(address: &AddressRef) -> String {
    format!(
        "public IP {} ({}) is being acquired or released, and the cloud does not come to an end with it",
        address.ip, address.id
    )
}
