//! Writes that the API answered and did not keep.
//!
//! Without this, a value that the API rounds, cuts or ignores would be written again and again. One write that is not kept is
//! told to a person, who knows what was meant; everything else goes on. It is made again after a while: somebody else may have undone it,
//! once.

use std::time::Duration;

use bowline_plan::{Refusal, Step as _};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::load_balancer::annotations as keys;
use crate::load_balancer::observe::{NotPersisted, Observed, Remembered, Seen};
use crate::load_balancer::plan::attributes;
use crate::load_balancer::step::{CloudStep, PartChange};

/// How long a change is held back that was not kept: over when the Service is tried again after the longest pause, five minutes.
const HELD_BACK: Duration = Duration::from_secs(4 * 60);

/// How many reads after the last write have to show that a change was not kept: the one at the end of a reconcile, and one more.
const READS: u32 = 2;

/// The same for a creation, which the API answered with the object: a list may show it late, as those of the same kind that were sent
/// and not answered ([`RefusalBook`](bowline_cloud_provider::RefusalBook)). With the pauses in between these are 23 seconds.
const READS_OF_NEW: u32 = 6;

/// The longest time between two of these reads, in seconds.
const LONGEST_LAG: u64 = 8;

/// Takes the steps out that were answered before and would come to nothing again.
pub(super) fn split_off(seen: &Seen, steps: &mut Vec<CloudStep>) -> Vec<CloudStep> {
    let own = &seen.memory.own;
    let was_answered = |step: &CloudStep| {
        let earlier = own.not_persisted.iter().map(|earlier| &earlier.step);
        was_created(own, step)
            || own
                .changed
                .iter()
                .chain(earlier)
                .any(|before| before.asks_the_same(step))
    };
    steps.extract_if(.., |step| was_answered(step)).collect()
}

/// Whether a step creates what was created in this reconcile.
fn was_created(own: &Remembered, step: &CloudStep) -> bool {
    step.creation()
        .is_some_and(|creation| own.created.contains(&creation))
}

/// Whether the API may only be late to show these steps, as far as they were made in this reconcile.
pub(super) fn may_be_late(seen: &Seen, steps: &[CloudStep]) -> bool {
    let own = &seen.memory.own;
    let most = if steps.iter().any(|step| was_created(own, step)) {
        READS_OF_NEW
    } else {
        READS
    };
    !(own.created.is_empty() && own.changed.is_empty()) && own.reads < most
}

/// How long to wait before the next look at what was written: a second, then twice as long each time.
pub(super) fn lag(seen: &Seen) -> Duration {
    let doublings = seen.memory.own.reads.saturating_sub(1).min(16);
    Duration::from_secs((1 << doublings).min(LONGEST_LAG))
}

/// What is told of steps that were not kept.
pub(super) fn refusal(seen: &Seen, steps: &[CloudStep]) -> Option<Refusal> {
    let mut reasons: Vec<String> = Vec::new();
    let mut annotations: Vec<&str> = Vec::new();
    for step in steps {
        let object = step.object();
        reasons.push(match (written(step), shown_instead(seen, step)) {
            (Some((attribute, value)), Some(shown)) => {
                annotations.extend(annotation(&attribute));
                format!(
                    "the API did not keep {attribute} of {object}: {} was written, {shown} is shown",
                    words(&value)
                )
            }
            _ => format!(
                "the API answered {}, and {object} is not as Bowline wrote it",
                step.label()
            ),
        });
    }
    annotations.dedup();
    let remedy = if annotations.is_empty() {
        "see whether somebody else writes this load balancer; if nobody does, look at it in the control panel, and contact support".to_owned()
    } else {
        format!(
            "see whether somebody else writes it too, or set {} to a value that the API keeps",
            annotations.join(" and ")
        )
    };
    (!reasons.is_empty()).then(|| Refusal::new(reasons.join("; ")).with_remedy(remedy))
}

/// The attribute that a step changes, under the API's name, and the value that it writes; `None` for a creation or a deletion.
fn written(step: &CloudStep) -> Option<(String, Value)> {
    let mut value = match step {
        CloudStep::RenameBalancer { name, .. } => json!({"name": name}),
        CloudStep::AssignFloatingIp { balancer, .. } => json!({"load_balancer": balancer}),
        CloudStep::Part { change, .. } => match change {
            PartChange::UpdateListener { change, .. } => serde_json::to_value(change).ok()?,
            PartChange::UpdateMonitor { change, .. } => serde_json::to_value(change).ok()?,
            _ => return None,
        },
        CloudStep::CreateBalancer { .. } | CloudStep::DeleteBalancer { .. } => return None,
    };
    let mut path = Vec::new();
    while let Value::Object(fields) = value {
        let (field, inner) = fields.into_iter().next()?; // a call changes one attribute
        path.push(field);
        value = inner;
    }
    Some((path.join("."), value))
}

/// The annotation that an attribute has its value from.
fn annotation(attribute: &str) -> Option<&'static str> {
    let spec = match attribute.split('.').next()? {
        "name" => &keys::NAME,
        "load_balancer" => &keys::FLOATING_IPS,
        field => keys::of_field(field)?,
    };
    Some(spec.key)
}

/// A value in words.
fn words(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(all) => format!("[{}]", all.iter().map(words).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// What the API shows of an attribute, if that is not what the step writes; `None` also if the object is not there.
pub(crate) fn shown_instead(observed: &Observed, step: &CloudStep) -> Option<String> {
    let (is_kept, there) = match step {
        CloudStep::RenameBalancer { balancer, name } => {
            let there = observed.balancers.iter().find(|there| there.uuid == *balancer)?;
            (there.name.trim() == name.trim(), json!({"name": there.name}))
        }
        CloudStep::AssignFloatingIp {
            address, balancer, ..
        } => {
            let there = observed.floating_ip(*address)?;
            let shown = there.load_balancer.as_ref().map(|stub| stub.uuid);
            (shown == Some(*balancer), json!({"load_balancer": shown}))
        }
        CloudStep::Part { change, .. } => match change {
            PartChange::UpdateListener { id, change, .. } => {
                let there = observed.listener(*id)?;
                (
                    attributes::listener_shows(there, change),
                    serde_json::to_value(there).ok()?,
                )
            }
            PartChange::UpdateMonitor { id, change, .. } => {
                let there = observed.monitor(*id)?;
                (
                    attributes::monitor_shows(there, change),
                    serde_json::to_value(there).ok()?,
                )
            }
            _ => return None,
        },
        CloudStep::CreateBalancer { .. } | CloudStep::DeleteBalancer { .. } => return None,
    };
    let (attribute, _) = written(step).filter(|_| !is_kept)?;
    let shown = there.pointer(&format!("/{}", attribute.replace('.', "/")));
    Some(words(shown.unwrap_or(&Value::Null)))
}

/// Brings the changes of earlier reconciles up to date with a new observation: adds what was written in this one and is not
/// shown, and forgets what is shown by now, or shown otherwise.
pub(crate) fn remember(
    not_persisted: &mut Vec<NotPersisted>,
    observed: &Observed,
    own: &mut Remembered,
    now: Instant,
) {
    let is_here = |earlier: &&NotPersisted| {
        earlier.step.balancer().is_some_and(|id| {
            observed.pools_of == Some(id) || observed.gone.contains(&id) || observed.deleting.contains(&id)
        })
    };
    let is_unread = |earlier: &NotPersisted| {
        observed.floating_failure().is_some() && matches!(earlier.step, CloudStep::AssignFloatingIp { .. })
    };
    not_persisted.retain(|earlier| {
        let is_as_before = || shown_instead(observed, &earlier.step).as_ref() == Some(&earlier.shown);
        let is_held = now - earlier.since < HELD_BACK;
        is_held && (!is_here(&earlier) || is_unread(earlier) || is_as_before())
    });
    for step in &own.changed {
        let is_known = not_persisted
            .iter()
            .any(|earlier| earlier.step.asks_the_same(step));
        if let Some(shown) = shown_instead(observed, step).filter(|_| !is_known) {
            not_persisted.push(NotPersisted {
                step: step.clone(),
                shown,
                since: now,
            });
        }
    }
    own.not_persisted = not_persisted.iter().filter(is_here).cloned().collect();
}
