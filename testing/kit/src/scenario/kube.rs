//! What requests to an API server in memory meet.

use bowline_kube_api::{Effect, Exchange, Fault, Status};

use super::Complaint;
use super::fault::{time, word};

/// `[VERB:]RESOURCE[/SUBRESOURCE][=NAME] [after N] [times N] HOW`; of the object itself it is `RESOURCE/`, of all requests `*`; `webhook` are
/// the ways of a harness's own.
///
/// # Errors
///
/// If it is none.
pub fn fault(rest: &str, webhook: impl Fn(&str) -> Option<Effect>) -> Result<Fault, Complaint> {
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
    let mut fault = Fault::new(effect(how, webhook)?);
    if !verb.is_empty() {
        fault = fault.verb(verb);
    }
    fault = match resource.split_once('/') {
        Some((resource, part)) => fault.resource(resource).subresource(part),
        None if resource == "*" => fault,
        None => fault.resource(resource),
    };
    fault = after.map_or(fault.clone(), |after| fault.after(after));
    if !object.is_empty() {
        fault = fault.name(object);
    }
    Ok(times.map_or(fault.clone(), |times| fault.times(times)))
}

fn effect(how: &str, webhook: impl Fn(&str) -> Option<Effect>) -> Result<Effect, Complaint> {
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
        "busy-unavailable" => {
            let seconds = rest.parse().unwrap_or(1);
            Effect::Answer(Status::unavailable("busy").retry_after(seconds))
        }
        "text" => Effect::Text(code()?, text.to_owned().leak()),
        // A watch that shows one line.
        "line" => Effect::Text(200, format!("{}\n", rest.replace("\\n", "\n")).leak()),
        "silence" => Effect::Silence,
        "drop-before" => Effect::DropBefore,
        "drop-after" => Effect::DropAfter,
        "delay" => Effect::Delay(time(rest)?),
        other => return webhook(other).ok_or_else(|| format!("nobody does {other:?}")),
    })
}

/// `VERB RESOURCE[/SUBRESOURCE] STATUS` of a request, with `rehearsed` where nothing is to be written.
#[must_use]
pub fn shown(exchange: &Exchange) -> String {
    let part = match exchange.subresource.as_str() {
        "" => String::new(),
        part => format!("/{part}"),
    };
    let rehearsed = if exchange.query.contains("dryRun") {
        " rehearsed"
    } else {
        ""
    };
    let (verb, resource, status) = (&exchange.verb, &exchange.resource, exchange.status);
    format!("{verb} {resource}{part} {status}{rehearsed}")
}
