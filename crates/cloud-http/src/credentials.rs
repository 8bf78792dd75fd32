//! Credentials in a file that may be replaced while the program runs, as the mount of a Kubernetes Secret is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretSlice};
use tokio::time::Instant;

/// How long a look at the file is good for. The kubelet itself brings a new Secret within a minute or two.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// A file of credentials has some hundred bytes; what is larger is another file.
const LARGEST: u64 = 1 << 20;

/// Why the contents of a file are no credentials. It cannot hold any part of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what}{}", line.map_or(String::new(), |line| format!(" (line {line})")))]
pub struct Malformed {
    /// What is wrong, such as "no key client-secret".
    pub what: &'static str,
    /// Where, counted from 1, if there is one place.
    pub line: Option<usize>,
}

impl Malformed {
    /// Something is wrong with the file as a whole.
    #[must_use]
    pub fn because(what: &'static str) -> Self {
        Self { what, line: None }
    }
}

/// Why there are no credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// The file cannot be read.
    #[error("credentials file {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: std::io::ErrorKind,
    },
    /// Its contents are no credentials.
    #[error("credentials file {}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: Malformed,
    },
}

type Parse<T> = dyn Fn(&[u8]) -> Result<T, Malformed> + Send + Sync;

/// Credentials that follow their file.
///
/// There is no task and no notification: who needs the credentials asks for the [current](Self::current) ones, and at most
/// every ten seconds that is a look at the file. Contents are compared, not times or inodes, so a symbolic link that is
/// swapped is noticed like a file that is written. What cannot be read or understood leaves the old credentials in force.
pub struct CredentialsFile<T> {
    path: PathBuf,
    parse: Box<Parse<T>>,
    state: Mutex<State<T>>,
}

struct State<T> {
    credentials: Arc<T>,
    contents: SecretSlice<u8>,
    looked: Instant,
    /// What the last look found wrong, so that it is logged once.
    problem: Option<String>,
}

impl<T> CredentialsFile<T> {
    /// Reads the file for the first time. Call it inside the runtime.
    ///
    /// # Errors
    ///
    /// If there are no credentials in it: a process begins with good ones.
    pub fn open(
        path: impl Into<PathBuf>,
        parse: impl Fn(&[u8]) -> Result<T, Malformed> + Send + Sync + 'static,
    ) -> Result<Self, CredentialsError> {
        let path = path.into();
        let contents = read(&path)?;
        let credentials = parse(contents.expose_secret()).map_err(|reason| CredentialsError::Malformed {
            path: path.clone(),
            reason,
        })?;
        Ok(Self {
            path,
            parse: Box::new(parse),
            state: Mutex::new(State {
                credentials: Arc::new(credentials),
                contents,
                looked: Instant::now(),
                problem: None,
            }),
        })
    }

    /// The credentials as they are now. Another `Arc` than the last time means that they have changed: a token that was
    /// got with the old ones should be thrown away.
    ///
    /// The look at the file blocks for as long as a small local file takes to be read.
    pub fn current(&self) -> Arc<T> {
        let mut state = self.lock();
        let now = Instant::now();
        if now >= state.looked + LOOK_EVERY {
            state.looked = now;
            self.look(&mut state);
        }
        Arc::clone(&state.credentials)
    }

    /// Looks at the file at the next call of [`current`](Self::current), however short the last look was ago: for a cloud
    /// that has just refused the credentials.
    pub fn distrust(&self) {
        let mut state = self.lock();
        if let Some(earlier) = state.looked.checked_sub(LOOK_EVERY) {
            state.looked = earlier;
        }
    }

    fn look(&self, state: &mut State<T>) {
        let path = self.path.display();
        let problem = match read(&self.path) {
            Ok(contents) if contents.expose_secret() == state.contents.expose_secret() => None,
            Ok(contents) => match (self.parse)(contents.expose_secret()) {
                Ok(credentials) => {
                    tracing::info!(%path, "Credentials read again, the file has changed");
                    state.credentials = Arc::new(credentials);
                    state.contents = contents;
                    None
                }
                Err(reason) => Some(reason.to_string()),
            },
            Err(error) => Some(error.to_string()),
        };
        if let Some(reason) = problem
            .as_ref()
            .filter(|problem| state.problem.as_ref() != Some(*problem))
        {
            tracing::error!(%path, reason, "Credentials not read again, the old ones stay in force");
        }
        state.problem = problem;
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for CredentialsFile<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialsFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

fn read(path: &Path) -> Result<SecretSlice<u8>, CredentialsError> {
    let unreadable = |error: std::io::Error| CredentialsError::Unreadable {
        path: path.to_owned(),
        reason: error.kind(),
    };
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > LARGEST {
        return Err(unreadable(std::io::ErrorKind::FileTooLarge.into()));
    }
    std::fs::read(path).map(SecretSlice::from).map_err(unreadable)
}

#[cfg(test)]
mod tests;
