//! What a process keeps of the reconciles of a Service from one to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bowline_openstack_client::ProvisioningStatus;
use bowline_plan::Refusal;
use tokio::time::Instant;

use crate::load_balancer::learn;
use crate::load_balancer::learned::Learned;
use crate::load_balancer::memory::{Memory, Seen};
use crate::load_balancer::observed::{Observed, Parts};
use crate::load_balancer::remedies::About;
use crate::load_balancer::step::{CloudStep, PartChange};

/// The time between two load balancers of a Service that are made because the one before failed.
const BETWEEN_REPAIRS: Duration = Duration::from_secs(3600);

/// How long a part that failed is left before it is written once more. A failed change often means that an amphora does not answer:
/// Octavia replaces it within seconds, but not while another change is under way, and one that meets such an amphora takes minutes.
const BEFORE_REWRITE: Duration = Duration::from_secs(60);

/// The longest time between two looks at a part that fails again and again.
const BETWEEN_REWRITES: Duration = Duration::from_secs(10 * 60);

/// The time between two tries to put something in the place of what has to go first: the longest pause between two tries of what was refused.
const BETWEEN_REPLACEMENTS: Duration = Duration::from_secs(30 * 60);

/// What is kept of the reconciles of a Service.
#[derive(Default)]
pub(crate) struct Past {
    /// Since when parts that failed by themselves are seen so, by the id of the part. Without it, Bowline would write to a load balancer
    /// that Octavia is about to repair.
    failed_parts: BTreeMap<String, Failed>,
    /// When a load balancer that served and failed was deleted. Without it, a cloud that cannot keep one up would be asked for one after
    /// the other.
    repaired: Option<Instant>,
    /// Whether the load balancer was refused with all its parts, and perhaps for one of these. Without it, that would be tried again, and
    /// leave a port.
    is_tree_doubtful: bool,
    /// The creations that make what made way for something else as it was. Without it, what made way for what is refused would not come
    /// back, and would go again soon.
    made_way: Vec<PartChange>,
    /// What was to have the place of something and was refused, and when.
    refused: Vec<(Instant, CloudStep, Refusal)>,
}

/// A part that failed.
#[derive(Clone, Copy)]
struct Failed {
    /// Since when it is seen so, or since it was written for that.
    since: Instant,
    /// How often it was written for that.
    rewritten: u32,
}

impl Failed {
    /// How long it is left alone from now on, before it is looked at for its own sake.
    fn rest(self) -> Duration {
        let pause = BEFORE_REWRITE.saturating_mul(1 << self.rewritten.min(8));
        pause.min(BETWEEN_REWRITES).saturating_sub(self.since.elapsed())
    }
}

impl Past {
    pub(crate) fn is_empty(&self) -> bool {
        let is_nothing_replaced = self.made_way.is_empty() && self.refused.is_empty();
        is_nothing_replaced
            && self.failed_parts.is_empty()
            && self.repaired.is_none()
            && !self.is_tree_doubtful
    }

    /// What a reconcile that begins has to know of those before. What was refused in the place of something is not tried for a while,
    /// because the place is empty meanwhile.
    pub(crate) fn recall(&mut self, memory: &mut Memory) {
        let own = &mut memory.own;
        own.may_repair = self.repaired.is_none_or(|last| last.elapsed() >= BETWEEN_REPAIRS);
        own.is_tree_doubtful = self.is_tree_doubtful;
        own.made_way.clone_from(&self.made_way);
        self.refused
            .retain(|(since, ..)| since.elapsed() < BETWEEN_REPLACEMENTS);
        for (_, step, why) in &self.refused {
            memory.refusals.hold(step.clone(), why.clone());
        }
    }

    /// Keeps which parts failed, and says when they are to be looked at again. At the first look of a reconcile, those that stay so are
    /// due to be written once more: seen at a look at least [`BEFORE_REWRITE`] before this one, or since they were written for that.
    pub(crate) fn note_failed(&mut self, observed: &Observed, memory: &mut Memory, is_first: bool) {
        if observed.parts.is_empty() {
            return; // what is not known does not change
        }
        let balancers = observed.balancers.iter();
        let at_rest = balancers.filter(|there| there.provisioning_status == ProvisioningStatus::Active);
        let parts = at_rest.filter_map(|there| observed.parts.get(&there.id));
        let failed: BTreeSet<String> = parts.flat_map(Parts::failed).collect();
        let (own, known) = (&mut memory.own, &mut self.failed_parts);
        known.retain(|id, _| failed.contains(id));
        let since = Instant::now();
        for id in failed {
            let rewritten = 0;
            let one = known.entry(id.clone()).or_insert(Failed { since, rewritten });
            if is_first && one.since.elapsed() >= BEFORE_REWRITE {
                let rewritten = one.rewritten.saturating_add(1);
                *one = Failed { since, rewritten };
                own.stuck.insert(id);
            }
        }
        own.mend_after = known.values().map(|one| one.rest()).min();
    }

    /// A step was written.
    pub(crate) fn written(&mut self, is_wanted: bool, seen: &Seen, step: &CloudStep, learned: &mut Learned) {
        match (step, learned) {
            (CloudStep::CreateBalancer { .. }, Learned::Refused(why)) if About::of(why) == About::Parts => {
                self.is_tree_doubtful = true;
            }
            (CloudStep::DeleteBalancer { is_live: true, .. }, _) if is_wanted => {
                self.repaired = Some(Instant::now());
            }
            (CloudStep::Part { balancer, change }, Learned::Done(_)) if is_wanted => {
                self.made_way.retain(|before| !before.has_place_of(change));
                self.made_way.extend(learn::as_it_was(seen, balancer, change));
            }
            (CloudStep::Part { change, .. }, Learned::Refused(why))
                if is_wanted && self.made_way.iter().any(|before| before.has_place_of(change)) =>
            {
                why.is_limit = false; // there was room for what comes back
                why.reason.push_str("; what was deleted for it is made again as it was, and the change is tried again after half an hour, or when the Service asks for another one");
                self.refused.push((Instant::now(), step.clone(), why.clone()));
            }
            _ => {}
        }
    }

    /// Everything is as it is asked for.
    pub(crate) fn settled(&mut self) {
        self.is_tree_doubtful = false;
        self.made_way.clear();
        self.refused.clear();
    }
}
