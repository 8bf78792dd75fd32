//! The server as a `tower` service: what `kube::Client` and hyper talk to.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use futures::stream;
use http::{HeaderValue, Response, header};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use serde_json::Value;

use crate::access::User;
use crate::core::Core;
use crate::faults::Effect;
use crate::handle::{Answer, handle, is_public};
use crate::journal::Exchange;
use crate::path;
use crate::request::Request;
use crate::status::Status;

/// Any error; what breaks a connection.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The server behind an interface that HTTP clients and servers plug into.
#[derive(Clone)]
pub struct ApiService {
    core: Arc<Core>,
}

impl ApiService {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    async fn answer<B>(self, request: http::Request<B>) -> Result<Response<ApiBody>, BoxError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(Into::into)?.to_bytes();
        let mut request = Request::new(head.method, &head.uri, &head.headers, body.to_vec());
        let at = self.core.now();
        let authorization = head
            .headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let answer = match self.core.access.authenticate(authorization, at) {
            Err(status) if !is_public(&request.path) => Ok(Err(status)),
            authenticated => {
                let user = authenticated.unwrap_or_else(|_| User::anonymous());
                match self
                    .core
                    .access
                    .acting(user, head.headers.get("impersonate-user"))
                {
                    Err(status) => Ok(Err(status)),
                    Ok(user) => {
                        request.user = user;
                        self.perform(&request).await
                    }
                }
            }
        };
        let response = answer.map(respond);
        let status = response.as_ref().map_or(0, |response| response.status().as_u16());
        self.core.journal.record(exchange(&request, at, status));
        response
    }

    /// Handles a request as the faults allow; the outer error breaks the connection.
    async fn perform(&self, request: &Request) -> Result<Result<Answer, Status>, BoxError> {
        let target = &request.target;
        let (delay, effect) =
            self.core
                .faults
                .meet(&target.verb, &target.resource, &target.subresource, &target.name);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        match effect {
            Some(Effect::Answer(status)) => Ok(Err(status)),
            Some(Effect::DropBefore) => {
                Err("connection dropped by a fault before the request took effect".into())
            }
            Some(Effect::DropAfter) => {
                // The answer is lost, whatever it was.
                drop(handle(&self.core, request));
                Err("connection dropped by a fault after the request took effect".into())
            }
            Some(Effect::Text(code, text)) => Ok(Ok(Answer::Text(code, text))),
            Some(Effect::Silence) => match handle_watch(&self.core, request) {
                Some(answer) => Ok(answer),
                None => std::future::pending().await,
            },
            Some(Effect::Delay(_) | Effect::Rewrite(_) | Effect::Deny(_)) | None => {
                Ok(handle(&self.core, request))
            }
        }
    }
}

/// A watch that shows nothing; `None` if the request is no watch.
fn handle_watch(core: &Arc<Core>, request: &Request) -> Option<Result<Answer, Status>> {
    (request.target.verb == "watch").then(|| {
        handle(core, request).map(|answer| match answer {
            Answer::Watch(mut watch) => {
                watch.fall_silent();
                Answer::Watch(watch)
            }
            other => other,
        })
    })
}

impl<B> tower::Service<http::Request<B>> for ApiService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ApiBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

/// The body of an answer: all of it, or lines as they come.
pub struct ApiBody(Content);

enum Content {
    Whole(Option<Bytes>),
    Lines(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Content::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Lines(lines) => lines
                .as_mut()
                .poll_next(cx)
                .map(|line| line.map(|line| Ok(Frame::data(line)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Content::Whole(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match &self.0 {
            Content::Whole(bytes) => {
                http_body::SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Lines(_) => http_body::SizeHint::default(),
        }
    }
}

fn respond(answer: Result<Answer, Status>) -> Response<ApiBody> {
    let (code, media, content) = match answer {
        Ok(Answer::Object(code, object)) => (code, "application/json", whole(&object)),
        Ok(Answer::Text(code, text)) => (
            code,
            "text/plain; charset=utf-8",
            Content::Whole(Some(Bytes::from_static(text.as_bytes()))),
        ),
        Ok(Answer::Watch(watch)) => {
            let lines = stream::unfold(watch, |mut watch| async move {
                let line = watch.next().await?;
                Some((line, watch))
            });
            (200, "application/json", Content::Lines(Box::pin(lines)))
        }
        Err(status) => {
            let mut response = respond(Ok(Answer::Object(status.code, status.to_value())));
            if let Some(seconds) = status.retry_after_seconds {
                response
                    .headers_mut()
                    .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
            return response;
        }
    };
    let mut response = Response::new(ApiBody(content));
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    response
}

fn whole(object: &Value) -> Content {
    Content::Whole(Some(Bytes::from(format!("{object}\n"))))
}

fn exchange(request: &Request, at: jiff::Timestamp, status: u16) -> Exchange {
    let target = request.target.clone();
    let mut body = request.json().ok().flatten();
    if let Some(body) = &mut body
        && path::at(body, "spec.token").is_some()
    {
        path::set(body, "spec.token", "blanked");
    }
    Exchange {
        at,
        verb: target.verb,
        group: target.group,
        resource: target.resource,
        subresource: target.subresource,
        namespace: target.namespace,
        name: target.name,
        path: request.path.clone(),
        query: request.raw_query.clone(),
        content_type: request.content_type.clone(),
        body,
        user_agent: request.user_agent.clone(),
        user: request.user.name.clone(),
        status,
    }
}
