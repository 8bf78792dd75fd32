//! A cloud that answers by script and remembers what it was asked.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "what helps a test may fail it"
)]

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bowline_cloud_http::{
    BoxError, Bytes, CloudHttp, CloudHttpConfig, Method, Request, Transport, TransportError, Url,
};
use http_body_util::{BodyExt, Full};
use tokio::time::Instant;

/// What happens to one exchange.
pub(crate) enum Step {
    /// An answer: status, headers, body.
    Answer(u16, Vec<(&'static str, &'static str)>, &'static str),
    /// An answer after a while.
    Late(Duration, u16),
    /// Headers, half of a body, and then nothing more.
    HalfABody(u16),
    /// Headers, half of a body, and then the connection breaks.
    BrokenBody(u16),
    /// No answer at all.
    Silence,
    /// The transport fails.
    Fails(fn(BoxError) -> TransportError),
}

impl Step {
    pub(crate) fn status(status: u16) -> Self {
        Self::Answer(status, Vec::new(), "")
    }

    pub(crate) fn body(status: u16, body: &'static str) -> Self {
        Self::Answer(status, Vec::new(), body)
    }
}

/// One request as the cloud saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Time since the cloud was set up.
    pub(crate) at: Duration,
    pub(crate) head: String,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: String,
}

#[derive(Clone)]
pub(crate) struct Cloud {
    begun: Instant,
    script: Arc<Mutex<VecDeque<Step>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Cloud {
    pub(crate) fn new(script: impl IntoIterator<Item = Step>) -> Self {
        Self {
            begun: Instant::now(),
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            seen: Arc::default(),
        }
    }

    pub(crate) fn client(&self) -> CloudHttp {
        self.client_with(|_| {})
    }

    pub(crate) fn client_with(&self, change: impl FnOnce(&mut CloudHttpConfig)) -> CloudHttp {
        let mut config = CloudHttpConfig::new("nimbus", "bowline/test");
        change(&mut config);
        let cloud = self.clone();
        CloudHttp::new(
            config,
            Transport::memory(tower::service_fn(move |request| cloud.clone().answer(request))),
        )
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// When the requests came, in milliseconds.
    pub(crate) fn times(&self) -> Vec<u128> {
        self.seen().iter().map(|seen| seen.at.as_millis()).collect()
    }

    async fn answer(
        self,
        request: http::Request<Full<Bytes>>,
    ) -> Result<http::Response<ScriptedBody>, BoxError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        self.seen.lock().unwrap().push(Seen {
            at: self.begun.elapsed(),
            head: format!("{} {}", head.method, head.uri),
            headers: head.headers,
            body: String::from_utf8(body.to_vec())?,
        });
        let step = self
            .script
            .lock()
            .unwrap()
            .pop_front()
            .expect("an exchange more than the script has");
        let build = |status: u16, body| Ok(http::Response::builder().status(status).body(body)?);
        match step {
            Step::Answer(status, headers, text) => {
                let mut answer = build(status, ScriptedBody::whole(text))?;
                for (name, value) in headers {
                    answer.headers_mut().insert(name, value.parse()?);
                }
                Ok(answer)
            }
            Step::Late(delay, status) => {
                tokio::time::sleep(delay).await;
                build(status, ScriptedBody::whole("{}"))
            }
            Step::HalfABody(status) => build(
                status,
                ScriptedBody {
                    data: Some("[1,"),
                    end: BodyEnd::Never,
                },
            ),
            Step::BrokenBody(status) => build(
                status,
                ScriptedBody {
                    data: Some("[1,"),
                    end: BodyEnd::Breaks,
                },
            ),
            Step::Silence => std::future::pending().await,
            Step::Fails(failure) => Err(failure("wire cut".into()).into()),
        }
    }
}

pub(crate) struct ScriptedBody {
    data: Option<&'static str>,
    end: BodyEnd,
}

enum BodyEnd {
    Whole,
    Never,
    Breaks,
}

impl ScriptedBody {
    fn whole(text: &'static str) -> Self {
        Self {
            data: Some(text),
            end: BodyEnd::Whole,
        }
    }
}

impl http_body::Body for ScriptedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
        if let Some(data) = self.data.take() {
            return Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from_static(
                data.as_bytes(),
            )))));
        }
        match self.end {
            BodyEnd::Whole => Poll::Ready(None),
            BodyEnd::Never => Poll::Pending,
            BodyEnd::Breaks => Poll::Ready(Some(Err("wire cut".into()))),
        }
    }
}

pub(crate) fn url() -> Url {
    Url::parse("https://cloud.example/v1/things?secret=yes").unwrap()
}

pub(crate) fn read() -> Request {
    Request::read(Method::GET, "things.list", url())
}

pub(crate) fn write() -> Request {
    Request::write(Method::POST, "things.create", url())
}
