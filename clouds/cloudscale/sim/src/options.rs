//! What is fixed when a simulator is built.

use std::collections::BTreeMap;
use std::fmt;

use bowline_cloud_kit::addresses::{documentation_v6_range, v4_range};
use ipnet::IpNet;

/// What a token may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everything.
    ReadWrite,
    /// Reads only; writes are 403.
    ReadOnly,
    /// A good token of another project, which is empty.
    EmptyProject,
}

/// The tokens that are known. Never shows them.
#[derive(Clone, Default)]
pub(crate) struct Tokens(BTreeMap<String, Access>);

impl Tokens {
    pub(crate) fn set(&mut self, token: String, access: Access) {
        self.0.insert(token, access);
    }

    pub(crate) fn remove(&mut self, token: &str) {
        self.0.remove(token);
    }

    /// What a token may do. Before the first one is set, every token may do everything.
    pub(crate) fn access(&self, token: &str) -> Option<Access> {
        if self.0.is_empty() && !token.is_empty() {
            Some(Access::ReadWrite)
        } else {
            self.0.get(token).copied()
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens({})", self.0.len())
    }
}

/// A server flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flavor {
    /// Its slug, `<family>-<memory>-<cpus>`.
    pub slug: String,
    /// Virtual CPUs.
    pub vcpu_count: u32,
    /// Memory in GB.
    pub memory_gb: u32,
}

/// What is fixed when a simulator is built.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Zone slugs; the first one is the default.
    pub(crate) zones: Vec<String>,
    pub(crate) flavors: Vec<Flavor>,
    /// Base of hrefs; taken from the request if absent.
    pub(crate) base_url: Option<String>,
    pub(crate) public_v4: IpNet,
    pub(crate) public_v6: IpNet,
    pub(crate) vip_v4: IpNet,
    pub(crate) private: IpNet,
    pub(crate) floating_v4: IpNet,
    pub(crate) floating_v6: IpNet,
    pub(crate) tokens: Tokens,
}

impl Default for Options {
    fn default() -> Self {
        let flavors = [(2, 4), (4, 8), (8, 16), (16, 32)]
            .into_iter()
            .flat_map(|(cpus, memory)| {
                ["flex", "plus"].map(|family| Flavor {
                    slug: format!("{family}-{}-{cpus}", memory),
                    vcpu_count: cpus,
                    memory_gb: memory,
                })
            });
        // The vendor's example flavor has four times as much memory as CPUs.
        let example = Flavor {
            slug: "plus-16-4".to_owned(),
            vcpu_count: 4,
            memory_gb: 16,
        };
        let flex = Flavor {
            slug: "flex-16-4".to_owned(),
            ..example.clone()
        };
        Self {
            zones: vec!["rma1".to_owned(), "lpg1".to_owned()],
            flavors: flavors.chain([example, flex]).collect(),
            base_url: None,
            public_v4: v4_range([198, 18, 0, 0], 16),
            public_v6: documentation_v6_range(0x77, 48),
            vip_v4: v4_range([198, 19, 0, 0], 16),
            private: v4_range([10, 20, 0, 0], 16),
            floating_v4: v4_range([198, 51, 100, 0], 24),
            floating_v6: documentation_v6_range(0xf1, 48),
            tokens: Tokens::default(),
        }
    }
}

impl Options {
    pub(crate) fn default_zone(&self) -> &str {
        self.zones.first().map_or("rma1", String::as_str)
    }
}

/// The region of a zone: the slug without the digits at its end.
pub(crate) fn region(zone: &str) -> &str {
    zone.trim_end_matches(|c: char| c.is_ascii_digit())
}
