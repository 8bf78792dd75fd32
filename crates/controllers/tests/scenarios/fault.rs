//! What fails: calls to the cloud, and requests to the API server.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind, keys};
use bowline_kit::scenario::{Complaint, time, word};
use bowline_kube_api::{Effect, Fault, Status};
use serde_json::{Value, json};

use super::world::FINALIZER;

pub(super) fn number(text: &str) -> Result<u64, Complaint> {
    text.parse().map_err(|_| format!("{text:?} is no number"))
}

/// JSON; nothing is an object without fields.
pub(super) fn object(text: &str) -> Result<Value, Complaint> {
    let text = if text.is_empty() { "{}" } else { text };
    serde_json::from_str(text).map_err(|error| format!("{text}: {error}"))
}

/// `N KIND TEXT`, where the kind may be `throttled=60`.
pub(super) fn failures(rest: &str) -> Result<(usize, CloudError), Complaint> {
    let (count, rest) = word(rest);
    let (kind, text) = word(rest);
    let (kind, delay) = kind.split_once('=').unwrap_or((kind, "0"));
    let after = Duration::from_secs(number(delay)?);
    let kind = match kind {
        "not-found" => ErrorKind::NotFound,
        "not-supported" => ErrorKind::NotSupported,
        "elsewhere" => ErrorKind::ImplementedElsewhere,
        "throttled" => ErrorKind::Throttled { after },
        "conflict" => ErrorKind::Conflict,
        "unauthenticated" => ErrorKind::Unauthenticated,
        "denied" => ErrorKind::Denied,
        "invalid" => ErrorKind::Invalid,
        "exhausted" => ErrorKind::Exhausted,
        "transient" => ErrorKind::Transient,
        "other" => ErrorKind::Other,
        other => return Err(format!("{other:?} is no kind of error")),
    };
    Ok((number(count)? as usize, CloudError::new(kind, text)))
}

/// `[VERB:]RESOURCE[/SUBRESOURCE][=NAME] [after N] [times N] HOW`; of the object itself it is `RESOURCE/`.
pub(super) fn fault(rest: &str) -> Result<Fault, Complaint> {
    let (what, mut how) = word(rest);
    let (what, object) = what.split_once('=').unwrap_or((what, ""));
    let (verb, resource) = what.split_once(':').unwrap_or(("", what));
    let (mut after, mut times) = (None, None);
    loop {
        let (name, more) = word(how);
        let place = match name {
            "after" => &mut after,
            "times" => &mut times,
            _ => break,
        };
        let (number, left) = word(more);
        *place = Some(number.parse::<u32>().map_err(|_| "how often?".to_owned())?);
        how = left;
    }
    let mut fault = Fault::new(effect(how)?);
    if !verb.is_empty() {
        fault = fault.verb(verb);
    }
    fault = match resource.split_once('/') {
        Some((resource, part)) => fault.resource(resource).subresource(part),
        None => fault.resource(resource),
    };
    fault = after.map_or(fault.clone(), |after| fault.after(after));
    if !object.is_empty() {
        fault = fault.name(object);
    }
    Ok(times.map_or(fault.clone(), |times| fault.times(times)))
}

fn taints() -> Value {
    json!([{ "key": keys::TAINT_UNINITIALIZED, "effect": "NoSchedule" }])
}

fn effect(how: &str) -> Result<Effect, Complaint> {
    let (name, rest) = word(how);
    let (code, text) = word(rest);
    let code = || code.parse().map_err(|_| format!("{code:?} is no status"));
    Ok(match name {
        "status" => {
            let (reason, message) = word(text);
            Effect::Answer(Status::new(code()?, reason, message))
        }
        "busy" => {
            let seconds = rest.parse().map_err(|_| "how many seconds?".to_owned())?;
            Effect::Answer(Status::too_many_requests(seconds))
        }
        "unavailable" => Effect::Answer(Status::unavailable(rest)),
        "busy-unavailable" => Effect::Answer(Status::unavailable("busy").retry_after(1)),
        "text" => Effect::Text(code()?, text.to_owned().leak()),
        "silence" => Effect::Silence,
        "drop-after" => Effect::DropAfter,
        "delay" => Effect::Delay(time(rest)?),
        // What a webhook does.
        "strips-finalizers" => Effect::Rewrite(|service| service["metadata"]["finalizers"] = json!([])),
        "keeps-finalizers" => {
            Effect::Rewrite(|service| service["metadata"]["finalizers"] = json!([FINALIZER]))
        }
        "keeps-taints" => Effect::Rewrite(|node| node["spec"]["taints"] = taints()),
        "keeps-new" => Effect::Rewrite(|node| {
            node["metadata"]["labels"] = Value::Null;
            node["spec"] = json!({ "taints": taints() });
            node["spec"]["taints"][0]["value"] = json!("true");
            node["status"] = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        }),
        "denies-the-note" => Effect::Deny(|service| {
            let annotations = &service["metadata"]["annotations"];
            annotations.get("bowline/load-balancer-class").is_some()
        }),
        "denies-addresses" => Effect::Deny(|service| service["status"]["loadBalancer"]["ingress"].is_array()),
        other => return Err(format!("nobody does {other:?}")),
    })
}
