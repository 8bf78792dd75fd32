//! One request and its answer: the order of pace, slot, gate and time limit is fixed here and nowhere else.

use std::borrow::Cow;
use std::error::Error as _;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use kube::client::Body;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::Instant;

use crate::client::Kube;
use crate::error::KubeError;
use crate::fence::{Fence, Refused};
use crate::metrics::Measured;
use crate::rbac::Asked;

/// How a request stands to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// Waits for its turn.
    Ordinary,
    /// Gives way to everything else.
    Event,
    /// Waits for nobody: leadership must not be lost because the loops are busy. One at a time by construction.
    Lease,
    /// Waits for nobody and holds no slot: there are two watches, and they stay.
    Watch,
}

/// A request to be sent. It cannot be printed: the body of a token review is a secret.
pub(crate) struct Call {
    method: Method,
    path: String,
    content: Option<(&'static str, Vec<u8>)>,
    rank: Rank,
}

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";

impl Call {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            content: None,
            rank: Rank::Ordinary,
        }
    }

    pub(crate) fn send(
        method: Method,
        path: impl Into<String>,
        content_type: &'static str,
        body: &serde_json::Value,
    ) -> Self {
        let content = Some((content_type, body.to_string().into_bytes()));
        Self {
            method,
            path: path.into(),
            content,
            rank: Rank::Ordinary,
        }
    }

    pub(crate) fn ranked(self, rank: Rank) -> Self {
        Self { rank, ..self }
    }
}

/// What may stand in a path segment as it is; everything else is escaped.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A name as a path segment or query value.
pub(crate) fn segment(name: &str) -> Cow<'_, str> {
    utf8_percent_encode(name, SEGMENT).into()
}

impl Kube {
    /// Sends a request and reads the whole answer.
    ///
    /// # Cancellation
    ///
    /// May be dropped at any await. A write that was sent may be made all the same.
    pub(crate) async fn exchange(&self, call: Call) -> Result<Vec<u8>, KubeError> {
        let authorization = match &self.speaker.account {
            Some(account) => Some(account.header().await?),
            None => None,
        };
        let asked = Instant::now();
        let rank = call.rank;
        if let (Rank::Ordinary | Rank::Event, Some(pacer)) = (rank, &self.speaker.pacer) {
            pacer.turn().await;
        }
        let _slot = match rank {
            Rank::Ordinary => Some(self.link.in_flight.slot().await),
            Rank::Event => Some(self.link.in_flight.slot_of_low_priority().await),
            Rank::Lease | Rank::Watch => None,
        };
        let exchange = async {
            let _under_way = match &self.speaker.writes {
                Some(writes) if call.method != Method::GET => Some(writes.begin()?),
                _ => None,
            };
            let (response, mut measured) = self
                .transmit(call, authorization.as_ref(), asked.elapsed())
                .await?;
            let body = collect(response.into_body()).await?;
            measured.received(body.len());
            Ok(body)
        };
        let answer = tokio::time::timeout(self.speaker.timeout, exchange)
            .await
            .unwrap_or(Err(KubeError::Timeout));
        if let (Err(KubeError::Unauthorized(_)), Some(account), Some(header)) =
            (&answer, &self.speaker.account, &authorization)
        {
            account.refused(header).await;
        }
        answer
    }

    /// Sends a request whose answer is read bit by bit; gives it when its head has come. Always with the process's own
    /// credentials: only watches are read so.
    pub(crate) async fn open(&self, call: Call) -> Result<Response<Body>, KubeError> {
        let transmit = self.transmit(call, None, Duration::ZERO);
        let (response, _) = tokio::time::timeout(self.speaker.timeout, transmit)
            .await
            .unwrap_or(Err(KubeError::Timeout))?;
        Ok(response)
    }

    async fn transmit(
        &self,
        call: Call,
        authorization: Option<&HeaderValue>,
        waited: Duration,
    ) -> Result<(Response<Body>, Measured), KubeError> {
        let Call {
            method,
            path,
            content,
            ..
        } = call;
        let is_write = method != Method::GET;
        let sent = content.as_ref().map_or(0, |(_, body)| body.len());
        let asked = Asked::of(&method, &path);
        let mut request = Request::builder()
            .method(method.clone())
            .uri(path)
            .header(USER_AGENT, &self.speaker.user_agent)
            .header(ACCEPT, HeaderValue::from_static(JSON));
        // A client certificate would win over a token, so a request with a token takes a connection without one.
        let client = match authorization {
            Some(authorization) => {
                request = request.header(AUTHORIZATION, authorization);
                &self.link.anonymous
            }
            None => &self.link.client,
        };
        let body = match content {
            Some((content_type, body)) => {
                request = request.header(CONTENT_TYPE, HeaderValue::from_static(content_type));
                Body::from(body)
            }
            None => Body::empty(),
        };
        let mut request = request
            .body(body)
            .map_err(|error| KubeError::Invalid(error.to_string()))?;

        // Here for what need not be tried at all, and a last time when a connection takes the request over.
        if is_write {
            if !self.speaker.gate.is_open() {
                return Err(KubeError::GateClosed);
            }
            request
                .extensions_mut()
                .insert(Fence(Arc::clone(&self.speaker.gate)));
        }
        let mut measured = self
            .link
            .metrics
            .begin(method_name(&method), &self.link.host, sent, waited);
        let response = client.send(request).await.map_err(|error| transport(&error))?;
        measured.answered(response.status());
        if response.status().is_success() {
            return Ok((response, measured));
        }
        let (head, body) = response.into_parts();
        let body = collect(body).await?;
        measured.received(body.len());
        Err(
            match (KubeError::from_answer(head.status, &head.headers, &body), asked) {
                (KubeError::Forbidden(refusal), Some(asked)) => KubeError::Forbidden(asked.explain(&refusal)),
                (error, _) => error,
            },
        )
    }
}

/// Reads a body into one piece. Each frame is let go as soon as it is copied, so a page of large Nodes is in memory
/// once.
async fn collect(mut body: Body) -> Result<Vec<u8>, KubeError> {
    let expected = http_body::Body::size_hint(&body).exact().unwrap_or(0);
    // The length is the other side's word: only so much is believed in advance.
    let mut collected = Vec::with_capacity(usize::try_from(expected).unwrap_or(0).min(1 << 20));
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(|error| transport(&error))?.into_data() {
            collected.extend_from_slice(&data);
        }
    }
    Ok(collected)
}

/// The error with its causes, which is where the useful words are.
pub(crate) fn transport(error: &kube::Error) -> KubeError {
    if Refused::is_cause_of(error) {
        return KubeError::GateClosed;
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.ends_with(&words) {
            let _ = write!(text, ": {words}"); // writing to a string cannot fail
        }
        cause = error.source();
    }
    KubeError::Transport(text)
}

fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "OTHER",
    }
}
