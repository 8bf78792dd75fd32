//! Leader election: one of several replicas leads, and all of them know when it may have ended.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::plan::NoteKind;
use bowline_kube_io::{
    Decision, Election, FoundNote, Kube, KubeError, LeaseLock, LeaseNote, LeaseRecord, LeaseTimings,
    LeaseWatch, OpenGate, Recorder,
};
use bowline_transport::Jitter;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::ElectionConfig;
use crate::fencing::FencingGate;
use crate::metrics::Series;

/// A candidate tries every 1 to 2.2 retry periods, so that several do not always try together.
const LONGEST_PAUSE: f64 = 2.2;

/// How long beyond the lease duration a leader that no longer renews is still called healthy.
const TOLERANCE: Duration = Duration::from_secs(20);

/// How long giving the lease up may take; who waits for it waits for the lease's end otherwise.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// The wait before the lease is read again when giving it up met a conflict, once more as long each time.
const RELEASE_PAUSE: Duration = Duration::from_millis(50);

/// A watch of the lease that shows nothing for so long is not believed: a holder renews every few seconds.
const SILENCE: Duration = Duration::from_secs(30);

/// When the clock on the wall and the other one differ by more than this between two renewals, the one on the wall was set, or the
/// computer was suspended.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(1);

/// In an outage every attempt fails. The first failure is told, and then one in this time.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Where this process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leadership {
    /// Somebody else leads, or nobody yet.
    Follower,
    /// This process leads.
    Leading {
        /// When the last renewal was sent.
        renewed: Instant,
        /// How often leadership was suspended before.
        term: u32,
    },
    /// This process led, could not renew the lease in time, and tries to find out whether it is still its own.
    Suspended,
    /// This process led and does so no more. It does not stand again.
    Lost,
}

impl Leadership {
    /// Whether this process leads.
    pub fn is_leading(self) -> bool {
        matches!(self, Self::Leading { .. })
    }

    /// The term that this process leads in; `None`: it does not lead.
    pub(crate) fn term(self) -> Option<u32> {
        match self {
            Self::Leading { term, .. } => Some(term),
            Self::Follower | Self::Suspended | Self::Lost => None,
        }
    }

    /// The health check `leaderElection`: a process that believes to lead must have renewed lately.
    ///
    /// # Errors
    ///
    /// Why it is not healthy.
    pub fn check(self, now: Instant, lease_duration: Duration) -> Result<(), String> {
        match self {
            Self::Leading { renewed, .. } if now > renewed + lease_duration + TOLERANCE => Err(format!(
                "the lease was renewed {} s ago for the last time",
                (now - renewed).as_secs()
            )),
            _ => Ok(()),
        }
    }
}

/// How standing for election ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was told to stop; the lease was given up if it was held.
    Stopped,
    /// The lease was lost.
    Lost,
}

/// Takes the lease and keeps it.
pub(crate) struct Elector {
    lock: LeaseLock,
    lease: String,
    election: Election,
    timings: LeaseTimings,
    kube: Kube,
    gate: Arc<FencingGate>,
    state: watch::Sender<Leadership>,
    note: Arc<LeaseNote>,
    /// When the lease was renewed last, by either clock.
    renewed: Option<(Instant, Timestamp)>,
    series: Series,
    recorder: Recorder,
    jitter: Jitter,
    /// Whether a write may have made us the holder unseen: its answer did not come.
    is_in_doubt: bool,
    /// When a failed attempt was told last; `None`: none has failed since the last that did not.
    told_failure: Option<Instant>,
    /// How long a suspended leader tries to renew; `None`: it ends at once.
    recovery_limit: Option<Duration>,
    term: u32,
}

/// Why a lease is renewed no more.
enum Over {
    /// Somebody else holds it, or nobody.
    Foreign(String),
    /// It could not be renewed in time, and may still be ours.
    TooLate(String),
}

/// A follower's watch of the lease.
#[derive(Default)]
struct Follow {
    watch: Option<LeaseWatch>,
    /// What the role says about it, once that is known.
    is_allowed: Option<bool>,
    /// The next attempt that does not wait for its turn may be made from here on.
    early_from: Option<Instant>,
}

impl Follow {
    /// Watches the lease if that is possible and worth it: somebody else holds it. Until then and otherwise it is read
    /// time and again.
    async fn open(&mut self, lock: &LeaseLock, election: &Election, until: Instant) {
        let version = election
            .record()
            .and_then(|record| record.resource_version.as_deref());
        let (Some(version), None) = (version, &self.watch) else {
            return;
        };
        let is_allowed = self.is_allowed;
        if is_allowed == Some(false) {
            return;
        }
        let watch = async {
            if is_allowed.is_none() {
                lock.check_watch().await?;
            }
            lock.watch(version).await
        };
        match tokio::time::timeout_at(until, watch).await {
            Ok(Ok(watch)) => {
                self.is_allowed = Some(true);
                self.watch = Some(watch);
            }
            Ok(Err(error @ (KubeError::Forbidden(_) | KubeError::Unauthorized(_)))) => {
                self.is_allowed = Some(false);
                tracing::info!(
                    err = %error,
                    "The lease cannot be watched, so a release is noticed at the next read only. \
                     Grant the verb watch on leases to notice a release at once"
                );
            }
            Ok(Err(error)) => tracing::debug!(%error, "The lease cannot be watched"),
            Err(_) => {}
        }
    }
}

/// One attempt's result.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    /// The lease is ours.
    Held,
    /// Somebody else's.
    Foreign,
    /// The API server did not answer as hoped.
    Failed,
}

impl Elector {
    pub(crate) fn new(
        config: &ElectionConfig,
        identity: &str,
        kube: &Kube,
        gate: Arc<FencingGate>,
        series: Series,
        recorder: Recorder,
        seed: u64,
    ) -> Self {
        let timings = LeaseTimings {
            lease_duration: config.lease_duration,
            renew_deadline: config.renew_deadline,
            retry_period: config.retry_period,
        };
        // A request that takes longer must not use up the time for a second try.
        let timeout = (config.renew_deadline / 2).max(Duration::from_secs(1));
        let kube = kube.with_gate(Arc::new(OpenGate)).with_timeout(timeout);
        series.set_leading(&config.name, false);
        Self {
            lock: LeaseLock::new(kube.clone(), &config.namespace, &config.name, identity),
            lease: config.name.clone(),
            election: Election::new(identity, timings),
            timings,
            kube,
            gate,
            state: watch::Sender::new(Leadership::Follower),
            note: Arc::default(),
            renewed: None,
            series,
            recorder,
            jitter: Jitter::seeded(seed),
            is_in_doubt: false,
            told_failure: None,
            recovery_limit: config.recovery_limit,
            term: 0,
        }
    }

    /// Where this process stands, now and later.
    pub(crate) fn leadership(&self) -> watch::Receiver<Leadership> {
        self.state.subscribe()
    }

    /// What is noted on the lease while this process leads.
    pub(crate) fn note(&self) -> Arc<LeaseNote> {
        Arc::clone(&self.note)
    }

    /// Stands for election until the lease is lost or `stop`; then gives the lease up, if it is held.
    pub(crate) async fn run(mut self, stop: CancellationToken) -> Ended {
        if !self.acquire(&stop).await {
            return Ended::Stopped;
        }
        let reason = tokio::select! {
            biased;
            () = stop.cancelled() => {
                self.release().await;
                return Ended::Stopped;
            }
            reason = self.keep() => reason,
        };
        self.gate.close();
        self.state.send_replace(Leadership::Lost);
        self.series.set_leading(&self.lease, false);
        tracing::error!(lease = self.lease, reason, "Leadership lost");
        let note = format!("{} stopped leading", self.lock.identity());
        self.record(note);
        Ended::Lost
    }

    /// Tries until the lease is ours, which is true, or until `stop`; nothing is held then.
    async fn acquire(&mut self, stop: &CancellationToken) -> bool {
        tracing::info!(
            lease = self.lease,
            identity = self.lock.identity(),
            "Waiting to become leader"
        );
        let mut said = None;
        let mut follow = Follow::default();
        loop {
            // A request that was sent is waited for, because it may make us the holder.
            let patience = async {
                stop.cancelled().await;
                tokio::time::sleep(RELEASE_TIMEOUT).await;
            };
            let attempt = tokio::select! {
                biased;
                attempt = self.attempt() => attempt,
                () = patience => Attempt::Failed,
            };
            if stop.is_cancelled() {
                break;
            }
            if attempt == Attempt::Held {
                self.lead();
                return true;
            }
            let holder = self.election.record().map(|record| record.holder.clone());
            if let Some(holder) = holder.filter(|holder| !holder.is_empty())
                && said.as_ref() != Some(&holder)
            {
                tracing::info!(lease = self.lease, holder, "Another process leads");
                said = Some(holder);
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = self.pause(&mut follow, attempt) => {}
            }
        }
        if self.is_in_doubt || self.election.is_holder() {
            self.release().await;
        }
        false
    }

    fn lead(&mut self) {
        tracing::info!(
            lease = self.lease,
            identity = self.lock.identity(),
            "Became leader"
        );
        self.record(format!("{} became leader", self.lock.identity()));
        self.series.set_leading(&self.lease, true);
    }

    /// A retry period as it is for the next time.
    fn retry_period(&mut self) -> Duration {
        let share = LONGEST_PAUSE * self.jitter.share(1.0 / LONGEST_PAUSE);
        self.timings.retry_period.mul_f64(share)
    }

    /// Waits until the next attempt is worth it: the lease can be over, was given up, or may have changed unseen.
    ///
    /// After a failed attempt that is a retry period later, whatever else is due: a server that is ill would be asked
    /// without a pause otherwise. For the same reason one attempt in a retry period may come before its turn, and no more:
    /// whatever a watch or a record says, it cannot make us ask faster.
    async fn pause(&mut self, follow: &mut Follow, last: Attempt) {
        let begun = Instant::now();
        let retry = begun + self.retry_period();
        let has_failed = last == Attempt::Failed;
        let earliest = if has_failed {
            retry
        } else {
            follow.early_from.map_or(begun, |from| from.max(begun))
        };
        if !has_failed {
            follow.open(&self.lock, &self.election, retry).await;
        }
        loop {
            let over = self.election.held_by_others_until();
            let due = match (&follow.watch, over) {
                // Whoever sees each renewal need not read the lease in between.
                (Some(_), Some(over)) => over.min(Instant::now() + SILENCE),
                (Some(_), None) => earliest,
                (None, over) => over.map_or(retry, |over| over.min(retry)),
            }
            .max(earliest);
            let seen = tokio::select! {
                biased;
                () = tokio::time::sleep_until(due) => None,
                seen = async {
                    match &mut follow.watch {
                        Some(watch) => watch.next().await,
                        None => std::future::pending().await,
                    }
                } => Some(seen),
            };
            match seen {
                None => {
                    if over.is_some() {
                        // The holder is silent, or the watch is.
                        follow.watch = None;
                    } else if follow.watch.is_some() && !has_failed {
                        tracing::info!(lease = self.lease, "The lease was given up");
                    }
                    let now = Instant::now();
                    if now < retry {
                        follow.early_from = Some(now + self.retry_period());
                    }
                    return;
                }
                Some(Ok(record)) => self.election.observe(record, Instant::now()),
                Some(Err(error)) => {
                    tracing::debug!(lease = self.lease, %error, "The watch of the lease has ended");
                    follow.watch = None;
                }
            }
        }
    }

    /// Keeps the lease, over times without the API server too if that is wished; gives the reason why it is lost.
    async fn keep(&mut self) -> String {
        loop {
            let (reason, limit) = match (self.renew().await, self.recovery_limit) {
                (Over::TooLate(reason), Some(limit)) => (reason, limit),
                (Over::Foreign(reason) | Over::TooLate(reason), _) => return reason,
            };
            self.gate.suspend();
            self.term += 1;
            self.state.send_replace(Leadership::Suspended);
            self.series.set_leading(&self.lease, false);
            tracing::warn!(
                lease = self.lease,
                reason,
                "Leadership suspended: nothing is written until the lease is renewed"
            );
            match tokio::time::timeout(limit, self.recover()).await {
                Ok(Ok(())) => {}
                Ok(Err(reason)) => return reason,
                Err(_) => return format!("{reason}, nor in {} s from then on", limit.as_secs_f64()),
            }
            tracing::info!(lease = self.lease, "Leadership resumed");
            self.record(format!("{} resumed leading", self.lock.identity()));
            self.series.set_leading(&self.lease, true);
        }
    }

    /// Tries to renew a lease that has been ours all the time; fails as soon as it is seen to have been somebody else's, or gone.
    ///
    /// It is read before each try: it is never taken or made again here. Somebody may have led in between, and what this process
    /// knows is of before.
    async fn recover(&mut self) -> Result<(), String> {
        let ours = self.election.record().cloned();
        loop {
            let renewed = self.renew_if_still(ours.as_ref()).await;
            match self.judge(renewed) {
                Attempt::Held => return Ok(()),
                Attempt::Foreign => {
                    return Err(format!(
                        "the lease changed hands meanwhile, and {} holds it now",
                        self.holder()
                    ));
                }
                Attempt::Failed => tokio::time::sleep(self.timings.retry_period).await,
            }
        }
    }

    async fn renew_if_still(&mut self, ours: Option<&LeaseRecord>) -> Result<Attempt, KubeError> {
        let newest = self.newest().await?;
        let term = |record: &LeaseRecord| (record.holder.clone(), record.uid.clone(), record.transitions);
        let is_still_ours = newest.as_ref().map(term) == ours.map(term);
        self.election.observe(newest, Instant::now());
        if is_still_ours && self.election.is_holder() {
            self.write().await
        } else {
            Ok(Attempt::Foreign)
        }
    }

    /// Renews until that fails for too long, or the lease is somebody else's.
    async fn renew(&mut self) -> Over {
        loop {
            tokio::select! {
                biased;
                () = self.note.is_asked() => {}
                () = tokio::time::sleep(self.timings.retry_period) => {}
            }
            let deadline = Instant::now() + self.timings.renew_deadline;
            loop {
                match tokio::time::timeout_at(deadline, self.attempt()).await {
                    Ok(Attempt::Held) => break,
                    Ok(Attempt::Foreign) => {
                        return Over::Foreign(format!("{} holds the lease", self.holder()));
                    }
                    Ok(Attempt::Failed) => {
                        let next = Instant::now() + self.timings.retry_period;
                        if next >= deadline {
                            tokio::time::sleep_until(deadline).await;
                            return self.too_late();
                        }
                        tokio::time::sleep_until(next).await;
                    }
                    Err(_) => return self.too_late(),
                }
            }
        }
    }

    /// Who holds the lease by the last record.
    fn holder(&self) -> &str {
        let holder = self.election.record().map_or("", |record| &record.holder);
        if holder.is_empty() { "nobody" } else { holder }
    }

    fn too_late(&self) -> Over {
        Over::TooLate(format!(
            "the lease could not be renewed for {} s",
            self.timings.renew_deadline.as_secs_f64()
        ))
    }

    /// Reads the lease unless it is known to be ours, decides, and writes.
    async fn attempt(&mut self) -> Attempt {
        let tried = self.try_once().await;
        self.judge(tried)
    }

    fn judge(&mut self, tried: Result<Attempt, KubeError>) -> Attempt {
        match tried {
            Ok(attempt) => {
                self.told_failure = None;
                attempt
            }
            Err(error) => {
                self.tell(&error);
                Attempt::Failed
            }
        }
    }

    async fn try_once(&mut self) -> Result<Attempt, KubeError> {
        let knows_ours = self.election.is_holder();
        if knows_ours {
            // The usual case: our own last write is still the newest.
            match self.write().await {
                Err(error) if error.is_conflict() || error.is_not_found() => {
                    self.series.count_slow_renewal(&self.lease);
                    tracing::debug!(lease = self.lease, %error, "The lease has changed");
                }
                done => return done,
            }
        }
        let newest = self.newest().await?;
        self.election.observe(newest, Instant::now());
        self.is_in_doubt = false;
        let leads = self.state.borrow().is_leading();
        if leads && self.election.record().is_some() && !self.election.is_holder() {
            // Somebody led in between, also if the lease is free again: what is remembered here is of before that.
            return Ok(Attempt::Foreign);
        }
        self.write().await
    }

    /// The lease as it is; `None` if there is none.
    async fn newest(&self) -> Result<Option<LeaseRecord>, KubeError> {
        match self.lock.get().await {
            Ok(record) => Ok(Some(record)),
            Err(KubeError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn write(&mut self) -> Result<Attempt, KubeError> {
        let (sent, wall) = (Instant::now(), self.kube.clock().now());
        let leads = self.state.borrow().is_leading();
        let (asked, note) = self.note.wanted();
        let has_jumped = self.renewed.is_some_and(|(at, then)| {
            let passed = Duration::try_from(wall.duration_since(then)).unwrap_or_default();
            passed.abs_diff(sent - at) > CLOCK_TOLERANCE
        });
        let (mut record, is_new) = match self.election.decide(sent, wall) {
            Decision::Create(record) => (record, true),
            Decision::Update(record) => (record, false),
            Decision::Wait { .. } => return Ok(Attempt::Foreign),
        };
        if let (true, Some(note)) = (leads, note) {
            record.note(note);
        }
        if has_jumped {
            record.doubt_note();
        }
        let mut answer = self.send(&record, is_new).await;
        let mut is_refused = false;
        if let Err(error @ (KubeError::Forbidden(_) | KubeError::Invalid(_))) = &answer
            && let Some(bare) = record.without_note()
        {
            // Leading matters more than the note: without it no Node is deleted, see `LeaseNote::held`.
            tracing::debug!(lease = self.lease, %error, "The lease is written without the note");
            answer = self.send(&bare, is_new).await;
            is_refused = true;
        }
        let written = answer?;
        if !leads {
            self.note.won(written.deletions.clone().map(|note| FoundNote {
                is_complete: written.is_note_complete(),
                note,
                at: sent,
                wall,
            }));
        } else if is_refused {
            self.note.refused(asked);
        } else {
            self.note.written(asked, written.deletions == record.deletions);
        }
        self.renewed = Some((sent, wall));
        self.election.observe(Some(written), sent);
        self.gate
            .renewed(&self.lease, (sent, wall), self.timings.lease_duration);
        let term = self.term;
        self.state
            .send_replace(Leadership::Leading { renewed: sent, term });
        Ok(Attempt::Held)
    }

    async fn send(&mut self, record: &LeaseRecord, is_new: bool) -> Result<LeaseRecord, KubeError> {
        self.is_in_doubt = true;
        let answer = if is_new {
            self.lock.create(record).await
        } else {
            self.lock.update(record).await
        };
        // A conflict is an answer: the write was not made.
        self.is_in_doubt = answer.as_ref().is_err_and(|error| !error.is_conflict());
        answer
    }

    /// Tells that an attempt failed, unless that was told lately.
    fn tell(&mut self, error: &KubeError) {
        let now = Instant::now();
        if error.is_conflict() {
            // Another candidate was faster, which is how an election goes.
            tracing::debug!(lease = self.lease, %error, "The lease could not be written");
        } else if self.told_failure.is_some_and(|told| now < told + TOLD_EVERY) {
            tracing::debug!(lease = self.lease, %error, "The lease could still not be read or written");
        } else {
            tracing::warn!(lease = self.lease, err = %error, "The lease could not be read or written, will retry");
            self.told_failure = Some(now);
        }
    }

    /// Gives the lease up, so that the next leader need not wait for its end. Nothing is written any more by now.
    async fn release(&mut self) {
        self.gate.close();
        self.series.set_leading(&self.lease, false);
        match tokio::time::timeout(RELEASE_TIMEOUT, self.give_up()).await {
            Ok(Ok(true)) => tracing::info!(lease = self.lease, "Lease released"),
            Ok(Ok(false)) => tracing::debug!(lease = self.lease, "The lease is not ours, nothing to release"),
            Ok(Err(error)) => {
                tracing::warn!(lease = self.lease, err = %error, "The lease could not be released")
            }
            Err(_) => tracing::warn!(lease = self.lease, "The lease could not be released in time"),
        }
    }

    /// Whether the lease was ours and is given up now.
    ///
    /// The record may have changed since it was seen: a renewal was cut off by the stop, and had been made all the same,
    /// or somebody has set a label. So after a conflict it is read again, and tried again unless somebody else holds it. The
    /// same after an answer that does not show whether the lease was given up.
    async fn give_up(&mut self) -> Result<bool, KubeError> {
        let mut pause = Duration::ZERO;
        loop {
            if let Some(record) = self.election.release(self.kube.clock().now()) {
                match self.lock.update(&record).await {
                    Err(KubeError::Conflict(_) | KubeError::Decode(_)) => {}
                    Err(KubeError::NotFound(_)) => return Ok(false),
                    result => return result.map(|_| true),
                }
            }
            tokio::time::sleep(pause).await;
            pause += RELEASE_PAUSE;
            // It is also not known whose it is if the last request was cut off: that one may have made us the holder.
            let newest = self.newest().await?;
            self.election.observe(newest, Instant::now());
            if !self.election.is_holder() {
                return Ok(false);
            }
        }
    }

    fn record(&self, note: String) {
        let object = self.lock.object(self.election.record());
        self.recorder
            .record(&object, NoteKind::Normal, "LeaderElection", note);
    }
}
