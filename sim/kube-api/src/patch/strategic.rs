//! Strategic merge patch, as `k8s.io/apimachinery/pkg/util/strategicpatch` applies it on the server.
//!
//! Lists with a declared merge key are merged element by element, lists of scalars with the merge strategy are sets,
//! every other list is replaced. Directives: `$patch` (`replace`, `delete`), `$retainKeys`, `$setElementOrder/<list>`
//! and `$deleteFromPrimitiveList/<list>`.

use serde_json::{Map, Value};

use crate::kind::{Kind, ListMerge};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Merge rules that every object has through its metadata.
const META: &[(&str, ListMerge)] = &[
    ("metadata.finalizers", ListMerge::Set),
    ("metadata.ownerReferences", ListMerge::ByKey("uid")),
];

type Object = Map<String, Value>;

/// Applies `patch` to an object of `kind`.
pub(crate) fn merge(kind: &Kind, object: &Value, patch: &Object) -> Result<Value, String> {
    let original = object.as_object().cloned().unwrap_or_default();
    Merger { kind }
        .map(original, patch.clone(), "")
        .map(Value::Object)
}

struct Merger<'a> {
    kind: &'a Kind,
}

impl Merger<'_> {
    /// The rule for the list at `path`, where elements of lists do not count as a step.
    fn rule(&self, path: &str) -> Option<ListMerge> {
        META.iter()
            .chain(self.kind.merge)
            .find(|(at, _)| *at == path)
            .map(|(_, rule)| *rule)
    }

    fn map(&self, mut original: Object, mut patch: Object, path: &str) -> Result<Object, String> {
        if let Some(directive) = patch.remove(DIRECTIVE) {
            return match directive.as_str() {
                Some("replace") => Ok(patch),
                Some("delete") => Ok(Object::new()),
                _ => Err(format!("unknown patch type {directive} in map")),
            };
        }
        retain_keys(&mut original, &mut patch)?;
        self.ordered_lists(&mut original, &mut patch, path)?;
        for (key, value) in patch {
            if let Some(list) = key.strip_prefix(DELETE_FROM) {
                if let (Some(Value::Array(items)), Value::Array(gone)) = (original.get_mut(list), &value) {
                    items.retain(|item| !gone.contains(item));
                }
                continue;
            }
            if value.is_null() {
                original.remove(&key);
                continue;
            }
            let here = join(path, &key);
            let merged = match (original.remove(&key), value) {
                (Some(Value::Object(old)), Value::Object(new)) => {
                    Some(Value::Object(self.map(old, new, &here)?))
                }
                (Some(Value::Array(old)), Value::Array(new)) => match self.rule(&here) {
                    Some(rule) => Some(Value::Array(self.list(old, new, rule, &here)?)),
                    None => Some(Value::Array(new)),
                },
                (_, new) => without_directives(without_nulls(new)),
            };
            if let Some(merged) = merged {
                original.insert(key, merged);
            }
        }
        Ok(original)
    }

    /// Handles every `$setElementOrder` of `patch` together with the list it orders, and takes both out of it.
    fn ordered_lists(&self, original: &mut Object, patch: &mut Object, path: &str) -> Result<(), String> {
        let keys: Vec<String> = patch
            .keys()
            .filter(|key| key.starts_with(ORDER))
            .cloned()
            .collect();
        for key in keys {
            let Some(Value::Array(order)) = patch.remove(&key) else {
                return Err(format!("expected a list for {key}"));
            };
            let name = &key[ORDER.len()..];
            let here = join(path, name);
            let Some(rule) = self.rule(&here) else { continue };
            let old = match original.get(name) {
                Some(Value::Array(items)) => Some(items.clone()),
                _ => None,
            };
            let new = match patch.remove(name) {
                Some(Value::Array(items)) => Some(items),
                Some(other) if !other.is_null() => return Err(format!("expected a list for {name}")),
                _ => None,
            };
            if let Some(new) = &new {
                check_order(new, &order, rule, &here)?;
            }
            let merged = match (old.clone(), new) {
                (None, None) => continue,
                (Some(old), None) => old,
                (None, Some(new)) => match without_directives(Value::Array(new)) {
                    Some(Value::Array(items)) => items,
                    _ => continue,
                },
                (Some(old), Some(new)) => self.list(old, new, rule, &here)?,
            };
            let sorted = in_order(merged, &order, &old.unwrap_or_default(), rule)?;
            original.insert(name.to_owned(), Value::Array(sorted));
        }
        Ok(())
    }

    fn list(
        &self,
        old: Vec<Value>,
        new: Vec<Value>,
        rule: ListMerge,
        path: &str,
    ) -> Result<Vec<Value>, String> {
        let ListMerge::ByKey(merge_key) = rule else {
            let mut merged = Vec::new();
            for item in old.iter().chain(&new) {
                if !merged.contains(item) {
                    merged.push(item.clone());
                }
            }
            return in_order(merged, &new, &old, rule);
        };
        let mut base = old;
        let mut elements = Vec::new();
        let mut replace = false;
        for item in new {
            let Value::Object(mut element) = item else {
                return Err(format!("expected objects in the list {path}"));
            };
            match element
                .get(DIRECTIVE)
                .map(|directive| directive.as_str().unwrap_or_default().to_owned())
            {
                None => elements.push(element),
                Some(directive) if directive == "replace" => replace = true,
                Some(directive) if directive == "delete" => {
                    let value = element
                        .remove(merge_key)
                        .ok_or_else(|| no_key(&element, merge_key))?;
                    base.retain(|candidate| candidate.get(merge_key) != Some(&value));
                }
                Some(directive) => {
                    return Err(format!("unknown patch type {directive:?} in the list {path}"));
                }
            }
        }
        if replace {
            return Ok(elements.into_iter().map(Value::Object).collect());
        }
        let before = base.clone();
        let mut order = Vec::new();
        for element in elements {
            let value = element
                .get(merge_key)
                .cloned()
                .ok_or_else(|| no_key(&element, merge_key))?;
            order.push(Value::Object(Object::from_iter([(
                merge_key.to_owned(),
                value.clone(),
            )])));
            match base
                .iter_mut()
                .find(|candidate| candidate.get(merge_key) == Some(&value))
            {
                Some(found) => {
                    let old = found.as_object().cloned().unwrap_or_default();
                    *found = Value::Object(self.map(old, element, path)?);
                }
                None => base.push(Value::Object(element)),
            }
        }
        in_order(base, &order, &before, rule)
    }
}

/// `$retainKeys`: drops every field of `original` that the directive does not name.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), String> {
    const BAD: &str = "invalid patch format of retainKeys";
    let keep = match patch.remove(RETAIN_KEYS) {
        None => return Ok(()),
        Some(Value::Array(keys)) => keys,
        Some(_) => return Err(BAD.to_owned()),
    };
    let kept = |key: &String| keep.iter().any(|keep| keep.as_str() == Some(key));
    let stray = |(key, value): (&String, &Value)| {
        !value.is_null() && !key.starts_with(DELETE_FROM) && !key.starts_with(ORDER) && !kept(key)
    };
    if patch.iter().any(stray) {
        return Err(BAD.to_owned());
    }
    original.retain(|key, _| kept(key));
    Ok(())
}

/// The elements of a patch list must stand in the same order as in its `$setElementOrder`.
fn check_order(items: &[Value], order: &[Value], rule: ListMerge, path: &str) -> Result<(), String> {
    let mut rest = order.iter();
    for item in items.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        if !order.is_empty() && !rest.any(|wanted| identity(wanted, rule) == identity(item, rule)) {
            return Err(format!(
                "The order in patch list of {path} doesn't match its $setElementOrder list"
            ));
        }
    }
    Ok(())
}

/// Sorts `merged`: what `order` names stands in that order, the rest keeps its place relative to the live list.
fn in_order(
    merged: Vec<Value>,
    order: &[Value],
    live: &[Value],
    rule: ListMerge,
) -> Result<Vec<Value>, String> {
    let place = |list: &[Value], item: &Value| {
        list.iter()
            .position(|at| identity(at, rule) == identity(item, rule))
    };
    if let (ListMerge::ByKey(key), Some(bare)) =
        (rule, merged.iter().find(|item| identity(item, rule).is_none()))
    {
        return Err(no_key(bare.as_object().unwrap_or(&Object::new()), key));
    }
    let (mut named, mut rest): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(order, item).is_some());
    named.sort_by_key(|item| place(order, item));
    rest.sort_by_key(|item| place(live, item).unwrap_or(usize::MAX));
    let mut sorted = Vec::with_capacity(named.len() + rest.len());
    let (mut named, mut rest) = (named.into_iter().peekable(), rest.into_iter().peekable());
    loop {
        let rest_first = match (rest.peek(), named.peek()) {
            (None, None) => return Ok(sorted),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(left), Some(right)) => match (place(live, left), place(live, right)) {
                (Some(left), Some(right)) => left < right,
                _ => false,
            },
        };
        sorted.extend(if rest_first { rest.next() } else { named.next() });
    }
}

fn identity(item: &Value, rule: ListMerge) -> Option<&Value> {
    match rule {
        ListMerge::ByKey(key) => item.get(key),
        ListMerge::Set => Some(item),
    }
}

fn no_key(element: &Object, key: &str) -> String {
    format!(
        "map: {} does not contain declared merge key: {key}",
        Value::Object(element.clone())
    )
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => map
            .into_iter()
            .filter(|(_, child)| !child.is_null())
            .map(|(k, v)| (k, without_nulls(v)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

/// Nothing is left of an object that is itself a directive.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => {
            let kept = map
                .into_iter()
                .filter_map(|(key, child)| Some((key, without_directives(child)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn apply(kind: &str, object: Value, patch: Value) -> Result<Value, String> {
        merge(Kind::named(kind).unwrap(), &object, patch.as_object().unwrap())
    }

    #[test]
    fn documented_cases() {
        let address = |t: &str, a: &str| json!({"type": t, "address": a});
        let port = |p: u32, n: &str| json!({"port": p, "name": n});
        for (fact, kind, object, patch, expected) in [
            (
                "null deletes and absent keys stay",
                "Node",
                json!({"metadata": {"labels": {"a": "1", "b": "2"}}}),
                json!({"metadata": {"labels": {"a": null, "c": "3", "d": null}}}),
                json!({"metadata": {"labels": {"b": "2", "c": "3"}}}),
            ),
            (
                "addresses merge by type, new ones first in patch order",
                "Node",
                json!({"status": {"addresses": [address("InternalIP", "1"), address("Hostname", "h")]}}),
                json!({"status": {"addresses": [address("ExternalIP", "9"), address("InternalIP", "2")]}}),
                json!({"status": {"addresses":
                    [address("ExternalIP", "9"), address("InternalIP", "2"), address("Hostname", "h")]}}),
            ),
            (
                "the replace directive takes the list as it is, wherever the directive stands",
                "Node",
                json!({"status": {"addresses": [address("InternalIP", "1"), address("Hostname", "h")]}}),
                json!({"status": {"addresses":
                    [address("InternalIP", "2"), address("InternalIP", "3"), {"$patch": "replace"}]}}),
                json!({"status": {"addresses": [address("InternalIP", "2"), address("InternalIP", "3")]}}),
            ),
            (
                "a list patched with only the directive becomes empty",
                "Node",
                json!({"status": {"addresses": [address("InternalIP", "1")]}}),
                json!({"status": {"addresses": [{"$patch": "replace"}]}}),
                json!({"status": {"addresses": []}}),
            ),
            (
                "a new list loses its directives",
                "Node",
                json!({"status": {}}),
                json!({"status": {"addresses": [address("InternalIP", "2"), {"$patch": "replace"}]}}),
                json!({"status": {"addresses": [address("InternalIP", "2")]}}),
            ),
            (
                "the delete directive drops every element with the key",
                "Node",
                json!({"status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B"}]}}),
                json!({"status": {"conditions": [{"$patch": "delete", "type": "A"}]}}),
                json!({"status": {"conditions": [{"type": "B"}]}}),
            ),
            (
                "taints have no merge key and are replaced",
                "Node",
                json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}),
                json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}}),
                json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}}),
            ),
            (
                "finalizers are a set",
                "Service",
                json!({"metadata": {"finalizers": ["a", "b"]}}),
                json!({"metadata": {"finalizers": ["b", "c"]}}),
                json!({"metadata": {"finalizers": ["a", "b", "c"]}}),
            ),
            (
                "a finalizer goes by the delete list",
                "Service",
                json!({"metadata": {"finalizers": ["a", "b", "c"]}}),
                json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"],
                    "$setElementOrder/finalizers": ["c", "a"]}}),
                json!({"metadata": {"finalizers": ["c", "a"]}}),
            ),
            (
                "ports merge by number and follow the given order",
                "Service",
                json!({"spec": {"ports": [port(80, "a"), port(443, "b")]}}),
                json!({"spec": {"$setElementOrder/ports": [{"port": 443}, {"port": 80}],
                    "ports": [{"port": 443, "nodePort": 30000}]}}),
                json!({"spec": {"ports": [{"port": 443, "name": "b", "nodePort": 30000}, port(80, "a")]}}),
            ),
            (
                "owner references merge by uid",
                "Service",
                json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "x"}]}}),
                json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "y"}, {"uid": "2"}]}}),
                json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "y"}, {"uid": "2"}]}}),
            ),
            (
                "the load balancer's ingress list is replaced",
                "Service",
                json!({"status": {"loadBalancer": {"ingress": [{"ip": "1"}]}}}),
                json!({"status": {"loadBalancer": {"ingress": [{"ip": "2"}]}}}),
                json!({"status": {"loadBalancer": {"ingress": [{"ip": "2"}]}}}),
            ),
            (
                "maps can be replaced, deleted and cut down",
                "Node",
                json!({"metadata": {"labels": {"a": "1"}, "annotations": {"b": "2"}}, "spec": {"x": 1, "y": 2}}),
                json!({"metadata": {"labels": {"$patch": "replace", "c": "3"}, "annotations": {"$patch": "delete"}},
                    "spec": {"$retainKeys": ["y", "z"], "z": 3}}),
                json!({"metadata": {"labels": {"c": "3"}, "annotations": {}}, "spec": {"y": 2, "z": 3}}),
            ),
        ] {
            assert_eq!(apply(kind, object, patch).unwrap(), expected, "{fact}");
        }
    }

    #[test]
    fn malformed_patches_are_refused() {
        let object = json!({"status": {"conditions": [{"type": "A"}]}, "spec": {"a": 1}});
        for patch in [
            json!({"status": {"conditions": [{"status": "True"}]}}),
            json!({"status": {"conditions": [{"$patch": "delete"}]}}),
            json!({"status": {"conditions": [{"$patch": "sort", "type": "A"}]}}),
            json!({"status": {"conditions": ["A"]}}),
            json!({"spec": {"$patch": "merge"}}),
            json!({"spec": {"$retainKeys": ["b"], "c": 1}}),
            json!({"status": {"$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}],
                "conditions": [{"type": "A"}, {"type": "B"}]}}),
        ] {
            assert!(apply("Node", object.clone(), patch.clone()).is_err(), "{patch}");
        }
    }
}
