//! The servers of the account, found by ID or by name.

use std::collections::BTreeMap;

use bowline_phoenixnap_client::{Listed, Server, ServerStatus};
use serde_json::Value;

/// One listing of the account's servers.
#[derive(Debug, Default)]
pub(crate) struct ServerIndex {
    servers: Vec<Server>,
    by_id: BTreeMap<String, usize>,
    by_hostname: BTreeMap<String, Vec<usize>>,
    /// By host name in lower case: Nodes' names have no capitals.
    by_lower: BTreeMap<String, Vec<usize>>,
    /// What cannot be read.
    odd: Vec<Value>,
}

/// What a listing says about a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    /// This one.
    Server(&'a Server),
    /// None, or none that is in use.
    Nobody,
    /// These.
    Several(Vec<&'a str>),
}

impl ServerIndex {
    pub(crate) fn new(listed: Listed<Server>) -> Self {
        let servers = listed.entries;
        let mut index = Self {
            odd: listed.odd,
            ..Self::default()
        };
        for (position, server) in servers.iter().enumerate() {
            // Whatever a list says twice is one server.
            if index.by_id.insert(server.id.clone(), position).is_some() {
                continue;
            }
            let hostname = server.hostname.clone();
            index
                .by_lower
                .entry(hostname.to_ascii_lowercase())
                .or_default()
                .push(position);
            index.by_hostname.entry(hostname).or_default().push(position);
        }
        index.servers = servers;
        index
    }

    /// Whether it has no server that can be read. That is how other credentials may look, so nothing follows from what is
    /// missing.
    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    pub(crate) fn by_id(&self, id: &str) -> Option<&Server> {
        self.by_id.get(id).map(|position| &self.servers[*position])
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

    /// Finds a server by host name: to the letter, else in any letter case. Of several, those count that are in use; one
    /// alone is taken whatever its state.
    pub(crate) fn named(&self, name: &str) -> Named<'_> {
        let Some(found) = self
            .by_hostname
            .get(name)
            .or_else(|| self.by_lower.get(&name.to_ascii_lowercase()))
        else {
            return Named::Nobody;
        };
        let all: Vec<&Server> = found.iter().map(|position| &self.servers[*position]).collect();
        if let [server] = all.as_slice() {
            return Named::Server(server);
        }
        let in_use: Vec<&Server> = all
            .into_iter()
            .filter(|server| !matches!(server.status, ServerStatus::Deleting | ServerStatus::Reserved))
            .collect();
        match in_use.as_slice() {
            [] => Named::Nobody,
            [server] => Named::Server(server),
            several => Named::Several(several.iter().map(|server| server.id.as_str()).collect()),
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
        match index(servers).named(name) {
            Named::Server(server) => server.id.clone(),
            Named::Nobody => "nobody".to_owned(),
            Named::Several(ids) => ids.join("+"),
        }
    }

    #[test]
    fn a_name_is_matched_to_the_letter_first_and_in_any_case_then() {
        let servers = [("1", "Worker-1", "powered-on"), ("2", "worker-1", "powered-on")];
        assert_eq!(named(&servers, "worker-1"), "2");
        assert_eq!(named(&servers[..1], "worker-1"), "1");
        assert_eq!(named(&servers, "worker-2"), "nobody");
    }

    #[test]
    fn a_server_without_a_name_is_nobody_s_and_hides_no_other() {
        let listed = r#"[{"id":"1"},{"id":"2","hostname":null},{"id":"3","hostname":"db"}]"#;
        let index = whole(serde_json::from_str(listed).unwrap());
        assert!(matches!(index.named("db"), Named::Server(server) if server.id == "3"));
        assert!(index.by_id("2").is_some());
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
            "nobody"
        );
        assert_eq!(named(&[("1", "db", "deleting")], "db"), "1");
    }
}
