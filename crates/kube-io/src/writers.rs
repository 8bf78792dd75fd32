//! Who else writes an object, as its managed fields tell. The caches keep none of them and ask for none, so the object is asked for by
//! its name.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::client::Kube;
use crate::error::KubeError;
use crate::events::ObjectRef;
use crate::exchange::{Call, segment};
use crate::rank::Rank;
use crate::shape::read;

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
    /// Who wrote one of these fields of this very object last, this process aside; each is a path as managed fields spell it, such as
    /// `["f:spec", "f:taints"]`. `None`: nobody is known, as of a field that was removed.
    ///
    /// # Errors
    ///
    /// There is no answer, or it cannot be read.
    pub async fn other_writer(
        &self,
        object: &ObjectRef,
        fields: &[Vec<String>],
    ) -> Result<Option<String>, KubeError> {
        Ok(last_of(self.managed(object).await?, fields, self.writes_as()))
    }

    /// Asked with a list, for the roles grant no `get` of Services, and behind everything else.
    async fn managed(&self, object: &ObjectRef) -> Result<Vec<Value>, KubeError> {
        let scope = match &*object.namespace {
            "" => String::new(),
            namespace => format!("namespaces/{}/", segment(namespace)),
        };
        let (plural, name) = (object.kind.to_lowercase(), segment(&object.name));
        let path = format!("/api/v1/{scope}{plural}s?fieldSelector=metadata.name%3D{name}");
        let call = Call::get(path).with_managed_fields().ranked(Rank::Event);
        let answer = self.exchange(call).await?;
        let List { items } = read(&answer)?;
        let metadata = items.into_iter().map(|item| item.metadata);
        let this = metadata.into_iter().find(|it| *it.uid == *object.uid);
        Ok(this.and_then(|this| this.managed_fields).unwrap_or_default())
    }

    /// Who wrote one of these fields of this object last, whoever it was, and when that was, by the clock of the API server.
    ///
    /// # Errors
    ///
    /// There is no answer, or it cannot be read.
    pub async fn last_writer(
        &self,
        object: &ObjectRef,
        fields: &[Vec<String>],
    ) -> Result<Option<(String, Timestamp)>, KubeError> {
        let last = last(self.managed(object).await?, fields, "");
        Ok(last.and_then(|it| Some((it.manager, it.time.parse().ok()?))))
    }

    /// The name that the API server keeps of this process, where a request does not say another one.
    fn writes_as(&self) -> &str {
        let user_agent = self.speaker.user_agent.to_str().unwrap_or_default();
        user_agent.split('/').next().unwrap_or_default()
    }
}

/// The one that wrote one of the fields last.
pub(crate) fn last_of(managed: Vec<Value>, fields: &[Vec<String>], own: &str) -> Option<String> {
    Some(last(managed, fields, own)?.manager)
}

fn last(managed: Vec<Value>, fields: &[Vec<String>], own: &str) -> Option<Managed> {
    let others = managed
        .into_iter()
        .filter_map(|entry| serde_json::from_value::<Managed>(entry).ok())
        .filter(|entry| entry.manager != own && !entry.manager.is_empty())
        .filter(|entry| fields.iter().any(|field| has(&entry.fields_v1, field)));
    // Times of one form, so that the later one is the greater text.
    others.max_by(|a, b| a.time.cmp(&b.time))
}

/// Whether the one that is looked for is among these fields.
fn has(fields: &Value, field: &[String]) -> bool {
    let mut path = field.iter();
    path.try_fold(fields, |at, part| at.get(part)).is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_who_wrote_the_very_field_is_named() {
        let entry = |manager: &str, time: &str, fields: Value| json!({ "manager": manager, "operation": "Update", "time": time, "fieldsV1": fields });
        let field = |path: &[&str]| vec![path.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>()];
        let annotation = field(&["f:metadata", "f:annotations", "f:example.com/a"]);
        let ours = json!({ "f:metadata": { "f:annotations": { "f:example.com/a": {} } } });
        let beside = json!({ "f:metadata": { "f:annotations": { ".": {}, "f:other": {} } } });
        let all = || {
            vec![
                entry("ccm", "2026-01-01T00:00:09Z", ours.clone()),
                entry("kubectl", "2026-01-01T00:00:05Z", beside.clone()),
                entry("kubelet", "2026-01-01T00:00:08Z", json!({ "f:status": {} })),
                json!({ "manager": 7 }),
                entry("broken", "2026-01-01T00:00:09Z", json!("no fields")),
            ]
        };
        let found = |managed, fields: &[Vec<String>]| last_of(managed, fields, "ccm");
        assert_eq!(
            found(all(), &annotation),
            None,
            "kubectl wrote another annotation"
        );
        let mut owned = all();
        owned.push(entry("flux", "2026-01-01T00:00:01Z", ours.clone()));
        owned.push(entry("argocd", "2026-01-01T00:00:02Z", ours.clone()));
        assert_eq!(found(owned, &annotation), Some("argocd".into()));
        assert_eq!(found(all(), &field(&["f:status"])), Some("kubelet".into()));
        assert_eq!(found(Vec::new(), &annotation), None);
    }
}
