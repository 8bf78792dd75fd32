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
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Option<String>")]
pub enum ServerStatus {
    /// It is shut down.
    PoweredOff,
    /// It is being given back.
    Deleting,
    /// It is kept under a reservation without being in use.
    Reserved,
    /// Any other state, in its plain spelling: it counts as running. Empty if the API tells none.
    Other(String),
}

impl ServerStatus {
    /// The word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::PoweredOff => "powered-off",
            Self::Deleting => "deleting",
            Self::Reserved => "reserved",
            Self::Other(word) => word,
        }
    }
}

impl Default for ServerStatus {
    fn default() -> Self {
        Self::Other(String::new())
    }
}

impl From<Option<String>> for ServerStatus {
    fn from(word: Option<String>) -> Self {
        let word = word.map(|word| super::plain(&word)).unwrap_or_default();
        match &*word {
            "powered-off" => Self::PoweredOff,
            "deleting" => Self::Deleting,
            "reserved" => Self::Reserved,
            _ => Self::Other(word),
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
            assert_eq!(server.status, ServerStatus::default());
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
        assert_eq!(ServerStatus::from(Some("Frozen".to_owned())).as_str(), "frozen");
    }
}
