//! What is fixed when a simulator is built, and the credentials it knows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bowline_cloud_kit::addresses::{documentation_v6_range, v4_range};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// The locations that the APIs know.
pub const LOCATIONS: [&str; 7] = ["PHX", "ASH", "SGP", "NLD", "CHI", "SEA", "AUS"];

/// What a token may be good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scope {
    /// Changes of blocks and networks.
    #[serde(rename = "bmc")]
    Bmc,
    /// Reads of servers, blocks and networks.
    #[serde(rename = "bmc.read")]
    BmcRead,
    /// Changes of tags.
    #[serde(rename = "tags")]
    Tags,
    /// Reads of tags.
    #[serde(rename = "tags.read")]
    TagsRead,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Bmc, Self::BmcRead, Self::Tags, Self::TagsRead];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bmc => "bmc",
            Self::BmcRead => "bmc.read",
            Self::Tags => "tags",
            Self::TagsRead => "tags.read",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }
}

/// The credentials that are known. Never shows the secrets.
#[derive(Clone, Default)]
pub(crate) struct Credentials(BTreeMap<String, (String, BTreeSet<Scope>)>);

impl Credentials {
    pub(crate) fn set(&mut self, client_id: String, secret: String, scopes: BTreeSet<Scope>) {
        self.0.insert(client_id, (secret, scopes));
    }

    pub(crate) fn remove(&mut self, client_id: &str) {
        self.0.remove(client_id);
    }

    /// The scopes of a client. Before the first one is set, every client with a secret has all of them.
    pub(crate) fn scopes(&self, client_id: &str, secret: &str) -> Option<BTreeSet<Scope>> {
        if self.0.is_empty() {
            return (!client_id.is_empty() && !secret.is_empty()).then(|| Scope::ALL.into());
        }
        let (known, scopes) = self.0.get(client_id)?;
        (known == secret).then(|| scopes.clone())
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What is fixed when a simulator is built.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) credentials: Credentials,
    /// Path in front of all others; empty or `/x`.
    pub(crate) prefix: String,
    pub(crate) private: IpNet,
    pub(crate) public: IpNet,
    /// Where blocks are cut from, by location.
    pub(crate) pools: BTreeMap<String, Vec<IpNet>>,
}

impl Default for Options {
    fn default() -> Self {
        let mut options = Self {
            credentials: Credentials::default(),
            prefix: String::new(),
            private: v4_range([10, 10, 0, 0], 16),
            public: v4_range([198, 18, 0, 0], 16),
            pools: BTreeMap::new(),
        };
        options.share_out(v4_range([198, 19, 0, 0], 16));
        options
    }
}

impl Options {
    /// Gives each location an eighth of an IPv4 range, and an IPv6 range of its own.
    pub(crate) fn share_out(&mut self, range: IpNet) {
        let length = (range.prefix_len() + 3).min(range.max_prefix_len());
        let parts = range.subnets(length).into_iter().flatten();
        self.pools = (LOCATIONS.into_iter().zip(parts).zip(1_u16..))
            .map(|((location, part), number)| {
                (
                    location.to_owned(),
                    vec![part, documentation_v6_range(number, 48)],
                )
            })
            .collect();
    }
}
