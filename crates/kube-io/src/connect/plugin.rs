//! The credential plugin of a kubeconfig (`exec`): a program that prints who we are, and until when.
//!
//! It is one more source that is followed: it is run again before its answer ends, and when that is refused; until there is
//! a new answer the last one stays.

use std::fmt;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_transport::{shown_name, yaml};
use futures::future::{BoxFuture, FutureExt as _, Shared};
use http::HeaderValue;
use jiff::Timestamp;
use rustls::sign::CertifiedKey;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::Instant;

use super::forms::{bearer, pair};
use super::kubeconfig::Exec;
use crate::clock::Clock;

/// The longest that a plugin may take. Go's clients wait for ever.
const TIME: Duration = Duration::from_secs(30);

/// Its answer is replaced so long before its end.
const AHEAD: Duration = Duration::from_secs(60);

/// It is not run more often, whatever it answers and whatever is refused.
const PAUSE: Duration = Duration::from_secs(5);

/// The longest answer, in bytes: certificates with their chain have some thousand.
const MAX_ANSWER: u64 = 1 << 20;

/// How the API is called whose words plugin and client speak.
const VERSION: &str = "client.authentication.k8s.io/v1";

/// The keys that mean something, for errors.
const KEYS: &[&str] = &[
    "apiVersion",
    "kind",
    "spec",
    "status",
    "token",
    "expirationTimestamp",
    "clientCertificateData",
    "clientKeyData",
];

/// A plugin and what it said. Clones share it.
#[derive(Clone)]
pub(super) struct Plugin {
    exec: Arc<Exec>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answer: Option<Answer>,
    is_refused: bool,
    /// When it was started last.
    started: Option<Instant>,
    /// It is running. It goes on when those who wait for it give up.
    run: Option<Shared<BoxFuture<'static, ()>>>,
    /// Why the last run gave nothing.
    failure: Option<String>,
}

/// Who we are.
#[derive(Clone)]
pub(super) struct Answer {
    pub(super) token: Option<Arc<HeaderValue>>,
    pub(super) identity: Option<Arc<CertifiedKey>>,
    /// When it ends, if ever.
    end: Option<Instant>,
}

impl State {
    /// Whether there is an answer that can be used for this time at least.
    fn lasts(&self, time: Duration) -> bool {
        let ends = |end: Instant| end < Instant::now() + time;
        !self.is_refused && self.answer.as_ref().is_some_and(|it| !it.end.is_some_and(ends))
    }
}

impl Plugin {
    pub(super) fn new(exec: Exec) -> Self {
        Self {
            exec: Arc::new(exec),
            state: Arc::default(),
        }
    }

    /// What it said last.
    pub(super) fn current(&self) -> Option<Answer> {
        self.state().answer.clone()
    }

    /// The API server does not know who it says that we are.
    pub(super) fn refuse(&self) {
        self.state().is_refused = true;
    }

    /// Runs it if that is due, and waits for that if there is nothing to be used meanwhile.
    ///
    /// # Errors
    ///
    /// It has failed, and has said nothing yet. In words of our own: its words may be the token.
    pub(super) async fn refresh(&self, clock: &Arc<dyn Clock>) -> Result<(), String> {
        let run = {
            let mut state = self.state();
            let is_running = state.run.as_ref().is_some_and(|run| run.peek().is_none());
            let has_paused = state.started.is_none_or(|started| started.elapsed() >= PAUSE);
            if !state.lasts(AHEAD) && !is_running && has_paused {
                state.started = Some(Instant::now());
                let run = tokio::spawn(self.clone().ask(Arc::clone(clock)));
                state.run = Some(run.map(drop).boxed().shared());
            }
            state.run.clone().filter(|_| !state.lasts(Duration::ZERO))
        };
        if let Some(run) = run {
            run.await;
        }
        let state = self.state();
        match &state.failure {
            Some(reason) if state.answer.is_none() => Err(format!("{} {reason}", Self::NAME)),
            _ => Ok(()),
        }
    }

    const NAME: &str = "the credential plugin of the kubeconfig";

    async fn ask(self, clock: Arc<dyn Clock>) {
        let answer = tokio::time::timeout(TIME, run(&self.exec))
            .await
            .unwrap_or_else(|_| Err(format!("gave no answer within {} s", TIME.as_secs())))
            .and_then(|said| read(&said, clock.now()));
        let mut state = self.state();
        state.failure = match answer {
            Ok(answer) => {
                state.answer = Some(answer);
                state.is_refused = false;
                None
            }
            Err(reason) => {
                if state.answer.is_some() {
                    tracing::warn!(reason, "Credential plugin failed, its last answer stays in force");
                }
                Some(reason)
            }
        };
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").finish_non_exhaustive()
    }
}

/// Runs the program; gives what it printed.
async fn run(exec: &Exec) -> Result<Vec<u8>, String> {
    let Some(command) = exec.command.as_ref().filter(|command| !command.is_empty()) else {
        return Err("has no `command`".to_owned());
    };
    // Nobody sits before a manager.
    let mut spec = json!({ "interactive": false });
    if let Some(cluster) = &exec.cluster {
        spec["cluster"] = json!(cluster);
    }
    let version = exec.api_version.as_deref().unwrap_or(VERSION);
    let asked = json!({ "apiVersion": version, "kind": "ExecCredential", "spec": spec });
    let variables = exec.env.iter();
    let variables = variables.map(|it| (&it.name, it.value.expose_secret()));
    let mut child = Command::new(command)
        .args(&exec.args)
        .envs(variables)
        .env("KUBERNETES_EXEC_INFO", asked.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        // It may say there what is no matter of our log.
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            format!(
                "cannot be started by its `command` {}: {error}",
                shown_name(command)
            )
        })?;
    let mut said = Vec::new();
    if let Some(output) = child.stdout.take() {
        let read = output.take(MAX_ANSWER).read_to_end(&mut said).await;
        read.map_err(|error| format!("cannot be read: {error}"))?;
    }
    let status = child.wait().await.map_err(|error| format!("was lost: {error}"))?;
    if !status.success() {
        return Err(format!("failed with {status}; run it by hand to see why"));
    }
    Ok(said)
}

#[derive(Deserialize)]
struct ExecCredential {
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    token: Option<String>,
    expiration_timestamp: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

fn read(said: &[u8], now: Timestamp) -> Result<Answer, String> {
    let odd = |why: &dyn fmt::Display| {
        format!("gave no answer that can be read ({why}); run it by hand to see what it gives")
    };
    let answer: ExecCredential = yaml::document(said, KEYS).map_err(|error| odd(&error))?;
    let status = answer.status.ok_or_else(|| odd(&"there is no `status`"))?;
    let end = match status.expiration_timestamp {
        None => None,
        Some(text) => {
            let end: Timestamp = text
                .parse()
                .map_err(|_| "gave a time of expiration that is no time".to_owned())?;
            // What has ended already is the API server's to judge, whose clock it is.
            let left = Duration::try_from(end.duration_since(now)).unwrap_or_default();
            Instant::now().checked_add(left)
        }
    };
    let is_set = |text: &String| !text.is_empty();
    let token = status
        .token
        .filter(is_set)
        .map(|token| bearer(token.as_bytes()).map_err(|reason| odd(&format!("`token`: {reason}"))))
        .transpose()?;
    let identity = match (
        status.client_certificate_data.filter(is_set),
        status.client_key_data.filter(is_set),
    ) {
        (None, None) => None,
        (Some(certificate), Some(key)) => {
            let key = pair(certificate.as_bytes(), key.as_bytes()).map_err(|(_, reason)| odd(&reason))?;
            Some(key)
        }
        _ => {
            return Err(odd(
                &"of `clientCertificateData` and `clientKeyData` one is missing",
            ));
        }
    };
    if token.is_none() && identity.is_none() {
        return Err("gave neither a token nor a certificate".to_owned());
    }
    Ok(Answer {
        token: token.map(Arc::new),
        identity: identity.map(Arc::new),
        end,
    })
}

#[cfg(test)]
mod tests;
