//! Stickiness policies of load balancer rules.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Answer, Call};
use crate::error::ApiError;
use crate::jobs::Effect;
use crate::model::{LoadBalancerRule, RuleState, StickinessPolicy};
use crate::wire;

/// The type of a policy in what is said about jobs.
const KIND: &str = "LBStickinessPolicy";

/// The methods of a virtual router with their parameters, and which of these are flags (`VirtualRouterElement
/// .getHAProxyStickinessCapability`). None is required.
const METHODS: [(&str, &[&str], &[&str]); 3] = [
    (
        "LbCookie",
        &["cookie-name", "mode", "domain"],
        &["nocache", "indirect", "postonly"],
    ),
    (
        "AppCookie",
        &["cookie-name", "length", "holdtime", "mode"],
        &["request-learn", "prefix"],
    ),
    ("SourceBased", &["tablesize", "expire"], &[]),
];

impl Call<'_> {
    pub(super) fn list_policies(&self) -> Answer {
        let (rule, id) = (self.params.text("lbruleid"), self.params.text("id"));
        let found = match (rule, id) {
            (None, None) => {
                return Err(ApiError::parameter(
                    "load balancer rule ID and stickiness policy ID can't be null",
                ));
            }
            (_, Some(id)) => self.rule_of_policy("id", id)?,
            (Some(rule), None) => {
                let found = self.state.rules.get(rule);
                found.ok_or_else(|| self.unknown("lbruleid", rule))?
            }
        };
        self.permit(&found.owner, &found.id)?;
        let shown = found
            .policies
            .iter()
            .filter(|policy| id.is_none_or(|id| policy.id == id));
        Ok(json!({ "count": 1, "stickinesspolicies": [wire::policies(self.state, found, shown)] }))
    }

    fn rule_of_policy(&self, parameter: &str, id: &str) -> Result<&LoadBalancerRule, ApiError> {
        let has_it = |rule: &&LoadBalancerRule| rule.policies.iter().any(|policy| policy.id == id);
        let found = self.state.rules.values().find(has_it);
        found.ok_or_else(|| self.unknown(parameter, id))
    }

    /// It is listed from now on, and takes the place of others when its job is carried out.
    pub(super) fn create_policy(&mut self) -> Answer {
        let params = self.params;
        let (name, method) = (params.required("name")?, params.required("methodname")?);
        let rule_id = params.required("lbruleid")?;
        let rule = self.known(&self.state.rules, "lbruleid", rule_id)?;
        self.permit(&rule.owner, &rule.id)?;
        let number = rule.number;
        if rule.state == RuleState::Revoke {
            return Err(ApiError::parameter(format!(
                "Failed: LB rule: {number} is in deleting state: "
            )));
        }
        let sent = self.method_params();
        check_method(method, &sent, number)?;
        if rule.policies.iter().filter(|policy| !policy.is_revoked).count() > 1 {
            return Err(ApiError::parameter(format!(
                "Failed to create Stickiness policy: Already two policies attached {number}"
            )));
        }
        let stored = stored(&sent);
        if !self.state.behaviour.takes_udp {
            check_for_router(method, &stored, number)?;
        }
        let lane = self.lane(rule);
        let policy = StickinessPolicy {
            id: self.state.id(),
            name: name.to_owned(),
            method: method.to_owned(),
            params: stored,
            is_revoked: false,
        };
        let (rule, id) = (rule_id.to_owned(), policy.id.clone());
        if let Some(found) = self.state.rules.get_mut(&rule) {
            found.policies.push(policy);
        }
        let policy = id.clone();
        self.accept(lane, Some((KIND, &id)), Effect::CreatePolicy { rule, policy })
    }

    pub(super) fn delete_policy(&mut self) -> Answer {
        let id = self.params.required("id")?;
        let rule = self.rule_of_policy("id", id)?;
        self.permit(&rule.owner, &rule.id)?;
        let lane = self.lane(rule);
        let effect = Effect::DeletePolicy {
            rule: rule.id.clone(),
            policy: id.to_owned(),
        };
        self.accept(lane, Some((KIND, id)), effect)
    }

    /// `param[0].name`, `param[0].value` and so on. `key`, which other maps have, is no name.
    fn method_params(&self) -> Vec<(Option<String>, Option<String>)> {
        let mut sent: BTreeMap<&str, (Option<String>, Option<String>)> = BTreeMap::new();
        for (key, value) in self.params.all() {
            let Some((index, field)) = key.strip_prefix("param[").and_then(|rest| rest.split_once("]."))
            else {
                continue;
            };
            let param = sent.entry(index).or_default();
            match field {
                "name" => param.0 = Some(value.clone()),
                "value" => param.1 = Some(value.clone()),
                _ => {}
            }
        }
        sent.into_values().collect()
    }
}

fn check_method(method: &str, sent: &[(Option<String>, Option<String>)], rule: u64) -> Result<(), ApiError> {
    let mut methods = METHODS.iter();
    let Some((_, valued, flags)) = methods.find(|(name, ..)| name.eq_ignore_ascii_case(method)) else {
        return Err(ApiError::parameter(format!(
            "Failed to match Stickiness method name for LB rule:{rule}"
        )));
    };
    for (name, value) in sent {
        let name = name.as_deref().unwrap_or("null");
        let is_it = |known: &&&str| known.eq_ignore_ascii_case(name);
        match (valued.iter().find(is_it), flags.iter().any(|flag| is_it(&flag))) {
            (Some(known), _) if value.is_none() => {
                return Err(ApiError::parameter(format!(
                    "Failed : Value expected for the Param :{known}"
                )));
            }
            (None, false) => {
                return Err(ApiError::parameter(format!(
                    "Failed : Stickiness policy does not support param name :{name}"
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// As they come back from the database: one text, taken apart at each `=` and `&` as Java's `split` does it, which drops what is
/// empty at the end.
fn stored(sent: &[(Option<String>, Option<String>)]) -> Vec<(String, String)> {
    let null = || "null".to_owned();
    let text = sent.iter().map(|(name, value)| {
        let [name, value] = [name, value].map(|it| it.clone().unwrap_or_else(null));
        format!("{name}={value}&")
    });
    let text: String = text.collect();
    let parts: Vec<&str> = text.trim_end_matches(['=', '&']).split(['=', '&']).collect();
    let pairs = parts.chunks_exact(2);
    pairs
        .map(|pair| (pair[0].to_owned(), pair[1].to_owned()))
        .collect()
}

/// What the provider of a virtual router checks (`NetworkHelperImpl.validateHAProxyLBRule`): of the cookies of a load balancer nothing.
fn check_for_router(method: &str, params: &[(String, String)], rule: u64) -> Result<(), ApiError> {
    let is_number = |text: &str| text.parse::<i32>().is_ok();
    let has_unit = |text: &str, units: &str| {
        let unit = text.chars().last().filter(|unit| units.contains(*unit));
        unit.is_some_and(|unit| is_number(text.trim_end_matches(unit)))
    };
    for (name, value) in params {
        let cause = match (method.to_lowercase().as_str(), name.to_lowercase().as_str()) {
            ("sourcebased", "expire") if !has_unit(value, "dhms") => "expire is not in timeformat",
            ("sourcebased", "tablesize") if !has_unit(value, "kmg") => "tablesize is not in size format",
            ("appcookie", "length") if !is_number(value) => "length is not a number",
            ("appcookie", "holdtime") if !has_unit(value, "dhms") && !is_number(value) => {
                "holdtime is not in timeformat"
            }
            _ => continue,
        };
        return Err(ApiError::parameter(format!(
            "Failed LB in validation rule id: {rule} Cause: {cause}: {value}"
        )));
    }
    Ok(())
}
