//! What stands between the client and the API server, and changes answers on their way.

use std::sync::{Arc, Mutex};

use bowline_kit::scenario::{Complaint, word};
use bowline_kube_api::{BoxError, KubeApi};
use bowline_kube_io::{Body, Kube, KubeOptions};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{HeaderValue, Request, Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use serde_json::Value;
use tokio::time::Instant;
use tower::ServiceExt as _;

type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

#[derive(Clone, Default)]
pub(crate) struct Proxy(Arc<Mutex<Rules>>);

#[derive(Clone, Default)]
pub(crate) struct Rules {
    spoils: Vec<Spoil>,
    /// What the next watch shows before it falls silent.
    pub(crate) shows: Vec<String>,
    /// Whoever has no token shows this one.
    pub(crate) token: Option<String>,
    /// Requests with this in their path are refused until then.
    pub(crate) busy: Option<(String, Instant)>,
    /// Another API server that answers in its place.
    pub(crate) instead: Option<KubeApi>,
}

/// `lists`, `questions` or `all`, a path into the answer, and a value, `absent` or `first N`. `*` stands for each item.
#[derive(Clone)]
struct Spoil {
    of: String,
    path: Vec<String>,
    value: String,
}

impl Proxy {
    pub(crate) fn edit(&self, change: impl FnOnce(&mut Rules)) {
        change(&mut self.0.lock().unwrap());
    }

    pub(crate) fn spoil(&self, rest: &str) {
        let (of, rest) = word(rest);
        let (path, value) = word(rest);
        let spoil = Spoil {
            of: of.to_owned(),
            path: path.split('/').skip(1).map(str::to_owned).collect(),
            value: value.to_owned(),
        };
        self.edit(|rules| rules.spoils.push(spoil));
    }

    pub(crate) fn be_honest(&self) {
        self.edit(|rules| rules.spoils.clear());
    }

    pub(crate) fn before(&self, api: &KubeApi, options: KubeOptions) -> Kube {
        let (api, proxy) = (api.clone(), self.clone());
        Kube::with_service(
            tower::service_fn(move |request| proxy.clone().answer(api.clone(), request)),
            options,
        )
    }

    async fn answer(self, api: KubeApi, mut request: Request<Body>) -> Result<Answer, BoxError> {
        let rules = self.0.lock().unwrap().clone();
        let query = request.uri().query().unwrap_or_default().to_owned();
        if let Some((path, until)) = rules.busy
            && request.uri().path().contains(&path)
            && Instant::now() < until
        {
            let busy = Response::builder().status(429).header(header::RETRY_AFTER, 10);
            return Ok(busy.body(whole(String::new()))?);
        }
        if let Some(token) = rules.token {
            let token = HeaderValue::try_from(format!("Bearer {token}"))?;
            request
                .headers_mut()
                .entry(header::AUTHORIZATION)
                .or_insert(token);
        }
        let is_watch = query.contains("watch=true");
        if is_watch && !rules.shows.is_empty() {
            self.edit(|rules| rules.shows.clear());
            let lines = Bytes::from(rules.shows.concat());
            let lines = stream::iter([Ok(Frame::data(lines))]).chain(stream::pending());
            return Ok(Response::new(UnsyncBoxBody::new(StreamBody::new(lines))));
        }
        let service = rules.instead.unwrap_or(api).service();
        let (head, body) = service.oneshot(request).await?.into_parts();
        let mut spoils = rules.spoils;
        spoils.retain(|it| match it.of.as_str() {
            "lists" => !query.contains("fieldSelector"),
            "questions" => query.contains("fieldSelector"),
            "all" => true,
            name => query.contains(&format!("metadata.name%3D{name}")),
        });
        if is_watch || spoils.is_empty() || !head.status.is_success() {
            return Ok(Response::from_parts(
                head,
                body.map_err(Into::into).boxed_unsync(),
            ));
        }
        let mut list: Value = serde_json::from_slice(&body.collect().await?.to_bytes())?;
        for spoil in spoils {
            spoil.act(&mut list, &spoil.path)?;
        }
        Ok(Response::from_parts(head, whole(list.to_string())))
    }
}

impl Spoil {
    fn act(&self, value: &mut Value, path: &[String]) -> Result<(), Complaint> {
        let (first, rest) = match path {
            [] => {
                *value =
                    serde_json::from_str(&self.value).map_err(|error| format!("{}: {error}", self.value))?;
                return Ok(());
            }
            [star, rest @ ..] if star == "*" => {
                let mut items = value.as_array_mut().into_iter().flatten();
                return items.try_for_each(|item| self.act(item, rest));
            }
            // The item of this name.
            [name, rest @ ..] if name.starts_with('=') => {
                let items = value.as_array_mut().into_iter().flatten();
                let named = |item: &&mut Value| item["metadata"]["name"] == name[1..];
                return items.filter(named).try_for_each(|item| self.act(item, rest));
            }
            [first, rest @ ..] => (first, rest),
        };
        if let ([], Some(count)) = (rest, self.value.strip_prefix("first ")) {
            let count = count.parse().map_err(|_| "first how many?".to_owned())?;
            value[first].as_array_mut().ok_or("no list")?.truncate(count);
        } else if rest.is_empty() && self.value == "absent" {
            value.as_object_mut().and_then(|it| it.remove(first));
        } else {
            self.act(&mut value[first], rest)?;
        }
        Ok(())
    }
}

fn whole(text: String) -> UnsyncBoxBody<Bytes, BoxError> {
    Full::from(text).map_err(Into::into).boxed_unsync()
}
