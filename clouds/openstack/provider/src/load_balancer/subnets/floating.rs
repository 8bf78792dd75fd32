//! The floating network and its subnets, out of what classes, annotations and options say.

use bowline_openstack_client::{Network, NetworkId, Subnet, SubnetId};

use super::matching::{PatternError, SubnetMatch};
use crate::load_balancer::annotations as keys;

/// What one place says about floating subnets: a class, the annotations, the options. `None` says nothing; an empty text in
/// an annotation takes the option of that name back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Words<'a> {
    /// `floating-subnet-id`.
    pub(crate) id: Option<&'a str>,
    /// `floating-subnet`: a name pattern.
    pub(crate) name: Option<&'a str>,
    /// `floating-subnet-tags`.
    pub(crate) tags: Option<&'a str>,
}

impl<'a> Words<'a> {
    /// Whether anything is asked for.
    fn asks(self) -> bool {
        [self.id, self.name, self.tags]
            .into_iter()
            .any(|text| said(text).is_some())
    }

    /// These where they say something, else the others.
    fn or(self, others: Self) -> Self {
        if self.asks() {
            return self;
        }
        Self {
            id: self.id.or(others.id),
            name: self.name.or(others.name),
            tags: self.tags.or(others.tags),
        }
    }
}

/// Which subnet a new floating IP comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WantedSubnet {
    /// Neutron chooses.
    Any,
    /// This one.
    Id(SubnetId),
    /// One of those that match, the first that has an address left.
    Matching(SubnetMatch),
}

impl WantedSubnet {
    /// What class, annotations and options ask for together: the class wins over the annotations, these over the options; within
    /// one place an ID wins over name and tags.
    ///
    /// # Errors
    ///
    /// A name pattern that cannot be understood.
    pub(crate) fn choose(
        class: Words<'_>,
        annotations: Words<'_>,
        options: Words<'_>,
    ) -> Result<Self, PatternError> {
        let words = if class.asks() {
            class
        } else {
            annotations.or(options)
        };
        if let Some(id) = said(words.id) {
            return Ok(Self::Id(id.into()));
        }
        let matching = SubnetMatch::parse(words.name.unwrap_or_default(), words.tags.unwrap_or_default())?;
        Ok(matching.map_or(Self::Any, Self::Matching))
    }
}

/// Why no floating IP can be made of what is configured, and the annotations of the settings that may be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FloatingError {
    pub(crate) text: String,
    pub(crate) settings: &'static [&'static str],
}

const NETWORK: &[&str] = &[keys::FLOATING_NETWORK.key];
const SUBNETS: &[&str] = &[
    keys::FLOATING_SUBNET_ID.key,
    keys::FLOATING_SUBNET.key,
    keys::FLOATING_SUBNET_TAGS.key,
];
const ALL: &[&str] = &[SUBNETS[0], SUBNETS[1], SUBNETS[2], NETWORK[0]];

fn fault<T>(settings: &'static [&'static str], text: String) -> Result<T, FloatingError> {
    Err(FloatingError { text, settings })
}

/// The floating network that is configured: the class wins over the annotation, this over the option. `None`: it is to be
/// [detected](detect_network).
pub(crate) fn network(
    class: Option<&str>,
    annotation: Option<&str>,
    option: Option<&str>,
) -> Option<NetworkId> {
    let text = said(class).or(annotation).or(option);
    said(text).map(NetworkId::from)
}

/// The first external network from which an IPv4 address may come: an IPv4 subnet of it is listed, or it has one that
/// the project cannot see. `subnets` are all that the project sees, of these networks at least.
pub(crate) fn detect_network<'a>(networks: &'a [Network], subnets: &[Subnet]) -> Option<&'a Network> {
    let may_give_ipv4 = |network: &&Network| {
        network.subnets.iter().any(|id| {
            let mut seen = subnets.iter().filter(|subnet| subnet.id == *id).peekable();
            seen.peek().is_none() || seen.any(|subnet| subnet.ip_version == 4)
        })
    };
    networks
        .iter()
        .filter(|network| network.is_external)
        .find(may_give_ipv4)
}

/// Whether floating IPs can come from a network. `networks` are all that the project sees.
///
/// # Errors
///
/// See [`FloatingError`].
pub(crate) fn check_network(id: &NetworkId, networks: &[Network]) -> Result<(), FloatingError> {
    match networks.iter().find(|network| network.id == *id) {
        None => fault(
            NETWORK,
            format!("failed to find network {id} for floating IPs: the project sees no such network"),
        ),
        Some(network) if !network.is_external => fault(
            NETWORK,
            format!("network {id} is not external, so no floating IP can come from it"),
        ),
        Some(_) => Ok(()),
    }
}

/// The subnets of a network from which a floating IP is asked for, one after the other; none says that Neutron chooses.
/// `listed` is what a list of the network's subnets brought, or more.
///
/// # Errors
///
/// See [`FloatingError`].
pub(crate) fn check<'a>(
    wanted: &WantedSubnet,
    network: &NetworkId,
    listed: &'a [Subnet],
) -> Result<Vec<&'a Subnet>, FloatingError> {
    match wanted {
        WantedSubnet::Any => Ok(Vec::new()),
        WantedSubnet::Id(id) => match listed.iter().find(|subnet| subnet.id == *id) {
            None => fault(SUBNETS, format!("failed to find subnet {id}")),
            Some(subnet) if subnet.network_id == *network => Ok(vec![subnet]),
            Some(_) => fault(
                ALL,
                format!("floating IP subnet \"{id}\" doesn't belong to the network \"{network}\""),
            ),
        },
        WantedSubnet::Matching(matching) => {
            let in_network = |subnet: &&Subnet| subnet.network_id == *network;
            let of_network: Vec<&Subnet> = listed.iter().filter(in_network).collect();
            if of_network.is_empty() {
                return fault(NETWORK, format!("could not find subnets for network {network}"));
            }
            // Floating IPs are of IPv4 only.
            let may_give = |subnet: &&Subnet| subnet.ip_version != 6 && matching.holds(subnet);
            let matching_ones: Vec<&Subnet> = of_network.iter().copied().filter(may_give).collect();
            if matching_ones.is_empty() {
                // Of those with the tags, the Go manager asks by these only.
                let text = match of_network.iter().any(|subnet| matching.has_tags(subnet)) {
                    true => format!("no subnet matching {matching} found for network {network}"),
                    false => format!("could not find subnets for network {network}: none matches {matching}"),
                };
                return fault(SUBNETS, text);
            }
            Ok(matching_ones)
        }
    }
}

/// A text that says something.
fn said(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_wins_over_the_annotations_and_these_over_the_options() {
        let nothing = Words::default();
        let id = |id| Words {
            id: Some(id),
            ..nothing
        };
        let name = |name| Words {
            name: Some(name),
            ..nothing
        };
        let wanted = |class, annotations, options| WantedSubnet::choose(class, annotations, options).unwrap();
        let named = |name| WantedSubnet::Matching(SubnetMatch::parse(name, "").unwrap().unwrap());

        assert_eq!(wanted(nothing, nothing, nothing), WantedSubnet::Any);
        assert_eq!(wanted(name("c*"), id("a"), id("o")), named("c*"));
        assert_eq!(wanted(id(""), name("a*"), id("o")), named("a*"));
        assert_eq!(wanted(nothing, nothing, id("o")), WantedSubnet::Id("o".into()));
        let both = Words {
            name: Some("a*"),
            ..id("a")
        };
        assert_eq!(wanted(nothing, both, nothing), WantedSubnet::Id("a".into()));
        // An empty annotation takes back the option of its name, and no other.
        assert_eq!(wanted(nothing, id(""), id("o")), WantedSubnet::Any);
        assert_eq!(wanted(nothing, name(""), id("o")), WantedSubnet::Id("o".into()));
        assert!(WantedSubnet::choose(nothing, name("~("), nothing).is_err());

        assert_eq!(network(Some("c"), Some("a"), Some("o")), Some("c".into()));
        assert_eq!(network(Some(""), Some("a"), Some("o")), Some("a".into()));
        assert_eq!(network(None, None, Some("o")), Some("o".into()));
        assert_eq!(network(None, Some(""), Some("o")), None);
    }

    #[test]
    fn the_first_external_network_with_ipv4_is_detected() {
        let network = |id: &str, is_external, subnets: &[&str]| Network {
            id: id.into(),
            name: String::new(),
            subnets: subnets.iter().map(|id| SubnetId::from(*id)).collect(),
            is_external,
        };
        let subnets = [
            subnet("s4", "x", 4),
            subnet("s6", "y", 6),
            subnet("other", "inner", 4),
        ];
        let inner = network("inner", false, &["other"]);
        let empty = network("empty", true, &[]);
        let only_v6 = network("y", true, &["s6"]);
        let with_v4 = network("x", true, &["s4"]);
        let unseen = network("z", true, &["s6", "hidden"]);
        let all = [inner, empty, only_v6, with_v4, unseen];
        let found = |networks| detect_network(networks, &subnets).map(|network| network.id.as_str());
        assert_eq!(found(&all), Some("x"));
        assert_eq!(found(&all[4..]), Some("z"), "what cannot be seen may be of IPv4");
        assert_eq!(found(&all[..3]), None);
    }

    #[test]
    fn subnets_are_those_of_the_network_that_match() {
        let listed = [
            subnet("pub-a", "n", 4),
            subnet("ext", "n", 4),
            subnet("pub-6", "n", 6),
            subnet("pub-b", "n", 4),
            subnet("pub-c", "m", 4),
        ];
        let check = |wanted: &WantedSubnet, network: &str| {
            let found = check(wanted, &network.into(), &listed).map_err(|error| error.text);
            found.map(|subnets| {
                subnets
                    .iter()
                    .map(|subnet| subnet.id.to_string())
                    .collect::<Vec<_>>()
            })
        };
        let named = |name| WantedSubnet::Matching(SubnetMatch::parse(name, "").unwrap().unwrap());
        let id = |id: &str| WantedSubnet::Id(id.into());
        let fault = |text: &str| Err(text.to_owned());
        assert_eq!(check(&WantedSubnet::Any, "n"), Ok(vec![]));
        assert_eq!(
            check(&named("pub-*"), "n"),
            Ok(vec!["pub-a".to_owned(), "pub-b".to_owned()])
        );
        assert_eq!(
            check(&named("no"), "n"),
            fault(r#"no subnet matching name "no" found for network n"#)
        );
        let tagged = WantedSubnet::Matching(SubnetMatch::parse("", "zzz").unwrap().unwrap());
        assert_eq!(
            check(&tagged, "n"),
            fault(r#"could not find subnets for network n: none matches tags "zzz""#)
        );
        assert_eq!(
            check(&named("no"), "none"),
            fault("could not find subnets for network none")
        );
        assert_eq!(check(&id("ext"), "n"), Ok(vec!["ext".to_owned()]));
        assert_eq!(check(&id("no"), "n"), fault("failed to find subnet no"));
        let other = r#"floating IP subnet "pub-c" doesn't belong to the network "n""#;
        assert_eq!(check(&id("pub-c"), "n"), fault(other));
    }

    fn subnet(id: &str, network: &str, ip_version: u8) -> Subnet {
        Subnet {
            id: id.into(),
            name: id.to_owned(),
            network_id: network.into(),
            ip_version,
            cidr: String::new(),
            tags: Vec::new(),
        }
    }
}
