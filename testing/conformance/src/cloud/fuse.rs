//! The death of a process at a chosen moment.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bowline_cloud_kit::CloudService;
use http::Method;
use tokio_util::sync::CancellationToken;

/// Burns with each write that one process makes; when it is used up, that process has made its last.
///
/// The write itself is carried out, its answer reaches nobody, and no request leaves the process any more.
#[derive(Clone, Debug)]
pub struct Fuse {
    left: Arc<AtomicUsize>,
    dead: CancellationToken,
}

impl Fuse {
    /// For a process that dies in its `nth` write, counted from 1.
    #[must_use]
    pub fn at(nth: usize) -> Self {
        Self {
            left: Arc::new(AtomicUsize::new(nth)),
            dead: CancellationToken::new(),
        }
    }

    /// For a process that does not die.
    #[must_use]
    pub fn never() -> Self {
        Self::at(usize::MAX)
    }

    /// Whether the process has died.
    #[must_use]
    pub fn is_burnt(&self) -> bool {
        self.dead.is_cancelled()
    }

    /// Waits for the death of the process.
    pub async fn burnt(&self) {
        self.dead.cancelled().await;
    }

    fn burn(&self) {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.dead.cancel();
        }
    }

    /// A connection of the process, whose writes burn the fuse.
    #[must_use]
    pub fn on<S>(&self, inner: S, end: End, writer: &Writer) -> Fused<S> {
        Fused {
            inner,
            end,
            fuse: self.clone(),
            burns: true,
            writer: writer.clone(),
        }
    }

    /// A connection of the process that only ends with it.
    #[must_use]
    pub fn beside<S>(&self, inner: S, end: End, writer: &Writer) -> Fused<S> {
        Fused {
            burns: false,
            ..self.on(inner, end, writer)
        }
    }
}

/// A process in the list of all processes' writes.
#[derive(Clone, Debug)]
pub struct Writer {
    /// Its number, counted from 1.
    pub number: u64,
    /// The numbers of the writers so far.
    pub all: Arc<Mutex<Vec<u64>>>,
}

/// A connection that breaks when its process dies.
#[derive(Clone)]
pub struct Fused<S> {
    inner: S,
    end: End,
    fuse: Fuse,
    burns: bool,
    writer: Writer,
}

/// Where a connection leads, which tells what a write is.
#[derive(Clone)]
pub enum End {
    /// To the cloud. Its simulator knows: there are APIs in which every call is a GET.
    Cloud(CloudService),
    /// To the API server.
    Kube,
}

impl End {
    /// Whether a request changes something that the process leaves behind; the lease is none of that, nor are questions.
    fn is_write<B>(&self, request: &http::Request<B>) -> bool {
        let path = request.uri().path();
        match self {
            Self::Cloud(cloud) => cloud.is_write(request),
            Self::Kube => {
                *request.method() != Method::GET && !path.contains("/leases") && !path.contains("reviews")
            }
        }
    }
}

impl<S, B> tower::Service<http::Request<B>> for Fused<S>
where
    S: tower::Service<http::Request<B>>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let fuse = self.fuse.clone();
        if fuse.is_burnt() {
            return Box::pin(std::future::pending());
        }
        let is_write = self.end.is_write(&request);
        if is_write {
            self.writer.all.lock().unwrap().push(self.writer.number);
        }
        let burns = self.burns && is_write;
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            if burns {
                fuse.burn();
            }
            if fuse.is_burnt() {
                std::future::pending::<()>().await;
            }
            answer
        })
    }
}
