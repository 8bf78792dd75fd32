//! Jobs: what commands that change something start.

use bowline_cloud_http::Response;
use serde::Deserialize;
use serde_json::Value;

use crate::error::{ApiError, JobText, Said};
use crate::wire::JobId;

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
    Done(JobResult),
    /// It could not.
    Failed(ApiError),
}

/// What a job brought about: a load balancer rule, a public address, a firewall rule or an item of an ACL list; nothing, if there
/// is nothing to show for it that this client knows. What else the object tells is not believed: it may have a few members only,
/// and the next reading of the cloud shows them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct JobResult {
    /// Its id.
    #[serde(default, deserialize_with = "crate::wire::id_or_none")]
    pub id: Option<String>,
    /// The public address that it is, or belongs to, as a text.
    #[serde(default, rename = "ipaddress", deserialize_with = "crate::wire::text_or_none")]
    pub ip: Option<String>,
}

/// Under which names these objects are shown.
const OBJECTS: [&str; 4] = ["loadbalancer", "ipaddress", "firewallrule", "networkacl"];

/// The answer to the question after a job.
#[derive(Deserialize)]
pub(crate) struct Status {
    #[serde(default, deserialize_with = "crate::wire::number_or_none")]
    jobstatus: Option<i64>,
    #[serde(default, deserialize_with = "crate::wire::number_or_none")]
    jobresultcode: Option<i64>,
    #[serde(default)]
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
        let mut objects = OBJECTS.iter().filter_map(|name| self.jobresult.get(name));
        let object = objects.find(|value| value.is_object());
        // An object that cannot be read was made all the same; the next reading of the cloud shows it.
        let result = object.and_then(|object| JobResult::deserialize(object).ok());
        Job::Done(result.unwrap_or_default())
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
        ApiError::of_job(said, form, response.unusable(""))
    }
}
