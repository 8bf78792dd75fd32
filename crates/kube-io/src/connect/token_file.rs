//! A bearer token in a file.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::HeaderValue;
use tokio::time::Instant;

use super::ConnectError;

/// How long a token is believed before the file is read again: those of pods are rotated while they run.
const FRESH: Duration = Duration::from_secs(60);

/// A token as the file had it not long ago.
pub(super) struct TokenFile {
    path: PathBuf,
    last: Mutex<(HeaderValue, Instant)>,
}

impl TokenFile {
    /// Reads it for the first time.
    pub(super) fn read(path: &Path) -> Result<Self, ConnectError> {
        let header = read(path)
            .map_err(|reason| ConnectError::Setup(format!("token file `{}`: {reason}", path.display())))?;
        Ok(Self {
            path: path.to_owned(),
            last: Mutex::new((header, Instant::now())),
        })
    }

    /// The header with the token. A file that cannot be read any more leaves the last one: some programs remove it to
    /// limit who sees it.
    pub(super) fn header(&self) -> HeaderValue {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.1.elapsed() >= FRESH {
            last.1 = Instant::now();
            match read(&self.path) {
                Ok(header) => last.0 = header,
                Err(reason) => {
                    tracing::warn!(path = %self.path.display(), err = reason, "The token is not renewed");
                }
            }
        }
        last.0.clone()
    }
}

fn read(path: &Path) -> Result<HeaderValue, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let token = text.trim();
    if token.is_empty() {
        return Err("is empty".to_owned());
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| "holds characters that no token has".to_owned())?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_token_is_read_without_the_space_around_it_and_again_after_a_minute() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, " first\n").unwrap();
        let file = TokenFile::read(&path).unwrap();
        assert_eq!(file.header(), "Bearer first");
        assert!(!format!("{:?}", file.header()).contains("first"));

        std::fs::write(&path, "second\n").unwrap();
        tokio::time::advance(FRESH - Duration::from_millis(1)).await;
        assert_eq!(file.header(), "Bearer first");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(file.header(), "Bearer second");

        for unusable in [Some("\n"), Some("a\nb"), None] {
            match unusable {
                Some(text) => std::fs::write(&path, text).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            tokio::time::advance(FRESH).await;
            assert_eq!(file.header(), "Bearer second", "{unusable:?}");
        }
    }

    #[tokio::test]
    async fn a_token_that_cannot_be_used_at_first_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for (text, complaint) in [
            (None, "No such file"),
            (Some(" \n"), "is empty"),
            (Some("a\nb"), "characters"),
        ] {
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            let error = TokenFile::read(&path).err().unwrap().to_string();
            assert!(
                error.contains("/token`: ") && error.contains(complaint),
                "{error}"
            );
        }
    }
}
