//! Who may call what, and when.

use bowline_cloud_kit::Clock;
use http::{HeaderValue, Method};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::Caller;
use crate::behaviour::Behaviour;
use crate::error::ApiError;
use crate::operation::{Operation, is_read};
use crate::options::Role;
use crate::params::Params;
use crate::signature;
use crate::state::State;

/// The caller and the command of a request that may be carried out.
pub(super) fn admit(
    state: &mut State,
    method: &Method,
    params: &Params,
) -> Result<(Caller, Operation), ApiError> {
    let command = params.command.as_str();
    if command.is_empty() {
        return Err(ApiError::new(432, "Invalid request, no command sent"));
    }
    if state.behaviour.maintenance {
        return Err(ApiError::new(503, "The management server is under maintenance"));
    }
    let caller = authenticate(state, params)?;
    count(state, &caller)?;
    let behaviour = &state.behaviour;
    let Some(operation) = Operation::named(command) else {
        return Err(ApiError::unavailable(
            behaviour.unknown_command_status,
            command,
            &caller.user,
        ));
    };
    let forbidden = match caller.role {
        Role::User => &behaviour.forbidden_to_users,
        Role::Admin => &behaviour.forbidden_to_admins,
    };
    if forbidden.contains(command) {
        return Err(ApiError::unavailable(
            behaviour.forbidden_status,
            command,
            &caller.user,
        ));
    }
    if behaviour.post_only && !is_read(command) && *method != Method::POST {
        return Err(ApiError::new(
            405,
            format!("The API {command} accepts POST requests only"),
        ));
    }
    if behaviour.refuses_jobs && operation.is_write() {
        return Err(ApiError::new(
            503,
            "Maintenance or shutdown has been initiated on this management server. Can not accept new jobs",
        ));
    }
    match params.text("response") {
        Some("json") => Ok((caller, operation)),
        _ => Err(ApiError::new(
            430,
            "this simulator answers in JSON only: response=json is missing",
        )),
    }
}

fn authenticate(state: &State, params: &Params) -> Result<Caller, ApiError> {
    let refused = ApiError::credentials;
    let api_key = params.text("apikey").ok_or_else(refused)?;
    let signature = params.text("signature").ok_or_else(refused)?;
    let (user, known) = state.users.find(api_key).ok_or_else(refused)?;
    if params.text("signatureversion") == Some("3") {
        let expires = params.text("expires").and_then(moment).ok_or_else(refused)?;
        if !is_current(expires, state.clock, &state.behaviour) {
            return Err(refused());
        }
    }
    if !signature::is_valid(&known.secret_key, params.all(), signature) {
        return Err(refused());
    }
    Ok(Caller {
        user: user.clone(),
        account: known.account.clone(),
        role: known.role,
    })
}

/// A time as Java's `yyyy-MM-dd'T'HH:mm:ssZ` reads it, or with a plain `Z`.
fn moment(text: &str) -> Option<Timestamp> {
    let text = match text.strip_suffix('Z') {
        Some(rest) => format!("{rest}+0000"),
        None => text.to_owned(),
    };
    Timestamp::strptime("%Y-%m-%dT%H:%M:%S%z", text).ok()
}

/// The time by the server's clock.
fn moment_of(clock: Clock, behaviour: &Behaviour) -> Timestamp {
    clock.now() + SignedDuration::from_secs(behaviour.clock_skew_s)
}

/// The `Date` of an answer, if it has one.
pub(super) fn date(state: &State) -> Option<HeaderValue> {
    let date = moment_of(state.clock, &state.behaviour).strftime("%a, %d %b %Y %H:%M:%S GMT");
    let sends = state.behaviour.sends_date;
    sends.then(|| HeaderValue::from_str(&date.to_string()).ok())?
}

fn is_current(expires: Timestamp, clock: Clock, behaviour: &Behaviour) -> bool {
    let left = expires.duration_since(moment_of(clock, behaviour));
    let too_far = |most: u64| i64::try_from(most).is_ok_and(|most| left.as_secs() > most);
    left.is_positive() && !behaviour.max_expiry.is_some_and(too_far)
}

/// Counts a request against the account's rate limit.
fn count(state: &mut State, caller: &Caller) -> Result<(), ApiError> {
    let Some(limit) = state.behaviour.rate_limit else {
        return Ok(());
    };
    let now = Instant::now();
    let recent = state.recent.entry(caller.account.clone()).or_default();
    while recent.front().is_some_and(|&first| first + limit.per <= now) {
        recent.pop_front();
    }
    if recent.len() >= limit.requests {
        let wait = recent.front().map_or(limit.per, |&first| first + limit.per - now);
        return Err(ApiError::new(
            429,
            format!(
                "The given user has reached his/her account api limit, please retry after {} ms.",
                wait.as_millis()
            ),
        ));
    }
    recent.push_back(now);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_a_zone_in_two_forms() {
        let wanted: Timestamp = "2030-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(moment("2030-01-02T03:04:05Z"), Some(wanted));
        assert_eq!(moment("2030-01-02T04:04:05+0100"), Some(wanted));
        assert_eq!(moment("2030-01-02"), None);
        assert_eq!(moment(""), None);
    }
}
