//! Who else writes an object, as its managed fields tell. The caches keep none of them, so the object is asked for by its name.

use serde::Deserialize;
use serde_json::Value;

use crate::client::Kube;
use crate::error::KubeError;
use crate::events::ObjectRef;
use crate::exchange::{Call, Rank, segment};
use crate::reads::read;

/// A program that writes an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherWriter {
    /// The name that the API server keeps of it: the beginning of its `User-Agent`, or what it calls itself.
    pub name: String,
    /// It wrote the very field last. If not, it wrote what is nearest to it: of a field that was removed no writer is kept.
    pub is_certain: bool,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Meta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    #[serde(default)]
    uid: String,
    // Read one by one: what cannot be understood of one writer says nothing of the others.
    #[serde(default)]
    managed_fields: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Managed {
    manager: String,
    #[serde(default)]
    time: String,
    #[serde(default)]
    fields_v1: Value,
}

impl Kube {
    /// Who wrote a field of this very object last, this process aside; `field` is its path as managed fields spell it, such as
    /// `["f:spec", "f:taints"]`. `None`: nobody is known.
    ///
    /// Asked with a list, for the roles grant no `get` of Services, and behind everything else.
    ///
    /// # Errors
    ///
    /// There is no answer, or it cannot be read.
    pub async fn other_writer(
        &self,
        object: &ObjectRef,
        field: &[&str],
    ) -> Result<Option<OtherWriter>, KubeError> {
        let scope = match &*object.namespace {
            "" => String::new(),
            namespace => format!("namespaces/{}/", segment(namespace)),
        };
        let (plural, name) = (object.kind.to_lowercase(), segment(&object.name));
        let path = format!("/api/v1/{scope}{plural}s?fieldSelector=metadata.name%3D{name}");
        let answer = self.exchange(Call::get(path).ranked(Rank::Event)).await?;
        let List { items } = read(&answer)?;
        let metadata = items.into_iter().map(|item| item.metadata);
        let this = metadata.into_iter().find(|it| *it.uid == *object.uid);
        let managed = this.and_then(|this| this.managed_fields).unwrap_or_default();
        Ok(last_of(managed, field, self.writes_as()))
    }

    /// The name that the API server keeps of this process, where a request does not say another one.
    fn writes_as(&self) -> &str {
        let user_agent = self.speaker.user_agent.to_str().unwrap_or_default();
        user_agent.split('/').next().unwrap_or_default()
    }
}

/// The one that wrote nearest to the field, and of several the last one.
pub(crate) fn last_of(managed: Vec<Value>, field: &[&str], own: &str) -> Option<OtherWriter> {
    let others = managed
        .into_iter()
        .filter_map(|entry| serde_json::from_value::<Managed>(entry).ok())
        .filter(|entry| entry.manager != own && !entry.manager.is_empty())
        .map(|entry| (depth(&entry.fields_v1, field), entry));
    // Times of one form, so that the later one is the greater text.
    let (depth, last) = others.max_by(|(a, x), (b, y)| (a, &x.time).cmp(&(b, &y.time)))?;
    Some(OtherWriter {
        name: last.manager,
        is_certain: depth == field.len(),
    })
}

/// How far these fields lead towards the one that is looked for.
fn depth(fields: &Value, field: &[&str]) -> usize {
    let mut at = Some(fields);
    let reached = field.iter().take_while(|part| {
        at = at.and_then(|at| at.get(part));
        at.is_some()
    });
    reached.count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_writer_of_the_field_is_named_before_the_last_one_of_others() {
        let entry = |manager: &str, time: &str, fields: Value| json!({ "manager": manager, "operation": "Update", "time": time, "fieldsV1": fields });
        let field = ["f:metadata", "f:annotations", "f:example.com/a"];
        let ours = json!({ "f:metadata": { "f:annotations": { "f:example.com/a": {} } } });
        let beside = json!({ "f:metadata": { "f:annotations": { ".": {}, "f:other": {} } } });
        let all = || {
            vec![
                entry("ccm", "2026-01-01T00:00:09Z", ours.clone()),
                entry("kubectl", "2026-01-01T00:00:05Z", beside.clone()),
                entry("argocd", "2026-01-01T00:00:07Z", beside.clone()),
                entry("kubelet", "2026-01-01T00:00:08Z", json!({ "f:status": {} })),
                json!({ "manager": 7 }),
                entry("broken", "2026-01-01T00:00:09Z", json!("no fields")),
            ]
        };
        let found = |managed, field| last_of(managed, field, "ccm").map(|it| (it.name, it.is_certain));
        assert_eq!(found(all(), &field), Some(("argocd".into(), false)));
        let mut owned = all();
        owned.push(entry("flux", "2026-01-01T00:00:01Z", ours.clone()));
        assert_eq!(found(owned, &field), Some(("flux".into(), true)));
        assert_eq!(found(all(), &["f:status"]), Some(("kubelet".into(), true)));
        assert_eq!(found(all()[..1].to_vec(), &field), None);
        assert_eq!(found(Vec::new(), &field), None);
    }
}
