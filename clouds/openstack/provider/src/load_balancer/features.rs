//! What a load balancer can be asked for, told from the version of Octavia's API and from the load balancer's own provider.

use bowline_openstack_client::{ApiVersion, LoadBalancer};

use crate::config::LoadBalancerOptions;

/// The provider that forwards packets itself and has the fewest features.
const OVN: &str = "ovn";

/// Octavia's own provider, and its old name.
const AMPHORA: [&str; 2] = ["amphora", "octavia"];

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Features {
    /// Timeouts of listeners.
    pub(crate) timeouts: bool,
    /// Tags, and with them load balancers that several Services share.
    pub(crate) tags: bool,
    /// Flavors.
    pub(crate) flavors: bool,
    /// Allowed CIDRs of listeners.
    pub(crate) allowed_cidrs: bool,
    /// Availability zones.
    pub(crate) zones: bool,
    /// HTTP monitors of UDP pools.
    pub(crate) http_monitors_of_udp: bool,
    /// HTTP monitors at all.
    pub(crate) http_monitors: bool,
    /// A second address.
    pub(crate) additional_vips: bool,
    /// Whether its provider is `ovn`: clients keep their addresses on the way to the members.
    pub(crate) is_ovn: bool,
    /// Whether its provider is Octavia's own one.
    pub(crate) is_amphora: bool,
    /// Whether a person set security groups on its address. Octavia then lets in whom these let in, and refuses listeners that name allowed
    /// CIDRs (`_validate_cidr_compatible_with_vip` in `octavia/api/v2/controllers/listener.py`).
    pub(crate) has_vip_groups: bool,
    /// Whether the version could not be read.
    pub(crate) is_unknown: bool,
}

/// Whether a load balancer is one of `ovn`.
pub(crate) fn is_of_ovn(balancer: &LoadBalancer) -> bool {
    balancer.provider == OVN
}

impl Features {
    /// The features of a version (Octavia API, "API versions") with the provider that has most; of none at all, nothing but load
    /// balancers.
    pub(crate) fn of(version: Option<(u32, u32)>) -> Self {
        let since = |minor| version.is_some_and(|version| version >= (2, minor));
        Self {
            timeouts: since(1),
            tags: since(5),
            flavors: since(6),
            allowed_cidrs: since(12),
            zones: since(14),
            http_monitors_of_udp: since(16),
            http_monitors: true,
            additional_vips: since(26),
            is_ovn: false,
            is_amphora: false,
            has_vip_groups: false,
            is_unknown: false,
        }
    }

    /// Those of a version that could not be read. A load balancer that is there keeps its parts, which may have them all.
    pub(crate) fn unknown() -> Self {
        Self {
            is_unknown: true,
            ..Self::of(Some((2, u32::MAX)))
        }
    }

    /// What is surely there: of a version that could not be read, nothing.
    pub(crate) fn surely(self) -> Self {
        match self.is_unknown {
            false => self,
            true => Self {
                is_ovn: self.is_ovn,
                is_amphora: self.is_amphora,
                is_unknown: true,
                ..Self::of(None)
            },
        }
    }

    /// Those of a load balancer that is there, or of one that is to be made. One that is there keeps its provider, whatever the
    /// configuration says by now; where the API does not tell it, the configuration counts.
    pub(crate) fn of_balancer(self, options: &LoadBalancerOptions, there: Option<&LoadBalancer>) -> Self {
        let told = there.map(|there| there.provider.as_str());
        let provider = told
            .filter(|provider| !provider.is_empty())
            .unwrap_or(&options.provider);
        let has_vip_groups = there.is_some_and(|there| !there.vip_sg_ids.is_empty());
        match provider == OVN {
            false => Self {
                has_vip_groups,
                allowed_cidrs: self.allowed_cidrs && !has_vip_groups,
                is_amphora: AMPHORA.contains(&provider),
                ..self
            },
            true => Self {
                tags: self.tags,
                http_monitors: false,
                is_ovn: true,
                is_unknown: self.is_unknown,
                ..Self::of(None)
            },
        }
    }
}

/// The newest version of a list: the last one.
pub(crate) fn newest(versions: &[ApiVersion]) -> Option<(u32, u32)> {
    let (major, minor) = versions.last()?.id.strip_prefix('v')?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(id: &str) -> ApiVersion {
        ApiVersion {
            id: id.into(),
            status: String::new(),
        }
    }

    #[test]
    fn the_last_version_counts_as_a_number() {
        assert_eq!(newest(&[version("v2.0"), version("v2.12")]), Some((2, 12)));
        assert_eq!(newest(&[]), None);
        let old = Features::of(Some((2, 9)));
        assert!(old.tags && old.flavors && !old.allowed_cidrs);
        assert!(Features::of(Some((2, 12))).allowed_cidrs);
        assert!(!Features::of(None).tags);
    }

    #[test]
    fn ovn_has_tags_and_little_else() {
        let options = LoadBalancerOptions {
            provider: OVN.into(),
            ..LoadBalancerOptions::default()
        };
        let ovn = Features::of(Some((2, 30))).of_balancer(&options, None);
        assert!(
            ovn.is_ovn && ovn.tags && !ovn.timeouts && !ovn.allowed_cidrs && !ovn.zones && !ovn.http_monitors
        );
        assert!(!ovn.additional_vips && !ovn.flavors && !ovn.http_monitors_of_udp);
    }
}
