//! The steps that the manager makes, as its own log tells them.

use std::fmt;
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// The crate that makes the steps of a plan.
const DRIVE: &str = "bowline_drive";

/// Something that happened to a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepNews {
    /// The object, as `namespace/name`.
    pub(crate) object: String,
    /// The step as plans name it.
    pub(crate) label: String,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// It is being made; its impact in words.
    Begun(String),
    Done,
    /// The cloud is at work on what it changes: it is begun again.
    PutOff,
    /// It was refused, or failed, or was not sent.
    Failed,
}

/// Who wants to know.
pub(crate) type Listener = Arc<dyn Fn(StepNews) + Send + Sync>;

/// A log that goes on to another one, and tells of steps meanwhile. They are told at a level that the log itself may not show.
pub(super) fn tell_of_steps(log: Dispatch, listener: Listener) -> Dispatch {
    Dispatch::new(Tee { log, listener })
}

struct Tee {
    log: Dispatch,
    listener: Listener,
}

fn is_of_drive(metadata: &Metadata<'_>) -> bool {
    metadata.is_event() && *metadata.level() <= Level::DEBUG && metadata.target().starts_with(DRIVE)
}

impl Subscriber for Tee {
    /// Asked each time: the answer of the log behind may change with its verbosity.
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_of_drive(metadata) || self.log.enabled(metadata)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.log.new_span(span)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.log.record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.log.record_follows_from(span, follows);
    }

    fn event(&self, event: &Event<'_>) {
        if is_of_drive(event.metadata()) {
            let mut fields = Fields::default();
            event.record(&mut fields);
            if let Some(news) = fields.news() {
                (self.listener)(news);
            }
        }
        if self.log.enabled(event.metadata()) {
            self.log.event(event);
        }
    }

    fn enter(&self, span: &Id) {
        self.log.enter(span);
    }

    fn exit(&self, span: &Id) {
        self.log.exit(span);
    }

    fn clone_span(&self, span: &Id) -> Id {
        self.log.clone_span(span)
    }

    fn try_close(&self, span: Id) -> bool {
        self.log.try_close(span)
    }
}

#[derive(Default)]
struct Fields {
    message: String,
    object: String,
    label: String,
    impact: String,
    outcome: String,
}

impl Fields {
    fn news(self) -> Option<StepNews> {
        let what = match (self.message.as_str(), self.outcome.as_str()) {
            ("executing action" | "executing action again", _) => What::Begun(self.impact),
            ("action ended", "taken") => What::Done,
            ("action ended", "put off") => What::PutOff,
            ("action ended", _) => What::Failed,
            _ => return None,
        };
        Some(StepNews {
            object: self.object,
            label: self.label,
            what,
        })
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            "object" => self.object = text,
            "label" => self.label = text,
            "impact" => self.impact = text,
            "outcome" => self.outcome = text,
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn begun_and_ended_steps_are_told_whatever_the_log_shows() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&told);
        let listener: Listener = Arc::new(move |news| heard.lock().unwrap().push(news));
        // A log that shows nothing at all.
        let log = tell_of_steps(Dispatch::none(), listener);
        tracing::dispatcher::with_default(&log, || {
            let (object, label) = ("default/web", "create-pool(web)");
            tracing::info!(target: "bowline_drive::wave", %object, %label, impact = %"none", "executing action");
            for outcome in ["taken", "put off", "not taken", "unknown", "failed"] {
                tracing::debug!(target: "bowline_drive::wave", %object, %label, outcome, "action ended");
            }
            tracing::info!(target: "elsewhere", %object, %label, impact = %"none", "executing action");
            tracing::info!(target: "bowline_drive::wave", %object, "something else");
        });
        let told: Vec<_> = told
            .lock()
            .unwrap()
            .iter()
            .map(|news| news.what.clone())
            .collect();
        let begun = What::Begun("none".to_owned());
        assert_eq!(
            told,
            [
                begun,
                What::Done,
                What::PutOff,
                What::Failed,
                What::Failed,
                What::Failed
            ]
        );
    }
}
