//! Faults in words: `fault octavia.pools.update always status 501`.

use std::time::Duration;

use bowline_cloud_kit::Fault;
use bowline_cloud_kit::faults::{Action, Canned, FaultBuilder};

use super::Complaint;

/// What `fault` asks for. `refusal` is how the API tells one.
///
/// # Errors
///
/// If it is none.
pub fn fault(text: &str, refusal: fn(u16, &str) -> String) -> Result<Fault, Complaint> {
    let (watched, mut rest) = word(text);
    let mut watch = match watched {
        "write" => Fault::write(),
        "any" => Fault::any(),
        "GET" | "PUT" | "POST" | "PATCH" | "DELETE" => {
            let (path, left) = word(rest);
            rest = left;
            let method = watched.parse().map_err(|_| format!("no method {watched}"))?;
            Fault::on(method, path)
        }
        "path" => {
            let (path, left) = word(rest);
            rest = left;
            Fault::path(path)
        }
        operation => Fault::operation(operation),
    };
    loop {
        let (how, left) = word(rest);
        let (number, after) = word(left);
        watch = match how {
            "always" => {
                rest = left;
                watch.always()
            }
            "nth" => {
                rest = after;
                watch.nth(parsed(number)?)
            }
            "times" => {
                rest = after;
                watch.times(parsed(number)?)
            }
            action => return acted(watch, action, left, refusal),
        };
    }
}

fn acted(
    watch: FaultBuilder,
    action: &str,
    rest: &str,
    refusal: fn(u16, &str) -> String,
) -> Result<Fault, Complaint> {
    let (number, text) = word(rest);
    Ok(match action {
        "status" => watch.status(parsed(number)?),
        "after" => watch.status_after(parsed(number)?),
        "html" => watch.html(parsed(number)?),
        "empty" => watch.empty(parsed(number)?),
        "says" => {
            let status = parsed(number)?;
            watch.answer(Canned::json(status, &refusal(status, text)))
        }
        "answers-after" => watch.act(Action::AnswerAfter(Canned::json(parsed(number)?, text))),
        "answers" => watch.answer(Canned::json(parsed(number)?, text)),
        "unavailable" => {
            let seconds = time(number)?.as_secs().to_string();
            watch.answer(Canned::empty(503).header("retry-after", &seconds))
        }
        "busy" => watch.too_many_requests(time(number)?),
        "truncates" => watch.truncate(parsed(number)?),
        "breaks" => watch.break_body(parsed(number)?),
        "delay" => watch.delay(time(number)?),
        "late" => watch.take_effect_late(time(number)?),
        "lose" => watch.lose_answer(),
        "drop" => watch.drop_before(),
        "hang" => watch.hang_before(),
        "hang-after" => watch.hang_after(),
        other => return Err(format!("no fault does {other:?}")),
    })
}

/// The first word of a text, and the rest.
#[must_use]
pub fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

fn parsed<T: std::str::FromStr>(text: &str) -> Result<T, Complaint> {
    text.parse().map_err(|_| format!("{text:?} is no number"))
}

/// `300ms`, `5s`, `2m` or `1h`.
///
/// # Errors
///
/// If it is none of these.
pub fn time(text: &str) -> Result<Duration, Complaint> {
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: u64 = parsed(number)?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(60 * number)),
        "h" => Ok(Duration::from_secs(3_600 * number)),
        _ => Err(format!("{text:?} is no time: say 300ms, 5s, 2m or 1h")),
    }
}
