//! Refusals as the management server words them.

use serde_json::{Value, json};

/// The general value of `cserrorcode`.
const GENERAL: u32 = 9999;

/// `cserrorcode` of a parameter's bad value.
const INVALID_PARAMETER: u32 = 4350;

/// A refused request, or the failure of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// HTTP status and `errorcode`.
    pub(crate) code: u16,
    cs_code: Option<u32>,
    pub(crate) text: String,
    /// Whether the body is named `errorresponse` rather than for its command.
    pub(crate) is_nameless: bool,
}

impl ApiError {
    pub(crate) fn new(code: u16, text: impl Into<String>) -> Self {
        Self {
            code,
            cs_code: Some(GENERAL),
            text: text.into(),
            is_nameless: false,
        }
    }

    /// A parameter's value that will not do.
    pub(crate) fn parameter(text: impl Into<String>) -> Self {
        Self {
            cs_code: Some(INVALID_PARAMETER),
            ..Self::new(431, text)
        }
    }

    /// A parameter's id that there is not, or no longer.
    pub(crate) fn unknown(command: &str, parameter: &str, id: &str) -> Self {
        Self::new(
            431,
            format!(
                "Unable to execute API command {} due to invalid value. Invalid parameter {parameter} value={id} due to \
                 incorrect long value format, or entity does not exist or due to incorrect parameter annotation for the \
                 field in api cmd class.",
                command.to_lowercase()
            ),
        )
    }

    /// Bad keys, a bad signature, or a time that is over: the server does not say which.
    pub(crate) fn credentials() -> Self {
        Self {
            cs_code: None,
            ..Self::new(401, "unable to verify user credentials and/or request signature")
        }
    }

    /// A command that there is not, or not for this user: `UnavailableCommandException` of the role's check, or with 401 its
    /// `PermissionDeniedException` (`ApiServer.commandAvailable`).
    pub(crate) fn unavailable(status: u16, command: &str, user: &str) -> Self {
        let text = match status {
            401 => format!("The given command '{command}' either does not exist, is not available for user."),
            _ => format!(
                "The API [{command}] does not exist or is not available for the account for user id [{user}]."
            ),
        };
        Self {
            is_nameless: true,
            ..Self::new(status, text)
        }
    }

    /// An object of somebody else.
    pub(crate) fn permission(account: &str, what: &str) -> Self {
        Self::new(
            531,
            format!("Acct[{account}] does not have permission to operate with resource {what}"),
        )
    }

    /// A port that is taken.
    pub(crate) fn conflict(wanted: (u16, u16), number: u64, taken: (u16, u16)) -> Self {
        Self::new(
            537,
            format!(
                "The range specified, {}-{}, conflicts with rule {number} which has {}-{}",
                wanted.0, wanted.1, taken.0, taken.1
            ),
        )
    }

    /// The body without its name.
    pub(crate) fn payload(&self) -> Value {
        let mut payload = json!({ "uuidList": [], "errorcode": self.code });
        if let Some(code) = self.cs_code {
            payload["cserrorcode"] = json!(code);
        }
        payload["errortext"] = json!(self.text);
        payload
    }
}
