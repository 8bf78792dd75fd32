//! How a run ends.

use serde_json::{Value, json};

use super::Complaint;
use super::fault::word;
use super::path::text;

/// Whether a run ended so: `settled`, `quiet`, `any`, `stopped`, or `refused`, `failed`, `complains`, each perhaps with `: TEXT` that is
/// in its complaint, or ` exactly: TEXT` that is all of it; `any: TEXT` asks for it only of a run that complains. `and publishes` or `and hides` says whether an address is shown all the same.
pub(super) fn ended(run: &Value, end: &str) -> Result<(), Complaint> {
    let (how, wanted) = match end.split_once(": ") {
        Some((how, wanted)) => (how, Some(wanted.trim())),
        None => (end, None),
    };
    let is_exact = how.contains(" exactly");
    let outcome = text(&run["outcome"]);
    let is_complaint = matches!(outcome.as_str(), "refused" | "failed");
    let is_so = match word(how).0 {
        "any" => true,
        "quiet" => outcome == "settled" && run["waves"] == json!([]) && run["writes"] == json!([]),
        "complains" => is_complaint,
        how @ ("settled" | "stopped" | "refused" | "failed") => outcome == how,
        other => return Err(format!("no run ends {other:?}")),
    };
    let complaint = text(&run["complaint"]);
    let is_free = how == "any" && !is_complaint;
    let says = wanted.is_none_or(|wanted| match is_exact {
        true => complaint == wanted,
        false => is_free || complaint.contains(wanted),
    });
    let shows = !run["published"].is_null();
    let publishes = (!how.contains("and publishes") || shows) && (!how.contains("and hides") || !shows);
    if is_so && says && publishes {
        return Ok(());
    }
    let mut shown = run.clone();
    shown["requests"] = Value::Null;
    shown["written"] = Value::Null;
    shown["calls"] = Value::Null;
    Err(format!("expected: {end}\nseen: {shown:#}"))
}
