//! Building a simulator.

use bowline_cloud_kit::addresses::v4_range;
use ipnet::IpNet;

use crate::api::Api;
use crate::behaviour::Behaviour;
use crate::options::{CatalogUrls, Options, Service};
use crate::sim::OpenstackSim;
use crate::state::State;

bowline_cloud_kit::builder!(Builder makes OpenstackSim);

impl Builder {
    /// The name and the password of the user of the first project. Default: `demo`, `demo`.
    #[must_use]
    pub fn user(mut self, name: impl Into<String>, password: impl Into<String>) -> Self {
        self.options.user = (name.into(), password.into());
        self
    }

    /// The name of the first project. Default: `demo`.
    #[must_use]
    pub fn project(mut self, name: impl Into<String>) -> Self {
        self.options.project = name.into();
        self
    }

    /// The regions of the catalog. The first one is simulated; below the URLs of the others nothing is found.
    /// Default: `RegionOne`.
    #[must_use]
    pub fn regions<R: Into<String>>(mut self, regions: impl IntoIterator<Item = R>) -> Self {
        self.options.regions = regions.into_iter().map(Into::into).collect();
        self
    }

    /// Leaves a service out of the catalog.
    #[must_use]
    pub fn without(mut self, service: Service) -> Self {
        self.options.missing.push(service);
        self
    }

    /// Whether the catalog's URLs end in a version. Default: some do.
    #[must_use]
    pub fn catalog_urls(mut self, urls: CatalogUrls) -> Self {
        self.options.urls = urls;
        self
    }

    /// The base of all links, without a slash at the end. Default: as the caller named the host.
    #[must_use]
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.options.base_url = Some(base_url.into());
        self
    }

    /// The availability zone of servers that name none. Default: `nova`.
    #[must_use]
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.options.zone = zone.into();
        self
    }

    /// The name of the project's network. Default: `private`.
    #[must_use]
    pub fn network(mut self, name: impl Into<String>) -> Self {
        self.options.network = name.into();
        self
    }

    /// The range of the project's subnet. Default: 10.0.0.0/24, whose first server has 10.0.0.11.
    #[must_use]
    pub fn private_range(mut self, range: IpNet) -> Self {
        self.options.private = range.trunc();
        self
    }

    /// Gives the project's network an IPv6 subnet too.
    #[must_use]
    pub fn private_v6_range(mut self, range: IpNet) -> Self {
        self.options.private_v6 = Some(range.trunc());
        self
    }

    /// The range of floating IPs. Default: 203.0.113.0/24.
    #[must_use]
    pub fn external_range(mut self, range: IpNet) -> Self {
        self.options.external = range.trunc();
        self
    }

    /// Makes the load balancers carry traffic, see [`bowline_cloud_kit::dataplane`]. Default: no.
    ///
    /// Moves the ranges of floating IPs and of the project's subnet into the loopback range (127.77.0.0/16 and
    /// 127.78.0.0/16), so that all of them can be bound. Ranges set after this call win. Not for a paused clock: sockets
    /// do not wait for it. It lasts as long as a clone of the simulator lives.
    #[must_use]
    pub fn data_plane(mut self) -> Self {
        self.settings.data_plane = true;
        self.external_range(v4_range([127, 77, 0, 0], 16))
            .private_range(v4_range([127, 78, 0, 0], 16))
    }
}
