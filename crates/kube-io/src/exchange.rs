//! One request and its answer: the order of pace, slot, gate and time limit is fixed here and nowhere else.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::NodeName;
use bowline_transport::{BoxError, Fence, GateClosed, cause, with_causes};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use tokio::time::Instant;

use crate::client::{Answer, Body, Kube, TIMEOUT, carry};
use crate::clock::Clock;
use crate::connect::credentials::{Credentials, Presented};
use crate::error::{self, KubeError};
use crate::metrics::Measured;
use crate::rank::Rank;
use crate::rbac::Asked;

/// How long the API server may take to open a watch: it answers as soon as it has understood the question. A request that it
/// makes wait for its turn is cut off after 15 s at most, and rarely waits so long.
const OPENING: Duration = Duration::from_secs(10);

/// A request to be sent. It cannot be printed: the body of a token review is a secret.
pub(crate) struct Call {
    method: Method,
    path: String,
    content: Option<(&'static str, Bytes)>,
    rank: Rank,
    accept: &'static str,
    /// How many bytes of the answer are read at most.
    longest: usize,
}

pub(crate) const JSON: &str = "application/json";
/// Objects without their managed fields. A server passes over a parameter that it does not know: before Kubernetes 1.38 all do, and
/// from then on those without the feature gate `ManagedFieldsOptOut`.
const LEAN: &str = "application/json;drop=metadata.managedFields";
/// The metadata alone: some 4 KiB of a Node instead of 30. A server that does not know this form answers with the whole object.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;drop=metadata.managedFields,\
                        application/json;drop=metadata.managedFields";
/// The same with the managed fields.
const MANAGED_METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";

impl Call {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            path: path.into(),
            content: None,
            rank: Rank::Ordinary,
            accept: LEAN,
            longest: LONGEST_ANSWER,
        }
    }

    pub(crate) fn send(
        method: Method,
        path: impl Into<String>,
        content_type: &'static str,
        body: &impl Serialize,
    ) -> Self {
        #[expect(
            clippy::expect_used,
            reason = "memory takes everything, and no body has keys that are no text"
        )]
        let body = serde_json::to_vec(body).expect("a body that JSON can say");
        let content = Some((content_type, Bytes::from(body)));
        Self {
            method,
            path: path.into(),
            content,
            rank: Rank::Ordinary,
            accept: LEAN,
            longest: LONGEST_ANSWER,
        }
    }

    /// Asks for the metadata of the object instead of the whole of it. A failure is answered with a status in either case.
    pub(crate) fn for_metadata(self) -> Self {
        Self {
            accept: METADATA,
            ..self
        }
    }

    /// Asks for the managed fields too, which tell who wrote what.
    pub(crate) fn with_managed_fields(self) -> Self {
        Self { accept: JSON, ..self }
    }

    /// Asks for the metadata alone, with the managed fields.
    pub(crate) fn for_managed_metadata(self) -> Self {
        Self {
            accept: MANAGED_METADATA,
            ..self
        }
    }

    /// Reads less of the answer than of others.
    pub(crate) fn reading(self, longest: usize) -> Self {
        Self { longest, ..self }
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

/// The path of an object in a namespace; `group` with its version.
pub(crate) fn object_path(group: &str, namespace: &str, plural: &str, name: &str) -> String {
    format!(
        "/{group}/namespaces/{}/{plural}/{}",
        segment(namespace),
        segment(name)
    )
}

pub(crate) fn node_path(name: &NodeName, subresource: &str) -> String {
    format!("/api/v1/nodes/{}{subresource}", segment(name.as_str()))
}

impl Kube {
    /// Sends a request and reads the whole answer.
    ///
    /// # Cancellation
    ///
    /// May be dropped at any await. A write that was sent may be made all the same.
    pub(crate) async fn exchange(&self, mut call: Call) -> Result<Vec<u8>, KubeError> {
        if call.rank == Rank::Ordinary {
            call.rank = self.speaker.rank;
        }
        let authorization = match &self.speaker.account {
            Some(account) => Some(account.header().await?),
            None => None,
        };
        if authorization.is_none() {
            self.refresh_credentials().await?;
        }
        let asked = Instant::now();
        let rank = call.rank;
        if let (Rank::Ordinary | Rank::Event, Some(pacer)) = (rank, &self.speaker.pacer) {
            pacer.turn().await;
        }
        let _slot = match rank {
            Rank::Ordinary => Some(self.link.in_flight.take().await),
            Rank::Event => Some(self.link.in_flight.take_giving_way().await),
            Rank::Lease | Rank::Watch => None,
        };
        let exchange = async {
            let _under_way = match &self.speaker.writes {
                Some(writes) if call.method != Method::GET => Some(writes.begin()?),
                _ => None,
            };
            let mut again = self.second_try(authorization.is_none());
            loop {
                let answer = self.whole(&call, authorization.as_ref(), asked.elapsed()).await;
                if !again.is_due(answer.as_ref().err()).await {
                    return answer;
                }
            }
        };
        let answer = tokio::time::timeout(self.speaker.timeout, exchange)
            .await
            .unwrap_or_else(|_| Err(self.unanswered()));
        if let (Err(KubeError::Unauthorized(_)), Some(account), Some(header)) =
            (&answer, &self.speaker.account, &authorization)
        {
            account.refused(header).await;
        }
        answer
    }

    /// Sends a request whose answer is read bit by bit; gives it when its head has come. Always with the process's own
    /// credentials: only watches are read so.
    pub(crate) async fn open(&self, call: Call) -> Result<Response<Answer>, KubeError> {
        self.refresh_credentials().await?;
        let transmit = async {
            let mut again = self.second_try(true);
            loop {
                let answer = self.transmit(&call, None, Duration::ZERO).await;
                if !again.is_due(answer.as_ref().err()).await {
                    return answer;
                }
            }
        };
        let limit = self.speaker.timeout.min(OPENING);
        let (response, _) = tokio::time::timeout(limit, transmit)
            .await
            .unwrap_or_else(|_| Err(self.unanswered()))?;
        Ok(response)
    }

    /// A request was not answered in its time. No other one is cut off for that before it has had the time of an ordinary one.
    fn unanswered(&self) -> KubeError {
        self.link.is_dead_since(TIMEOUT);
        KubeError::Timeout
    }

    /// Sees to our own credentials. It has a limit of its own, so that the API server is not blamed.
    async fn refresh_credentials(&self) -> Result<(), KubeError> {
        let Some(credentials) = self.link.credentials.as_deref() else {
            return Ok(());
        };
        tokio::time::timeout(self.speaker.timeout, credentials.refresh(&self.link.clock))
            .await
            .unwrap_or_else(
                |_| Err("the credential plugin of the kubeconfig has not answered yet".to_owned()),
            )
            .map_err(KubeError::Transport)
    }

    /// Whether a request that is about to be sent, with our own credentials, may be sent once more.
    fn second_try(&self, is_with_ours: bool) -> SecondTry<'_> {
        let credentials = self.link.credentials.as_deref().filter(|_| is_with_ours);
        SecondTry {
            credentials,
            presented: credentials.map(Credentials::presented),
            clock: &self.link.clock,
        }
    }

    /// Sends a request and reads its answer to the end.
    async fn whole(
        &self,
        call: &Call,
        authorization: Option<&HeaderValue>,
        waited: Duration,
    ) -> Result<Vec<u8>, KubeError> {
        let (response, mut measured) = self.transmit(call, authorization, waited).await?;
        let body = collect(response.into_body(), call.longest).await?;
        measured.received(body.len());
        Ok(body)
    }

    async fn transmit(
        &self,
        call: &Call,
        authorization: Option<&HeaderValue>,
        waited: Duration,
    ) -> Result<(Response<Answer>, Measured), KubeError> {
        let Call {
            method,
            path,
            content,
            rank,
            accept,
            ..
        } = call;
        let is_write = *method != Method::GET;
        let sent = content.as_ref().map_or(0, |(_, body)| body.len());
        let mut request = Request::builder()
            .method(method.clone())
            .uri(path.as_str())
            .header(USER_AGENT, &self.speaker.user_agent)
            .header(ACCEPT, HeaderValue::from_static(accept));
        if let Some(user) = &self.speaker.acts_as {
            request = request.header("Impersonate-User", user);
        }
        // A client certificate would win over a token, so a request with a token takes a connection without one.
        let client = match authorization {
            Some(authorization) => {
                request = request.header(AUTHORIZATION, authorization);
                &self.link.anonymous
            }
            None => &self.link.client,
        };
        let mut body = Bytes::new();
        if let Some((content_type, content)) = content {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static(content_type));
            body = content.clone();
        }
        let mut request = request
            .body(Body::new(body))
            .map_err(|error| KubeError::Invalid(error.to_string()))?;

        request.extensions_mut().insert(rank.pool());

        // Here for what need not be tried at all, and a last time when a connection takes the request over.
        if is_write {
            if self.speaker.gate.check().is_err() {
                return Err(KubeError::GateClosed);
            }
            request
                .extensions_mut()
                .insert(Fence(Arc::clone(&self.speaker.gate)));
        }
        let mut measured = self
            .link
            .metrics
            .begin(method_name(method), &self.link.host, sent, waited);
        let response = carry(client, request).await.map_err(|error| transport(&error))?;
        measured.answered(response.status());
        self.link.dates.note(response.headers());
        if response.status().is_success() {
            return Ok((response, measured));
        }
        let (head, body) = response.into_parts();
        let body = collect(body, LONGEST_ANSWER).await?;
        measured.received(body.len());
        if head.status == StatusCode::FORBIDDEN && error::is_of_leaving_namespace(&body) {
            measured.came_too_late();
        }
        Err(
            match (
                KubeError::from_answer(head.status, &head.headers, &body),
                Asked::of(method, path),
            ) {
                (KubeError::Forbidden(refusal), Some(asked)) => KubeError::Forbidden(asked.explain(&refusal)),
                (error, _) => error,
            },
        )
    }
}

/// A request is sent once more, at once, if the API server did not know our credentials and there are others by now. It did
/// nothing then, so that also a write may be sent again; each time the gate is asked anew.
///
/// An API server that refuses for ever is asked once per request, and costs one look at the files in a second.
struct SecondTry<'a> {
    /// None: there are none to read again.
    credentials: Option<&'a Credentials>,
    /// What the first try is made with; `None`: it was made.
    presented: Option<Presented>,
    clock: &'a Arc<dyn Clock>,
}

impl SecondTry<'_> {
    async fn is_due(&mut self, failure: Option<&KubeError>) -> bool {
        let (Some(credentials), Some(error)) = (self.credentials, failure) else {
            return false;
        };
        match (error, self.presented.take()) {
            (KubeError::Unauthorized(_), Some(presented)) => {
                credentials.are_renewed(&presented, self.clock).await
            }
            // A certificate that is refused, theirs or ours, looks like a connection that breaks.
            (KubeError::Transport(_), _) => {
                credentials.distrust();
                false
            }
            _ => false,
        }
    }
}

/// The most bytes of an answer: some twenty times a page of large Nodes. What is longer is not the API server's, or it would fill
/// the memory until the process is killed.
pub(crate) const LONGEST_ANSWER: usize = 64 << 20;

/// Reads a body into one piece. Each frame is let go as soon as it is copied, so a page of large Nodes is in memory
/// once.
async fn collect(mut body: Answer, longest: usize) -> Result<Vec<u8>, KubeError> {
    let expected = http_body::Body::size_hint(&body).exact().unwrap_or(0);
    // The length is the other side's word: only so much is believed in advance.
    let mut collected = Vec::with_capacity(usize::try_from(expected).unwrap_or(0).min(1 << 20));
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(|error| transport(&error))?.into_data() {
            if data.len() > longest - collected.len() {
                return Err(KubeError::TooLong(longest >> 20));
            }
            collected.extend_from_slice(&data);
        }
    }
    Ok(collected)
}

/// Why there is no answer: the error with its causes, which is where the useful words are.
pub(crate) fn transport(error: &BoxError) -> KubeError {
    if cause::<GateClosed>(&**error).is_some() {
        return KubeError::GateClosed;
    }
    KubeError::Transport(with_causes(&**error))
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;

    use super::*;
    use crate::client::KubeOptions;
    use crate::events::ObjectRef;

    #[tokio::test]
    async fn managed_fields_are_asked_for_only_where_they_name_a_writer() {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let answer = tower::service_fn(move |request: Request<Body>| {
            let accept = request.headers()[ACCEPT].to_str().unwrap_or_default().to_owned();
            seen.lock().unwrap().push(accept);
            async { Ok::<_, Infallible>(Response::new(Body::from(br#"{"items":[]}"#.to_vec()))) }
        });
        let kube = Kube::with_service(answer, KubeOptions::new("test"));
        let _ = kube.is_healthy().await;
        let _ = kube.exchange(Call::send(Method::PATCH, "/", MERGE, &())).await;
        let _ = kube.exchange(Call::get("/").for_metadata()).await;
        let object = ObjectRef::lease("kube-system", "ccm", "");
        let _ = kube.other_writer(&object, &[]).await;
        let _ = kube.shown_lease("kube-system", "ccm").await;
        let _ = kube.held_leases("kube-system").await;
        let drops = "drop=metadata.managedFields";
        let asked = asked.lock().unwrap();
        let left_out: Vec<usize> = asked.iter().map(|accept| accept.matches(drops).count()).collect();
        assert_eq!(left_out, [1, 1, 2, 0, 0, 0], "{asked:?}");
    }

    #[tokio::test]
    async fn an_answer_without_end_is_not_read_to_its_end() {
        let body = || {
            Body::from(vec![b'x'; 1000])
                .map_err(BoxError::from)
                .boxed_unsync()
        };
        assert_eq!(collect(body(), 1000).await.unwrap().len(), 1000);
        let error = collect(body(), 999).await.unwrap_err();
        assert_eq!(error, KubeError::TooLong(0));
    }
}
