//! What a write does to the observation: as its answer tells, or as it can be predicted. Both go the same way.

use bowline_cloud_provider::Told as _;
use bowline_cloud_provider::WriteOutcome;
use bowline_cloud_provider::effects::as_shown;
use bowline_cloudscale_client::{FloatingIp, LoadBalancer, Monitor, Stub};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::load_balancer::apply::{Learned, Told};
use crate::load_balancer::intent::HttpWish;
use crate::load_balancer::observe::{Memory, Object, Seen};
use crate::load_balancer::plan::floating;
use crate::load_balancer::refused;
use crate::load_balancer::step::{CloudStep, PartChange};

/// How deep a change goes: what a monitor asks over HTTP is an object in the monitor, of which a change writes one field.
const DEPTH: usize = 2;

/// Adds what a write's answer told.
pub(crate) fn learn(seen: &mut Seen, step: &CloudStep, learned: Learned) {
    if learned.outcome() != WriteOutcome::PutOff {
        seen.memory.new_wait();
    }
    let own = &mut seen.memory.own;
    // Once the API has refused to be hurried, the balancer is looked at before the next write.
    if learned.is_busy && learned.is_conflict {
        own.busy.put_off(step);
    } else if learned.is_busy {
        own.busy.set();
    } else if learned.is_conflict {
        own.busy.refute();
    } else if own.busy.was_once && step.balancer().is_some() {
        own.busy.set();
    }
    let is_of_member = matches!(
        step.part(),
        Some(PartChange::Member { .. } | PartChange::DeleteMember { .. })
    );
    own.is_reshaped |= !is_of_member;
    let refusals = &mut seen.memory.refusals;
    if learned.told.is_some() {
        match step.creation() {
            Some(creation) => own.created.push(creation),
            None => own.changed.push(step.clone()),
        }
        own.reads = 0;
        // All the same, as in place of something else.
        refusals.lift(|refused, _| refused.asks_the_same(step));
    }
    if learned.old_is_gone {
        refused::gone(refusals, step);
    }
    if let Some((place, is_still_full)) = learned.is_still_full {
        seen.memory.own.still_full.learn(place, is_still_full);
    }
    seen.memory.own.pools_in_use.extend(learned.in_use);
    if learned.is_crowded
        && let Some(PartChange::Pool { new, .. }) = step.part()
    {
        seen.crowded_pools.push(new.name.clone());
    }
    match step {
        // Accepted is not done: the next looks confirm it.
        CloudStep::DeleteBalancer {
            balancer,
            is_live: true,
            ..
        } if learned.old_is_gone => seen.deleting.push(*balancer),
        _ => absorb(seen, step, learned),
    }
}

/// Changes the observation as applying a step will.
pub(crate) fn predict(seen: &mut Seen, step: &CloudStep) {
    let learned = Learned {
        told: Some(Told::AsAsked),
        old_is_gone: true,
        ..Learned::default()
    };
    absorb(seen, step, learned);
}

fn absorb(seen: &mut Seen, step: &CloudStep, learned: Learned) {
    if let CloudStep::AssignFloatingIp {
        address, balancer, ..
    } = step
        && learned.told.is_some()
    {
        floating::remember(seen, address, *balancer, learned.move_number);
    }
    match step {
        _ if !learned.old_is_gone => {}
        CloudStep::DeleteBalancer { balancer, .. } => seen.is_gone(*balancer),
        CloudStep::Part { change, .. } => change.old().into_iter().for_each(|id| seen.remove(id)),
        _ => {}
    }
    let object = match learned.told {
        Some(Told::Shown(object)) => Some(*object),
        Some(Told::AsAsked) => asked(seen, step),
        None => None,
    };
    object.into_iter().for_each(|object| seen.put(object));
}

/// What a step makes or changes, as the API will show it. What it makes has a made-up id.
fn asked(Seen { observed, memory }: &mut Seen, step: &CloudStep) -> Option<Object> {
    Some(match step {
        CloudStep::CreateBalancer { new } => {
            let mut new = new.clone();
            for vip in &mut new.vip_addresses {
                vip.address.get_or_insert_default(); // the API chooses it
            }
            let filled_in = json!({"status": "running", "zone": ""});
            Object::Balancer(made(memory, filled_in, &new)?)
        }
        CloudStep::RenameBalancer { balancer, name } => {
            let there = observed.balancers.iter().find(|there| there.uuid == *balancer)?;
            let name = name.clone();
            Object::Balancer(LoadBalancer {
                name,
                ..there.clone()
            })
        }
        CloudStep::AssignFloatingIp {
            address, balancer, ..
        } => {
            let there = observed.floating_ip(*address)?;
            Object::FloatingIp(FloatingIp {
                server: None,
                load_balancer: Some(Stub { uuid: *balancer }),
                ..there.clone()
            })
        }
        CloudStep::DeleteBalancer { .. } => return None,
        CloudStep::Part { change, .. } => match change {
            PartChange::Pool { new, .. } => Object::Pool(made(memory, json!({}), new)?),
            PartChange::Member { pool, new, .. } => {
                Object::Member(*pool, made(memory, json!({"enabled": true}), new)?)
            }
            PartChange::Listener { new, .. } => Object::Listener(made(memory, json!({}), new)?),
            PartChange::Monitor { new, .. } => {
                let defaults = HttpWish::Defaults.resolved();
                let monitor: Monitor = made(memory, json!({"http": defaults}), new)?;
                Object::Monitor(Monitor {
                    http: monitor.http().cloned(),
                    ..monitor
                })
            }
            PartChange::UpdateListener { id, change, .. } => {
                Object::Listener(as_shown(observed.listener(*id)?, change, DEPTH)?)
            }
            PartChange::UpdateMonitor { id, change, .. } => {
                Object::Monitor(as_shown(observed.monitor(*id)?, change, DEPTH)?)
            }
            PartChange::DeletePool { .. }
            | PartChange::DeleteMember { .. }
            | PartChange::DeleteListener { .. }
            | PartChange::DeleteMonitor { .. } => return None,
        },
    })
}

/// A new object as the API will show it: what it fills in, and what is asked.
fn made<T: DeserializeOwned>(memory: &mut Memory, mut filled_in: Value, new: &impl Serialize) -> Option<T> {
    filled_in["uuid"] = json!(uuid::Uuid::from_u128(memory.made_up().into()));
    let new = serde_json::to_value(new).ok()?;
    as_shown(&referring(filled_in), &referring(new), DEPTH)
}

/// What a request names by id or by word, an answer refers to by an object with this field.
fn referring(asked: Value) -> Value {
    let refer = |(field, value): (String, Value)| {
        let value = match field.as_str() {
            "load_balancer" | "pool" | "subnet" => json!({"uuid": value}),
            "flavor" | "zone" => json!({"slug": value}),
            "tags" => value,
            _ => referring(value),
        };
        (field, value)
    };
    match asked {
        Value::Object(fields) => fields.into_iter().map(refer).collect(),
        Value::Array(all) => all.into_iter().map(referring).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests;
