//! One read for all who ask at the same time.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bowline_transport::patience;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use futures::task::{ArcWake, AtomicWaker, waker};
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

/// Joins questions for the same thing, such as the list of all servers, into few reads.
///
/// - The first question starts a read at once, or after a short wait for others if that is wanted
///   ([`listing`](Self::listing)). Questions asked in the same turn of the runtime share it.
/// - The next read starts no sooner than an interval after the last one *started*, and not before that one has ended. It
///   answers everyone who asked in between. So however slow a cloud is, it gets one such read at a time.
/// - A read never answers a question that was asked after it began: nobody gets to see a state older than their
///   question.
///
/// What does not age while it is read, such as a token, is asked for one read at a time ([`single`](Self::single)): then
/// the last rule does not hold, and a read that is under way answers those too who ask meanwhile.
///
/// `T` is the whole answer, good or bad, cheap to clone: usually `Result<Arc<[Item]>, Error>`. A failed read answers
/// those who waited for it and nobody else.
///
/// # Cancellation
///
/// Whoever goes away does not take the read from the others. When nobody is left, the read is dropped too. No task is
/// started: the read runs inside of those who wait for it.
#[derive(Clone)]
pub struct SharedRead<T> {
    shared: Arc<SharedState<T>>,
}

struct SharedState<T> {
    read: Box<dyn Fn() -> BoxFuture<'static, T> + Send + Sync>,
    interval: Interval,
    gather: Duration,
    /// Whether a read that has begun still answers those who ask.
    is_single: bool,
    /// Held by the read that is under way.
    turn: Semaphore,
    state: Mutex<State<T>>,
}

/// The shortest time between the starts of two reads, asked for anew each time.
type Interval = Box<dyn Fn() -> Duration + Send + Sync>;

struct State<T> {
    last_start: Option<Instant>,
    /// The read that new questions join, if someone waits for it: one that has not begun yet, or, of a single read, also
    /// one that is under way. Weak, because the read itself holds this state.
    next: Option<WeakShared<Answer<T>>>,
}

type Answer<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl<T: Clone + Send + Sync + 'static> SharedRead<T> {
    /// The shortest time between the starts of two reads of a list.
    pub const INTERVAL: Duration = Duration::from_millis(500);

    /// Questions are answered by `read`, which is called once for each read with a clone of its source, such as a client,
    /// and starts it.
    pub fn new<S, F, R>(interval: Duration, source: &S, read: F) -> Self
    where
        S: Clone + Send + Sync + 'static,
        F: Fn(S) -> R + Send + Sync + 'static,
        R: Future<Output = T> + Send + 'static,
    {
        Self::build(Duration::ZERO, Box::new(move || interval), false, source, read)
    }

    /// The read of a list: reads start [`INTERVAL`](Self::INTERVAL) apart.
    ///
    /// A read begins no sooner than `gather` after the question that causes it. Where questions come in bursts of some
    /// milliseconds, all of a burst get the first read, and not all but one have to wait for the second.
    pub fn listing<S, F, R>(gather: Duration, source: &S, read: F) -> Self
    where
        S: Clone + Send + Sync + 'static,
        F: Fn(S) -> R + Send + Sync + 'static,
        R: Future<Output = T> + Send + 'static,
    {
        Self::build(gather, Box::new(|| Self::INTERVAL), false, source, read)
    }

    /// As [`listing`](Self::listing), with a time between the starts of two reads that may change: for what is read again and
    /// again until it is as it should be.
    pub fn paced<S, F, R>(
        gather: Duration,
        interval: impl Fn() -> Duration + Send + Sync + 'static,
        source: &S,
        read: F,
    ) -> Self
    where
        S: Clone + Send + Sync + 'static,
        F: Fn(S) -> R + Send + Sync + 'static,
        R: Future<Output = T> + Send + 'static,
    {
        Self::build(gather, Box::new(interval), false, source, read)
    }

    /// One read at a time: whoever asks while a read is under way gets its answer, good or bad. For what does not age
    /// while it is read, such as a token.
    pub fn single<S, F, R>(interval: Duration, source: &S, read: F) -> Self
    where
        S: Clone + Send + Sync + 'static,
        F: Fn(S) -> R + Send + Sync + 'static,
        R: Future<Output = T> + Send + 'static,
    {
        Self::build(Duration::ZERO, Box::new(move || interval), true, source, read)
    }

    fn build<S, F, R>(gather: Duration, interval: Interval, is_single: bool, source: &S, read: F) -> Self
    where
        S: Clone + Send + Sync + 'static,
        F: Fn(S) -> R + Send + Sync + 'static,
        R: Future<Output = T> + Send + 'static,
    {
        let source = source.clone();
        Self {
            shared: Arc::new(SharedState {
                read: Box::new(move || read(source.clone()).boxed()),
                interval,
                gather,
                is_single,
                turn: Semaphore::new(1),
                state: Mutex::new(State {
                    last_start: None,
                    next: None,
                }),
            }),
        }
    }

    /// Asks. The answer comes from a read that begins no earlier than this call, or, of a [`single`](Self::single) read,
    /// ends no earlier.
    pub async fn ask(&self) -> T {
        patience::with_others(self.join()).await
    }
}

impl<T: Clone + Send + Sync + 'static> SharedRead<T> {
    fn join(&self) -> Shared<Answer<T>> {
        let mut state = self.shared.lock();
        if let Some(next) = state.next.as_ref().and_then(WeakShared::upgrade) {
            return next;
        }
        let answer: Answer<T> = self.shared.clone().answer(state.last_start).boxed();
        let next = answer.shared();
        state.next = next.downgrade();
        next
    }
}

impl<T: Clone + Send + Sync + 'static> SharedState<T> {
    /// Waits until a read may start, and reads. The door is closed to further questions when it starts, or, if it is the
    /// only one, when it ends.
    async fn answer(self: Arc<Self>, last_start: Option<Instant>) -> T {
        // Let everyone who is about to ask in this turn join.
        NextTurn::default().await;
        let gathered = (!self.gather.is_zero()).then(|| Instant::now() + self.gather);
        if let Some(start) = gathered.max(last_start.map(|last| last + (self.interval)())) {
            sleep_until(start).await;
        }
        // The read before this one ends, or is dropped. The semaphore is never closed.
        let _turn = self.turn.acquire().await;
        {
            let mut state = self.lock();
            state.last_start = Some(Instant::now());
            if !self.is_single {
                state.next = None;
            }
        }
        let answer = patience::for_many((self.read)()).await;
        if self.is_single {
            // Still this read: another one takes its place only if it is dropped.
            self.lock().next = None;
        }
        answer
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until the runtime has polled what else was ready.
///
/// `yield_now` alone does not do: it is over when it is polled for the second time, and a shared future is polled by
/// each of those who wait for it.
#[derive(Default)]
struct NextTurn {
    begun: bool,
    turn: Arc<Turn>,
}

#[derive(Default)]
struct Turn {
    over: AtomicBool,
    waiter: AtomicWaker,
}

impl Future for NextTurn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.turn.waiter.register(cx.waker());
        if !self.begun {
            self.begun = true;
            let waker = waker(self.turn.clone());
            // What counts is the wake-up that this leaves with the runtime.
            let _ = pin!(yield_now()).poll(&mut Context::from_waker(&waker));
        }
        if self.turn.over.load(Ordering::Acquire) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

impl ArcWake for Turn {
    fn wake_by_ref(turn: &Arc<Self>) {
        turn.over.store(true, Ordering::Release);
        turn.waiter.wake();
    }
}
