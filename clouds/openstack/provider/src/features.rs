//! What this cloud's Octavia can do, told from the version of its API and from the provider of the load balancers.

use bowline_openstack_client::ApiVersion;

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
}

impl Features {
    /// The features of a version (Octavia API, "API versions"); of none at all, nothing but load balancers.
    pub(crate) fn of(version: Option<(u32, u32)>, is_ovn: bool) -> Self {
        let since = |minor| version.is_some_and(|version| version >= (2, minor));
        Self {
            timeouts: since(1) && !is_ovn,
            tags: since(5),
            flavors: since(6) && !is_ovn,
            allowed_cidrs: since(12) && !is_ovn,
            zones: since(14) && !is_ovn,
            http_monitors_of_udp: since(16) && !is_ovn,
            http_monitors: !is_ovn,
            additional_vips: since(26) && !is_ovn,
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
        let old = Features::of(Some((2, 9)), false);
        assert!(old.tags && old.flavors && !old.allowed_cidrs);
        assert!(Features::of(Some((2, 12)), false).allowed_cidrs);
        assert!(!Features::of(None, false).tags);
    }

    #[test]
    fn ovn_has_tags_and_little_else() {
        let ovn = Features::of(Some((2, 30)), true);
        assert!(ovn.tags && !ovn.timeouts && !ovn.allowed_cidrs && !ovn.zones && !ovn.http_monitors);
        assert!(!ovn.additional_vips && !ovn.flavors && !ovn.http_monitors_of_udp);
    }
}
