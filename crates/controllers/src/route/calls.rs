//! The calls that bring a pass's changes to the cloud.
//!
//! Who wishes for a change hands it in and waits for its answer. A call begins as soon as there is a slot, and takes with it all
//! that was handed in until then, up to the provider's bound: changes that are wished for together go together, and
//! what comes while all slots are taken goes with the next call.

use std::pin::pin;

use bowline_cloud_provider::{CloudError, RouteChange, Routes};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::queue::Heartbeat;

/// What came of a change, and when its call began.
pub(super) struct Answer {
    pub(super) begun: Instant,
    pub(super) result: Result<(), CloudError>,
}

struct Wished {
    change: RouteChange,
    answer: oneshot::Sender<Answer>,
}

/// Where changes are handed in.
pub(super) struct Calls(mpsc::Sender<Wished>);

/// The changes that wait for a call.
pub(super) struct Waiting(mpsc::Receiver<Wished>);

/// A queue for this many changes that wait at the same time.
pub(super) fn queue(changes: usize) -> (Calls, Waiting) {
    let (sender, receiver) = mpsc::channel(changes.max(1));
    (Calls(sender), Waiting(receiver))
}

impl Calls {
    /// Has a change made; `None`: the controller is stopping, and it was not begun.
    pub(super) async fn make(&self, change: RouteChange) -> Option<Answer> {
        let (answer, answered) = oneshot::channel();
        // There is room for all changes of a pass, so none is ever late for the call that the others go with.
        self.0.try_send(Wished { change, answer }).ok()?;
        answered.await.ok()
    }
}

/// What the calls need.
#[derive(Clone, Copy)]
pub(super) struct Caller<'a> {
    pub(super) routes: &'a dyn Routes,
    pub(super) cluster: &'a str,
    pub(super) heartbeat: &'a Heartbeat,
    pub(super) stop: &'a CancellationToken,
}

impl Caller<'_> {
    /// Does the work, and makes the calls that it waits for. Once the controller is stopping, no call begins.
    ///
    /// # Cancellation
    ///
    /// What is under way is abandoned, and whoever waits for it is dropped with it.
    pub(super) async fn serve(self, work: impl Future<Output = ()>, mut waiting: Waiting) {
        let at_once = self.routes.calls_at_once().max(1);
        let per_call = self.routes.changes_per_call().max(1);
        let mut work = pin!(work);
        let mut under_way = FuturesUnordered::new();
        let mut wished = Vec::new();
        loop {
            tokio::select! {
                // The work goes first: it hands in all that it can before a call takes what is there.
                biased;
                () = &mut work => return,
                Some(()) = under_way.next() => {}
                _ = waiting.0.recv_many(&mut wished, per_call), if under_way.len() < at_once => {
                    under_way.push(self.call(std::mem::take(&mut wished)));
                }
            }
        }
    }

    async fn call(self, wished: Vec<Wished>) {
        if self.stop.is_cancelled() {
            return;
        }
        let (changes, answers): (Vec<_>, Vec<_>) = wished
            .into_iter()
            .map(|wished| (wished.change, wished.answer))
            .unzip();
        let _working = self.heartbeat.begin();
        let begun = Instant::now();
        let mut results = self
            .routes
            .change_routes(self.cluster, &changes)
            .await
            .into_iter();
        for answer in answers {
            let unanswered = || Err(CloudError::other("the provider does not say what came of it"));
            let result = results.next().unwrap_or_else(unanswered);
            // Nobody waits for it if the pass was abandoned.
            drop(answer.send(Answer { begun, result }));
        }
    }
}
