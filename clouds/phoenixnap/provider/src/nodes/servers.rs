//! The servers of the account, found by ID or by name, and how they are read.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_cloud_provider::{CloudError, InstanceIndex};
use bowline_phoenixnap_client::{Class, Client, Listed, Server, ServerStatus};
use serde_json::Value;

/// One listing of the account's servers.
#[derive(Debug)]
pub(crate) struct ServerIndex {
    servers: InstanceIndex<String, Server>,
    /// What cannot be read.
    odd: Vec<Value>,
}

impl ServerIndex {
    pub(crate) fn new(listed: Listed<Server>) -> Self {
        let name = |server: &Server| server.hostname.clone();
        Self {
            servers: InstanceIndex::new(listed.entries, |server| server.id.clone(), name),
            odd: listed.odd,
        }
    }

    /// Whether it has no server that can be read. That is how other credentials may look, so nothing follows from what is
    /// missing.
    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.servers.names()
    }

    pub(crate) fn with_id(&self, id: &str) -> Option<&Server> {
        self.servers.with_id(id)
    }

    /// Whether an entry that cannot be read may be the server with this ID.
    pub(crate) fn may_have(&self, id: &str) -> bool {
        let of = |odd: &Value| odd.get("id").and_then(Value::as_str).map(str::to_owned);
        self.odd.iter().any(|odd| of(odd).is_none_or(|known| known == id))
    }

    /// Whether an entry that cannot be read has this host name, in any letter case.
    pub(crate) fn has_odd_named(&self, name: &str) -> bool {
        let mut names = self.odd.iter().filter_map(|odd| odd.get("hostname")?.as_str());
        names.any(|known| known.eq_ignore_ascii_case(name))
    }

    /// The servers that a host name may mean: those that have it to the letter, else in any letter case. Of several, those
    /// count that are in use; one alone is taken whatever its state.
    pub(crate) fn with_name(&self, name: &str) -> Vec<&Server> {
        let mut found = self.servers.with_name(name);
        if found.len() > 1 {
            found.retain(|server| !matches!(server.status, ServerStatus::Deleting | ServerStatus::Reserved));
        }
        found
    }
}

/// Reads servers. What several ask for at the same time is read once.
pub(super) struct Reads {
    client: Client,
    shared: SharedRead<Result<Arc<ServerIndex>, CloudError>>,
}

impl Reads {
    pub(super) fn new(client: &Client) -> Self {
        let shared = SharedRead::listing(Duration::ZERO, client, |client| async move {
            Ok(Arc::new(ServerIndex::new(client.servers().await?)))
        });
        let client = client.clone();
        Self { client, shared }
    }

    /// All servers of the account.
    pub(crate) async fn all(&self) -> Result<Arc<ServerIndex>, CloudError> {
        self.shared.ask().await
    }

    /// One server, or why it is certain that it is gone. The API answers 403 for a server that is gone, and also for lost
    /// rights: then a listing decides, unless it is empty.
    pub(crate) async fn one(&self, id: &str) -> Result<Result<Server, String>, CloudError> {
        let error = match self.client.server(id).await {
            Ok(server) => return Ok(Ok(server)),
            Err(error) => error,
        };
        match error.class {
            Class::NotFound => Ok(Err(format!("the API answered 404 to server {id}"))),
            _ if error.may_be_gone() => {
                let status = error.status().unwrap_or_default();
                let listing = self.all().await.map_err(|error| {
                    error.context(format!("server {id} answered {status}, and the list of servers"))
                })?;
                if listing.with_id(id).is_some() {
                    return Err(CloudError::from(error).context("the list of servers has it, but"));
                }
                if listing.may_have(id) {
                    let text = "the list of servers has an entry that cannot be read and may be it, and";
                    return Err(CloudError::from(error).context(text));
                }
                if listing.is_empty() {
                    let text = format!(
                        "the list of servers is empty, which proves nothing about server {id}; if it is gone, delete its node \
                         by hand. The server was asked for, and"
                    );
                    return Err(CloudError::from(error).context(text));
                }
                Ok(Err(format!(
                    "the API answered {status} to server {id}, and the list of servers does not have it"
                )))
            }
            _ => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(entries: Vec<Server>) -> ServerIndex {
        ServerIndex::new(Listed {
            entries,
            odd: Vec::new(),
        })
    }

    fn index(servers: &[(&str, &str, &str)]) -> ServerIndex {
        whole(
            servers
                .iter()
                .map(|(id, hostname, status)| {
                    serde_json::from_value(
                        serde_json::json!({ "id": id, "hostname": hostname, "status": status }),
                    )
                    .unwrap()
                })
                .collect(),
        )
    }

    fn named(servers: &[(&str, &str, &str)], name: &str) -> String {
        let index = index(servers);
        let found = index.with_name(name);
        found
            .iter()
            .map(|server| server.id.as_str())
            .collect::<Vec<_>>()
            .join("+")
    }

    #[test]
    fn a_name_is_matched_to_the_letter_first_and_in_any_case_then() {
        let servers = [("1", "Worker-1", "powered-on"), ("2", "worker-1", "powered-on")];
        assert_eq!(named(&servers, "worker-1"), "2");
        assert_eq!(named(&servers[..1], "worker-1"), "1");
        assert_eq!(named(&servers, "worker-2"), "");
    }

    #[test]
    fn a_server_without_a_name_is_nobody_s_and_hides_no_other() {
        let listed = r#"[{"id":"1"},{"id":"2","hostname":null},{"id":"3","hostname":"db"}]"#;
        let index = whole(serde_json::from_str(listed).unwrap());
        assert!(matches!(index.with_name("db")[..], [server] if server.id == "3"));
        assert!(index.with_id("2").is_some());
    }

    #[test]
    fn a_server_that_is_listed_twice_is_one() {
        let twice = [("1", "db", "powered-on"), ("1", "db", "powered-on")];
        assert_eq!(named(&twice, "db"), "1");
    }

    #[test]
    fn of_several_only_those_in_use_count() {
        let servers = |second: &'static str| [("1", "db", "powered-on"), ("2", "db", second)];
        assert_eq!(named(&servers("powered-on"), "db"), "1+2");
        assert_eq!(named(&servers("deleting"), "db"), "1");
        assert_eq!(named(&servers("reserved"), "db"), "1");
        assert_eq!(
            named(&[("1", "db", "deleting"), ("2", "db", "reserved")], "db"),
            ""
        );
        assert_eq!(named(&[("1", "db", "deleting")], "db"), "1");
    }
}
