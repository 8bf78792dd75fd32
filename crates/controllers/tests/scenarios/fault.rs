//! What fails: calls to the cloud, and what webhooks do.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind, keys};
use bowline_kit::scenario::{Complaint, word};
use bowline_kube_api::Effect;
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

fn taints() -> Value {
    json!([{ "key": keys::TAINT_UNINITIALIZED, "effect": "NoSchedule" }])
}

/// What a webhook does.
pub(super) fn webhook(name: &str) -> Option<Effect> {
    Some(match name {
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
        _ => return None,
    })
}
