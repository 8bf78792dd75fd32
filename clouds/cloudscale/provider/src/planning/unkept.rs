//! Writes that the API answered and did not keep.
//!
//! Without this, a value that the API rounds, cuts or ignores would be written for ever. One write that is not kept is
//! told to a person, who knows what was meant; everything else goes on.

use std::time::Duration;

use bowline_cloudscale_client::{ListenerChange, MonitorChange};
use bowline_plan::{Refusal, Step as _};

use super::attributes;
use crate::annotations as keys;
use crate::observe::{Observed, Remembered, Seen, Unkept};
use crate::step::{CloudStep, PartChange};

/// How long a list may lag behind a write before the write counts as not kept.
pub(super) const LAG: Duration = Duration::from_secs(1);

/// How many reads after the last write have to show that it was not kept: the one at the end of a reconcile, and one more
/// after [`LAG`].
const READS: u32 = 2;

/// Takes the steps out that were answered before and would come to nothing again.
pub(super) fn split_off(seen: &Seen, steps: &mut Vec<CloudStep>) -> Vec<CloudStep> {
    let Remembered { done, unkept, .. } = &seen.memory.own;
    let is_unkept = |step: &CloudStep| {
        let mut answered = done.iter().chain(unkept.iter().map(|earlier| &earlier.step));
        answered.any(|before| before.asks_the_same(step))
    };
    steps.extract_if(.., |step| is_unkept(step)).collect()
}

/// Whether the API may only be late to show what was written.
pub(super) fn may_be_late(seen: &Seen) -> bool {
    !seen.memory.own.done.is_empty() && seen.memory.own.reads < READS
}

/// What is told of steps that were not kept.
pub(super) fn refusal(seen: &Seen, steps: &[CloudStep]) -> Option<Refusal> {
    let mut reasons: Vec<String> = Vec::new();
    let mut annotations: Vec<&str> = Vec::new();
    for step in steps {
        let object = step.object();
        reasons.push(match (attribute(step), shown_instead(seen, step)) {
            (Some((attribute, annotation)), Some(shown)) => {
                annotations.push(annotation);
                format!(
                    "the API did not keep {attribute} of {object}: {} was written, {shown} is shown",
                    written(step)
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
        "look at the load balancer in the control panel, and contact support".to_owned()
    } else {
        format!("set {} to a value that the API keeps", annotations.join(" and "))
    };
    (!reasons.is_empty()).then(|| Refusal::new(reasons.join("; ")).with_remedy(remedy))
}

/// The API's name of the attribute that a step changes, and the annotation that it comes from; `None` for a creation or a
/// deletion.
fn attribute(step: &CloudStep) -> Option<(&'static str, &'static str)> {
    let attribute = match step {
        CloudStep::RenameBalancer { .. } => return Some(("name", keys::NAME.key)),
        CloudStep::AssignFloatingIp { .. } => return Some(("load_balancer", keys::FLOATING_IPS.key)),
        CloudStep::Part { change, .. } => match change {
            PartChange::UpdateListener { change, .. } => match change {
                ListenerChange::AllowedCidrs(_) => "allowed_cidrs",
                ListenerChange::TimeoutClientDataMs(_) => "timeout_client_data_ms",
                ListenerChange::TimeoutMemberConnectMs(_) => "timeout_member_connect_ms",
                ListenerChange::TimeoutMemberDataMs(_) => "timeout_member_data_ms",
            },
            PartChange::UpdateMonitor { change, .. } => match change {
                MonitorChange::DelayS(_) => "delay_s",
                MonitorChange::TimeoutS(_) => "timeout_s",
                MonitorChange::UpThreshold(_) => "up_threshold",
                MonitorChange::DownThreshold(_) => "down_threshold",
                MonitorChange::HttpMethod(_) => "http.method",
                MonitorChange::HttpPath(_) => "http.url_path",
                MonitorChange::HttpHost(_) => "http.host",
                MonitorChange::HttpExpectedCodes(_) => "http.expected_codes",
            },
            _ => return None,
        },
        CloudStep::CreateBalancer { .. } | CloudStep::DeleteBalancer { .. } => return None,
    };
    let field = attribute.split('.').next()?;
    Some((attribute, keys::of_field(field)?.key))
}

/// The value that a step writes, in words.
fn written(step: &CloudStep) -> String {
    match step {
        CloudStep::RenameBalancer { name, .. } => name.clone(),
        CloudStep::AssignFloatingIp { balancer, .. } => balancer.to_string(),
        CloudStep::Part { change, .. } => match change {
            PartChange::UpdateListener { change, .. } => match change {
                ListenerChange::AllowedCidrs(cidrs) => list(cidrs),
                ListenerChange::TimeoutClientDataMs(ms)
                | ListenerChange::TimeoutMemberConnectMs(ms)
                | ListenerChange::TimeoutMemberDataMs(ms) => ms.to_string(),
            },
            PartChange::UpdateMonitor { change, .. } => match change {
                MonitorChange::DelayS(number)
                | MonitorChange::TimeoutS(number)
                | MonitorChange::UpThreshold(number)
                | MonitorChange::DownThreshold(number) => number.to_string(),
                MonitorChange::HttpMethod(text) | MonitorChange::HttpPath(text) => text.clone(),
                MonitorChange::HttpHost(host) => text(host.as_ref()),
                MonitorChange::HttpExpectedCodes(codes) => list(codes),
            },
            _ => String::new(),
        },
        CloudStep::CreateBalancer { .. } | CloudStep::DeleteBalancer { .. } => String::new(),
    }
}

fn list(texts: &[String]) -> String {
    format!("[{}]", texts.join(", "))
}

fn text(text: Option<&String>) -> String {
    text.map_or_else(|| "nothing".to_owned(), Clone::clone)
}

fn number(number: Option<i64>) -> String {
    number.map_or_else(|| "nothing".to_owned(), |number| number.to_string())
}

/// What the API shows of an attribute, if that is not what the step writes; `None` also if the object is not there.
pub(crate) fn shown_instead(observed: &Observed, step: &CloudStep) -> Option<String> {
    match step {
        CloudStep::RenameBalancer { balancer, name } => {
            let there = observed.balancers.iter().find(|there| there.uuid == *balancer)?;
            (there.name.trim() != name.trim()).then(|| there.name.clone())
        }
        CloudStep::AssignFloatingIp {
            address, balancer, ..
        } => {
            let there = observed.floating_ips.iter().find(|there| address.0.is(there))?;
            let shown = there.load_balancer.as_ref().map(|stub| stub.uuid);
            (shown != Some(*balancer)).then(|| text(shown.map(|id| id.to_string()).as_ref()))
        }
        CloudStep::Part {
            change: PartChange::UpdateListener { id, change, .. },
            ..
        } => {
            let mut listeners = observed.pools.iter().flat_map(|pool| &pool.listeners);
            let there = listeners.find(|listener| listener.uuid == *id)?;
            (!attributes::listener_shows(there, change)).then(|| match change {
                ListenerChange::AllowedCidrs(_) => list(&there.allowed_cidrs),
                ListenerChange::TimeoutClientDataMs(_) => number(there.timeout_client_data_ms),
                ListenerChange::TimeoutMemberConnectMs(_) => number(there.timeout_member_connect_ms),
                ListenerChange::TimeoutMemberDataMs(_) => number(there.timeout_member_data_ms),
            })
        }
        CloudStep::Part {
            change: PartChange::UpdateMonitor { id, change, .. },
            ..
        } => {
            let mut monitors = observed.pools.iter().flat_map(|pool| &pool.monitors);
            let there = monitors.find(|monitor| monitor.uuid == *id)?;
            let http = attributes::http_of(there).cloned().unwrap_or_default();
            (!attributes::monitor_shows(there, change)).then(|| match change {
                MonitorChange::DelayS(_) => there.delay_s.to_string(),
                MonitorChange::TimeoutS(_) => there.timeout_s.to_string(),
                MonitorChange::UpThreshold(_) => there.up_threshold.to_string(),
                MonitorChange::DownThreshold(_) => there.down_threshold.to_string(),
                MonitorChange::HttpMethod(_) => text(http.method.as_ref()),
                MonitorChange::HttpPath(_) => text(http.url_path.as_ref()),
                MonitorChange::HttpHost(_) => text(http.host.as_ref()),
                MonitorChange::HttpExpectedCodes(_) => list(&http.expected_codes),
            })
        }
        CloudStep::CreateBalancer { .. } | CloudStep::DeleteBalancer { .. } | CloudStep::Part { .. } => None,
    }
}

/// Brings the changes of earlier reconciles up to date with a new observation: adds what was written in this one and is not
/// shown, and forgets what is shown by now, or shown otherwise.
pub(crate) fn remember(unkept: &mut Vec<Unkept>, observed: &Observed, own: &mut Remembered) {
    let is_here = |earlier: &&Unkept| {
        earlier.step.balancer().is_some_and(|id| {
            observed.pools_of == Some(id) || observed.gone.contains(&id) || observed.deleting.contains(&id)
        })
    };
    let is_unread = |earlier: &Unkept| {
        observed.floating_failure.is_some() && matches!(earlier.step, CloudStep::AssignFloatingIp { .. })
    };
    unkept.retain(|earlier| {
        !is_here(&earlier)
            || is_unread(earlier)
            || shown_instead(observed, &earlier.step).as_ref() == Some(&earlier.shown)
    });
    for step in &own.done {
        let is_known = unkept.iter().any(|earlier| earlier.step.asks_the_same(step));
        if let Some(shown) = shown_instead(observed, step).filter(|_| !is_known) {
            unkept.push(Unkept {
                step: step.clone(),
                shown,
            });
        }
    }
    own.unkept = unkept.iter().filter(is_here).cloned().collect();
}
