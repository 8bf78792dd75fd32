//! The page over HTTP. It can be reached from this machine only, and its buttons only from the page itself.
//!
//! Any page in the reader's browser may send requests to this port. So a request must name this server as its host, which
//! the page of another site cannot do even if its name leads here, and a button's request must also come from this page's
//! origin and bear the token that is written into it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::header::{
    self, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Body, Frame};
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use uuid::Uuid;

use super::hands::{Deed, Hands, Refusal};
use crate::listen;

/// The most connections: a browser keeps one for each open page and a few more.
const CONNECTIONS: usize = 64;

/// How long a request's head may take.
const HEAD: Duration = Duration::from_secs(10);

/// A stream that is silent for so long says that it is alive.
const SILENCE: Duration = Duration::from_secs(15);

/// The header of the token that a button's request bears.
const TOKEN: HeaderName = HeaderName::from_static("x-demo-token");

const TEXT: &str = "text/plain; charset=utf-8";

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// Serves for ever; drop it to stop.
pub(super) async fn serve(
    listener: TcpListener,
    address: SocketAddr,
    hands: Arc<Hands>,
    pictures: watch::Receiver<Arc<str>>,
) {
    let server = Arc::new(Server::new(address, hands, pictures));
    let mut connection = http1::Builder::new();
    connection.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let answer = move |request, _| {
        let server = Arc::clone(&server);
        async move { server.answer(&request).await }
    };
    listen::serve(listener, CONNECTIONS, connection, answer).await;
}

struct Server {
    /// What a request may call this server.
    hosts: [String; 2],
    token: String,
    page: Bytes,
    policy: HeaderValue,
    hands: Arc<Hands>,
    pictures: watch::Receiver<Arc<str>>,
}

impl Server {
    fn new(address: SocketAddr, hands: Arc<Hands>, pictures: watch::Receiver<Arc<str>>) -> Self {
        let token = Uuid::new_v4().simple().to_string();
        // Another random text than the token: it is of no use to whoever reads it.
        let nonce = Uuid::new_v4().simple().to_string();
        let policy = format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; \
             img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        );
        Self {
            hosts: [address.to_string(), format!("localhost:{}", address.port())],
            page: page(&token, &nonce).into(),
            policy: HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'")),
            token,
            hands,
            pictures,
        }
    }

    async fn answer<B: Body>(&self, request: &Request<B>) -> Answer {
        let headers = request.headers();
        let Some(host) = self.host(headers) else {
            let text = format!("this page is at http://{}/ and nowhere else", self.hosts[0]);
            return self.reply(StatusCode::MISDIRECTED_REQUEST, TEXT, text);
        };
        let path = request.uri().path();
        match (request.method(), path, path.strip_prefix("/do/")) {
            (&Method::GET, "/", _) => {
                self.reply(StatusCode::OK, "text/html; charset=utf-8", self.page.clone())
            }
            (&Method::GET, "/events", _) => self.events(),
            (&Method::POST, _, Some(deed)) => match Deed::parse(deed) {
                None => self.reply(StatusCode::NOT_FOUND, TEXT, "there is no such button"),
                Some(_) if !self.is_from_page(headers, host) => self.reply(
                    StatusCode::FORBIDDEN,
                    TEXT,
                    "only the page itself presses its buttons",
                ),
                Some(deed) => self.act(deed).await,
            },
            (_, "/" | "/events", _) | (_, _, Some(_)) => self.reply(
                StatusCode::METHOD_NOT_ALLOWED,
                TEXT,
                "this method is of no use here",
            ),
            _ => self.reply(StatusCode::NOT_FOUND, TEXT, "there is nothing here"),
        }
    }

    /// What the request calls this server, if that is one of its names.
    fn host<'a>(&'a self, headers: &HeaderMap) -> Option<&'a str> {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(named), None) = (named.next(), named.next()) else {
            return None;
        };
        let mut hosts = self.hosts.iter();
        hosts
            .find(|host| host.as_bytes() == named.as_bytes())
            .map(String::as_str)
    }

    /// Whether a button's request comes from the page that was got under this name.
    fn is_from_page(&self, headers: &HeaderMap, host: &str) -> bool {
        let is = |name: HeaderName, value: &str| {
            headers
                .get(name)
                .is_some_and(|it| it.as_bytes() == value.as_bytes())
        };
        is(header::ORIGIN, &format!("http://{host}")) && is(TOKEN, &self.token)
    }

    async fn act(&self, deed: Deed) -> Answer {
        let (status, text) = match self.hands.act(deed).await {
            Ok(said) => (StatusCode::OK, said),
            Err(refusal @ Refusal::Pointless(_)) => (StatusCode::CONFLICT, refusal.to_string()),
            Err(refusal @ Refusal::Api(_)) => (StatusCode::BAD_GATEWAY, refusal.to_string()),
        };
        self.reply(status, "application/json", json!({ "said": text }).to_string())
    }

    /// The picture now, and each one after that which differs.
    fn events(&self) -> Answer {
        let mut pictures = self.pictures.clone();
        pictures.mark_changed();
        let frames = stream::unfold(pictures, |mut pictures| async move {
            let text = match tokio::time::timeout(SILENCE, pictures.changed()).await {
                Ok(Ok(())) => format!("data: {}\n\n", *pictures.borrow_and_update()),
                // The demo is over.
                Ok(Err(_)) => return None,
                Err(_) => ":\n\n".to_owned(),
            };
            Some((Ok(Frame::data(Bytes::from(text))), pictures))
        });
        self.headed(
            StatusCode::OK,
            "text/event-stream",
            StreamBody::new(frames).boxed_unsync(),
        )
    }

    fn reply(&self, status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Answer {
        self.headed(status, kind, Full::new(text.into()).boxed_unsync())
    }

    fn headed(
        &self,
        status: StatusCode,
        kind: &'static str,
        body: UnsyncBoxBody<Bytes, Infallible>,
    ) -> Answer {
        let mut answer = Response::new(body);
        *answer.status_mut() = status;
        let headers = answer.headers_mut();
        let fixed = [
            (CONTENT_TYPE, kind),
            (CACHE_CONTROL, "no-store"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (X_FRAME_OPTIONS, "DENY"),
            (REFERRER_POLICY, "no-referrer"),
            (
                HeaderName::from_static("cross-origin-resource-policy"),
                "same-origin",
            ),
            (
                HeaderName::from_static("cross-origin-opener-policy"),
                "same-origin",
            ),
        ];
        for (name, value) in fixed {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        answer
    }
}

/// The page in one piece.
fn page(token: &str, nonce: &str) -> String {
    include_str!("index.html")
        .replace("{{style}}", include_str!("page.css"))
        .replace("{{script}}", include_str!("page.js"))
        .replace("{{nonce}}", nonce)
        .replace("{{token}}", token)
}

#[cfg(test)]
mod tests;
