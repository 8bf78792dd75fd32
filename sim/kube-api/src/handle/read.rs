//! GET of one object and of lists, paged or not.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::{Answer, namespace_of, shaped};
use crate::core::Core;
use crate::field::FieldError;
use crate::kind::Kind;
use crate::meta;
use crate::request::{Form, Request};
use crate::selector::Selector;
use crate::status::Status;
use crate::store::{Key, Store};
use crate::table;

const LIST_EXPIRED: &str = "The resourceVersion for the provided list is too old.";
const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You \
     can start a new list without the continue parameter, or use the continue token in this response to retrieve the \
     remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were \
     created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

pub(super) fn get(core: &Core, kind: &'static Kind, request: &Request) -> Result<Answer, Status> {
    let state = core.lock();
    check_not_ahead(&state.store, request.query("resourceVersion"))?;
    let (namespace, name) = (namespace_of(kind, request), &request.target.name);
    let object = state
        .store
        .get(kind, namespace, name)
        .ok_or_else(|| Status::not_found(kind, name))?;
    Ok(Answer::Object(200, shaped(core, kind, request, object)?))
}

pub(super) fn list(core: &Core, kind: &'static Kind, request: &Request) -> Result<Answer, Status> {
    let selector = Selector::of(kind, request)?;
    let form = request.form()?;
    check_options(request)?;
    let limit: usize = number(request.query("limit"), "limit")?;
    let state = core.lock();
    let (revision, after) = place(&state.store, request, limit)?;
    let objects = if revision == state.store.revision() {
        state
            .store
            .all(kind)
            .map(|(key, object)| (key.clone(), Arc::clone(object)))
            .collect()
    } else {
        state.store.at_revision(kind, revision)
    };
    let namespace = namespace_of(kind, request);
    let in_scope: BTreeMap<&Key, &Value> = objects
        .iter()
        .filter(|(key, _)| namespace.is_empty() || key.0 == namespace)
        .filter(|(key, _)| after.as_ref().is_none_or(|after| *key > after))
        .map(|(key, object)| (key, &**object))
        .collect();
    let mut chosen = in_scope
        .iter()
        .filter(|(_, object)| selector.matches(kind, object));
    let page: Vec<(&Key, &Value)> = match limit {
        0 => chosen.by_ref().map(|(key, object)| (*key, *object)).collect(),
        _ => chosen
            .by_ref()
            .take(limit)
            .map(|(key, object)| (*key, *object))
            .collect(),
    };
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    let rest = chosen.count();
    if rest > 0
        && let Some((last, _)) = page.last()
    {
        metadata["continue"] = token(i128::from(revision), last).into();
        if selector.is_empty() {
            metadata["remainingItemCount"] = rest.into();
        }
    }
    let items: Vec<&Value> = page.into_iter().map(|(_, object)| object).collect();
    let list = match form {
        Form::Table => table::table(kind, &items, metadata, request.include(), true, core.now()),
        Form::Partial => json!({
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": metadata,
            "items": items.into_iter().map(meta::partial).collect::<Vec<_>>(),
        }),
        Form::Plain => json!({
            "kind": format!("{}List", kind.kind),
            "apiVersion": kind.api_version(),
            "metadata": metadata,
            "items": items.into_iter().map(untyped).collect::<Vec<_>>(),
        }),
    };
    Ok(Answer::Object(200, list))
}

/// A state that the server has not reached cannot be shown.
pub(super) fn check_not_ahead(store: &Store, wanted: &str) -> Result<u64, Status> {
    let revision = number(wanted, "resourceVersion")?;
    if revision > store.revision() {
        return Err(Status::too_large_resource_version(revision, store.revision()));
    }
    Ok(revision)
}

/// A number among the query parameters; absence is 0.
pub(super) fn number<T: std::str::FromStr + Default>(text: &str, name: &str) -> Result<T, Status> {
    if text.is_empty() {
        return Ok(T::default());
    }
    text.parse().map_err(|_| {
        Status::bad_request(match name {
            "resourceVersion" => {
                let problem = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
                format!(
                    "invalid resource version: {}",
                    FieldError::invalid(name, text, &problem)
                )
            }
            _ => format!("strconv.ParseInt: parsing {text:?}: invalid syntax"),
        })
    })
}

/// The revision to show and the key after which to begin.
fn place(store: &Store, request: &Request, limit: usize) -> Result<(u64, Option<Key>), Status> {
    let current = store.revision();
    let given = request.query("continue");
    if !given.is_empty() {
        let (revision, after) = read_token(given)
            .ok_or_else(|| Status::bad_request("invalid continue token: continue key is not valid"))?;
        let Ok(revision) = u64::try_from(revision) else {
            return Ok((current, Some(after)));
        };
        if revision < store.compacted() {
            let mut status = Status::expired(CONTINUE_EXPIRED);
            status.continue_token = Some(token(-1, &after));
            return Err(status);
        }
        return Ok((revision, Some(after)));
    }
    let wanted = request.query("resourceVersion");
    let revision = check_not_ahead(store, wanted)?;
    let exact = match request.query("resourceVersionMatch") {
        "Exact" => true,
        "NotOlderThan" => false,
        _ => limit > 0 && revision > 0,
    };
    if !exact {
        return Ok((current, None));
    }
    if revision < store.compacted() {
        return Err(Status::expired(LIST_EXPIRED));
    }
    Ok((revision, None))
}

fn check_options(request: &Request) -> Result<(), Status> {
    const FIELD: &str = "resourceVersionMatch";
    let mut errors = Vec::new();
    let matching = request.query(FIELD);
    if !matching.is_empty() {
        if request.query("resourceVersion").is_empty() {
            errors.push(FieldError::forbidden(
                FIELD,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !request.query("continue").is_empty() {
            errors.push(FieldError::forbidden(
                FIELD,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if !["Exact", "NotOlderThan"].contains(&matching) {
            errors.push(FieldError::not_supported(
                FIELD,
                matching,
                &["Exact", "NotOlderThan", ""],
            ));
        }
        if matching == "Exact" && request.query("resourceVersion") == "0" {
            let detail = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            errors.push(FieldError::forbidden(FIELD, detail));
        }
    }
    if !request.query("sendInitialEvents").is_empty() {
        errors.push(FieldError::forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        ));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid("meta.k8s.io", "ListOptions", "", &errors))
    }
}

/// `-1` as the revision continues with whatever is there now.
fn token(revision: i128, last: &Key) -> String {
    let token =
        json!({"v": "meta.k8s.io/v1", "rv": revision as i64, "start": format!("{}/{}", last.0, last.1)});
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn read_token(text: &str) -> Option<(i64, Key)> {
    let token: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let (namespace, name) = token["start"].as_str()?.split_once('/')?;
    Some((token["rv"].as_i64()?, (namespace.to_owned(), name.to_owned())))
}

/// Items of a typed list do not say their type.
fn untyped(object: &Value) -> Value {
    let mut object = object.clone();
    if let Value::Object(map) = &mut object {
        map.remove("kind");
        map.remove("apiVersion");
    }
    object
}
