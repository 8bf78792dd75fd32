//! Removes the balancer of a Service that is going, or that no longer asks for one.

use std::sync::Arc;

use bowline_cloud_provider::{
    AddressNote, ErrorKind, LoadBalancerStatus, Service, ServiceFacts, ServiceKey, facts,
};
use bowline_drive::{DriveError, Driven};
use bowline_kube_io::KubeError;

use super::ServiceController;
use super::causes::Causes;
use super::failure::Failure;
use super::outcome::Outcome;
use super::state::{Progress, Session, State};
use super::status::is_published;
use crate::events;
use crate::trouble::NO_ANSWER;

const PROBE: &str = "failed to check if load balancer exists before cleanup";
const DELETE: &str = "failed to delete load balancer";

impl ServiceController {
    /// One sync of a Service whose balancer is to go. The finalizer comes off after the last write to the cloud.
    ///
    /// Always asks the cloud, also where nothing seems to be left: what a broken create left behind is found by its mark.
    pub(super) async fn delete(
        &self,
        key: &ServiceKey,
        service: Arc<Service>,
        causes: Causes,
        before: State,
    ) -> Outcome {
        // If it vanishes before that, this process knows what it had begun, whoever made the balancer.
        if facts::has_finalizer(&service) {
            self.tracked(key, |tracked| {
                tracked.synced.get_or_insert_with(|| Arc::clone(&service));
            });
        }
        // Each write is based on what the one before it left.
        let (progress, status, mut service) = match self.drive_deletion(key, &service, causes, before).await {
            Ok(driven) => driven,
            Err(outcome) => return *outcome,
        };
        // The API server clears the status itself when the type changes, and a Service on its way out has no readers. What has a
        // class by now has a status that is another controller's.
        let newest = self.services.get(key);
        let is_ours = newest.is_none_or(|newest| !self.classes().leaves_to_others(&newest));
        let note = AddressNote::of_removal(&service);
        let is_told = note != AddressNote::Keep;
        let is_due = is_told || is_ours && !is_published(&service, &status);
        if service.metadata.deletion_timestamp.is_none() && is_due {
            let written = match is_ours {
                true => self.write_status(&service, &status, &note).await,
                false => self.ctx.kube.patch_address_note(&service, &note).await,
            };
            match written {
                Ok(published) => service = Arc::new(published),
                Err(KubeError::NotFound(_)) => {}
                Err(error) => {
                    let prefix = "failed to update load balancer status";
                    return Outcome::of_kube_error(prefix, &error, progress);
                }
            }
        }
        if progress.interruptions.are_to_end()
            && let Some(newest) = self.services.newer_than(&service)
            && !self.classes().is_wanted(&newest)
        {
            service = newest;
        }
        if facts::has_finalizer(&service) {
            let synced = self.tracked(key, |tracked| tracked.synced.take()); // its disappearance is our own doing
            let prefix = "failed to remove load balancer cleanup finalizer";
            match self.ctx.kube.set_service_finalizer(&service, false).await {
                Ok(left) if facts::has_finalizer(&left) => {
                    self.tracked(key, |tracked| tracked.synced = synced);
                    return Outcome::Failed(Failure::reverted(prefix), progress);
                }
                Ok(_) => {}
                // The watch was late to show what the removal before this one did, and told of.
                Err(KubeError::NotFound(_)) if !progress.has_written => return Outcome::Removed,
                Err(KubeError::NotFound(_)) => {}
                Err(error) if error.may_be_made() && self.is_released(key, &service).await => {}
                Err(error) => {
                    self.tracked(key, |tracked| tracked.synced = synced);
                    return Outcome::of_kube_error(prefix, &error, progress);
                }
            }
        }
        // Where nothing went because it is somebody else's, a note has said so.
        if progress.has_written || !progress.keeps_something {
            self.ctx
                .event(&*service, events::DELETED_LOAD_BALANCER.verbatim());
        }
        Outcome::Removed
    }

    /// Whether the API server shows this Service without our finalizer, or not at all.
    async fn is_released(&self, key: &ServiceKey, service: &Service) -> bool {
        let found = self.ctx.kube.find_service(key, &self.services).await;
        found.is_ok_and(|found| {
            found.is_none_or(|found| {
                found.metadata.uid != service.metadata.uid || !facts::has_finalizer(&found)
            })
        })
    }

    /// One sync of a Service that vanished, finalizer and all, before its balancer was removed.
    pub(super) async fn delete_vanished(
        &self,
        key: &ServiceKey,
        vanished: Arc<Service>,
        causes: Causes,
        before: State,
    ) -> Outcome {
        match self.drive_deletion(key, &vanished, causes, before).await {
            Ok((progress, ..)) => {
                // It may have been gone already, or be another cluster's.
                if progress.has_written {
                    self.ctx
                        .event(&*vanished, events::DELETED_LOAD_BALANCER.verbatim());
                }
                Outcome::Removed
            }
            Err(outcome) => *outcome,
        }
    }

    /// Begins to remove what the cloud has for a Service.
    fn begin_removal(&self, service: &Arc<Service>, progress: Progress) -> Result<Session, Box<Outcome>> {
        // The Nodes tell a provider which cluster this is, and so what is not its own.
        let nodes = self.balanced_nodes().nodes;
        let unwanted = ServiceFacts {
            is_wanted: false,
            ..self.facts(Arc::clone(service), &nodes)
        };
        let begun = Arc::clone(&self.provider.load_balancer).begin(unwanted);
        begun.map_err(|refusal| Box::new(Outcome::Failed(Failure::refused(DELETE, &refusal), progress)))
    }

    /// Gives what is to be published, and the Service as the writes of the drive left it.
    async fn drive_deletion(
        &self,
        key: &ServiceKey,
        service: &Arc<Service>,
        causes: Causes,
        before: State,
    ) -> Result<(Progress, LoadBalancerStatus, Arc<Service>), Box<Outcome>> {
        let parked = before.resume(true, |parked| causes.is_empty() && parked.is_about(service));
        let (mut session, mut progress) = match parked {
            Ok(parked) => (parked.session, parked.progress),
            Err(mut progress) => {
                progress.causes = progress.causes.and(causes.and(Causes::CHANGED));
                self.expect_late(key, service, true);
                (self.begin_removal(service, progress)?, progress)
            }
        };
        let before = Arc::clone(&session.facts().service);
        let outcome = match self.drive(key, &mut *session, &mut progress).await {
            Ok(Driven::Settled(..))
                if let Some(after) = self.tracked(key, |it| it.unanswered.look_for_what_is_left()) =>
            {
                if progress.has_written {
                    self.room_was_made();
                }
                // As its writes left it: it may bear less than before.
                let latest = Arc::clone(&session.facts().service);
                Outcome::parked(
                    NO_ANSWER.to_owned(),
                    self.begin_removal(&latest, progress)?,
                    progress,
                    after,
                )
            }
            Ok(Driven::Settled(status, _)) => {
                if progress.has_written {
                    self.wake_background();
                    self.room_was_made();
                }
                let latest = Arc::clone(&session.facts().service);
                let has_written = !Arc::ptr_eq(&before, &latest);
                let service = if has_written { latest } else { Arc::clone(service) };
                return Ok((progress, status, service));
            }
            Ok(Driven::Wait { after, reason }) => Outcome::parked(reason, session, progress, after),
            Ok(Driven::Refused(refusal, _)) => Outcome::Failed(Failure::refused(DELETE, &refusal), progress),
            Ok(Driven::Superseded) => Outcome::Superseded(progress),
            // Another controller's work, which this Service needs no longer.
            Err(DriveError::Observe(error) | DriveError::Step { error, .. })
                if error.kind() == ErrorKind::ImplementedElsewhere =>
            {
                return Ok((progress, LoadBalancerStatus::empty(), Arc::clone(service)));
            }
            Err(error @ DriveError::Observe(_)) if !progress.has_written => {
                Outcome::of_drive_error(PROBE, &error, progress)
            }
            Err(error) => Outcome::of_drive_error(DELETE, &error, progress),
        };
        Err(Box::new(outcome))
    }
}
