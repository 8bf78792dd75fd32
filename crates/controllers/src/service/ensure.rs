//! Brings the balancer of a Service to the state that its spec asks for.
//!
//! ```text
//! intent -> finalizer on -> observe -> plan -> apply, until settled -> publish the status
//! ```

use std::sync::Arc;

use bowline_cloud_provider::{
    AddressLoss, AddressNote, ErrorKind, KubeWrite, LoadBalancerStatus, Service, ServiceFacts, ServiceKey,
    facts,
};
use bowline_drive::{DriveError, Driven};
use bowline_kube_io::KubeError;
use bowline_plan::Refusal;

use super::ServiceController;
use super::causes::Causes;
use super::failure::Failure;
use super::node_identities::NodeIdentities;
use super::node_sync::BalancedNodes;
use super::outcome::{Outcome, Settled};
use super::state::{Parked, Progress, Session, State};
use super::status::is_published;
use crate::events;

/// What failed, in upstream's words: its update of a balancer's Nodes has an event of its own, which says it already.
fn ensuring(progress: Progress) -> &'static str {
    if progress.causes == Causes::NODES {
        ""
    } else {
        "failed to ensure load balancer"
    }
}

/// Whether somebody may be served: then Nodes are followed, though the sync failed. Where no address was ever told, nobody is
/// served by Nodes that left, whatever stands there by now, and a change of them is no reason to ask a cloud again that has failed.
fn may_be_served(service: &Service) -> bool {
    !facts::published_addresses(service).is_empty()
}

impl ServiceController {
    /// One sync of a Service that wants a balancer.
    ///
    /// # Repeatability
    ///
    /// May stop after any await: the next sync observes what was done and goes on. The finalizer is on before the first
    /// write to the cloud.
    pub(super) async fn ensure(
        &self,
        key: &ServiceKey,
        service: Arc<Service>,
        causes: Causes,
        before: State,
    ) -> Outcome {
        if causes.has(Causes::CHANGED) {
            self.tracked(key, |tracked| _ = tracked.fights.may_publish());
        }
        self.expect_late(key, &service, false);
        let begun = match self.resume(&service, causes, before) {
            Ok(parked) => Ok((parked.session, parked.progress)),
            Err(progress) => self.begin(key, &service, progress).await,
        };
        let (mut session, mut progress) = match begun {
            Ok(begun) => begun,
            Err(outcome) => return *outcome,
        };
        let old = Arc::clone(&session.facts().service);
        let driven = self.drive(key, &mut *session, &mut progress).await;
        let ServiceFacts { service, nodes, .. } = session.facts();
        match driven {
            Ok(Driven::Settled(status, again)) => {
                let identities = self.identities(nodes);
                match self.publish(key, service, &status, &identities, progress).await {
                    Ok(()) => {
                        let lacks_nodes =
                            identities.is_empty() && self.provider.load_balancer.follows_nodes();
                        let has_old_labels = self.has_old_labels(service, nodes);
                        let is_no_op = !progress.has_written && is_published(&old, &status);
                        self.tracked(key, |tracked| tracked.fights.look_settled(is_no_op));
                        Outcome::Settled(Settled {
                            identities,
                            again,
                            lacks_nodes,
                            has_old_labels,
                        })
                    }
                    Err(outcome) => {
                        // What is served is up to date, and follows the Nodes.
                        if matches!(*outcome, Outcome::Failed(..)) {
                            self.tracked(key, |tracked| tracked.nodes = Some(identities));
                        }
                        *outcome
                    }
                }
            }
            Ok(Driven::Wait { after, reason }) => {
                tracing::debug!(service = %key, %reason, ?after, "Waiting for the cloud");
                Outcome::parked(reason, session, progress, after)
            }
            Ok(Driven::Refused(refusal, status)) => {
                let published = match &status {
                    Some(status) => self.publish_status(key, service, status, progress).await,
                    None => Ok(()),
                };
                // What is served is up to date with these Nodes but for what is refused, and follows them. What is not, may have
                // been refused for want of others.
                if !refusal.is_limit || status.is_some() || may_be_served(service) {
                    let identities = self.identities(nodes);
                    self.tracked(key, |tracked| tracked.nodes = Some(identities));
                }
                if let Err(outcome) = published {
                    return *outcome;
                }
                Outcome::Failed(Failure::refused(ensuring(progress), &refusal), progress)
            }
            Ok(Driven::Superseded) => Outcome::Superseded(progress),
            Err(DriveError::Observe(error) | DriveError::Step { error, .. })
                if error.kind() == ErrorKind::ImplementedElsewhere =>
            {
                // Another controller's work: silence, no status.
                Outcome::Settled(Settled {
                    identities: self.identities(nodes),
                    ..Settled::default()
                })
            }
            Err(error) => {
                let is_publication =
                    matches!(&error, DriveError::Kube { label, .. } if KubeWrite::publishes(label));
                let unpublished = self.tracked(key, |tracked| tracked.fights.unpublished());
                let unpublished = unpublished.filter(|_| is_publication);
                if unpublished.is_some() || may_be_served(service) {
                    // How far it came is not known, so it is looked at again when the Nodes are others than these, be it those of
                    // before. That does not wait for the back-off.
                    let identities = self.identities(nodes);
                    self.tracked(key, |tracked| tracked.nodes = Some(identities));
                }
                match unpublished {
                    Some(failure) => Outcome::Failed(failure, progress),
                    None => Outcome::of_drive_error(ensuring(progress), &error, progress),
                }
            }
        }
    }

    /// Begins a sync: says so, reads what is asked for, and puts the finalizer on.
    async fn begin(
        &self,
        key: &ServiceKey,
        service: &Arc<Service>,
        mut progress: Progress,
    ) -> Result<(Session, Progress), Box<Outcome>> {
        let BalancedNodes { nodes, identities } = self.nodes_of(service);
        let is_first = self.tracked(key, |tracked| {
            let is_first = tracked.synced.replace(Arc::clone(service)).is_none();
            tracked.tried = Some(identities);
            tracked.fights.look_begins();
            is_first
        });
        if progress.causes.has(Causes::CHANGED) && !progress.is_announced {
            progress.is_announced = true;
            let object = &**service;
            self.ctx.event(object, events::ENSURING_LOAD_BALANCER.verbatim());
            if nodes.is_empty() {
                self.tell_unavailable(object);
            }
        }
        let refused = |refusal: &Refusal| {
            let failure = Failure::refused(ensuring(progress), refusal);
            Box::new(Outcome::Failed(failure, progress))
        };
        // Parse first: an invalid spec ends the sync before it costs a call to anybody.
        let wanted = self.facts(Arc::clone(service), &nodes);
        let mut session = Arc::clone(&self.provider.load_balancer)
            .begin(wanted)
            .map_err(|refusal| refused(&refusal))?;
        self.annotate_nodes_soon();
        let is_noted = |noted| facts::class(service) == Some(noted);
        let service = &**service;
        let prefix = "failed to add load balancer cleanup finalizer";
        let written = if !facts::has_finalizer(service) || !facts::noted_class(service).is_none_or(is_noted) {
            // On before the first write to the cloud, so that the Service cannot vanish with a balancer behind. A note of another class
            // would make it somebody else's to remove.
            let written = self.write_on(&self.ctx.kube, service, move |kube| async move {
                kube.set_service_finalizer(service, true).await
            });
            written.await
        } else if is_first && facts::class(service).is_some() && facts::noted_class(service).is_none() {
            // The process before this one may have ended between a status that was written without the note, and the note.
            self.note_class(service).await
        } else {
            return Ok((session, progress));
        };
        let with_finalizer =
            written.map_err(|error| Box::new(Outcome::of_kube_error(prefix, &error, progress)))?;
        if !facts::has_finalizer(&with_finalizer) {
            return Err(Box::new(Outcome::Failed(Failure::reverted(prefix), progress)));
        }
        let wanted = ServiceFacts {
            service: Arc::new(with_finalizer),
            ..session.facts().clone()
        };
        session.refresh(wanted).map_err(|refusal| refused(&refusal))?;
        Ok((session, progress))
    }

    /// Writes the status if it differs, and says that the sync is done.
    async fn publish(
        &self,
        key: &ServiceKey,
        service: &Arc<Service>,
        status: &LoadBalancerStatus,
        identities: &NodeIdentities,
        progress: Progress,
    ) -> Result<(), Box<Outcome>> {
        self.publish_status(key, service, status, progress).await?;
        // Without Nodes a provider may keep the last members, which writes nothing: people are told all the same.
        if progress.causes == Causes::NODES && (progress.has_written || identities.is_empty()) {
            self.tell_updated(service, identities);
        } else if progress.is_announced {
            self.ctx
                .event(&**service, events::ENSURED_LOAD_BALANCER.verbatim());
        }
        Ok(())
    }

    /// Writes the status if it differs, unless the Service has changed during the last look at the cloud: it may be another
    /// controller's by now.
    async fn publish_status(
        &self,
        key: &ServiceKey,
        service: &Arc<Service>,
        status: &LoadBalancerStatus,
        progress: Progress,
    ) -> Result<(), Box<Outcome>> {
        let is_changed = !progress.interruptions.are_to_end()
            && self.tracked(key, |tracked| tracked.causes.has(Causes::CHANGED));
        if is_changed
            || !self
                .services
                .get(key)
                .is_some_and(|newest| self.classes().is_wanted(&newest))
        {
            return Err(Box::new(Outcome::Superseded(progress)));
        }
        let held_back = self.tracked(key, |tracked| {
            tracked.fights.published(status);
            tracked.fights.held_back(status)
        });
        if let Some(failure) = held_back {
            return Err(Box::new(Outcome::Failed(failure, progress)));
        }
        let mut shown = None;
        if !is_published(service, status) {
            let note = self.address_note(key, service, status, progress);
            let patched = self.write_status(service, status, &note).await;
            shown =
                Some(patched.map_err(|error| Box::new(self.not_published(key, status, &error, progress)))?);
        }
        self.tracked(key, |tracked| {
            tracked.fights.may_publish();
            tracked.fights.tells(shown.as_ref().unwrap_or(service));
            tracked.address_loss = None;
            tracked.used = Vec::new();
        });
        Ok(())
    }

    /// What a write of this status tells of the address that the Service shows so far.
    pub(super) fn address_note(
        &self,
        key: &ServiceKey,
        service: &Service,
        status: &LoadBalancerStatus,
        progress: Progress,
    ) -> AddressNote {
        let unnoted = match progress.causes.has(Causes::CHANGED) {
            true => AddressLoss::ServiceChanged,
            false => AddressLoss::Unknown,
        };
        let (loss, used) = self.tracked(key, |tracked| (tracked.address_loss, tracked.used.clone()));
        let now = self.ctx.kube.clock().now();
        AddressNote::of(service, status, &used, loss.unwrap_or(unnoted), now)
    }

    /// Writes a status, by the rule of [`Self::write_on`].
    pub(super) async fn write_status(
        &self,
        service: &Service,
        status: &LoadBalancerStatus,
        note: &AddressNote,
    ) -> Result<Service, KubeError> {
        self.write_on(&self.ctx.kube, service, move |kube| async move {
            kube.patch_service_status(service, status, note).await
        })
        .await
    }

    /// What follows from an error that kept a status from being published. It is remembered, so that it is met once per try.
    pub(super) fn not_published(
        &self,
        key: &ServiceKey,
        status: &LoadBalancerStatus,
        error: &KubeError,
        progress: Progress,
    ) -> Outcome {
        let outcome = Outcome::of_kube_error("failed to update load balancer status", error, progress);
        if let Outcome::Failed(failure, _) = &outcome {
            self.tracked(key, |tracked| tracked.fights.not_published(status, failure));
        }
        outcome
    }

    /// Whether a parked session need not begin anew because of the Nodes. Before its first write they may be what it waits for;
    /// after it, the next sync follows them.
    fn has_its_nodes(
        &self,
        Parked {
            session, progress, ..
        }: &Parked,
    ) -> bool {
        let ServiceFacts { service, nodes, .. } = session.facts();
        progress.has_written || self.identities(nodes) == self.nodes_of(service).identities
    }

    /// Takes back the parked session if nothing but time has passed; else what the sync before had come to.
    fn resume(&self, service: &Service, causes: Causes, before: State) -> Result<Parked, Progress> {
        let will_do =
            |parked: &Parked| causes.is_empty() && parked.is_about(service) && self.has_its_nodes(parked);
        before.resume(false, will_do).map_err(|earlier| Progress {
            causes: earlier.causes.and(causes),
            // A new change is announced again; what the earlier sync was for is not forgotten.
            is_announced: earlier.is_announced && !causes.has(Causes::CHANGED),
            is_unverified: false, // it begins with a full read
            ..earlier
        })
    }
}
