//! Calls of a simulator's API: `POST PATH BODY -> STATUS: TEXT`.

use bowline_cloud_kit::CloudService;
use http::{HeaderMap, Request, header};
use http_body_util::BodyExt as _;
use serde_json::{Map, Value, json};

use super::fault::word;
use super::given::read;
use super::path::value;
use super::stage::Stage;
use super::text::Step;
use super::{Complaint, ScenarioCloud, Words, parsed};

/// What a call was answered.
#[derive(Debug, Default)]
pub struct Answer {
    /// `None` if the connection ended before.
    pub status: Option<u16>,
    /// Its headers.
    pub headers: HeaderMap,
    /// JSON, else a text; `null` if it is empty.
    pub body: Value,
}

/// The request of a line, if its verb is a method: a path, and a body if one follows. The host is `cloud.test`.
#[must_use]
pub fn request(words: &Words<'_>, headers: &[(&str, &str)]) -> Option<Request<String>> {
    if !["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&words.verb) {
        return None;
    }
    let (path, body) = word(words.rest);
    let mut request = Request::builder().method(words.verb).uri(path);
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Some(
        request
            .header(header::HOST, "cloud.test")
            .body(body.to_owned())
            .unwrap(),
    )
}

/// Sends a request in memory.
pub async fn send(service: CloudService, request: Request<String>) -> Answer {
    let Ok(response) = service.send(request).await else {
        return Answer::default();
    };
    let (parts, body) = response.into_parts();
    let Ok(body) = body.collect().await else {
        return Answer::default();
    };
    let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    let body = match text.as_str() {
        "" => Value::Null,
        _ => serde_json::from_str(&text).unwrap_or(Value::String(text)),
    };
    Answer {
        status: Some(parts.status.as_u16()),
        headers: parts.headers,
        body,
    }
}

impl<C: ScenarioCloud> Stage<'_, C> {
    /// Makes a call, if the verb is one; without `-> STATUS` it has to succeed.
    pub(super) async fn call(&mut self, words: &Words<'_>) -> Result<bool, Complaint> {
        let (rest, end) = match words.rest.rsplit_once("->") {
            Some((rest, end)) => (rest.trim(), Some(end.trim())),
            None => (words.rest, None),
        };
        let words = Words { rest, ..*words };
        let Some(answer) = self.cloud_mut().call(&words).await? else {
            return Ok(false);
        };
        let text = |value: &http::HeaderValue| json!(String::from_utf8_lossy(value.as_bytes()));
        let headers = answer.headers.iter();
        let headers: Map<_, _> = headers
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect();
        let is_so = match end {
            None => answer.status.is_some_and(|status| (200..300).contains(&status)),
            Some(end) => is_so::<C>(&answer, end)?,
        };
        let (status, body) = (answer.status, answer.body);
        if !is_so {
            let status = status.map_or("dropped".to_owned(), |it| it.to_string());
            return Err(format!(
                "expected: {}\nseen: {status}: {}\n{body:#}",
                end.unwrap_or("success"),
                C::said(&body)
            ));
        }
        self.answered = json!({ "status": status, "headers": headers, "body": body });
        Ok(true)
    }

    /// `vary POST PATH BODY`: the call once for each line below, `FIELD VALUE -> END` or `{...} -> END`, with these fields changed, and
    /// without one that is `absent`. A body of one object has the fields in that.
    pub(super) async fn vary(&mut self, step: &Step) -> Result<(), Complaint> {
        let (verb, rest) = word(step.rest());
        if step.below.is_empty() {
            return Err("what is varied?".to_owned());
        }
        for (line, row) in &step.below {
            let place = |complaint| format!("line {line}: {row}\n{complaint}");
            let (change, end) = row
                .rsplit_once("->")
                .ok_or_else(|| place("-> STATUS".to_owned()))?;
            let rest = varied(rest, change.trim()).map_err(place)?;
            let rest = format!("{rest} ->{end}");
            if !self.call(&Words { verb, rest: &rest }).await.map_err(place)? {
                return Err(format!("{verb} is no call"));
            }
        }
        Ok(())
    }
}

/// A call with another body; where it has none, with more words.
fn varied(rest: &str, change: &str) -> Result<String, Complaint> {
    let Some((path, body)) = rest.split_once(" {") else {
        return Ok(format!("{rest} {change}"));
    };
    let mut body: Value = read(&format!("{{{body}"))?;
    let is_wrapped = body
        .as_object()
        .is_some_and(|it| it.len() == 1 && it.values().all(Value::is_object));
    let inner = body.as_object_mut().and_then(|it| it.values_mut().next());
    let fields = match inner {
        Some(inner) if is_wrapped => inner,
        _ => &mut body,
    };
    let (field, to) = word(change);
    match (fields.as_object_mut(), change.starts_with('{')) {
        (Some(fields), true) => fields.extend(parsed::<Map<String, Value>>(&read(change)?)?),
        (Some(fields), false) if to == "absent" => drop(fields.remove(field)),
        (Some(fields), false) => drop(fields.insert(field.to_owned(), value(to))),
        (None, _) => return Err(format!("{rest}: no object")),
    }
    Ok(format!("{path} {body}"))
}

/// `STATUS`, `STATUS: TEXT` that is in what is said, `STATUS exactly: TEXT` that is all of it, or `dropped`.
fn is_so<C: ScenarioCloud>(answer: &Answer, end: &str) -> Result<bool, Complaint> {
    let (how, wanted) = end.split_once(':').unwrap_or((end, ""));
    let (status, exactly) = word(how);
    let status = match status {
        "dropped" => None,
        status => Some(status.parse().map_err(|_| format!("{status:?} is no status"))?),
    };
    let (said, wanted) = (C::said(&answer.body), wanted.trim());
    let says = match exactly {
        "" => said.contains(wanted),
        "exactly" => said == wanted,
        other => return Err(format!("{other:?}: how is that?")),
    };
    Ok(answer.status == status && says)
}
