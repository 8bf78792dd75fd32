//! The services, and which of them run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One OpenStack service with an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Service {
    /// Keystone.
    Identity,
    /// Neutron.
    Network,
    /// Octavia.
    LoadBalancer,
    /// Placement, which Nova asks where there is room.
    Placement,
    /// Glance, without which Nova boots nothing.
    Image,
    /// Nova.
    Compute,
}

impl Service {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Identity,
        Self::Network,
        Self::LoadBalancer,
        Self::Placement,
        Self::Image,
        Self::Compute,
    ];

    /// The type under which the catalog has it.
    pub fn catalog_type(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Network => "network",
            Self::LoadBalancer => "load-balancer",
            Self::Placement => "placement",
            Self::Image => "image",
            Self::Compute => "compute",
        }
    }

    /// The project's name for it, which is also the name of its user and of its database.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Identity => "keystone",
            Self::Network => "neutron",
            Self::LoadBalancer => "octavia",
            Self::Placement => "placement",
            Self::Image => "glance",
            Self::Compute => "nova",
        }
    }

    /// The name of the API's process in messages and logs.
    pub(crate) fn api(self) -> &'static str {
        match self {
            Self::Identity => "keystone-api",
            Self::Network => "neutron-api",
            Self::LoadBalancer => "octavia-api",
            Self::Placement => "placement-api",
            Self::Image => "glance-api",
            Self::Compute => "nova-api",
        }
    }

    /// What the catalog's URL has after host and port.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Identity => "/v3",
            Self::Compute => "/v2.1",
            Self::Network | Self::LoadBalancer | Self::Placement | Self::Image => "",
        }
    }
}

/// Which services run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Keystone, Neutron and Octavia: load balancers, routes, security groups. Half the memory and the time.
    Min,
    /// These and Nova with what it needs: servers too.
    #[default]
    Full,
}

/// The text names no mode.
#[derive(Debug, thiserror::Error)]
#[error("unknown mode {0:?}; known are min and full")]
pub struct UnknownMode(String);

impl Mode {
    /// The services that run in this mode.
    pub fn services(self) -> &'static [Service] {
        match self {
            Self::Min => &[Service::Identity, Service::Network, Service::LoadBalancer],
            Self::Full => &Service::ALL,
        }
    }

    /// Whether the service runs in this mode.
    pub fn has(self, service: Service) -> bool {
        self.services().contains(&service)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Min => "min",
            Self::Full => "full",
        })
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        [Self::Min, Self::Full]
            .into_iter()
            .find(|mode| mode.to_string() == text)
            .ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_they_are_written() {
        for mode in [Mode::Min, Mode::Full] {
            assert_eq!(mode.to_string().parse::<Mode>().unwrap(), mode);
        }
        assert!("all".parse::<Mode>().unwrap_err().to_string().contains("all"));
    }

    #[test]
    fn the_small_mode_has_no_servers() {
        assert!(!Mode::Min.has(Service::Compute));
        assert!(Mode::Full.has(Service::Compute));
    }
}
