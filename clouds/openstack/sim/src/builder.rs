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
    bowline_cloud_kit::setters! {
        /// The name and the password of the user of the first project. Default: `demo`, `demo`.
        user(name: impl Into<String>, password: impl Into<String>) options.user = (name.into(), password.into());
        /// The name of the first project. Default: `demo`.
        project(name: impl Into<String>) options.project = name.into();
        /// Whether the catalog's URLs end in a version. Default: some do.
        catalog_urls(urls: CatalogUrls) options.urls = urls;
        /// The base of all links, without a slash at the end. Default: as the caller named the host.
        base_url(base_url: impl Into<String>) options.base_url = Some(base_url.into());
        /// The availability zone of servers that name none. Default: `nova`.
        zone(zone: impl Into<String>) options.zone = zone.into();
        /// The name of the project's network. Default: `private`.
        network(name: impl Into<String>) options.network = name.into();
        /// The range of the project's subnet. Default: 10.0.0.0/24, whose first server has 10.0.0.11.
        private_range(range: IpNet) options.private = range.trunc();
        /// Gives the project's network an IPv6 subnet too.
        private_v6_range(range: IpNet) options.private_v6 = Some(range.trunc());
        /// The range of floating IPs. Default: 203.0.113.0/24.
        external_range(range: IpNet) options.external = range.trunc();
    }

    /// The regions of the catalog. The first one is simulated; below the URLs of the others nothing is found.
    /// Default: `RegionOne`.
    pub fn regions<R: Into<String>>(mut self, regions: impl IntoIterator<Item = R>) -> Self {
        self.options.regions = regions.into_iter().map(Into::into).collect();
        self
    }

    /// Leaves a service out of the catalog.
    pub fn without(mut self, service: Service) -> Self {
        self.options.missing.push(service);
        self
    }

    /// Makes the load balancers carry traffic, see [`bowline_cloud_kit::dataplane`]. Default: no.
    ///
    /// Moves the ranges of floating IPs and of the project's subnet into the loopback range (127.77.0.0/16 and
    /// 127.78.0.0/16), so that all of them can be bound. Ranges set after this call win. Not for a paused clock: sockets
    /// do not wait for it. It lasts as long as a clone of the simulator lives.
    pub fn data_plane(mut self) -> Self {
        self.settings.data_plane = true;
        self.external_range(v4_range([127, 77, 0, 0], 16))
            .private_range(v4_range([127, 78, 0, 0], 16))
    }
}
