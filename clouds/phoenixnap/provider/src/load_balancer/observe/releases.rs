//! The releases of blocks that this process began: one is never taken back.
//!
//! The mark of a block may come long after its call was given up or its answer was lost, and a list may show it late. A Service
//! that comes back meanwhile and took the block again would lose its address with it.

use std::time::Duration;

use bowline_cloud_provider::Kept;
use bowline_phoenixnap_client::ApiError;
use tokio::time::Instant;

/// How long a call may take: until then its mark may come without another one.
const CALL: Duration = Duration::from_secs(30);

/// After so long a mark that was answered and that no list shows is taken for lost.
pub(crate) const MARK_AGAIN: Duration = Duration::from_secs(60);

/// How long after a block was taken for a Service's own the mark of an earlier process may come, and a list show it.
const OF_EARLIER: Duration = Duration::from_secs(90);

/// What is known of blocks on their way out, by their IDs.
#[derive(Default)]
pub(crate) struct Releases {
    /// Those for which a mark was sent, and how the last one stands.
    marks: Kept<String, Mark>,
    /// When one was taken that another process had made for a Service without an address. That process may have begun to give it back:
    /// before a block is marked its address is taken out of the Service.
    adopted: Kept<String, Instant>,
}

struct Mark {
    sent: Instant,
    is_taken: bool,
}

impl Releases {
    /// A mark is sent next. Says whether it is the first one of the block.
    pub(crate) fn begins(&self, block: &str) -> bool {
        let mark = Mark {
            sent: Instant::now(),
            is_taken: false,
        };
        self.marks
            .with(&block.to_owned(), |last| last.replace(mark).is_none())
    }

    /// The process before this one sent a mark that got no answer, as the Service tells. This one may have sent it.
    pub(crate) fn inherits(&self, block: &str) {
        if !self.has_begun(block) {
            self.begins(block);
        }
    }

    /// What was answered. A first mark that was refused leaves nothing behind, a later one says nothing of those before it.
    pub(crate) fn answers(&self, block: &str, is_first: bool, answer: &Result<(), ApiError>) {
        self.marks
            .with(&block.to_owned(), |last| match (answer, &mut *last) {
                (Ok(()), Some(mark)) => mark.is_taken = true,
                (Err(error), _) if is_first && !error.maybe_applied() => *last = None,
                _ => {}
            });
    }

    /// Whether the release of a block was begun.
    pub(crate) fn has_begun(&self, block: &str) -> bool {
        self.marks.with(&block.to_owned(), |last| last.is_some())
    }

    /// Whether the mark of a block has to be sent again, if a list shows the block without it; `None` if its release was not begun.
    pub(crate) fn is_overdue(&self, block: &str) -> Option<bool> {
        self.marks.with(&block.to_owned(), |last| {
            let last = last.as_ref()?;
            let patience = if last.is_taken { MARK_AGAIN } else { CALL };
            Some(last.sent.elapsed() >= patience)
        })
    }

    /// A list shows the block with its mark. Whoever takes the mark off after that keeps the block.
    pub(crate) fn is_seen(&self, block: &str) {
        self.marks.with(&block.to_owned(), |last| {
            last.take_if(|mark| mark.sent.elapsed() >= CALL);
        });
    }

    /// A block is taken that is there, for a Service without an address.
    pub(crate) fn adopts(&self, block: &str) {
        self.adopted.with(&block.to_owned(), |since| {
            since.get_or_insert_with(Instant::now);
        });
    }

    /// Whether a mark of a block may be that of an earlier process, which comes late.
    pub(crate) fn is_of_earlier(&self, block: &str) -> bool {
        self.adopted.with(&block.to_owned(), |since| {
            since.is_some_and(|it| it.elapsed() < OF_EARLIER)
        })
    }
}
