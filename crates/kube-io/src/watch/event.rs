//! The lines of a watch, and what they change in the cache.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cache::Cache;
use crate::client::Kube;
use crate::error::{KubeError, Status};
use crate::reads::Listed;
use crate::shape::{Names, names, read, version_number};

/// One line of a watch.
pub(crate) struct WireEvent<'a> {
    pub(crate) kind: &'a str,
    /// JSON, or what will be found to be none.
    pub(crate) object: &'a [u8],
}

#[derive(Deserialize)]
struct WireLine<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl<'a> WireEvent<'a> {
    /// Reads the line. One that says why the watch ends is that error.
    pub(crate) fn read(line: &'a [u8]) -> Result<Self, KubeError> {
        let event = match Self::as_api_servers_write(line) {
            Some(event) => event,
            None => Self::of(read(line)?),
        };
        match event.kind {
            "ERROR" => Err(KubeError::from_status(read::<Status>(event.object)?, None)),
            _ => Ok(event),
        }
    }

    fn of(WireLine { kind, object }: WireLine<'a>) -> Self {
        let object = object.get().as_bytes();
        Self { kind, object }
    }

    /// The two parts of `{"type":"MODIFIED","object":{...}}`, in this order and without blanks, as every API server writes them.
    /// So the object, which is most of the line, is read once: by whoever knows what it is.
    fn as_api_servers_write(line: &'a [u8]) -> Option<Self> {
        let rest = line.strip_prefix(br#"{"type":""#)?;
        let (kind, rest) = rest.split_at_checked(rest.iter().position(|byte| *byte == b'"')?)?;
        let object = rest.strip_prefix(br#"","object":"#)?.strip_suffix(b"}")?;
        let kind = str::from_utf8(kind).ok().filter(|kind| !kind.contains('\\'))?;
        Some(Self { kind, object })
    }
}

/// Applies one event; gives the version that the watch has reached.
pub(super) fn apply<T: Listed>(
    kube: &Kube,
    cache: &Cache<T>,
    event: &WireEvent<'_>,
) -> Result<Option<String>, KubeError> {
    let object = event.object;
    match event.kind {
        "ADDED" | "MODIFIED" => match T::decode(object, kube) {
            Ok(seen) => {
                let version = seen.object.resource_version().to_owned();
                cache.observe(seen);
                return Ok(Some(version).filter(|version| !version.is_empty()));
            }
            Err(error) => {
                tracing::debug!(kind = T::PLURAL, err = %error, "A watch shows an object that does not tell which one it is");
                cache.set_nameless(cache.nameless().max(1));
            }
        },
        "DELETED" => {
            let Names {
                namespace,
                name,
                uid,
                resource_version,
                ..
            } = names(object);
            // Which one is gone, a list tells.
            let unnamed =
                || KubeError::Decode(format!("one of the {} was deleted, without a name", T::PLURAL));
            let key = T::key_of(&namespace, &name).ok_or_else(unnamed)?;
            let version = version_number(&resource_version).unwrap_or_default();
            // That a predecessor went is no news of the one that has its name since.
            let is_late = |known: Arc<T>| {
                let known_since = version_number(known.resource_version()).unwrap_or_default();
                !uid.is_empty() && uid != known.uid() && version < known_since
            };
            if cache.get(&key).is_some_and(|known| !is_late(known)) {
                cache.doubt(key, version);
            }
        }
        "BOOKMARK" => {}
        kind => tracing::debug!(kind, "Watch event of an unknown type"),
    }
    Ok(Some(names(object).resource_version).filter(|version| !version.is_empty()))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::NodeCache;

    #[test]
    fn a_line_is_read_alike_in_whatever_form_it_comes() {
        for line in [
            r#"{"type":"MODIFIED","object":{"kind":"Node","a":{"b":"}\""}}}"#,
            r#"{"type": "MODIFIED", "object":{"kind":"Node","a":{"b":"}\""}} }"#,
            r#"{"object":{"kind":"Node","a":{"b":"}\""}},"type":"MODIFIED"}"#,
        ] {
            let event = WireEvent::read(line.as_bytes()).unwrap();
            let object = str::from_utf8(event.object).unwrap();
            assert_eq!(
                (event.kind, object),
                ("MODIFIED", r#"{"kind":"Node","a":{"b":"}\""}}"#),
                "{line}"
            );
        }
        for cut in [
            r#"{"type":"MODIFIED","#,
            r#"{"type":"MODIFIED","object":{}"#,
            r#"{"type":"#,
        ] {
            let object = WireEvent::read(cut.as_bytes()).map(|event| event.object.to_vec());
            let read = object.and_then(|object| read::<serde::de::IgnoredAny>(&object));
            assert!(matches!(read, Err(KubeError::Decode(_))), "{cut}");
        }
        let refused = br#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#;
        assert!(matches!(WireEvent::read(refused), Err(KubeError::Expired(_))));
    }

    #[tokio::test]
    async fn the_late_end_of_a_predecessor_raises_no_doubt() {
        let nobody = tower::service_fn(|_: http::Request<crate::Body>| async {
            Ok::<_, Infallible>(http::Response::new(crate::Body::default()))
        });
        let kube = Kube::with_service(nobody, crate::client::KubeOptions::new("test/1"));
        let object = |uid: &str, version: u64| {
            let meta = serde_json::json!({"name": "a", "uid": uid, "resourceVersion": version.to_string(),
                "creationTimestamp": "2026-01-01T00:00:00Z"});
            serde_json::json!({"metadata": meta, "spec": {}, "status": {}}).to_string()
        };
        for (uid, version, is_doubted) in [("old", 5, false), ("new", 9, true), ("other", 9, true)] {
            let cache = NodeCache::new();
            let tell = |kind, object: String| {
                let event = WireEvent {
                    kind,
                    object: object.as_bytes(),
                };
                apply::<bowline_cloud_provider::Node>(&kube, &cache, &event).unwrap();
            };
            tell("ADDED", object("new", 7));
            tell("DELETED", object(uid, version));
            assert_eq!(cache.is_certain(), !is_doubted, "{uid}");
        }
    }
}
