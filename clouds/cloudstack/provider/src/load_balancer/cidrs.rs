//! Sets of networks in CIDR notation, as rules, firewalls and ACLs hold them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

/// All of IPv4, as it is written.
pub(crate) const EVERYBODY: &str = "0.0.0.0/0";

/// A set of networks: order, spelling and repetition do not count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Cidrs {
    networks: BTreeSet<IpNet>,
    /// What could not be read; it differs from everything but itself.
    strange: BTreeSet<String>,
}

impl Cidrs {
    /// The networks, one text for each.
    pub(crate) fn texts(&self) -> Vec<String> {
        let networks = self.networks.iter().map(ToString::to_string);
        networks.chain(self.strange.iter().cloned()).collect()
    }

    /// The same to be written: "no restriction" is written out.
    pub(crate) fn written(&self) -> Vec<String> {
        match self.is_everything() {
            true => vec![EVERYBODY.to_owned()],
            false => self.texts(),
        }
    }

    /// Whether everybody may connect: no network at all, or all of IPv4.
    pub(crate) fn is_everything(&self) -> bool {
        self.strange.is_empty()
            && (self.networks.is_empty() || self.networks.iter().eq([&IpNet::V4(Ipv4Net::default())]))
    }

    /// Whether everybody may connect, whatever else is in the list.
    pub(crate) fn lets_everybody_in(&self) -> bool {
        self.is_everything() || self.networks.contains(&IpNet::V4(Ipv4Net::default()))
    }

    /// Whether both mean the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self == other || (self.is_everything() && other.is_everything())
    }

    /// Whether both mean the same to an address of IPv4.
    pub(crate) fn is_same_for_ipv4(&self, other: &Self) -> bool {
        let ipv4 = |all: &Self| {
            let mut networks = all.explicit();
            networks.retain(|network| matches!(network, IpNet::V4(_)));
            networks
        };
        self.strange == other.strange && ipv4(self) == ipv4(other)
    }

    /// Whether a network is in both.
    pub(crate) fn shares_with(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.explicit(), other.explicit());
        !ours.is_disjoint(&theirs) || !self.strange.is_disjoint(&other.strange)
    }

    /// Whether every address that is in both these and `other` is in one of `all`, too.
    pub(crate) fn shares_only<'a>(&self, other: &Self, all: impl IntoIterator<Item = &'a Self>) -> bool {
        let all: Vec<IpNet> = all.into_iter().flat_map(Self::explicit).collect();
        let all = IpNet::aggregate(&all);
        let (ours, theirs) = (self.explicit(), other.explicit());
        let pairs = ours
            .iter()
            .flat_map(|own| theirs.iter().map(move |other| (own, other)));
        let mut shared = pairs.filter_map(|(own, other)| match (own.contains(other), other.contains(own)) {
            (true, _) => Some(other),
            (_, true) => Some(own),
            _ => None,
        });
        shared.all(|shared| all.iter().any(|network| network.contains(shared)))
    }

    /// Whether each address of IPv4 that is in `other` is in these, too.
    pub(crate) fn covers_ipv4(&self, other: &Self) -> bool {
        let all: Vec<IpNet> = self.explicit().into_iter().collect();
        let all = IpNet::aggregate(&all);
        let covers = |network: &IpNet| all.iter().any(|wide| wide.contains(network));
        let ipv4 = other
            .explicit()
            .into_iter()
            .filter(|it| matches!(it, IpNet::V4(_)));
        other.strange.is_empty() && ipv4.into_iter().all(|network| covers(&network))
    }

    /// The networks, with "no restriction" written out.
    fn explicit(&self) -> BTreeSet<IpNet> {
        if self.is_everything() {
            BTreeSet::from([IpNet::V4(Ipv4Net::default())])
        } else {
            self.networks.clone()
        }
    }

    /// Other networks that hold the same addresses, none of them one of these or of `taken`. Single addresses cannot be
    /// divided and are left out.
    pub(crate) fn divided<'a>(&self, taken: impl IntoIterator<Item = &'a Self>) -> Vec<IpNet> {
        let own = self.explicit();
        let mut avoided = own.clone();
        for networks in taken {
            avoided.extend(networks.explicit());
        }
        let mut parts = BTreeSet::new();
        for network in &own {
            divide(*network, &avoided, &mut parts);
        }
        parts.into_iter().collect()
    }

    /// Whether these networks are none of `whole`'s and hold the same addresses as its divisible ones: then they were
    /// made to stand in for them.
    pub(crate) fn stands_in_for(&self, whole: &Self) -> bool {
        let divisible: Vec<IpNet> = whole.explicit().into_iter().filter(is_divisible).collect();
        let own: Vec<IpNet> = self.explicit().into_iter().collect();
        !divisible.is_empty()
            && self.strange.is_empty()
            && !self.shares_with(whole)
            && IpNet::aggregate(&own) == IpNet::aggregate(&divisible)
    }
}

impl<T: AsRef<str>> FromIterator<T> for Cidrs {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let mut all = Self::default();
        for item in items {
            let item = item.as_ref();
            let address = |_| item.parse::<IpAddr>().map(IpNet::from);
            match item.parse::<IpNet>().or_else(address) {
                Ok(network) => all.networks.insert(network.trunc()),
                Err(_) => all.strange.insert(item.to_owned()),
            };
        }
        all
    }
}

/// A list of networks: as it is written, and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sources {
    /// The networks as they are written.
    pub(crate) texts: Vec<String>,
    pub(crate) cidrs: Cidrs,
}

impl Sources {
    /// These networks, in this order and as often as they are named.
    pub(crate) fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let texts: Vec<String> = texts.into_iter().collect();
        Self {
            cidrs: texts.iter().collect(),
            texts,
        }
    }

    /// Everybody.
    pub(crate) fn everything() -> Self {
        Self::new([EVERYBODY.to_owned()])
    }

    /// Whether a rule can be changed to these where it stands: an update takes networks of IPv4 only, and joins several by
    /// commas, which no router can read.
    pub(crate) fn can_be_updated_to(&self) -> bool {
        match self.texts.as_slice() {
            [] => true,
            [only] => only.parse::<Ipv4Net>().is_ok(),
            _ => false,
        }
    }
}

fn is_divisible(network: &IpNet) -> bool {
    network.prefix_len() < network.max_prefix_len()
}

fn divide(network: IpNet, avoided: &BTreeSet<IpNet>, parts: &mut BTreeSet<IpNet>) {
    let Ok(halves) = network.subnets(network.prefix_len() + 1) else {
        return; // a single address
    };
    if !is_divisible(&network) {
        return;
    }
    for half in halves {
        if avoided.contains(&half) {
            divide(half, avoided, parts);
        } else {
            parts.insert(half);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Cidrs {
        /// Reads a list in one text.
        pub(crate) fn parse(text: &str) -> Self {
            text.split([',', ' ', '\t', '\n'])
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .collect()
        }
    }

    fn networks(text: &str) -> Cidrs {
        Cidrs::parse(text)
    }

    #[test]
    fn order_spelling_and_separators_do_not_count() {
        let one = networks("10.0.0.0/8 192.168.1.7/24");
        assert!(one.is_same(&networks("192.168.1.0/24,10.1.2.3/8 , 10.0.0.0/8")));
        assert!(!one.is_same(&networks("10.0.0.0/8")));
        assert!(networks("192.0.2.1").is_same(&networks("192.0.2.1/32")));
        assert!(!networks("nonsense").is_same(&networks("")));
    }

    #[test]
    fn absent_empty_and_everything_are_the_same() {
        assert!(networks("").is_same(&networks("0.0.0.0/0")));
        assert!(networks("0.0.0.0/0").is_everything());
        assert!(!networks("0.0.0.0/0 ::/0").is_everything());
        assert!(!networks("").is_same(&networks("10.0.0.0/8")));
        assert!(networks("").is_same_for_ipv4(&networks("::/0 0.0.0.0/0")));
        assert!(!networks("").is_same_for_ipv4(&networks("::/0")));
        assert!(!networks("10.0.0.0/8").is_same_for_ipv4(&networks("::/0 10.0.0.0/9")));
    }

    #[test]
    fn a_rule_is_updated_to_one_network_of_ipv4_at_most() {
        let can = |text: &str| {
            let texts = text.split_whitespace().map(str::to_owned);
            Sources::new(texts).can_be_updated_to()
        };
        for text in ["", "0.0.0.0/0", "10.1.2.3/8"] {
            assert!(can(text), "{text}");
        }
        for text in [
            "2001:db8::/32",
            "10.0.0.0/8 192.0.2.0/24",
            "10.0.0.0/8 10.0.0.0/8",
            "192.0.2.1",
        ] {
            assert!(!can(text), "{text}");
        }
    }

    #[test]
    fn what_stands_in_holds_the_same_addresses_in_other_networks() {
        let wanted = networks("0.0.0.0/0");
        let parts: Vec<String> = wanted
            .divided([&networks("0.0.0.0/0")])
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(parts, ["0.0.0.0/1", "128.0.0.0/1"]);
        // A half that is taken is divided once more.
        let parts: Vec<String> = wanted
            .divided([&networks("0.0.0.0/1")])
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(parts, ["0.0.0.0/2", "64.0.0.0/2", "128.0.0.0/1"]);
        for (wanted, taken) in [
            ("10.0.0.0/8,192.0.2.0/24", "10.0.0.0/8"),
            ("10.0.0.0/8,192.0.2.1/32", "10.0.0.0/9,192.0.2.1"),
            ("2001:db8::/32", "2001:db8::/33"),
        ] {
            let (wanted, taken) = (networks(wanted), networks(taken));
            let parts: Cidrs = wanted.divided([&taken]).iter().map(ToString::to_string).collect();
            assert!(parts.stands_in_for(&wanted), "{parts:?}");
            assert!(
                !parts.shares_with(&taken) && !parts.shares_with(&wanted),
                "{parts:?}"
            );
        }
        assert!(!networks("10.0.0.0/9").stands_in_for(&networks("10.0.0.0/8")));
        assert!(!networks("10.0.0.0/8").stands_in_for(&networks("10.0.0.0/8")));
    }

    #[test]
    fn a_single_address_has_nothing_that_could_stand_in() {
        let wanted = networks("192.0.2.1/32,2001:db8::1/128");
        assert_eq!(wanted.divided([]), []);
        assert!(!networks("192.0.2.1/32").stands_in_for(&wanted));
    }
}
