//! The note of the class on a Service costs only itself: what the API server refuses because of it is written without it.

use bowline_cloud_provider::{Service, ServiceKey, facts, keys};
use bowline_kube_io::{Kube, KubeError};

use super::ServiceController;
use super::tracked::Tracked;
use crate::events;

/// Whether a write leaves a note on the Service: one that is there, or one that comes with the finalizer.
fn bears_note(service: &Service) -> bool {
    facts::noted_class(service).is_some() || facts::class(service).is_some() && !facts::has_finalizer(service)
}

fn is_refusal(error: &KubeError) -> bool {
    matches!(error, KubeError::Forbidden(_) | KubeError::Invalid(_))
}

/// Whether the API server takes a Service without the note, and not with it.
async fn is_of_note(kube: &Kube, service: &Service) -> bool {
    for part in ["/status", ""] {
        let refused = kube.rehearse_class_note(service, part).await;
        if refused.err().as_ref().is_some_and(is_refusal) {
            let without = kube.without_class_note();
            if without.rehearse_service(service, part).await.is_ok() {
                return true;
            }
        }
    }
    false
}

impl ServiceController {
    /// One write on a Service. A policy on annotations may refuse all writes of an object that bears the note. So of what is refused it is
    /// tried once whether the note is why, without writing anything. If it is, it is written without the note, which is taken off if it is
    /// there, and this process notes nothing on this Service any more. If it is not, that is not asked again before a write was taken.
    pub(super) async fn write_on<F>(
        &self,
        kube: &Kube,
        service: &Service,
        write: impl Fn(Kube) -> F,
    ) -> Result<Service, KubeError>
    where
        F: Future<Output = Result<Service, KubeError>>,
    {
        let key = ServiceKey::of(service);
        if self.tracked(&key, |tracked| tracked.fights.is_note_refused) {
            return write(kube.without_class_note()).await;
        }
        let written = write(kube.clone()).await;
        let is_refused = written.as_ref().err().is_some_and(is_refusal) && bears_note(service);
        let was_tried = self.tracked(&key, |tracked| {
            std::mem::replace(&mut tracked.fights.is_note_taken, is_refused)
        });
        if !is_refused || was_tried || !is_of_note(kube, service).await {
            return written;
        }
        // Before the watch shows that the note is gone.
        self.tracked(&key, |tracked| tracked.fights.is_note_refused = true);
        let written = write(kube.without_class_note()).await;
        match written {
            Ok(written) if facts::has_finalizer(&written) => {
                Ok(self.note_class(&written).await.unwrap_or(written))
            }
            written => {
                self.tracked(&key, |tracked| tracked.fights.is_note_refused = written.is_ok());
                written
            }
        }
    }

    /// Notes the class again on a Service that somebody took the note off. As people write it: who took it off because a policy
    /// refused all his writes is not put back to where he was.
    pub(super) async fn note_class(&self, service: &Service) -> Result<Service, KubeError> {
        let class = facts::class(service).map(str::to_owned);
        let note = [(keys::ANNOTATION_CLASS.to_owned(), class)];
        let noted = self.ctx.kube.annotate_service(service, &note).await;
        let refusal = noted.as_ref().err().filter(|error| is_refusal(error));
        let key = ServiceKey::of(service);
        self.tracked(&key, |tracked| tracked.fights.is_note_refused = refusal.is_some());
        let Some(error) = refusal else {
            return noted;
        };
        self.tell_unwritten(&key, service, &format!("{}: {error}", keys::ANNOTATION_CLASS));
        Ok(service.clone())
    }

    /// Says once what is not written, and why.
    pub(super) fn tell_unwritten(&self, key: &ServiceKey, service: &Service, refusal: &str) {
        let note = events::ANNOTATIONS_FORBIDDEN.note(format!(
            "Annotations may not be written on the service, so it is served without them: {refusal}"
        ));
        let is_news = |tracked: &mut Tracked| tracked.dedup.is_news(note.reason, &note.text);
        if self.tracked(key, is_news) {
            tracing::warn!(service = %key, err = refusal, "Annotations of the service may not be written");
            self.ctx.event(service, note);
        }
    }
}
