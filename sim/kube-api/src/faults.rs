//! Faults that a test switches on: answers that fail, get lost or come late.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::access::Attributes;
use crate::status::Status;

/// What goes wrong.
#[derive(Clone, Debug)]
pub enum Effect {
    /// The request is refused with this answer and has no effect.
    Answer(Status),
    /// The connection breaks before the request has an effect.
    DropBefore,
    /// The request has its effect, but the connection breaks before the answer.
    DropAfter,
    /// The request is handled after this much time.
    Delay(Duration),
    /// Something on the way answers in the server's place: this HTTP status with this text, which is no JSON. The request
    /// has no effect.
    Text(u16, &'static str),
    /// What a patch or an update makes of the object is changed before it is stored, as by a mutating admission webhook.
    Rewrite(fn(&mut Value)),
    /// What a patch or an update makes of the object is refused with 403 if this says so, as by a validating admission policy.
    Deny(fn(&Value) -> bool),
    /// The server accepts the request and falls silent: a watch is opened and shows nothing, not even its end; any other
    /// request is never answered and has no effect.
    Silence,
}

/// A rule: which requests meet which effect, and how often.
#[derive(Clone, Debug)]
pub struct Fault {
    verb: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    name: Option<String>,
    skip: u32,
    times: Option<u32>,
    effect: Effect,
}

impl Fault {
    /// Meets every request.
    pub fn new(effect: Effect) -> Self {
        Self {
            verb: None,
            resource: None,
            subresource: None,
            name: None,
            skip: 0,
            times: None,
            effect,
        }
    }

    /// Only requests with this verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`.
    pub fn verb(mut self, verb: &str) -> Self {
        self.verb = Some(verb.to_owned());
        self
    }

    /// Only requests for this resource, e.g. `nodes`.
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Only requests for this subresource; the empty text means the object itself.
    pub fn subresource(mut self, subresource: &str) -> Self {
        self.subresource = Some(subresource.to_owned());
        self
    }

    /// Only requests for the object of this name.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Lets the first matching requests pass.
    pub fn after(mut self, requests: u32) -> Self {
        self.skip = requests;
        self
    }

    /// Meets only so many requests, then is spent.
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    fn matches(&self, verb: &str, resource: &str, subresource: &str, name: &str) -> bool {
        let fits =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        fits(&self.verb, verb)
            && fits(&self.resource, resource)
            && fits(&self.subresource, subresource)
            && fits(&self.name, name)
    }
}

/// The faults of one server.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Vec<Fault>>>);

impl Faults {
    /// Switches a fault on. Of several that match one request, the oldest comes first; delays add up.
    pub fn inject(&self, fault: Fault) {
        self.lock().push(fault);
    }

    /// Refuses the next `times` requests with this verb for this resource.
    pub fn fail_next(&self, times: u32, verb: &str, resource: &str, status: Status) {
        self.inject(
            Fault::new(Effect::Answer(status))
                .verb(verb)
                .resource(resource)
                .times(times),
        );
    }

    /// Switches all faults off.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// Takes what this request meets: the delay, and what else happens.
    pub(crate) fn meet(
        &self,
        verb: &str,
        resource: &str,
        subresource: &str,
        name: &str,
    ) -> (Duration, Option<Effect>) {
        let mut delay = Duration::ZERO;
        let mut met = None;
        self.lock().retain_mut(|fault| {
            let is_later = matches!(fault.effect, Effect::Rewrite(_) | Effect::Deny(_));
            if met.is_some() || is_later || !fault.matches(verb, resource, subresource, name) {
                return true;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
                return true;
            }
            match &fault.effect {
                Effect::Delay(time) => delay += *time,
                effect => met = Some(effect.clone()),
            }
            if let Some(times) = &mut fault.times {
                *times = times.saturating_sub(1);
            }
            fault.times != Some(0)
        });
        (delay, met)
    }

    /// Changes or refuses what a patch or an update has made of an object.
    pub(crate) fn admit(&self, target: &Attributes, object: &mut Value) -> Result<(), Status> {
        let matches =
            |fault: &Fault| fault.matches(&target.verb, &target.resource, &target.subresource, &target.name);
        for fault in self.lock().iter().filter(|fault| matches(fault)) {
            match fault.effect {
                Effect::Rewrite(change) => change(object),
                Effect::Deny(is_denied) if is_denied(object) => {
                    return Err(Status::new(403, "Forbidden", "denied by a policy"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
