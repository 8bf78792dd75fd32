//! The condition of a Service whose load balancer is not as it should be, so that the cause stands on the Service for as long as it
//! holds. Of a Service without trouble nothing is written.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{Service, ServiceKey, facts};
use bowline_kube_io::KubeError;
use bowline_transport::TOLD_AFTER;
use jiff::Timestamp;
use tokio::time::Instant;

use super::tracked::Tracked;
use super::unsettled::{Reason, Unsettled};
use super::{Key, ServiceController};
use crate::advice;
use crate::put_back::ROW;
use crate::queue::RetryAfter;
use crate::trouble::{NO_ANSWER, Trouble};

/// Trouble that is over within this time is none: most load balancers are made sooner.
const PATIENCE: Duration = Duration::from_secs(30);

/// A sign-in that has no answer keeps all Services waiting, and is trouble sooner: a little after that is known.
const SIGNED_IN: Duration = TOLD_AFTER.saturating_add(Duration::from_secs(2));

/// What is under way changes from moment to moment, and is told anew no sooner than this after it was told.
const REST: Duration = Duration::from_secs(20);

/// What is said where no sync has ended since the change.
const WORKED_ON: &str = "The last change is being worked on";

impl Unsettled {
    /// Whether it is too early to speak of trouble.
    fn is_early(&self) -> bool {
        self.since.elapsed() < PATIENCE
    }

    /// After which time to look whether it is trouble.
    fn due(&self) -> Duration {
        let lasts = self.since.elapsed();
        let due = [SIGNED_IN, PATIENCE].into_iter().find(|due| lasts < *due);
        due.map_or(Duration::ZERO, |due| due - lasts)
    }

    /// What the condition says; `slowness` is what keeps it besides.
    fn shown(&self, slowness: Option<&str>) -> (Reason, Trouble) {
        let slow = |text: &str| match slowness {
            Some(slowness) => Trouble::new(&format!("{text}: {slowness}")).with_remedy(Some(advice::SLOW)),
            None => Trouble::new(text),
        };
        let trouble = match self.reason {
            Reason::Pending => slow(WORKED_ON),
            Reason::Waiting if slowness.is_some() => {
                slow(self.trouble.what()).with_remedy(self.trouble.own_remedy())
            }
            Reason::Waiting | Reason::NoNodes => self.trouble.clone().tried(None),
            _ => self.trouble.clone(),
        };
        (self.reason, trouble)
    }
}

impl Tracked {
    /// What the condition is to say, and for how long that has been so; `None`: nothing, yet.
    fn shown(
        &mut self,
        now: Timestamp,
        slowness: Option<&str>,
        is_shut_out: bool,
    ) -> Option<((Reason, Trouble), Duration)> {
        let trouble = match &self.unsettled {
            Some(unsettled) => {
                let is_shut_out = is_shut_out && unsettled.reason == Reason::Pending;
                let is_due = !unsettled.is_early() || is_shut_out;
                let is_due = is_due && unsettled.trouble.what() != NO_ANSWER;
                is_due.then(|| (unsettled.shown(slowness), unsettled.since.elapsed()))
            }
            // The load balancer is as it should be, and somebody takes that out of the status.
            None => self.fights.contested().map(|(text, lasts)| {
                let trouble = Trouble::new(text).with_remedy(Some(advice::CHANGED_BACK));
                ((Reason::Kubernetes, trouble), lasts)
            }),
        };
        let late = self.unanswered.told(now);
        let without_answer = || {
            let trouble = Trouble::new(NO_ANSWER).with_remedy(Some(advice::UNANSWERED));
            ((Reason::Unanswered, trouble), Duration::ZERO)
        };
        let trouble = trouble.or_else(|| late.is_some().then(without_answer));
        trouble.map(|((reason, trouble), lasts)| ((reason, trouble.without_answer(late)), lasts))
    }
}

impl ServiceController {
    /// A sync of a Service has ended: has the condition brought up to date.
    pub(super) fn condition_is_due(&self, key: &ServiceKey) {
        let is_shown = || {
            self.services
                .get(key)
                .is_some_and(|it| facts::trouble(&it).is_some())
        };
        let after = self.tracked(key, |tracked| match &tracked.unsettled {
            Some(unsettled) if !tracked.unanswered.may_come() && tracked.told_at.is_none() => {
                Some(unsettled.due())
            }
            None if !is_shown() && !tracked.unanswered.may_come() => None,
            _ => Some(Duration::ZERO),
        });
        if let Some(after) = after {
            self.queue.add_after(Key::Condition(key.clone()), after);
        }
    }

    /// Writes the condition, if it is not what the Service shows.
    pub(super) async fn show_condition(&self, key: &ServiceKey, queued: &Key) {
        // What has a class, or asks for no load balancer, is another's, with whatever stands on it that this process did not write.
        let told_at = self.tracked(key, |tracked| tracked.told_at);
        let is_told = told_at.is_some();
        let classes = self.classes();
        let is_removed = |it: &Service| facts::has_finalizer(it) && classes.served(it);
        let ours = |it: &Arc<Service>| {
            !classes.leaves_to_others(it) && (classes.is_wanted(it) || is_removed(it) || is_told)
        };
        let service = self.services.get(key).filter(ours);
        let (now, slowness) = (self.ctx.kube.clock().now(), self.slowness());
        let is_shut_out = self
            .provider
            .silences
            .longest()
            .is_some_and(|it| it.is_preliminary);
        let (due, shown) = self.tracked(key, |tracked| {
            let due = tracked.unsettled.as_ref().map(Unsettled::due);
            (due, tracked.shown(now, slowness.as_deref(), is_shut_out))
        });
        let early = due.filter(|due| !due.is_zero() && shown.is_none());
        let lasts = shown.as_ref().map_or(Duration::ZERO, |(_, lasts)| *lasts);
        let is_of_work = due.is_some() && shown.as_ref().is_none_or(|((reason, _), _)| reason.is_of_work());
        let late = shown
            .as_ref()
            .and_then(|((_, trouble), _)| trouble.late().cloned());
        let trouble = shown.map(|((reason, trouble), _)| (reason.name(), trouble.to_string()));
        if self.tracked(key, |tracked| tracked.fights.contested().is_some()) {
            self.queue.add_after(Key::Condition(key.clone()), ROW); // nothing else tells that it has ended
        }
        self.forget_unused(key);
        if let Some(due) = early {
            self.queue.add_after(queued.clone(), due); // it was queued for an earlier trouble
        }
        let Some(service) = service else {
            return self.queue.forget(queued);
        };
        let shown = facts::trouble(&service).map(|shown| (shown.reason.as_str(), shown.message.as_str()));
        if early.is_some() && shown.is_some() && !is_told {
            return; // of a trouble that nobody has seen the end of
        }
        let trouble = trouble
            .as_ref()
            .map(|(reason, message)| (*reason, message.as_str()));
        // What keeps it may be another thing by then.
        let look_again = |after| self.queue.add_after(Key::Condition(key.clone()), after);
        if shown == trouble {
            if is_of_work && is_told {
                look_again(REST);
            }
            return self.queue.forget(queued);
        }
        let rest = told_at.map(|at| REST.saturating_sub(at.elapsed()));
        if let (Some(rest), Some((reason, message))) = (rest.filter(|_| is_of_work), shown)
            && Reason::OF_WORK.iter().any(|it| it.name() == reason)
            && (late.is_none() || late.as_ref() == Trouble::read(message).late())
            && !rest.is_zero()
        {
            return look_again(rest);
        }
        let service = &*service;
        let written = self.write_on(&self.ctx.kube, service, move |kube| async move {
            kube.set_service_trouble(service, trouble, lasts).await
        });
        match written.await {
            Ok(_) => {
                let was_refused = self.tracked(key, |tracked| {
                    tracked.told_at = trouble.map(|_| Instant::now());
                    tracked.fights.may_publish()
                });
                if was_refused {
                    self.queue.add(Key::Service(key.clone())); // the status is taken again, as it seems
                }
                self.forget_unused(key);
                self.queue.forget(queued);
                if is_of_work && trouble.is_some() {
                    look_again(REST);
                }
            }
            Err(KubeError::NotFound(_) | KubeError::Conflict(_) | KubeError::GateClosed) => {
                self.queue.forget(queued);
            }
            Err(error) => {
                tracing::debug!(service = %key, err = %error, "The condition of a Service could not be written, will be tried again");
                self.queue
                    .retry_after(queued.clone(), RetryAfter::by_kube_write(&error));
            }
        }
    }
}
