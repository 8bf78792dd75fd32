//! Stickiness policies of load balancer rules (`listLBStickinessPolicies` and its kin).

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{RuleId, StickinessPolicyId};
use crate::sign::Parameters;

/// By what a load balancer rule leads a client to the same member again.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StickinessPolicy {
    /// Its id.
    pub id: StickinessPolicyId,
    /// Its name, which need not be unique.
    #[serde(default, deserialize_with = "super::or_default")]
    pub name: String,
    /// Its method, in the letters in which it was sent: `LbCookie`, `AppCookie`, `SourceBased`.
    #[serde(default, rename = "methodname", deserialize_with = "super::or_default")]
    pub method: String,
    /// Its parameters by name. Of one that was sent several times the values stand in one text, with colons between them.
    #[serde(default, deserialize_with = "super::or_default")]
    pub params: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "super::text_or_none")]
    state: Option<String>,
}

impl StickinessPolicy {
    /// Whether it goes. One in force has no state.
    #[must_use]
    pub fn is_going(&self) -> bool {
        self.state.as_deref() == Some("Revoked")
    }
}

/// What `listLBStickinessPolicies` answers: a list of one object, which has the policies of the rule that was asked for.
#[derive(Deserialize)]
pub(crate) struct PoliciesOfRules {
    #[serde(default, deserialize_with = "super::list")]
    stickinesspolicies: Vec<PoliciesOfRule>,
}

#[derive(Deserialize)]
struct PoliciesOfRule {
    #[serde(default, deserialize_with = "super::list")]
    stickinesspolicy: Vec<StickinessPolicy>,
}

impl PoliciesOfRules {
    pub(crate) fn policies(self) -> Vec<StickinessPolicy> {
        let rules = self.stickinesspolicies.into_iter();
        rules.flat_map(|rule| rule.stickinesspolicy).collect()
    }
}

/// A stickiness policy to be created. The server takes it in the place of the one that the rule has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewStickinessPolicy {
    /// Its name.
    pub name: String,
    /// Its method.
    pub method: String,
    /// Its parameters by name.
    pub params: BTreeMap<String, String>,
}

impl NewStickinessPolicy {
    /// The policy that came of it, with this id.
    #[must_use]
    pub fn created(&self, id: StickinessPolicyId) -> StickinessPolicy {
        StickinessPolicy {
            id,
            name: self.name.clone(),
            method: self.method.clone(),
            params: self.params.clone(),
            state: None,
        }
    }

    /// The server reads `name` and `value` of a parameter; `key`, which other commands have, is none to it.
    pub(crate) fn parameters(&self, rule: &RuleId) -> Parameters {
        let mut parameters = Parameters::default();
        parameters.set("lbruleid", rule.as_str());
        parameters.set("name", self.name.as_str());
        parameters.set("methodname", self.method.as_str());
        for (index, (name, value)) in self.params.iter().enumerate() {
            parameters.set(format!("param[{index}].name"), name.as_str());
            parameters.set(format!("param[{index}].value"), value.as_str());
        }
        parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_stand_in_a_list_of_rules_and_some_go() {
        let policies = |json: &str| serde_json::from_str::<PoliciesOfRules>(json).unwrap().policies();
        let listed = policies(
            r#"{"count":1,"stickinesspolicies":[{"lbruleid":"r","account":"team","stickinesspolicy":[
                {"id":"p","name":"a1-tcp-80","methodname":"LbCookie","params":{"mode":"insert"},"fordisplay":true},
                {"id":"q","methodname":"SourceBased","params":{},"state":"Revoked"}]}]}"#,
        );
        assert_eq!(
            listed.iter().map(|policy| policy.is_going()).collect::<Vec<_>>(),
            [false, true]
        );
        assert_eq!(listed[0].params["mode"], "insert");
        for none in [
            "{}",
            r#"{"stickinesspolicies":[{"lbruleid":"r","stickinesspolicy":[]}]}"#,
        ] {
            assert_eq!(policies(none), []);
        }
    }
}
