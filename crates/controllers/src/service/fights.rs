//! What this process writes on a Service, and what others make of it.
//!
//! What is changed back is put back from memory, by the rule of `put_back.rs`, and the cloud is asked nothing. An annotation may as
//! well be changed by a person who means it, so its first change in a row leads to a real look; only if that look writes the same
//! again, is the same change a fight from then on. Annotations whose changes lead to nothing, time after time, are looked at less and
//! less often by the same schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::k8s::Condition;
use bowline_cloud_provider::{
    AddressNote, KubeWrite, LoadBalancerStatus, Pairs, Service, ServiceKey, facts, keys,
};
use bowline_kube_io::KubeError;
use tokio::time::Instant;

use super::failure::Failure;
use super::needs_update::address;
use super::status::is_shown;
use super::{Key, ServiceController};
use crate::put_back::{ADDRESS, Again, Part, PutBack, Row};
use crate::queue::RetryAfter;

/// Time to the next try where a sync of the Service is under way.
const BESIDE_A_SYNC: Duration = Duration::from_secs(1);

/// More keys than anybody uses, so that one that is new each time fills no memory.
const MOST_IDLE: usize = 64;

/// What is remembered of one Service.
#[derive(Default)]
pub(super) struct Fights {
    rows: PutBack,
    /// What is to be put back.
    due: BTreeSet<Part>,
    /// What is told of then, with the entries that were changed.
    untold: BTreeMap<Part, BTreeSet<String>>,
    /// The [entries](super::needs_update::changed_entries) that this process wrote.
    entries: Pairs<Ours>,
    /// What this process published, or found as it would publish it.
    status: Option<LoadBalancerStatus>,
    /// What the Service told then of an address before.
    address_change: Option<Condition>,
    /// A status that the API server did not take.
    unpublished: Option<Unpublished>,
    /// The API server does not take the note of the class.
    pub(super) is_note_refused: bool,
    /// What it refused last, it refuses without the note as well.
    pub(super) is_note_taken: bool,
    /// Since when somebody takes the status away so often that it is held back, and how that was told.
    contested: Option<(Instant, String)>,
    /// Annotations whose last change led to nothing.
    idle: BTreeSet<String>,
    /// The changes of such annotations in a row.
    idle_row: Row,
    /// A look because of them is asked for.
    is_look_due: bool,
    /// The changes that the next sync serves, and those that are being served.
    changes: Changes,
    served: Changes,
}

/// An entry that this process wrote.
#[derive(Default)]
struct Ours {
    /// `None`: somebody changed it, and no sync has written it again since.
    value: Option<Box<str>>,
    /// What somebody made of it the last time, which is rare.
    against: Option<Box<Option<String>>>,
}

impl Ours {
    /// Whether this very change was looked at before, and undone by that. An address that somebody wants is never fought.
    fn is_fought_by(&self, key: &str, theirs: &Option<String>) -> bool {
        self.value.is_some()
            && self.against.as_deref() == Some(theirs)
            && (key != ADDRESS || theirs.is_none())
    }
}

/// A status that the API server did not take: written again when its time comes, whatever leads to a sync before that.
struct Unpublished {
    status: LoadBalancerStatus,
    failure: Failure,
    /// `None`: the sync that met it has not ended.
    until: Option<Instant>,
}

/// What has changed on a Service.
#[derive(Default)]
struct Changes {
    entries: BTreeSet<String>,
    /// And something else.
    is_more: bool,
}

/// What a change of a Service asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// A look, and announced.
    pub(super) sync: bool,
    /// A look after this time, for those before it led to nothing.
    pub(super) look: Option<Duration>,
    /// Something is put back after this time.
    pub(super) put_back: Option<Duration>,
}

impl Asked {
    fn look_after(&mut self, Again { after, .. }: Again) {
        match after.is_zero() {
            true => self.sync = true,
            false => self.look = self.look.max(Some(after)),
        }
    }
}

impl Fights {
    /// [Entries](super::needs_update::changed_entries) are others now than this process last knew. Nothing else is.
    pub(super) fn entries_changed(&mut self, diff: &BTreeMap<String, Option<String>>) -> Asked {
        let mut asked = Asked::default();
        let is_in_row = self.rows.is_in_row(Part::Annotations);
        let (mut is_fight, mut is_taken, mut is_idle) = (false, false, false);
        for (key, theirs) in diff {
            self.changes.entries.insert(key.clone());
            match self.entries.get_mut(key) {
                Some(ours) if is_in_row && ours.is_fought_by(key, theirs) => is_fight = true,
                Some(ours) => {
                    // Another address than the last time is what somebody wants now, whatever was fought over before.
                    asked.sync |=
                        key == ADDRESS && theirs.is_some() && ours.against.as_deref() != Some(theirs);
                    is_taken = true;
                    (ours.value, ours.against) = (None, Some(Box::new(theirs.clone())));
                }
                None if key != ADDRESS && self.idle.contains(key) => is_idle = true,
                None => asked.sync = true,
            }
        }
        if is_fight {
            asked.put_back = self.lost(Part::Annotations);
        }
        let is_asked_already = self.is_look_due;
        if is_taken && !is_asked_already {
            let again = self.rows.again(Part::Annotations);
            asked.look_after(again);
            if again.is_news {
                self.untold.entry(Part::Annotations).or_default();
                asked.put_back.get_or_insert_default(); // which tells it
            }
        }
        if let Some(keys) = self.untold.get_mut(&Part::Annotations) {
            keys.extend(diff.keys().filter(|key| self.entries.contains_key(key)).cloned());
        }
        if is_idle && !is_asked_already {
            asked.look_after(self.idle_row.again());
        }
        self.is_look_due |= asked.look.is_some();
        asked
    }

    /// More than annotations has changed.
    pub(super) fn changed(&mut self) {
        self.changes.is_more = true;
    }

    /// What was published is there no more, or another text.
    pub(super) fn lost_status(&self, old: &Service, new: &Service) -> bool {
        let status = self.status.as_ref();
        status.is_some_and(|status| is_shown(old, status) && !is_shown(new, status))
    }

    /// A part was changed back: after which time it is put back. `None`: that is due already.
    pub(super) fn lost(&mut self, part: Part) -> Option<Duration> {
        if !self.due.insert(part) {
            return None;
        }
        let Again { after, is_news } = self.rows.again(part);
        if is_news {
            self.untold.entry(part).or_default();
        }
        Some(after)
    }

    /// The same of the note of the class.
    pub(super) fn lost_note(&mut self) -> Option<Duration> {
        let after = self.lost(Part::Annotations);
        if let Some(untold) = self.untold.get_mut(&Part::Annotations) {
            untold.insert(keys::ANNOTATION_CLASS.to_owned());
        }
        after
    }

    /// Why the Service may lack its status, and for how long; `None` as soon as nobody has taken it away for a while.
    pub(super) fn contested(&self) -> Option<(&str, Duration)> {
        let (since, text) = self.contested.as_ref()?;
        let goes_on = self.rows.is_in_row(Part::Status);
        goes_on.then(|| (text.as_str(), since.elapsed()))
    }

    /// This process wrote on the Service.
    pub(super) fn wrote(&mut self, write: &KubeWrite) {
        let mut note = |key: &str, value: &Option<String>| match value {
            Some(value) => {
                let value = Some(value.as_str().into());
                match self.entries.get_mut(key) {
                    Some(ours) => ours.value = value,
                    None => drop(self.entries.insert(
                        key,
                        Ours {
                            value,
                            ..Ours::default()
                        },
                    )),
                }
            }
            None => drop(self.entries.remove(key)),
        };
        write
            .annotations()
            .iter()
            .for_each(|(key, value)| note(key, value));
        match write {
            KubeWrite::AnnotateService(_) => {}
            KubeWrite::SetLoadBalancerIp { ip, .. } => {
                note(ADDRESS, &Some(ip.clone()).filter(|ip| !ip.is_empty()));
            }
            KubeWrite::PublishStatus(status) => self.published(status),
        }
    }

    /// The Service shows this status.
    pub(super) fn published(&mut self, status: &LoadBalancerStatus) {
        self.status = Some(status.clone());
    }

    /// And tells this of an address before.
    pub(super) fn tells(&mut self, service: &Service) {
        self.address_change = facts::address_changed(service).cloned();
    }

    /// The API server did not take this status.
    pub(super) fn not_published(&mut self, status: &LoadBalancerStatus, failure: &Failure) {
        self.unpublished = Some(Unpublished {
            status: status.clone(),
            failure: failure.clone(),
            until: None,
        });
    }

    /// The next try begins after this time, where a status was not taken in the sync that has ended.
    pub(super) fn publishes_after(&mut self, delay: Duration) {
        if let Some(unpublished) = &mut self.unpublished {
            unpublished.until.get_or_insert(Instant::now() + delay);
        }
    }

    /// Whether a status was not taken in the sync that is under way.
    pub(super) fn is_unpublished(&self) -> bool {
        self.unpublished.as_ref().is_some_and(|it| it.until.is_none())
    }

    /// The next try of a status may come now. Whether one was held back.
    pub(super) fn may_publish(&mut self) -> bool {
        self.unpublished.take().is_some()
    }

    /// Why the status that was refused is not to be written now.
    pub(super) fn unpublished(&self) -> Option<Failure> {
        self.held_back(&self.unpublished.as_ref()?.status)
    }

    /// Why this status is not to be written now.
    pub(super) fn held_back(&self, status: &LoadBalancerStatus) -> Option<Failure> {
        let unpublished = self.unpublished.as_ref().filter(|it| it.status == *status)?;
        let mut failure = unpublished.failure.clone();
        if let Some(until) = unpublished.until {
            let left = until.saturating_duration_since(Instant::now());
            failure.retry_after = RetryAfter::Planned(left);
        }
        (failure.retry_after != RetryAfter::Planned(Duration::ZERO)).then_some(failure)
    }

    /// A sync begins that looks at the cloud.
    pub(super) fn look_begins(&mut self) {
        let Changes { entries, is_more } = std::mem::take(&mut self.changes);
        self.served.entries.extend(entries);
        self.served.is_more |= is_more;
        self.is_look_due = false;
    }

    /// It has settled. `is_no_op`: the cloud was not written, and the status is as before.
    pub(super) fn look_settled(&mut self, is_no_op: bool) {
        self.look_ended(is_no_op);
        // What the look did not write again is the other's by now.
        self.entries.retain(|ours| ours.value.is_some());
    }

    /// It has come to an end.
    pub(super) fn look_ended(&mut self, is_no_op: bool) {
        let Changes { entries, is_more } = std::mem::take(&mut self.served);
        for key in entries {
            match is_no_op && !is_more {
                true => self.idle.insert(key),
                false => self.idle.remove(&key),
            };
        }
        if self.idle.len() > MOST_IDLE {
            self.idle.clear();
        }
    }

    /// The write that puts back what is not as this process wrote it; `None`: all is.
    fn lacking(&self, service: &Service) -> Option<KubeWrite> {
        let shown = service.metadata.annotations.as_ref();
        let ours = |key: &str| self.entries.get(key)?.value.as_deref().map(str::to_owned);
        let lacking = |key: &&str| {
            *key != ADDRESS && ours(key).is_some_and(|ours| shown.and_then(|it| it.get(key)) != Some(&ours))
        };
        let annotations: Vec<_> = self
            .entries
            .keys()
            .filter(lacking)
            .map(|key| (key.to_owned(), ours(key)))
            .collect();
        match ours(ADDRESS).filter(|_| address(service).is_none()) {
            Some(ip) => Some(KubeWrite::SetLoadBalancerIp {
                seen: String::new(),
                ip,
                annotations,
            }),
            None => (!annotations.is_empty()).then_some(KubeWrite::AnnotateService(annotations)),
        }
    }
}

impl ServiceController {
    /// Puts back what others changed back on a Service, and tells of it. It has a key of its own, so the schedule by which the cloud
    /// is asked goes on as it is.
    pub(super) async fn put_back(&self, key: &ServiceKey, queued: &Key) {
        let living = self
            .services
            .get(key)
            .filter(|service| self.classes().is_wanted(service));
        // What a sync writes is not written beside it.
        if living.is_some() && self.queue.is_held(&Key::Service(key.clone())) {
            return self.queue.add_after(queued.clone(), BESIDE_A_SYNC);
        }
        let (due, untold) = self.tracked(key, |tracked| {
            let fights = &mut tracked.fights;
            (
                std::mem::take(&mut fights.due),
                std::mem::take(&mut fights.untold),
            )
        });
        let Some(service) = living else {
            return self.forget_unused(key);
        };
        for (part, keys) in untold {
            let text = self.ctx.tell_changed_back(&*service, part, &keys).await;
            if part == Part::Status {
                self.tracked(key, |tracked| {
                    tracked.fights.contested = Some((Instant::now(), text))
                });
            }
        }
        let is_contested = || self.tracked(key, |tracked| tracked.fights.contested().is_some());
        if due.contains(&Part::Reconciled) || is_contested() {
            // Whoever clears the whole status takes the condition away with it.
            self.queue.add_after(Key::Condition(key.clone()), Duration::ZERO);
        }
        if due.is_empty() {
            return;
        }
        match self.write_back(key, service).await {
            Ok(()) => self.queue.forget(queued),
            Err(error) => {
                if !matches!(error, KubeError::GateClosed) {
                    tracing::warn!(service = %key, err = %error, "What somebody changed back on a Service could not be written, will be tried again");
                }
                self.tracked(key, |tracked| tracked.fights.due.extend(due));
                self.queue
                    .retry_after(queued.clone(), RetryAfter::by_kube_write(&error));
            }
        }
    }

    async fn write_back(&self, key: &ServiceKey, mut service: Arc<Service>) -> Result<(), KubeError> {
        let before = Arc::clone(&service);
        if let Some(write) = self.tracked(key, |tracked| tracked.fights.lacking(&service)) {
            self.tracked(key, |tracked| tracked.expect_write(&write));
            let written = self.write_service(&service, &write, &AddressNote::Keep).await;
            self.tracked(key, |tracked| tracked.written(&write, written.is_ok()));
            service = Arc::new(written?);
        }
        let is_noted = facts::noted_class(&service) == facts::class(&service)
            || self.tracked(key, |tracked| tracked.fights.is_note_refused);
        if !facts::has_finalizer(&service) {
            let lacking = &*service;
            let written = self.write_on(&self.ctx.kube, lacking, move |kube| async move {
                kube.set_service_finalizer(lacking, true).await
            });
            let written = written.await?;
            service = Arc::new(written);
        } else if !is_noted {
            service = Arc::new(self.note_class(&service).await?);
        }
        let status = self.tracked(key, |tracked| tracked.fights.status.clone());
        if let Some(status) = status.filter(|status| !is_shown(&service, status)) {
            // Whoever clears the whole status takes the condition away with it.
            let now = self.ctx.kube.clock().now();
            let note = self.tracked(key, |tracked| {
                AddressNote::put_back(&service, tracked.fights.address_change.as_ref(), now)
            });
            service = Arc::new(self.write_status(&service, &status, &note).await?);
        }
        if !Arc::ptr_eq(&before, &service) {
            tracing::info!(service = %key, "What somebody changed back on a Service is put back");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_address_of_ours_that_somebody_clears_is_put_back_and_one_that_somebody_wants_is_looked_at() {
        let write = |ip: &str| KubeWrite::SetLoadBalancerIp {
            seen: String::new(),
            ip: ip.to_owned(),
            annotations: vec![("example.com/a".to_owned(), Some("1".to_owned()))],
        };
        let changed = |to: Option<&str>| [(ADDRESS.to_owned(), to.map(str::to_owned))].into();
        let mut fights = Fights::default();
        fights.wrote(&write("192.0.2.1"));
        let look = Asked {
            sync: true,
            ..Asked::default()
        };
        for to in [None, Some("192.0.2.9"), Some("192.0.2.9"), None] {
            assert_eq!(fights.entries_changed(&changed(to)), look, "{to:?}");
            fights.wrote(&write("192.0.2.1"));
        }
        let put_back = Asked {
            put_back: Some(Duration::ZERO),
            ..Asked::default()
        };
        assert_eq!(fights.entries_changed(&changed(None)), put_back);
        // And one that somebody wants again and again is told of.
        let mut told = 0;
        for _ in 0..6 {
            fights.wrote(&write("192.0.2.1"));
            told += u32::from(
                fights
                    .entries_changed(&changed(Some("192.0.2.9")))
                    .put_back
                    .is_some(),
            );
            fights.look_begins();
        }
        assert_eq!(told, 1);
        let told = fights.untold.get(&Part::Annotations).unwrap();
        assert!(told.iter().eq([ADDRESS]), "the annotation was not changed");
        let again = fights.entries_changed(&changed(Some("192.0.2.9")));
        let another = fights.entries_changed(&changed(Some("192.0.2.10")));
        assert_eq!((again.sync, another.sync), (false, true));
        fights.wrote(&write("192.0.2.1"));
        let service = |spec| -> Service { serde_json::from_value(json!({ "spec": spec })).unwrap() };
        assert_eq!(fights.lacking(&service(json!({}))), Some(write("192.0.2.1")));
        let other = fights.lacking(&service(json!({ "loadBalancerIP": "192.0.2.9" })));
        assert!(matches!(other, Some(KubeWrite::AnnotateService(_))), "{other:?}");
    }
}
