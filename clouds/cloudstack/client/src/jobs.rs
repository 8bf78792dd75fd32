//! Jobs: what commands that change something start.

use bowline_cloud_http::Response;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{ApiError, JobText, Said};
use crate::wire::{AclItemId, FirewallRuleId, JobId, PublicIpId, RuleId, StickinessPolicyId};

/// A command was taken: the server goes on by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started<Id> {
    /// The job to ask after.
    pub job: JobId,
    /// The id that the new object has or will have, if the server told it.
    pub id: Option<Id>,
}

/// A job.
#[derive(Debug, Clone)]
pub enum Job {
    /// It has not ended.
    Pending,
    /// It did what was asked for.
    Done(Made),
    /// It could not.
    Failed(ApiError),
}

/// What a job brings about, as far as that was told. What else the object tells is not believed: it may have a few members only,
/// and the next reading of the cloud shows them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Made {
    /// Nothing, or nothing that this client knows, or it cannot be read.
    #[default]
    Untold,
    /// A load balancer rule.
    Rule(RuleId),
    /// A public address.
    Address {
        /// Its id.
        id: Option<PublicIpId>,
        /// The address as a text.
        ip: Option<String>,
    },
    /// A stickiness policy.
    StickinessPolicy(StickinessPolicyId),
    /// A firewall rule.
    FirewallRule(FirewallRuleId),
    /// An item of an ACL list.
    AclItem(AclItemId),
}

impl Made {
    /// What this tells, and where it does not what was told before: the answer to a command often has the id already.
    #[must_use]
    pub fn or(self, before: Self) -> Self {
        match (self, before) {
            (Self::Untold, before) => before,
            (Self::Address { id: None, ip }, Self::Address { id, .. }) => Self::Address { id, ip },
            (now, _) => now,
        }
    }

    /// The id of the public address, if it is one.
    #[must_use]
    pub fn address(&self) -> Option<&PublicIpId> {
        match self {
            Self::Address { id, .. } => id.as_ref(),
            _ => None,
        }
    }

    fn of(result: &Value) -> Self {
        let mut shown = ["loadbalancer", "ipaddress", "firewallrule", "networkacl"]
            .into_iter()
            .filter_map(|name| Some((name, result.get(name)?)));
        let Some((name, object)) = shown.find(|(_, value)| value.is_object()) else {
            return Self::Untold;
        };
        let Ok(Shown { id, ip }) = Shown::deserialize(object) else {
            return Self::Untold;
        };
        match (name, id) {
            ("ipaddress", id) => Self::Address {
                id: id.map(PublicIpId::from),
                ip,
            },
            (_, None) => Self::Untold,
            ("loadbalancer", Some(id)) => Self::Rule(id.into()),
            ("firewallrule", Some(id)) => Self::FirewallRule(id.into()),
            (_, Some(id)) => Self::AclItem(id.into()),
        }
    }
}

impl From<RuleId> for Made {
    fn from(id: RuleId) -> Self {
        Self::Rule(id)
    }
}

impl From<StickinessPolicyId> for Made {
    fn from(id: StickinessPolicyId) -> Self {
        Self::StickinessPolicy(id)
    }
}

impl From<PublicIpId> for Made {
    fn from(id: PublicIpId) -> Self {
        Self::Address {
            id: Some(id),
            ip: None,
        }
    }
}

impl From<FirewallRuleId> for Made {
    fn from(id: FirewallRuleId) -> Self {
        Self::FirewallRule(id)
    }
}

impl From<AclItemId> for Made {
    fn from(id: AclItemId) -> Self {
        Self::AclItem(id)
    }
}

/// The members of such an object that are believed.
#[derive(Deserialize)]
struct Shown {
    #[serde(default, deserialize_with = "crate::wire::id_or_none")]
    id: Option<String>,
    #[serde(default, rename = "ipaddress", deserialize_with = "crate::wire::text_or_none")]
    ip: Option<String>,
}

/// The answer to the question after a job.
#[derive(Deserialize)]
pub(crate) struct Status {
    #[serde(default, deserialize_with = "crate::wire::number_or_none")]
    jobstatus: Option<i64>,
    #[serde(default, deserialize_with = "crate::wire::number_or_none")]
    jobresultcode: Option<i64>,
    jobresulttype: Option<String>,
    #[serde(default)]
    jobresult: Value,
}

impl Status {
    pub(crate) fn job(self, response: &Response) -> Job {
        match self.jobstatus {
            Some(1) => self.done(response),
            Some(2) => Job::Failed(self.failure(response)),
            // Not said, or a word of the future: it has not ended for us.
            _ => Job::Pending,
        }
    }

    fn done(self, response: &Response) -> Job {
        let refused = matches!(self.jobresult.get("success"), Some(Value::Bool(false)))
            || self.jobresult.get("success").and_then(Value::as_str) == Some("false");
        if refused {
            return Job::Failed(self.failure(response));
        }
        // An object that cannot be read was made all the same; the next reading of the cloud shows it.
        Job::Done(Made::of(&self.jobresult))
    }

    fn failure(self, response: &Response) -> ApiError {
        let code = |value: Option<i64>| value.and_then(|code| u16::try_from(code).ok());
        let result = &self.jobresult;
        let text = |key: &str| result.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key: &str| result.get(key).and_then(Value::as_i64);
        let said = Said {
            code: code(number("errorcode").or(self.jobresultcode))
                .filter(|code| *code >= 400)
                .unwrap_or(530),
            cs_code: number("cserrorcode").unwrap_or_default(),
            text: match result {
                Value::String(text) => text.clone(),
                Value::Null => "the job failed without a reason".to_owned(),
                _ => text("errortext")
                    .or_else(|| text("displaytext"))
                    .unwrap_or_else(|| result.to_string()),
            },
            missing: None,
        };
        let form = match self.jobresulttype.as_deref() {
            Some("text") => JobText::Bare,
            _ => JobText::Object,
        };
        ApiError::of_job(said, form, response.told())
    }
}
