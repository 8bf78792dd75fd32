//! Providers behind one type, so that the controllers are compiled once whatever clouds are built in.
//!
//! A provider's own types of intent, observation and step stay inside a [`Reconcile`] session; a step comes out as a
//! [`DynStep`] that shows its view and goes back in to be applied.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bowline_plan::{Ailment, Answer, Impact, Plan, Refusal, RefusedBy, Shown, Step as _, StepView, Wave};
use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::load_balancer::{Reconciler, Told, WriteOutcome};
use crate::refusals::News;
use crate::{CloudError, KubeWrite, LoadBalancerStatus, LoadBalancerStep, Measurement, Memory, Seen, SeenBy};

/// What tells the wall time; nothing if that is not known better than by the facts.
pub type Now<'a> = &'a (dyn Fn() -> Option<Timestamp> + Sync);

/// A plan with erased steps.
pub type DynPlan = Plan<DynStep, LoadBalancerStatus>;
/// What a write's answer told, erased.
pub struct DynLearned {
    /// What the provider made of the answer; nothing where the write failed, and that is a refusal.
    learned: Option<Box<dyn Any + Send>>,
    /// Why it was refused.
    refused: Option<Refusal>,
    /// Whether it ends what was refused of the same before.
    ends_refusal: bool,
    outcome: WriteOutcome,
    ends_wave: bool,
    /// Whether no answer came.
    is_unheard: bool,
    /// The wall time of the answer, or of giving it up, where that is known.
    ended: Option<Timestamp>,
}

impl DynLearned {
    /// Of a write that failed, where nothing follows in its wave and the next look tells what came of it.
    pub(crate) fn unknown() -> Self {
        Self {
            learned: None,
            refused: None,
            ends_refusal: false,
            outcome: WriteOutcome::Unknown,
            ends_wave: true,
            is_unheard: false,
            ended: None,
        }
    }

    /// Whether the cloud took the write; see [`Told::outcome`](crate::Told::outcome).
    #[must_use]
    pub fn outcome(&self) -> WriteOutcome {
        self.outcome
    }

    /// Whether no further step of the wave is to begin; see [`Told::ends_wave`](crate::Told::ends_wave). A step that failed ends its wave: what follows
    /// may lean on it.
    #[must_use]
    pub fn ends_wave(&self) -> bool {
        self.ends_wave
    }
}

/// A step of any provider.
#[derive(Clone)]
pub struct DynStep {
    view: StepView,
    concerns_others: bool,
    may_be_left: bool,
    step: LoadBalancerStep<Arc<dyn Any + Send + Sync>>,
}

impl DynStep {
    fn new<C: bowline_plan::Step + Send + Sync + 'static>(step: LoadBalancerStep<C>) -> Self {
        let view = step.view();
        let concerns_others = matches!(&step, LoadBalancerStep::Cloud(step) if step.concerns_others());
        let may_be_left = matches!(&step, LoadBalancerStep::Cloud(step) if step.may_be_left());
        let step = match step {
            LoadBalancerStep::Cloud(step) => LoadBalancerStep::Cloud(Arc::new(step) as _),
            LoadBalancerStep::Kube(write) => LoadBalancerStep::Kube(write),
        };
        Self {
            view,
            concerns_others,
            may_be_left,
            step,
        }
    }

    /// Whether it changes what others may go by too; see [`bowline_plan::Step::concerns_others`].
    #[must_use]
    pub fn concerns_others(&self) -> bool {
        self.concerns_others
    }

    /// Whether a removal waits for it; see [`bowline_plan::Step::may_be_left`].
    #[must_use]
    pub fn may_be_left(&self) -> bool {
        self.may_be_left
    }

    /// What is to be shown of the step, and the lanes it needs.
    #[must_use]
    pub fn view(&self) -> &StepView {
        &self.view
    }

    /// The write to Kubernetes, if it is one; else the step goes to [`Reconcile::apply`].
    #[must_use]
    pub fn kube_write(&self) -> Option<&KubeWrite> {
        match &self.step {
            LoadBalancerStep::Kube(write) => Some(write),
            LoadBalancerStep::Cloud(_) => None,
        }
    }

    fn cloud_step<C: 'static>(&self) -> Option<&C> {
        match &self.step {
            LoadBalancerStep::Cloud(step) => step.downcast_ref(),
            LoadBalancerStep::Kube(_) => None,
        }
    }
}

impl std::fmt::Debug for DynStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.view.fmt(f)
    }
}

/// Begins reconciles, whatever types they work with inside: a provider's [`Reconciler`] does.
pub trait Begin<F>: Send + Sync {
    /// Begins a reconcile: parses and checks what is asked for. No call to the cloud.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with what is asked.
    fn begin(self: Arc<Self>, facts: F) -> Result<Box<dyn Reconcile<F>>, Refusal>;
}

impl<R: Reconciler> Begin<R::Facts> for R {
    fn begin(self: Arc<Self>, facts: R::Facts) -> Result<Box<dyn Reconcile<R::Facts>>, Refusal> {
        let intent = self.intent(&facts)?;
        Ok(Box::new(Session {
            reconciler: self,
            facts,
            intent,
            seen: None,
            before: None,
            put_off: BTreeSet::new(),
        }))
    }
}

/// One reconcile under way: holds the intent, the last observation and the memory.
pub trait Reconcile<F>: Send + Sync {
    /// Reads from the cloud: everything the first time, else what is being waited for.
    fn observe(&mut self) -> BoxFuture<'_, Result<(), CloudError>>;

    /// Reads again at the end of a reconcile that wrote, as far as its own writes may have left something in doubt; see
    /// [`Reconciler::verify`].
    fn verify(&mut self) -> BoxFuture<'_, Result<(), CloudError>>;

    /// What comes next; `None` before the first observation.
    fn plan(&mut self) -> Option<DynPlan>;

    /// A wave of the plan is about to be written; see [`Reconciler::before_wave`].
    fn before_wave(&self);

    /// Nothing is left to do; see [`Reconciler::settled`].
    fn settled(&self);

    /// A step waits for its lanes until what is returned is dropped; see [`Reconciler::queued`].
    fn queued(&self, step: &DynStep) -> Option<Box<dyn Send>> {
        let _ = step;
        None
    }

    /// Makes a step's write to the cloud. Several may run at once if their lanes allow; they borrow the same observation.
    fn apply<'a>(&'a self, step: &'a DynStep, now: Now<'a>) -> BoxFuture<'a, Result<DynLearned, CloudError>>;

    /// Whether a step was put off when it was made last, so that it is the same action now; see [`WriteOutcome::PutOff`].
    fn was_put_off(&self, step: &DynStep) -> bool {
        let _ = step;
        false
    }

    /// Adds what the answers to the writes of a wave told, each with the place of its step in the wave.
    fn learn(&mut self, wave: &[DynStep], answers: Vec<(usize, DynLearned)>);

    /// Changes the observation as applying a step to the cloud would.
    fn predict(&mut self, step: &DynStep);

    /// Goes on with newer facts: after a write to Kubernetes, real or predicted.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with what is asked by now.
    fn refresh(&mut self, facts: F) -> Result<(), Refusal>;

    /// The facts that the reconcile goes by.
    fn facts(&self) -> &F;

    /// What was counted; see [`Reconciler::measure`]. Nothing before the first observation.
    fn measurements(&self) -> Vec<Measurement>;

    /// Which members do not answer, before anything is predicted; see [`Reconciler::ailments`].
    fn ailments(&self) -> Vec<Ailment> {
        Vec::new()
    }

    /// What it is like, before anything is predicted; see [`Reconciler::shown`].
    fn shown(&self) -> Shown {
        Shown::default()
    }
}

struct Session<R: Reconciler> {
    reconciler: Arc<R>,
    facts: R::Facts,
    intent: R::Intent,
    seen: Option<SeenBy<R>>,
    /// How it was before anything was predicted.
    before: Option<(Vec<Ailment>, Shown)>,
    /// The labels of the steps of the last wave that the cloud put off, and of those of it that were put off before and not begun
    /// again.
    put_off: BTreeSet<String>,
}

/// What a plan says before its steps are erased.
type AnswerOf<R> = Answer<LoadBalancerStep<<R as Reconciler>::Step>, LoadBalancerStatus>;

/// Notes in the book what was refused since the last time, as it is known at `now`, if that is later than the facts.
fn note<R: Reconciler>(
    reconciler: &R,
    facts: &R::Facts,
    memory: &mut Memory<R::Remembered, R::Step>,
    now: Option<Timestamp>,
) {
    if !memory.refusals.has_news() {
        return;
    }
    let Some((book, mut asker)) = reconciler.book(facts) else {
        return;
    };
    asker.now = now.unwrap_or(asker.now);
    for (step, why, of) in memory.refusals.unnoted() {
        let news = News {
            step,
            why,
            of,
            is_of_removal: is_silent_removal(step, why),
        };
        book.note(&asker, news, |known| reconciler.is_same_request(known, step));
    }
}

/// Whether a removal had no answer.
fn is_silent_removal(step: &impl bowline_plan::Step, why: &Refusal) -> bool {
    step.removes() && why.by == RefusedBy::Silence
}

/// How long to wait before the next look for what a step would create, and what may have been created already; and before a step that the
/// cloud has taken several times.
fn held_back_for<R: Reconciler>(
    reconciler: &R,
    memory: &Memory<R::Remembered, R::Step>,
    step: &R::Step,
) -> Option<Duration> {
    let created = reconciler.creation(step).and_then(|creation| {
        let of_own = memory.sought(creation);
        of_own.or_else(|| memory.sought_as_inherited().filter(|_| creation.is_root()))
    });
    created.or_else(|| memory.rests(|known| reconciler.is_same_request(known, step)))
}

/// Takes the steps out of a wave that were refused, or create what may be there already, and those after them in their lanes that traffic
/// would notice: what is deleted may be so because of what was to come before. Where nothing is left, the refusals are the answer, or
/// another look. `sought` gets the steps that are looked for.
fn hold_back<R: Reconciler>(
    reconciler: &R,
    seen: &SeenBy<R>,
    answer: AnswerOf<R>,
    sought: &mut Vec<R::Step>,
) -> AnswerOf<R> {
    let Memory {
        refusals,
        sent,
        inherited,
        ..
    } = &seen.memory;
    let wave = match answer {
        Answer::Apply(wave)
            if !(refusals.is_empty() && sent.is_empty() && inherited.is_zero() && seen.memory.is_fresh()) =>
        {
            wave
        }
        answer => return answer,
    };
    let (mut told, mut closed, mut left) = (Vec::new(), BTreeSet::new(), Vec::new());
    let mut again = None;
    for step in wave.into_steps() {
        let LoadBalancerStep::Cloud(cloud) = &step else {
            left.push(step);
            continue;
        };
        let view = StepView::of(cloud);
        let refused = refusals.first(|known| reconciler.is_same_request(known, cloud));
        if let Some(why) = refused.or_else(|| {
            seen.memory
                .stuck(cloud)
                .filter(|_| seen.memory.no_removals.is_some())
        }) {
            closed.extend(view.lanes);
            told.push(why);
        } else if let Some(after) = held_back_for(reconciler, &seen.memory, cloud) {
            closed.extend(view.lanes);
            again.get_or_insert((after, view.label));
            sought.push(cloud.clone());
        } else if view.impact == Impact::None || view.lanes.iter().all(|lane| !closed.contains(lane)) {
            left.push(step);
        }
    }
    match (Wave::new(left), again) {
        (Some(wave), _) => Answer::Apply(wave),
        (None, Some((after, label))) => Answer::Wait {
            after,
            reason: format!("whether {label} was done is not known yet"),
        },
        // A wave has a step, so one of which nothing is left had one that was refused.
        (None, None) => {
            Answer::Refused(Refusal::all(told).unwrap_or_else(|| Refusal::new("nothing is left to do")))
        }
    }
}

/// The same, and if nothing is left but what is looked for, what can go on without it, as if that had been refused.
fn hold_back_and_go_on<R: Reconciler>(
    reconciler: &R,
    intent: &R::Intent,
    seen: &mut SeenBy<R>,
    answer: AnswerOf<R>,
) -> AnswerOf<R> {
    let mut sought = Vec::new();
    let answer = hold_back(reconciler, seen, answer, &mut sought);
    if sought.is_empty() || !matches!(answer, Answer::Wait { .. }) {
        return answer;
    }
    let refusals = seen.memory.refusals.clone();
    let mut without = None;
    while without.is_none() && !sought.is_empty() {
        for step in sought.drain(..) {
            seen.memory.refusals.hold(step, Refusal::new("it is looked for"));
        }
        let next = reconciler.plan(intent, seen).answer;
        let next = hold_back(reconciler, seen, next, &mut sought);
        without = Some(next).filter(|next| matches!(next, Answer::Apply(_)));
    }
    seen.memory.refusals = refusals;
    without.unwrap_or(answer)
}

/// Holds back what would be made once more although somebody undoes it each time. Whether there is anything of that kind.
fn hold_undone<R: Reconciler>(reconciler: &R, seen: &mut SeenBy<R>, answer: &AnswerOf<R>) -> bool {
    let Answer::Apply(wave) = answer else {
        return false;
    };
    let memory = &mut seen.memory;
    let before = memory.refusals.iter().count();
    for step in wave.steps() {
        let LoadBalancerStep::Cloud(step) = step else {
            continue;
        };
        let is_same = |known: &R::Step| reconciler.is_same_request(known, step);
        if memory.refusals.first(is_same).is_none()
            && let Some(why) = memory.undone(step, is_same)
        {
            memory.refusals.add_briefly(step.clone(), why);
        }
    }
    memory.refusals.iter().count() > before
}

/// How long removals that come last wait for what a cloud does by itself, as for a job.
const BEFORE_REMOVALS: Duration = Duration::from_secs(30);

/// What comes next. Where a removal had no answer, or an earlier process has a call without one, all of them come last: each may take as long
/// as one is waited for, and nothing leans on them.
fn plan<R: Reconciler>(
    reconciler: &R,
    intent: &R::Intent,
    seen: &mut SeenBy<R>,
) -> Plan<LoadBalancerStep<R::Step>, LoadBalancerStatus> {
    let of_now = |seen: &mut SeenBy<R>| {
        let mut plan = reconciler.plan(intent, seen);
        while hold_undone(reconciler, seen, &plan.answer) {
            plan = reconciler.plan(intent, seen);
        }
        plan.answer = hold_back_and_go_on(reconciler, intent, seen, plan.answer);
        plan
    };
    let refusals = seen.memory.refusals.clone();
    seen.memory.refusals.hold_tried_again(is_silent_removal);
    let silent = |(step, why): (&R::Step, &Refusal)| is_silent_removal(step, why).then(|| why.clone());
    let silent = seen.memory.refusals.iter().find_map(silent);
    let inherited = || Refusal::new("a call has no answer").by(RefusedBy::Silence);
    let why = silent.or_else(|| seen.memory.is_unanswered.then(inherited));
    if why.is_some() {
        seen.memory.no_removals = why;
        let first = of_now(seen);
        seen.memory.no_removals = None;
        seen.memory.refusals = refusals;
        let is_short = seen.memory.waited_in_all() < BEFORE_REMOVALS;
        if matches!(first.answer, Answer::Apply(_)) || is_short && matches!(first.answer, Answer::Wait { .. })
        {
            return first;
        }
    }
    of_now(seen)
}

/// Of a plan that has settled: why a write is not made that would come next if nothing were held back.
fn held_back<R: Reconciler>(reconciler: &R, intent: &R::Intent, seen: &mut SeenBy<R>) -> Option<Refusal> {
    if seen.memory.refusals.is_empty() {
        return None;
    }
    let refusals = std::mem::take(&mut seen.memory.refusals);
    let freely = reconciler.plan(intent, seen).answer;
    seen.memory.refusals = refusals;
    let Answer::Apply(wave) = freely else {
        return None; // all is as it is asked for, by another way
    };
    let refusals = &seen.memory.refusals;
    let why = wave.steps().iter().filter_map(|step| match step {
        LoadBalancerStep::Cloud(step) => refusals.first(|known| reconciler.is_same_request(known, step)),
        LoadBalancerStep::Kube(_) => None,
    });
    Refusal::all(why)
}

impl<R: Reconciler> Reconcile<R::Facts> for Session<R> {
    fn observe(&mut self) -> BoxFuture<'_, Result<(), CloudError>> {
        Box::pin(async {
            let (last, mut memory) = match self.seen.take() {
                None => {
                    let mut memory = Memory::default();
                    if let Some((book, asker)) = self.reconciler.book(&self.facts) {
                        memory.refusals = book.of(&asker);
                        memory.inherited = book.inherited.held_back(&asker);
                        memory.is_unanswered = asker.is_unanswered && !asker.is_removal;
                    }
                    (None, memory)
                }
                Some(Seen { observed, mut memory }) => {
                    memory.look_again();
                    (Some(observed), memory)
                }
            };
            let is_first = last.is_none();
            let observed = self.reconciler.observe(&self.intent, last, &mut memory);
            let observed = observed.await;
            note(&*self.reconciler, &self.facts, &mut memory, None);
            let observed = observed?;
            // What follows may show what an answer told, and not what a list has.
            if let Some((book, asker)) = self.reconciler.book(&self.facts).filter(|_| is_first) {
                book.sent
                    .shown(&asker.uid, |made| self.reconciler.shows(&observed, made));
                memory.sent = book.sent.awaited(&asker.uid, asker.now);
            }
            self.seen = Some(Seen { observed, memory });
            Ok(())
        })
    }

    fn verify(&mut self) -> BoxFuture<'_, Result<(), CloudError>> {
        Box::pin(async {
            let Some(Seen { observed, mut memory }) = self.seen.take() else {
                return self.observe().await;
            };
            let observed = self.reconciler.verify(&self.intent, observed, &mut memory);
            let observed = observed.await;
            note(&*self.reconciler, &self.facts, &mut memory, None);
            let observed = observed?;
            self.seen = Some(Seen { observed, memory });
            Ok(())
        })
    }

    fn plan(&mut self) -> Option<DynPlan> {
        let seen = self.seen.as_mut()?;
        seen.memory.refusals.sort_by_key(R::Step::label);
        let Plan {
            mut answer,
            notes,
            again,
            mut publishes,
            mut lacks,
        } = plan(&*self.reconciler, &self.intent, seen);
        let answered = seen.memory.answered;
        note(&*self.reconciler, &self.facts, &mut seen.memory, answered);
        if let (Answer::Settled(status), None) = (&answer, &lacks) {
            match held_back(&*self.reconciler, &self.intent, seen) {
                // It is tried again by the schedule.
                Some(failed) if failed.by.is_failure() => {
                    publishes = Some(status.clone());
                    answer = Answer::Refused(failed);
                }
                held => {
                    lacks = held.or_else(|| {
                        let ailments = self.reconciler.ailments(&self.intent, &seen.observed);
                        let mut stay = ailments.into_iter().filter_map(Ailment::once_made);
                        stay.find_map(|it| it.lasting())
                    });
                }
            }
        }
        let answer = match answer {
            Answer::Apply(wave) => Answer::Apply(wave.map(DynStep::new)),
            Answer::Settled(status) => Answer::Settled(status),
            Answer::Wait { after, reason } => {
                seen.memory.asked_to_wait(after);
                Answer::Wait { after, reason }
            }
            Answer::LookAgain { reason } => Answer::LookAgain { reason },
            Answer::Refused(refusal) => Answer::Refused(refusal),
        };
        Some(Plan {
            answer,
            notes,
            again,
            publishes,
            lacks,
        })
    }

    fn before_wave(&self) {
        if let Some(seen) = &self.seen {
            self.reconciler.before_wave(&self.intent, seen);
        }
    }

    fn settled(&self) {
        if let Some((book, asker)) = self.reconciler.book(&self.facts) {
            let held = self.seen.as_ref().map(|seen| &seen.memory.refusals);
            let is_held = |step: &R::Step| held?.first(|known| self.reconciler.is_same_request(known, step));
            // What is held back and does not keep the plan from settling stays so: it is not written at each check.
            book.lift(&asker.uid, |step, _| is_held(step).is_none());
            book.sent.forget(&asker.uid);
        }
        self.reconciler.settled(&self.intent);
    }

    fn queued(&self, step: &DynStep) -> Option<Box<dyn Send>> {
        self.reconciler.queued(step.cloud_step::<R::Step>()?)
    }

    fn apply<'a>(&'a self, step: &'a DynStep, now: Now<'a>) -> BoxFuture<'a, Result<DynLearned, CloudError>> {
        Box::pin(async move {
            let (Some(step), Some(seen)) = (step.cloud_step::<R::Step>(), self.seen.as_ref()) else {
                return Err(CloudError::other(format!(
                    "step {} is not one of this plan",
                    step.view.label
                )));
            };
            let answer = self.reconciler.apply(&self.intent, seen, step).await;
            let ended = now();
            let is_sent = match &answer {
                Ok(learned) => learned.outcome() == WriteOutcome::Taken,
                Err(error) => error.may_have_happened(),
            };
            if is_sent
                && let Some(creation) = self.reconciler.creation(step)
                && let Some((book, asker)) = self.reconciler.book(&self.facts)
            {
                let has_failed = answer.as_ref().is_err_and(|error| !error.is_unheard());
                let made = answer.as_ref().ok().and_then(Told::made);
                let ended = (ended.unwrap_or(asker.now), has_failed);
                book.sent.note(&asker.uid, (creation, made), ended);
            }
            match answer {
                Ok(learned) => Ok(DynLearned {
                    refused: learned.refused().cloned(),
                    outcome: learned.outcome(),
                    ends_wave: learned.ends_wave(),
                    ends_refusal: learned.ends_refusal(),
                    is_unheard: false,
                    ended,
                    learned: Some(Box::new(learned)),
                }),
                Err(error) => Ok(DynLearned {
                    outcome: match error.may_have_happened() {
                        true => WriteOutcome::Unknown,
                        false => WriteOutcome::NotTaken,
                    },
                    is_unheard: error.is_unheard(),
                    refused: Some(self.reconciler.refusal_of(seen, step, &error).ok_or(error)?),
                    ends_wave: true,
                    ends_refusal: false,
                    ended,
                    learned: None,
                }),
            }
        })
    }

    fn was_put_off(&self, step: &DynStep) -> bool {
        self.put_off.contains(&step.view.label)
    }

    fn learn(&mut self, wave: &[DynStep], answers: Vec<(usize, DynLearned)>) {
        if answers.is_empty() {
            return; // a write to Kubernetes in between makes no other action of a step
        }
        let mut put_off: BTreeSet<&String> = wave.iter().map(|step| &step.view.label).collect();
        put_off.retain(|label| self.put_off.contains(*label));
        let reconciler = &*self.reconciler;
        let book = reconciler.book(&self.facts);
        let ended = answers.iter().filter_map(|(_, answer)| answer.ended).max();
        for (
            index,
            DynLearned {
                learned,
                refused,
                outcome,
                ends_refusal,
                is_unheard,
                ..
            },
        ) in answers
        {
            let step = &wave[index];
            match outcome {
                WriteOutcome::PutOff => put_off.insert(&step.view.label),
                WriteOutcome::Taken | WriteOutcome::NotTaken | WriteOutcome::Unknown => {
                    put_off.remove(&step.view.label)
                }
            };
            // The casts hold for every step and answer that came out of this session; others teach nothing.
            let (Some(seen), Some(step)) = (self.seen.as_mut(), step.cloud_step::<R::Step>()) else {
                continue;
            };
            let is_same = |known: &R::Step| reconciler.is_same_request(known, step);
            if is_unheard {
                seen.memory.add_unheard();
            }
            if outcome == WriteOutcome::Taken {
                seen.memory.took(step, is_same);
            }
            if let Some(why) = refused {
                match (why.by.is_failure(), &learned) {
                    (true, None) => seen.memory.refusals.add_briefly(step.clone(), why),
                    _ => seen.memory.refusals.add(step.clone(), why),
                }
            } else if outcome == WriteOutcome::Taken && ends_refusal {
                // That it is taken says nothing where it is undone each time.
                if let Some((book, asker)) = &book {
                    book.lift(&asker.uid, |known, why| {
                        why.by != RefusedBy::Undone && is_same(known)
                    });
                }
                seen.memory.refusals.lift(|known, _| is_same(known));
            }
            if let Some(Ok(learned)) = learned.map(|learned| learned.downcast::<R::Learned>()) {
                self.reconciler.learn(seen, step, *learned);
            }
        }
        if let Some(seen) = &mut self.seen {
            seen.memory.answered = ended.or(seen.memory.answered);
            note(reconciler, &self.facts, &mut seen.memory, ended);
        }
        self.put_off = put_off.into_iter().cloned().collect();
    }

    fn predict(&mut self, step: &DynStep) {
        if self.before.is_none() {
            self.before = Some((self.ailments(), self.shown()));
        }
        if let (Some(seen), Some(step)) = (self.seen.as_mut(), step.cloud_step::<R::Step>()) {
            self.reconciler.predict(seen, step);
        }
    }

    fn refresh(&mut self, facts: R::Facts) -> Result<(), Refusal> {
        self.intent = self.reconciler.intent(&facts)?;
        self.facts = facts;
        Ok(())
    }

    fn facts(&self) -> &R::Facts {
        &self.facts
    }

    fn measurements(&self) -> Vec<Measurement> {
        let measured = self
            .seen
            .as_ref()
            .map(|seen| self.reconciler.measure(&self.intent, seen));
        measured.unwrap_or_default()
    }

    fn ailments(&self) -> Vec<Ailment> {
        if let Some((ailments, _)) = &self.before {
            return ailments.clone();
        }
        let seen = self.seen.as_ref();
        seen.map_or_else(Vec::new, |seen| {
            self.reconciler.ailments(&self.intent, &seen.observed)
        })
    }

    fn shown(&self) -> Shown {
        if let Some((_, shown)) = &self.before {
            return shown.clone();
        }
        let seen = self.seen.as_ref();
        let shown = seen.map(|seen| self.reconciler.shown(&self.intent, &seen.observed));
        shown.unwrap_or_default()
    }
}
