//! What is fixed when a simulator is built.

use bowline_cloud_kit::addresses::v4_range;
use ipnet::IpNet;

/// A kind of OpenStack service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// Keystone.
    Identity,
    /// Nova.
    Compute,
    /// Neutron.
    Network,
    /// Octavia.
    LoadBalancer,
    /// Barbican.
    KeyManager,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Identity,
        Self::Compute,
        Self::Network,
        Self::LoadBalancer,
        Self::KeyManager,
    ];

    /// The first segment of its paths.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Compute => "compute",
            Self::Network => "network",
            Self::LoadBalancer => "load-balancer",
            Self::KeyManager => "key-manager",
        }
    }

    /// Its type in the catalog, which is its folder, and its name.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        let name = match self {
            Self::Identity => "keystone",
            Self::Compute => "nova",
            Self::Network => "neutron",
            Self::LoadBalancer => "octavia",
            Self::KeyManager => "barbican",
        };
        (self.folder(), name)
    }

    /// The major version that its paths begin with.
    fn version(self) -> &'static str {
        match self {
            Self::Identity => "v3",
            Self::Compute => "v2.1",
            Self::Network | Self::LoadBalancer => "v2.0",
            Self::KeyManager => "v1",
        }
    }

    /// Whether OpenStack's own installer puts the version into the catalog.
    fn is_usually_versioned(self) -> bool {
        matches!(self, Self::Identity | Self::Compute)
    }
}

/// Whether the catalog's URLs end in a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatalogUrls {
    /// Those of Keystone and Nova do, as OpenStack's own installer writes them.
    #[default]
    Usual,
    /// All do.
    Versioned,
    /// None does.
    Bare,
}

/// The interfaces of each service.
pub(crate) const INTERFACES: [&str; 3] = ["public", "internal", "admin"];

/// What is fixed when a simulator is built.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// The first one is simulated; the others are in the catalog only.
    pub(crate) regions: Vec<String>,
    /// What the catalog leaves out.
    pub(crate) missing: Vec<Service>,
    pub(crate) urls: CatalogUrls,
    /// Base of all links; taken from the request if absent.
    pub(crate) base_url: Option<String>,
    /// Where servers run.
    pub(crate) zone: String,
    /// The name of the project's network.
    pub(crate) network: String,
    pub(crate) private: IpNet,
    /// A second range of the same network.
    pub(crate) private_v6: Option<IpNet>,
    pub(crate) external: IpNet,
    /// The name and the password of the first project's user.
    pub(crate) user: (String, String),
    /// The name of the first project.
    pub(crate) project: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            regions: vec!["RegionOne".to_owned()],
            missing: Vec::new(),
            urls: CatalogUrls::Usual,
            base_url: None,
            zone: "nova".to_owned(),
            network: "private".to_owned(),
            private: v4_range([10, 0, 0, 0], 24),
            private_v6: None,
            external: v4_range([203, 0, 113, 0], 24),
            user: ("demo".to_owned(), "demo".to_owned()),
            project: "demo".to_owned(),
        }
    }
}

impl Options {
    pub(crate) fn region(&self) -> &str {
        self.regions.first().map_or("RegionOne", String::as_str)
    }

    /// The path of an endpoint: the public one of the first region lies directly below the base.
    pub(crate) fn endpoint(&self, service: Service, interface: &str, region: &str) -> String {
        let region = (region != self.region()).then_some(region);
        let interface = (interface != "public").then_some(interface);
        let is_versioned = match self.urls {
            CatalogUrls::Usual => service.is_usually_versioned(),
            CatalogUrls::Versioned => true,
            CatalogUrls::Bare => false,
        };
        let version = is_versioned.then(|| service.version());
        let segments = [region, interface, Some(service.folder()), version];
        let segments = segments.into_iter().flatten();
        segments.fold(String::new(), |path, segment| format!("{path}/{segment}"))
    }
}
