//! Servers (Bare Metal Cloud API, "Servers").

use serde::Deserialize;

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// Its id, opaque.
    pub id: String,
    /// Its host name; need not be unique, and may have capitals. Empty if the API does not say: one server that is odd must
    /// not hide all others of a list.
    #[serde(default, deserialize_with = "super::or_default")]
    pub hostname: String,
    /// Its state.
    #[serde(default)]
    pub status: ServerStatus,
    /// Its size, e.g. `s2.c2.medium`.
    #[serde(default, rename = "type", deserialize_with = "super::or_default")]
    pub kind: String,
    /// Where it stands, e.g. `CHI`.
    #[serde(default, deserialize_with = "super::or_default")]
    pub location: String,
    /// Its addresses in private networks, in the API's order.
    #[serde(default, deserialize_with = "super::list")]
    pub private_ip_addresses: Vec<String>,
    /// Its public addresses, in the API's order; none for a server in private networks only.
    #[serde(default, deserialize_with = "super::list")]
    pub public_ip_addresses: Vec<String>,
}

/// The state of a server, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "Option<String>")]
pub enum ServerStatus {
    /// It is shut down.
    PoweredOff,
    /// It is being given back.
    Deleting,
    /// It is kept under a reservation without being in use.
    Reserved,
    /// It failed; it may run all the same.
    Error,
    /// Any other state: it counts as running.
    #[default]
    Other,
}

impl From<Option<String>> for ServerStatus {
    fn from(word: Option<String>) -> Self {
        match word.map(|word| super::plain(&word)).as_deref() {
            Some("powered-off") => Self::PoweredOff,
            Some("deleting") => Self::Deleting,
            Some("reserved") => Self::Reserved,
            Some("error") => Self::Error,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_id_is_needed() {
        for text in [
            r#"{"id":"a"}"#,
            r#"{"id":"a","hostname":null,"status":null,"type":null,"location":null,"privateIpAddresses":null,"publicIpAddresses":null,"new":{}}"#,
        ] {
            let server: Server = serde_json::from_str(text).unwrap();
            assert_eq!(server.status, ServerStatus::Other);
            assert!(server.public_ip_addresses.is_empty() && server.hostname.is_empty());
        }
    }

    #[test]
    fn a_state_is_known_in_every_spelling() {
        for word in ["powered-off", "POWERED_OFF", "Powered Off"] {
            assert_eq!(
                ServerStatus::from(Some(word.to_owned())),
                ServerStatus::PoweredOff,
                "{word}"
            );
        }
        assert_eq!(ServerStatus::from(Some("frozen".to_owned())), ServerStatus::Other);
    }
}
