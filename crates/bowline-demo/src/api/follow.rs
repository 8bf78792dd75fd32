//! Following the objects of one kind: a list, then a watch, and the same again when the watch ends.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use http_body_util::BodyExt as _;
use serde_json::Value;

use super::{Api, ApiError};
use crate::service;

/// Between an end of a watch and the next list.
const PAUSE: Duration = Duration::from_millis(500);

/// What happened to one object.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    /// None if it is new.
    pub(crate) old: Option<&'a Value>,
    /// None if it is gone.
    pub(crate) new: Option<&'a Value>,
}

impl Change<'_> {
    /// Keeps what is derived from each object, by its UID.
    pub(crate) fn keep<T>(&self, kept: &mut BTreeMap<String, T>, derive: impl Fn(&Value) -> Option<T>) {
        let uid = |object: &Value| object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        if let Some(old) = self.old {
            kept.remove(&uid(old));
        }
        if let Some((new, derived)) = self.new.and_then(|new| Some((new, derive(new)?))) {
            kept.insert(uid(new), derived);
        }
    }
}

/// Calls `tell` for everything that is there and for every change after that. Never returns; drop it to stop.
pub(crate) async fn follow(api: Api, collection: &str, mut tell: impl FnMut(Change<'_>)) {
    let mut known = Known::default();
    loop {
        // Both end in the same way: begin again. A server on its way up or down is everyday life here.
        if let Ok(list) = api.read(collection).await {
            for (key, object) in known.reset(&list) {
                known.note(&key, object, &mut tell);
            }
            let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            let _ = watch(&api, collection, version, &mut known, &mut tell).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn watch(
    api: &Api,
    collection: &str,
    version: &str,
    known: &mut Known,
    tell: &mut impl FnMut(Change<'_>),
) -> Result<(), ApiError> {
    let path = format!("{collection}?watch=true&allowWatchBookmarks=true&resourceVersion={version}");
    let (response, _connection) = api.send(Method::GET, &path, None).await?;
    let mut body = response.into_body();
    let mut lines = Lines::default();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(ApiError::unreachable)?.into_data() else {
            continue;
        };
        for line in lines.push(&data) {
            let mut event: Value = serde_json::from_slice(&line).map_err(ApiError::unreachable)?;
            let object = event["object"].take();
            match event["type"].as_str() {
                Some("ADDED" | "MODIFIED") => known.note(&key(&object), Some(object), tell),
                Some("DELETED") => known.note(&key(&object), None, tell),
                Some("BOOKMARK") => {}
                _ => return Ok(()),
            }
        }
    }
    Ok(())
}

/// Lines out of pieces.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn push(&mut self, data: &[u8]) -> Vec<Vec<u8>> {
        self.0.extend_from_slice(data);
        let mut complete = Vec::new();
        while let Some(end) = self.0.iter().position(|&byte| byte == b'\n') {
            let rest = self.0.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.0, rest);
            line.pop();
            complete.push(line);
        }
        complete
    }
}

/// The last that was seen of each object.
#[derive(Default)]
struct Known(BTreeMap<String, Value>);

impl Known {
    /// The differences between what is known and a list.
    fn reset(&self, list: &Value) -> Vec<(String, Option<Value>)> {
        let items = service::list(&list["items"]);
        let found: BTreeMap<String, &Value> = items.map(|object| (key(object), object)).collect();
        let gone = self.0.keys().filter(|key| !found.contains_key(*key));
        let gone = gone.map(|key| (key.clone(), None));
        let there = found
            .iter()
            .map(|(key, object)| (key.clone(), Some(Value::clone(object))));
        gone.chain(there).collect()
    }

    fn note(&mut self, key: &str, new: Option<Value>, tell: &mut impl FnMut(Change<'_>)) {
        let old = self.0.remove(key);
        if old.as_ref().map(version) != new.as_ref().map(version) {
            tell(Change {
                old: old.as_ref(),
                new: new.as_ref(),
            });
        }
        if let Some(new) = new {
            self.0.insert(key.to_owned(), new);
        }
    }
}

fn key(object: &Value) -> String {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}

fn version(object: &Value) -> (&Value, &Value) {
    let metadata = &object["metadata"];
    (&metadata["uid"], &metadata["resourceVersion"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, version: &str) -> Value {
        json!({ "metadata": { "name": name, "uid": name, "resourceVersion": version } })
    }

    #[test]
    fn lines_are_put_together_from_pieces() {
        let mut lines = Lines::default();
        assert!(lines.push(b"{\"a\":").is_empty());
        assert_eq!(lines.push(b"1}\n{}\n{"), [b"{\"a\":1}".to_vec(), b"{}".to_vec()]);
    }

    #[test]
    fn a_second_list_tells_only_the_differences() {
        let mut known = Known::default();
        let mut told = Vec::new();
        let mut hear = |known: &mut Known, items: &[Value]| {
            for (key, object) in known.reset(&json!({ "items": items })) {
                known.note(&key, object, &mut |change: Change<'_>| {
                    told.push((change.old.is_some(), change.new.is_some()));
                });
            }
        };
        hear(&mut known, &[object("a", "1"), object("b", "2")]);
        hear(&mut known, &[object("b", "2")]);
        hear(&mut known, &[object("b", "3")]);
        assert_eq!(told, [(false, true), (false, true), (true, false), (true, true)]);
    }
}
