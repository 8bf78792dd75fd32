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

impl ServiceController {
    /// One write on a Service. A policy on annotations may refuse all writes of an object that bears the note. So what is refused is
    /// written once more without the note, which is taken off if it is there. If that helps, the note is tried by itself: the refusal
    /// may have had another cause that is over. If the note is refused, this process notes nothing on this Service any more.
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
        let error = match write(kube.clone()).await {
            Err(error) if is_refusal(&error) && bears_note(service) => error,
            written => return written,
        };
        // Before the watch shows that the note is gone.
        self.tracked(&key, |tracked| tracked.fights.is_note_refused = true);
        match write(kube.without_class_note()).await {
            Ok(written) if facts::has_finalizer(&written) => {
                Ok(self.note_class(&written).await.unwrap_or(written))
            }
            Ok(written) => Ok(written),
            Err(other) => {
                self.tracked(&key, |tracked| tracked.fights.is_note_refused = false);
                Err(if is_refusal(&other) { error } else { other })
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
