//! What an operator says about pod networks, checked.

use ipnet::IpNet;

use super::cidr_set::MOST_BITS;
use crate::cluster_cidr::{self, CidrListError, is_ipv4};

/// The prefix length of a Node's network unless another is asked for.
const DEFAULT_IPV4: u8 = 24;
const DEFAULT_IPV6: u8 = 64;
/// How much longer than the cluster's an IPv6 prefix may be, as in the Go managers.
const MOST_BITS_IPV6: u8 = 16;

/// The flags of node IPAM, as given.
#[derive(Debug, Clone, Default)]
pub struct RangeFlags<'a> {
    /// `--cluster-cidr`.
    pub cluster_cidr: &'a str,
    /// `--service-cluster-ip-range`; may be empty.
    pub service_range: &'a str,
    /// `--node-cidr-mask-size`; 0: not given.
    pub mask: i64,
    /// `--node-cidr-mask-size-ipv4`; 0: not given.
    pub mask_ipv4: i64,
    /// `--node-cidr-mask-size-ipv6`; 0: not given.
    pub mask_ipv6: i64,
    /// `--cidr-allocator-type`.
    pub allocator: &'a str,
}

/// From which networks Nodes get theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges {
    /// The cluster's pod networks, each with the prefix length of a Node's.
    pub cluster: Vec<(IpNet, u8)>,
    /// The Services' networks, from which nothing is given.
    pub services: Vec<IpNet>,
}

/// Why networks cannot be given to Nodes by these flags.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// `--cluster-cidr` cannot be used.
    #[error("--cluster-cidr: {0}")]
    Cluster(CidrListError),
    /// `--service-cluster-ip-range` cannot be used.
    #[error("--service-cluster-ip-range: {0}")]
    Services(CidrListError),
    /// The general prefix length cannot stand beside one of a family.
    #[error(
        "--node-cidr-mask-size cannot be used together with --node-cidr-mask-size-ipv4 or --node-cidr-mask-size-ipv6"
    )]
    TwoMasks,
    /// The general prefix length says nothing of which family it is for.
    #[error(
        "--node-cidr-mask-size cannot be used with two cluster CIDRs, use --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6"
    )]
    DualStackMask,
    /// A prefix length of a family that the cluster does not have.
    #[error("--node-cidr-mask-size-{family} cannot be used, no cluster CIDR is of that family")]
    UnusedMask {
        /// The family.
        family: &'static str,
    },
    /// The prefix is no prefix of an address, or shorter than the cluster's.
    #[error("a node network of /{mask} does not fit into the cluster CIDR {cluster}")]
    Mask {
        /// The prefix length.
        mask: i64,
        /// The cluster's network.
        cluster: IpNet,
    },
    /// There would be too many networks to keep account of.
    #[error("a node network of /{mask} is more than {most} bits longer than the cluster CIDR {cluster}")]
    TooMany {
        /// The prefix length.
        mask: u8,
        /// The cluster's network.
        cluster: IpNet,
        /// The limit.
        most: u8,
    },
    /// Another kind of allocator.
    #[error("--cidr-allocator-type {0:?} is not supported, only RangeAllocator is")]
    Allocator(String),
}

impl Ranges {
    /// Checks the flags; gives all that is wrong with them.
    ///
    /// # Errors
    ///
    /// Never empty.
    pub fn new(flags: &RangeFlags<'_>) -> Result<Self, Vec<RangeError>> {
        let mut errors = Vec::new();
        if flags.allocator != "RangeAllocator" {
            errors.push(RangeError::Allocator(flags.allocator.to_owned()));
        }
        let services = match flags.service_range {
            "" => Vec::new(),
            text => cluster_cidr::parse(text).unwrap_or_else(|error| {
                errors.push(RangeError::Services(error));
                Vec::new()
            }),
        };
        let networks = cluster_cidr::parse(flags.cluster_cidr).unwrap_or_else(|error| {
            errors.push(RangeError::Cluster(error));
            Vec::new()
        });
        let is_checkable = !networks.is_empty();
        if flags.mask != 0 && (flags.mask_ipv4 != 0 || flags.mask_ipv6 != 0) {
            errors.push(RangeError::TwoMasks);
        } else if flags.mask != 0 && networks.len() > 1 {
            errors.push(RangeError::DualStackMask);
        }
        for (mask, wants_ipv4, family) in [(flags.mask_ipv4, true, "ipv4"), (flags.mask_ipv6, false, "ipv6")]
        {
            if is_checkable && mask != 0 && networks.iter().all(|network| is_ipv4(network) != wants_ipv4) {
                errors.push(RangeError::UnusedMask { family });
            }
        }
        let cluster = networks
            .into_iter()
            .filter_map(|network| match flags.mask_for(&network) {
                Ok(mask) => Some((network, mask)),
                Err(error) => {
                    errors.push(error);
                    None
                }
            })
            .collect();
        if errors.is_empty() {
            Ok(Self { cluster, services })
        } else {
            Err(errors)
        }
    }
}

impl RangeFlags<'_> {
    fn mask_for(&self, network: &IpNet) -> Result<u8, RangeError> {
        let (of_family, default, most) = if is_ipv4(network) {
            (self.mask_ipv4, DEFAULT_IPV4, MOST_BITS)
        } else {
            (self.mask_ipv6, DEFAULT_IPV6, MOST_BITS_IPV6)
        };
        let given = [self.mask, of_family].into_iter().find(|mask| *mask != 0);
        let mask = given.unwrap_or_else(|| i64::from(default));
        let fits = u8::try_from(mask)
            .ok()
            .filter(|mask| (network.prefix_len()..=network.max_prefix_len()).contains(mask));
        match fits {
            None => Err(RangeError::Mask {
                mask,
                cluster: *network,
            }),
            Some(mask) if mask - network.prefix_len() > most => Err(RangeError::TooMany {
                mask,
                cluster: *network,
                most,
            }),
            Some(mask) => Ok(mask),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(cluster_cidr: &'static str) -> RangeFlags<'static> {
        RangeFlags {
            cluster_cidr,
            allocator: "RangeAllocator",
            ..RangeFlags::default()
        }
    }

    fn shown(flags: &RangeFlags<'_>) -> Vec<String> {
        match Ranges::new(flags) {
            Ok(ranges) => ranges
                .cluster
                .iter()
                .map(|(network, mask)| format!("{network} by /{mask}"))
                .collect(),
            Err(errors) => errors.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn prefix_lengths_have_defaults_by_family() {
        assert_eq!(
            shown(&flags("10.200.0.0/16,fd00::/48")),
            ["10.200.0.0/16 by /24", "fd00::/48 by /64"]
        );
        let given = RangeFlags {
            mask_ipv4: 26,
            mask_ipv6: 60,
            ..flags("10.200.0.0/16,fd00::/48")
        };
        assert_eq!(shown(&given), ["10.200.0.0/16 by /26", "fd00::/48 by /60"]);
        let general = RangeFlags {
            mask: 25,
            ..flags("10.200.0.0/16")
        };
        assert_eq!(shown(&general), ["10.200.0.0/16 by /25"]);
    }

    // I-03 is the second of these.
    #[test]
    fn what_contradicts_itself_is_refused() {
        for (given, error) in [
            (
                RangeFlags {
                    mask: 24,
                    mask_ipv4: 24,
                    ..flags("10.200.0.0/16")
                },
                "--node-cidr-mask-size cannot be used together with --node-cidr-mask-size-ipv4 or --node-cidr-mask-size-ipv6",
            ),
            (
                RangeFlags {
                    mask: 64,
                    ..flags("10.200.0.0/16,fd00::/48")
                },
                "--node-cidr-mask-size cannot be used with two cluster CIDRs, use --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6",
            ),
            (
                RangeFlags {
                    mask_ipv6: 64,
                    ..flags("10.200.0.0/16")
                },
                "--node-cidr-mask-size-ipv6 cannot be used, no cluster CIDR is of that family",
            ),
            (
                RangeFlags {
                    mask_ipv4: 24,
                    ..flags("fd00::/48")
                },
                "--node-cidr-mask-size-ipv4 cannot be used, no cluster CIDR is of that family",
            ),
            (
                RangeFlags {
                    mask: 15,
                    ..flags("10.200.0.0/16")
                },
                "a node network of /15 does not fit into the cluster CIDR 10.200.0.0/16",
            ),
            (
                RangeFlags {
                    mask: 33,
                    ..flags("10.200.0.0/16")
                },
                "a node network of /33 does not fit into the cluster CIDR 10.200.0.0/16",
            ),
            (
                RangeFlags {
                    mask: -3,
                    ..flags("10.200.0.0/16")
                },
                "a node network of /-3 does not fit into the cluster CIDR 10.200.0.0/16",
            ),
            (
                RangeFlags {
                    mask: 65,
                    ..flags("fd00::/48")
                },
                "a node network of /65 is more than 16 bits longer than the cluster CIDR fd00::/48",
            ),
            (
                RangeFlags {
                    service_range: "10.0.0.0/16,10.1.0.0/16",
                    ..flags("10.200.0.0/16")
                },
                "--service-cluster-ip-range: 10.0.0.0/16 and 10.1.0.0/16 are of one family, at most one of each can be used",
            ),
            (
                RangeFlags {
                    allocator: "CloudAllocator",
                    ..flags("10.200.0.0/16")
                },
                "--cidr-allocator-type \"CloudAllocator\" is not supported, only RangeAllocator is",
            ),
            (flags(""), "--cluster-cidr: no network is given"),
        ] {
            assert_eq!(shown(&given)[0], error);
        }
    }
}
