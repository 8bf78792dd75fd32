//! The API server's audit log: who asked for what, and whether it was allowed.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

/// Every finished request, without bodies. `RequestReceived` would only say each thing twice.
pub(crate) const POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1",
  "kind": "Policy",
  "omitStages": ["RequestReceived"],
  "rules": [{ "level": "Metadata" }]
}
"#;

/// The audit log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum AuditLogError {
    /// It was not asked for in the options.
    #[error("this control plane was started without an audit log")]
    NotKept,
    /// It could not be read.
    #[error("cannot read the audit log")]
    Unreadable(#[from] io::Error),
    /// A line was not what the API server writes.
    #[error("line {line} of the audit log")]
    Malformed {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEvent {
    /// Who asked: `system:serviceaccount:kube-system:cloud-controller-manager`.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` ...
    pub verb: String,
    /// The path with its query.
    pub uri: String,
    /// The name of the program that asked, as it gives itself.
    pub user_agent: String,
    /// The HTTP status of the answer, if there was one.
    pub code: Option<u16>,
    /// Whether the answer came (`ResponseComplete`); a watch has an event at its start as well.
    pub complete: bool,
    /// Whether authorization said no.
    pub forbidden: bool,
}

/// The log of one API server. What was read once is kept: tests ask again and again, and the log grows to thousands of
/// lines.
pub(crate) struct AuditLog {
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// How much of the file that is.
    bytes: u64,
    events: Vec<AuditEvent>,
}

impl AuditLog {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            known: Mutex::default(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// All whole lines; the last one may be in the making.
    pub(crate) fn events(&self) -> Result<Vec<AuditEvent>, AuditLogError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(known.bytes))?;
        let mut fresh = Vec::new();
        file.read_to_end(&mut fresh)?;
        for line in fresh.split_inclusive(|byte| *byte == b'\n') {
            if !line.ends_with(b"\n") {
                break;
            }
            let event: Wire = serde_json::from_slice(line).map_err(|source| AuditLogError::Malformed {
                line: known.events.len() + 1,
                source,
            })?;
            known.events.push(event.into());
            known.bytes += line.len() as u64;
        }
        Ok(known.events.clone())
    }
}

/// `audit.k8s.io/v1` Event, the part that tests ask about.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    stage: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: WireUser,
    #[serde(default)]
    user_agent: String,
    response_status: Option<WireStatus>,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct WireUser {
    #[serde(default)]
    username: String,
}

#[derive(Deserialize)]
struct WireStatus {
    code: Option<u16>,
}

impl From<Wire> for AuditEvent {
    fn from(wire: Wire) -> Self {
        let denied = wire
            .annotations
            .get("authorization.k8s.io/decision")
            .is_some_and(|word| word == "forbid");
        Self {
            user: wire.user.username,
            verb: wire.verb,
            uri: wire.request_uri,
            user_agent: wire.user_agent,
            code: wire.response_status.and_then(|status| status.code),
            complete: wire.stage == "ResponseComplete",
            forbidden: denied,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete","requestURI":"/api/v1/nodes","verb":"list","user":{"username":"someone"},"userAgent":"test/1","responseStatus":{"metadata":{},"code":403},"annotations":{"authorization.k8s.io/decision":"forbid"}}"#;

    fn log(text: &str) -> (tempfile::NamedTempFile, AuditLog) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let log = AuditLog::new(file.path().to_owned());
        (file, log)
    }

    #[test]
    fn a_denied_request_is_forbidden() {
        let (_file, log) = log(&format!("{LINE}\n"));
        let events = log.events().unwrap();
        assert_eq!(events.len(), 1);
        assert!(events[0].forbidden && events[0].complete);
        assert_eq!((events[0].user.as_str(), events[0].code), ("someone", Some(403)));
    }

    #[test]
    fn a_line_that_is_still_being_written_is_read_when_it_is_whole() {
        let (begun, rest) = LINE.split_at(9);
        let (file, log) = log(&format!("{LINE}\n{begun}"));
        assert_eq!(log.events().unwrap().len(), 1);
        std::fs::write(file.path(), format!("{LINE}\n{begun}{rest}\n{LINE}\n")).unwrap();
        let events = log.events().unwrap();
        assert_eq!(events, vec![events[0].clone(); 3]);
    }

    #[test]
    fn a_broken_line_is_an_error_with_its_number() {
        let (_file, log) = log(&format!("{LINE}\nnot json\n"));
        let error = log.events().unwrap_err();
        assert!(
            matches!(error, AuditLogError::Malformed { line: 2, .. }),
            "{error:?}"
        );
    }
}
