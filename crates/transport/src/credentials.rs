//! Credentials in files that may be replaced while the program runs, as the mount of a Kubernetes Secret is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretSlice};
use tokio::time::Instant;

use crate::Malformed;

/// How long a look at the files is good for. The kubelet itself brings a new Secret within a minute or two.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// How far apart looks are that somebody asks for. Whoever refuses everything for ever costs one a second.
const LOOKS_APART: Duration = Duration::from_secs(1);

/// A file of credentials has some hundred bytes; what is larger is another file.
const LARGEST: u64 = 1 << 20;

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

/// Reads the contents of all files. An error names the file by its place among them.
type Parse<T> = dyn Fn(&[&[u8]]) -> Result<T, (usize, Malformed)> + Send + Sync;

/// Credentials that follow their file, or the few files that belong together, as a certificate and its key do.
///
/// There is no task and no notification: who needs the credentials asks for the [current](Self::current) ones, and at most
/// every ten seconds that is a look at the files. Contents are compared, not times or inodes, so a symbolic link that is
/// swapped is noticed like a file that is written. What cannot be read or understood leaves the old credentials in force:
/// so does a pair of which only one half is there yet.
pub struct CredentialsFile<T> {
    paths: Vec<PathBuf>,
    parse: Box<Parse<T>>,
    state: Mutex<State<T>>,
}

struct State<T> {
    credentials: Arc<T>,
    contents: Vec<SecretSlice<u8>>,
    /// When the next look is due.
    next: Instant,
    /// The last look that was made before it was due.
    asked_for: Option<Instant>,
    /// When one is due without anybody asking.
    regular: Instant,
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
        Self::open_all(vec![path.into()], move |contents| {
            parse(contents.first().copied().unwrap_or_default()).map_err(|reason| (0, reason))
        })
    }

    /// Reads files that belong together for the first time. The contents come in the order of the paths.
    ///
    /// # Errors
    ///
    /// If there are no credentials in them.
    pub fn open_all(
        paths: Vec<PathBuf>,
        parse: impl Fn(&[&[u8]]) -> Result<T, (usize, Malformed)> + Send + Sync + 'static,
    ) -> Result<Self, CredentialsError> {
        let contents = read(&paths)?;
        let credentials = parsed(&paths, &contents, &parse)?;
        let regular = Instant::now() + LOOK_EVERY;
        Ok(Self {
            paths,
            parse: Box::new(parse),
            state: Mutex::new(State {
                credentials: Arc::new(credentials),
                contents,
                next: regular,
                asked_for: None,
                regular,
                problem: None,
            }),
        })
    }

    /// The credentials as they are now. Another `Arc` than the last time means that they have changed: a token that was
    /// got with the old ones should be thrown away.
    ///
    /// The look at the files blocks for as long as a few small local files take to be read.
    pub fn current(&self) -> Arc<T> {
        let mut state = self.lock();
        let now = Instant::now();
        if now >= state.next {
            if now < state.regular {
                state.asked_for = Some(now);
            }
            state.regular = now + LOOK_EVERY;
            state.next = state.regular;
            self.look(&mut state);
        }
        Arc::clone(&state.credentials)
    }

    /// Has the next call of [`current`](Self::current) look at the files, however short the last look was ago: for a server
    /// that has just refused the credentials. One that refuses for ever does not have them read more often than once a
    /// second.
    pub fn distrust(&self) {
        let mut state = self.lock();
        let now = Instant::now();
        let due = state.asked_for.map_or(now, |last| now.max(last + LOOKS_APART));
        state.next = state.next.min(due);
    }

    fn look(&self, state: &mut State<T>) {
        let path = shown(&self.paths);
        let problem = match read(&self.paths) {
            Ok(contents) if is_same(&contents, &state.contents) => None,
            Ok(contents) => match parsed(&self.paths, &contents, &*self.parse) {
                Ok(credentials) => {
                    tracing::info!(path, "Credentials read again, the file has changed");
                    state.credentials = Arc::new(credentials);
                    state.contents = contents;
                    None
                }
                Err(error) => Some(error.to_string()),
            },
            Err(error) => Some(error.to_string()),
        };
        if let Some(reason) = problem
            .as_ref()
            .filter(|problem| state.problem.as_ref() != Some(*problem))
        {
            tracing::error!(
                path,
                reason,
                "Credentials not read again, the old ones stay in force"
            );
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
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

fn shown(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

fn is_same(one: &[SecretSlice<u8>], other: &[SecretSlice<u8>]) -> bool {
    one.iter()
        .map(|contents| contents.expose_secret())
        .eq(other.iter().map(|contents| contents.expose_secret()))
}

fn parsed<T>(
    paths: &[PathBuf],
    contents: &[SecretSlice<u8>],
    parse: &Parse<T>,
) -> Result<T, CredentialsError> {
    let contents: Vec<&[u8]> = contents.iter().map(|contents| contents.expose_secret()).collect();
    parse(&contents).map_err(|(which, reason)| CredentialsError::Malformed {
        path: paths.get(which).cloned().unwrap_or_default(),
        reason,
    })
}

fn read(paths: &[PathBuf]) -> Result<Vec<SecretSlice<u8>>, CredentialsError> {
    paths.iter().map(|path| read_one(path)).collect()
}

fn read_one(path: &Path) -> Result<SecretSlice<u8>, CredentialsError> {
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
