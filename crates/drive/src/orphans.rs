//! What bears our marks in the cloud and has no Service: found, shown and removed.
//!
//! The removal is the drive of a Service that is being deleted, which does not exist. Nothing is written to Kubernetes.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bowline_cloud_provider::orphans::{Found, OrphanFacts, Standing};
use bowline_cloud_provider::plan::{PlanReport, ReportedOutcome};
use bowline_cloud_provider::{
    CloudError, DynPlan, KubeWrite, LoadBalancer, Reconcile, ServiceFacts, Unanswered, ask_all, lock,
};
use bowline_plan::Refusal;
use futures::StreamExt as _;
use futures::future::BoxFuture;

use crate::{DriveError, Driven, Hooks, Lanes, Mode, drive, predict_session};

/// Removals that are planned at once.
const AT_ONCE: usize = 16;

/// Orphans that go together, and what would be done: what was made for one Service, as far as its UID tells.
pub type Planned = (Vec<Found>, PlanReport);

/// All that the cloud shows and no Service of this cluster has: orphans with their plans, and what stays. What would stay although it is
/// taken for an orphan is unclear. And who of several clouds did not tell; one that has not when `late` is over gets its error.
///
/// # Errors
///
/// No cloud could be read, or none of them all of it.
pub async fn find<L: Future<Output = CloudError>>(
    load_balancer: &Arc<dyn LoadBalancer>,
    facts: &OrphanFacts,
    late: impl Fn() -> L,
) -> Result<(Vec<Planned>, Vec<Found>, Vec<Unanswered>), CloudError> {
    let questions = load_balancer.surveyed(facts);
    let asked = questions.len();
    let (mut found, unread) = ask_all(questions, late).await;
    if let Some(first) = unread.first().filter(|_| unread.len() == asked) {
        return Err(first.error());
    }
    found.retain(|it| it.standing != Standing::InUse);
    found.sort_by(|a, b| (a.standing, a.kind, &a.name, &a.id).cmp(&(b.standing, b.kind, &b.name, &b.id)));
    let (orphans, mut others): (Vec<Found>, Vec<Found>) =
        found.into_iter().partition(|it| it.standing.is_orphan());
    let mut groups: Vec<Vec<Found>> = Vec::new();
    for orphan in orphans {
        let goes_with = |group: &&mut Vec<Found>| {
            !orphan.owner.uid.is_empty() && group.iter().any(|it| it.owner.uid == orphan.owner.uid)
        };
        match groups.iter_mut().find(goes_with) {
            Some(group) => group.push(orphan),
            None => groups.push(vec![orphan]),
        }
    }
    let plans = groups.into_iter().map(|group| async move {
        let session = match group.first() {
            Some(orphan) => Arc::clone(load_balancer).begin_removal(orphan, facts),
            None => Err(Refusal::new("there is nothing to remove")), // cannot be
        };
        let names: Vec<String> = group.iter().map(ToString::to_string).collect();
        let report = predict_session(names.join(", "), session).await;
        (group, report)
    });
    let plans: Vec<Planned> = futures::stream::iter(plans).buffered(AT_ONCE).collect().await;
    let is_spared = |(_, report): &Planned| {
        report.waves.is_empty() && matches!(report.outcome, ReportedOutcome::Settled { .. })
    };
    let (spared, planned): (Vec<Planned>, Vec<Planned>) = plans.into_iter().partition(is_spared);
    for (group, report) in spared {
        let why = report
            .notes
            .first()
            .map_or("its plan removes nothing", |note| &note.text);
        others.extend(group.into_iter().map(|orphan| Found {
            standing: Standing::Unclear,
            why: why.to_owned(),
            ..orphan
        }));
    }
    Ok((planned, others, unread))
}

/// The removal of one orphan, as far as it goes now: where it waits, it is driven again with the same session.
pub struct Removal {
    session: Box<dyn Reconcile<ServiceFacts>>,
    object: String,
    is_unverified: bool,
}

impl Removal {
    /// Begins.
    ///
    /// # Errors
    ///
    /// It cannot be removed by itself.
    pub fn begin(
        load_balancer: &Arc<dyn LoadBalancer>,
        orphan: &Found,
        facts: &OrphanFacts,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            session: Arc::clone(load_balancer).begin_removal(orphan, facts)?,
            object: orphan.to_string(),
            is_unverified: false,
        })
    }

    /// Goes on.
    ///
    /// # Errors
    ///
    /// A read or a write failed. Whatever was written, the next look at the cloud finds.
    pub async fn go_on(&mut self, lanes: &Lanes) -> Result<Driven, DriveError<Infallible>> {
        let hooks = Removing(self.object.clone());
        drive(
            &mut *self.session,
            Mode::Apply(lanes),
            &hooks,
            &mut self.is_unverified,
        )
        .await
    }
}

/// The object's name.
struct Removing(String);

impl Hooks<ServiceFacts, Infallible> for Removing {
    fn planned(&self, _: &ServiceFacts, _: &DynPlan) {}

    /// There is no Service: what would be noted on it is remembered.
    fn write<'a>(
        &'a self,
        facts: &'a Mutex<ServiceFacts>,
        write: &'a KubeWrite,
    ) -> BoxFuture<'a, Result<(), Infallible>> {
        let mut facts = lock(facts);
        write.predict(Arc::make_mut(&mut facts.service));
        Box::pin(std::future::ready(Ok(())))
    }

    fn object(&self) -> String {
        self.0.clone()
    }
}
