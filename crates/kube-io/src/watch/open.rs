//! One watch from its opening to its end: what it shows, and whether it is still to be believed.

use std::fmt::Write as _;
use std::time::Duration;

use http_body_util::BodyExt as _;
use memchr::memchr;
use tokio::time::Instant;

use crate::client::{Answer, Kube};
use crate::error::KubeError;
use crate::exchange::{Call, transport};
use crate::rank::Rank;

/// How much later than agreed the end of a watch may come. With it, a watch that has died is found out
/// within 40 s of its opening, so of its death.
const GRACE: Duration = Duration::from_secs(10);

/// A watch that ends sooner than this counts as failed: otherwise it would be opened again and again.
pub(super) const TOO_SHORT: Duration = Duration::from_secs(10);

/// An open watch.
pub(super) struct OpenWatch {
    kube: Kube,
    lines: Lines,
    /// When it was asked for.
    asked: Instant,
    lasts: Duration,
    /// When it showed something last.
    spoke: Option<Instant>,
}

/// What a watch shows next.
pub(super) enum Next<'a> {
    /// An event.
    Line(&'a [u8]),
    /// Nothing any more.
    Ended(Ended),
}

/// How a watch ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// By the API server; or not, and it speaks.
    InOrder,
    /// By the API server, and it showed nothing, not even the bookmark before the end: something on the way may have kept it.
    Mute,
    /// Not at all: it shows nothing and is not ended either, as when its server has died, or something on the way holds its
    /// answers back. It may have missed anything.
    Silent,
}

impl OpenWatch {
    /// Opens the watch at this path, which names what is watched and from where on, and asks for its end after some time.
    pub(super) async fn begin(kube: &Kube, mut path: String, lasts: Duration) -> Result<Self, KubeError> {
        let seconds = lasts.as_secs();
        // Writing to a string cannot fail.
        let _ = write!(
            path,
            "&watch=true&allowWatchBookmarks=true&timeoutSeconds={seconds}"
        );
        let asked = Instant::now();
        let answer = kube.open(Call::get(path).ranked(Rank::Watch)).await?;
        Ok(Self {
            kube: kube.clone(),
            lines: Lines::new(answer.into_body()),
            asked,
            lasts,
            spoke: None,
        })
    }

    /// For how long it is open.
    pub(super) fn age(&self) -> Duration {
        self.asked.elapsed()
    }

    /// Waits for what comes next.
    pub(super) async fn next(&mut self) -> Result<Next<'_>, KubeError> {
        let (asked, lasts) = (self.asked, self.lasts);
        let end = asked + lasts + GRACE; // the API server has ended it by then
        match tokio::time::timeout_at(end, self.lines.next()).await {
            Ok(Ok(Some(line))) => {
                self.spoke = Some(Instant::now());
                Ok(Next::Line(line))
            }
            Ok(Ok(None)) if asked.elapsed() < TOO_SHORT => {
                Err(KubeError::Transport("the watch ended at once".into()))
            }
            Ok(Ok(None)) => Ok(Next::Ended(match self.spoke {
                Some(_) => Ended::InOrder,
                None => Ended::Mute,
            })),
            Ok(Err(error)) => Err(error),
            // A server that does not keep to the time and speaks all the same is well.
            Err(_) if self.spoke.is_some_and(|spoke| spoke + GRACE >= end) => Ok(Next::Ended(Ended::InOrder)),
            Err(_) => {
                // Its own connection is given up with the others: it is the one that lists next.
                self.kube.link.is_dead_since(GRACE);
                Ok(Next::Ended(Ended::Silent))
            }
        }
    }
}

/// The lines of a body, whatever pieces it comes in.
pub(crate) struct Lines {
    body: Answer,
    buffer: Vec<u8>,
    /// Up to here the lines have been given. They are removed together, when the buffer has no whole line any more: a burst
    /// brings a dozen lines at once, and the last of them is not to be moved a dozen times.
    given: usize,
    /// Up to here there is no end of a line after those.
    searched: usize,
}

/// A buffer that one huge line has made larger than this is not kept.
const KEPT_BUFFER: usize = 64 * 1024;

/// A line that is longer than this comes from no API server: etcd takes objects of 1.5 MiB unless told otherwise.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

impl Lines {
    pub(crate) fn new(body: Answer) -> Self {
        Self {
            body,
            buffer: Vec::new(),
            given: 0,
            searched: 0,
        }
    }

    /// The next line; `None` at the end. A last line without an end was cut off and is not given.
    ///
    /// # Cancellation
    ///
    /// May be dropped and called again: what has come is kept.
    pub(crate) async fn next(&mut self) -> Result<Option<&[u8]>, KubeError> {
        loop {
            if let Some(length) = memchr(b'\n', &self.buffer[self.searched..]) {
                let (begin, end) = (self.given, self.searched + length);
                self.given = end + 1;
                self.searched = self.given;
                return Ok(Some(&self.buffer[begin..end]));
            }
            self.buffer.drain(..self.given);
            self.given = 0;
            self.searched = self.buffer.len();
            if self.searched == 0 && self.buffer.capacity() > KEPT_BUFFER {
                self.buffer = Vec::new();
            }
            if self.searched > LONGEST_LINE {
                return Err(KubeError::Decode(format!(
                    "a line of a watch is longer than {} MiB",
                    LONGEST_LINE >> 20
                )));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame.map_err(|error| transport(&error))?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
