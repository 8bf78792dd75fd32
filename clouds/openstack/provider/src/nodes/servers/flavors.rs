//! The instance type of a Node: the name of its server's flavor.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use bowline_cloud_provider::CloudError;
use bowline_openstack_client::{Client, Flavor, Server, ServerFlavor};
use futures::future::join_all;

use crate::nodes::labels;

/// More flavors than this are listed, not asked for one by one.
const FEW: usize = 4;

/// Flavors by what a server says of them; `None`: there is no such flavor.
pub(super) type Names = BTreeMap<String, Result<Option<Flavor>, CloudError>>;

/// The flavors that were read. A flavor keeps its name for its whole life, so none is read twice.
pub(super) struct Flavors {
    client: Client,
    known: Mutex<BTreeMap<String, Flavor>>,
}

impl Flavors {
    pub(super) fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            known: Mutex::default(),
        }
    }

    /// The flavors with these ids.
    pub(super) async fn names(&self, wanted: BTreeSet<String>) -> Names {
        if self.unknown(&wanted).len() > FEW {
            match self.client.flavors().await {
                Ok(flavors) => self.learn(flavors),
                // Each is asked for then.
                Err(error) => tracing::debug!(err = %error, "Flavors cannot be listed"),
            }
        }
        // The list may be without those that are private or deleted.
        let asked = self.unknown(&wanted).into_iter().map(async |id| {
            (
                id.clone(),
                self.client.flavor(&id).await.map_err(CloudError::from),
            )
        });
        let mut names: Names = join_all(asked).await.into_iter().collect();
        self.learn(names.values().filter_map(|flavor| flavor.clone().ok()?).collect());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for id in wanted {
            if let Some(flavor) = known.get(&id) {
                names.insert(id, Ok(Some(flavor.clone())));
            }
        }
        names
    }

    fn unknown(&self, wanted: &BTreeSet<String>) -> Vec<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        wanted
            .iter()
            .filter(|id| !known.contains_key(*id))
            .cloned()
            .collect()
    }

    fn learn(&self, flavors: Vec<Flavor>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(flavors.into_iter().map(|flavor| (flavor.id.to_string(), flavor)));
    }
}

/// The name in the server itself, if it can be a label.
fn own_name(flavor: &ServerFlavor) -> Option<&str> {
    flavor
        .original_name
        .as_deref()
        .filter(|name| labels::is_value(name))
}

/// What has to be asked about a flavor: the name that it had, which some clouds take for an id, and its id.
fn keys(flavor: &ServerFlavor) -> impl Iterator<Item = &str> {
    let id = flavor.id.as_ref().map(|id| id.as_str());
    flavor.original_name.as_deref().into_iter().chain(id)
}

/// What has to be asked about the flavors of servers.
pub(super) fn unnamed(servers: &[Server]) -> BTreeSet<String> {
    servers
        .iter()
        .map(|server| &server.flavor)
        .filter(|flavor| own_name(flavor).is_none())
        .flat_map(keys)
        .map(str::to_owned)
        .collect()
}

/// The name of a flavor if it can be a label, else its id.
pub(super) fn instance_type(flavor: &ServerFlavor, names: &Names) -> Result<String, CloudError> {
    const NOT_FOUND: &str = "flavor original_name/id not found";
    if let Some(name) = own_name(flavor) {
        return Ok(name.to_owned());
    }
    let mut failure = None;
    for key in keys(flavor) {
        match names.get(key) {
            Some(Ok(Some(flavor))) if labels::is_value(&flavor.name) => return Ok(flavor.name.clone()),
            Some(Ok(Some(flavor))) => return Ok(flavor.id.to_string()),
            Some(Err(error)) => failure = Some(error.clone()),
            Some(Ok(None)) | None => {}
        }
    }
    Err(match failure {
        Some(error) => error.context(NOT_FOUND),
        None => CloudError::other(match keys(flavor).last() {
            Some(key) => format!(
                "{NOT_FOUND}; the flavor {key} of its server is not found (404): its owner deleted it or took it from this project. Have access to it given again, which `openstack flavor show {key}` shows, or have the server rebuilt with another flavor"
            ),
            None => NOT_FOUND.to_owned(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> ServerFlavor {
        serde_json::from_str(text).unwrap()
    }

    fn names(found: &[(&str, Result<Option<&str>, CloudError>)]) -> Names {
        let flavor = |id: &str, name: &str| Flavor {
            id: id.into(),
            name: name.to_owned(),
        };
        found
            .iter()
            .map(|(id, name)| {
                let found = name.clone().map(|name| name.map(|name| flavor(id, name)));
                ((*id).to_owned(), found)
            })
            .collect()
    }

    #[test]
    fn the_name_is_used_where_it_can_be_a_label_and_else_the_id() {
        let known = names(&[("42", Ok(Some("m1 large!"))), ("7", Ok(Some("m1.small")))]);
        for (flavor, expected) in [
            (r#"{"id": "7"}"#, "m1.small"),
            (r#"{"id": "42"}"#, "42"),
            (r#"{"original_name": "m1.big"}"#, "m1.big"),
            (r#"{"original_name": "m1 big", "id": "7"}"#, "m1.small"),
        ] {
            assert_eq!(instance_type(&of(flavor), &known).unwrap(), expected, "{flavor}");
        }
    }

    #[test]
    fn a_flavor_that_nobody_knows_is_an_error_that_says_why() {
        let error = |flavor: &str, known: &Names| instance_type(&of(flavor), known).unwrap_err();
        let absent = names(&[("7", Ok(None))]);
        let gone = error(r#"{"id": "7"}"#, &absent).to_string();
        assert!(
            gone.starts_with(
                "flavor original_name/id not found; the flavor 7 of its server is not found (404)"
            ),
            "{gone}"
        );
        assert_eq!(
            error("{}", &absent).to_string(),
            "flavor original_name/id not found"
        );
        let failed = names(&[("7", Err(CloudError::transient("bad gateway")))]);
        let error = error(r#"{"id": "7"}"#, &failed);
        assert_eq!(
            error.to_string(),
            "flavor original_name/id not found: bad gateway"
        );
        assert_eq!(error.kind(), bowline_cloud_provider::ErrorKind::Transient);
    }
}
