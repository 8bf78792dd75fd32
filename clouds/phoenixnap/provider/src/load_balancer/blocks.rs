//! What can be told of a block by itself: its address, its order, whether it is where it should be.

use std::fmt;
use std::net::{AddrParseError, IpAddr, Ipv4Addr};
use std::str::FromStr;

use bowline_cloud_provider::{Service, ServicesView, facts};
use bowline_phoenixnap_client::{AssignedResource, BlockStatus, IpBlock};
use bowline_plan::{Refusal, refusal};
use ipnet::{IpNet, Ipv4Net};

/// How large a block is bought.
pub(crate) const SIZE: &str = "/29";

/// The CIDR of a block that a prediction makes up.
pub(crate) const PREDICTED_CIDR: &str = "<new>";

/// The address of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Address {
    /// This one.
    Known(IpAddr),
    /// One of a block that a prediction makes up: phoenixNAP chooses it.
    Predicted,
}

/// How one is written that nobody knows yet.
const PREDICTED_ADDRESS: &str = "an address of the block that is bought";

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(address) => address.fmt(f),
            Self::Predicted => f.write_str(PREDICTED_ADDRESS),
        }
    }
}

impl FromStr for Address {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        match text {
            PREDICTED_ADDRESS => Ok(Self::Predicted),
            text => text.parse().map(Self::Known),
        }
    }
}

impl Address {
    /// Whether it is one of the block's.
    pub(crate) fn is_of(self, block: &IpBlock) -> bool {
        match self {
            Self::Known(address) => contains(block, address),
            Self::Predicted => block.cidr == PREDICTED_CIDR,
        }
    }
}

/// The network of a block.
pub(crate) fn network(block: &IpBlock) -> Option<Ipv4Net> {
    match block.cidr.trim().parse().ok()? {
        IpNet::V4(network) => Some(network.trunc()),
        IpNet::V6(_) => None,
    }
}

/// The address that a Service gets: network address + 2. The first is the network's own, the second the gateway's.
pub(crate) fn service_address(block: &IpBlock) -> Option<Address> {
    if block.cidr == PREDICTED_CIDR {
        return Some(Address::Predicted);
    }
    let network = network(block)?;
    let address = Ipv4Addr::from_bits(network.network().to_bits().checked_add(2)?);
    network
        .contains(&address)
        .then_some(Address::Known(address.into()))
}

/// Whether an address is one of the block's.
pub(crate) fn contains(block: &IpBlock, address: IpAddr) -> bool {
    match (network(block), address) {
        (Some(network), IpAddr::V4(address)) => network.contains(&address),
        _ => false,
    }
}

/// The addresses that Services ask for or show.
pub(crate) fn used_addresses(services: &dyn ServicesView) -> Vec<IpAddr> {
    let all = services.services();
    let living = all.iter().filter(|it| services.classes().is_wanted(it));
    let asked = living.filter_map(|it| it.spec.as_ref()?.load_balancer_ip.clone());
    let shown = all.iter().flat_map(|it| facts::published_addresses(it));
    let used = asked.chain(shown).filter_map(|text| text.trim().parse().ok());
    used.collect()
}

/// The addresses that a Service asks for or shows.
pub(crate) fn addresses_of(service: &Service) -> Vec<IpAddr> {
    let spec = service.spec.as_ref();
    let asked = spec.and_then(|it| it.load_balancer_ip.clone()).into_iter();
    let all = asked.chain(facts::published_addresses(service));
    all.filter_map(|text| text.trim().parse().ok()).collect()
}

/// Whether one of these addresses is of a block: then it is no orphan, whatever its tags say.
pub(crate) fn is_used(block: &IpBlock, used: &[IpAddr]) -> bool {
    used.iter().any(|address| contains(block, *address))
}

/// Where a block is attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// Nowhere, or the API does not show it.
    Nowhere,
    /// A public network.
    Network(&'a str),
    /// A public network that the API does not name.
    SomeNetwork,
    /// Something else.
    Other(&'a str),
}

/// Where a block is attached, as far as the API shows it.
pub(crate) fn place(block: &IpBlock) -> Place<'_> {
    let id = block.assigned_resource_id.as_deref().filter(|id| !id.is_empty());
    match (&block.assigned_resource_type, id) {
        (Some(AssignedResource::Other(kind)), _) if !kind.is_empty() => Place::Other(kind),
        (Some(AssignedResource::PublicNetwork), Some(id)) => Place::Network(id),
        (Some(AssignedResource::PublicNetwork), None) => Place::SomeNetwork,
        // Only networks take blocks of ours; an ID without a kind is taken for one.
        (_, Some(id)) => Place::Network(id),
        (_, None) => Place::Nowhere,
    }
}

/// Sorts what is found: what is attached to our network first, then the oldest, then by ID.
pub(crate) fn sort(blocks: &mut [IpBlock], network: &str) {
    blocks.sort_by_cached_key(|block| {
        let created = block
            .created_on
            .as_deref()
            .and_then(|text| text.parse::<jiff::Timestamp>().ok());
        (
            place(block) != Place::Network(network),
            created.is_none(),
            created,
            block.id.clone(),
        )
    });
}

/// What has to be done so that a block is attached to a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Attachment {
    /// Nothing: it is there, or on its way.
    Done,
    /// It has to be attached.
    Needed,
    /// It cannot be attached now, but it may become so by itself.
    Later(String),
    /// It cannot be attached, and a person has to see to it.
    Never(Refusal),
}

/// Decides by place first, then by state.
pub(crate) fn attachment(block: &IpBlock, network: &str) -> Attachment {
    let id = &block.id;
    let is_ours = match place(block) {
        Place::Nowhere => false,
        Place::Network(other) if other == network => true,
        Place::Network(other) => {
            return Attachment::Never(refusal!(
                "IP block {id} is attached to public network {other}, not to {network}";
                "whoever owns the project takes the block off {other}, in the portal or by the API: Bowline attaches it to {network} again. If it is the \
                 network of the configuration that changed, undo that, or delete and re-create the Service"
            ));
        }
        Place::SomeNetwork => {
            return Attachment::Never(refusal!(
                "IP block {id} is attached to a public network that the API does not name";
                "whoever owns the project looks in the portal which one it is, and takes the block off if it is not {network}"
            ));
        }
        Place::Other(kind) => {
            return Attachment::Never(refusal!(
                "IP block {id} is attached to a resource of type {kind}, not to public network {network}";
                "whoever owns the project takes the block off it, in the portal or by the API: Bowline attaches it to the network again"
            ));
        }
    };
    let later = || Attachment::Later(format!("IP block {id} is {}", block.status));
    match (&block.status, is_ours) {
        (BlockStatus::Creating | BlockStatus::Unassigning, _) => later(),
        (BlockStatus::Subnetted, _) => Attachment::Never(refusal!(
            "IP block {id} is divided into smaller blocks";
            "whoever owns the project deletes those in the portal, so that the whole block can be attached"
        )),
        // While it is on its way, the API need not show where to.
        (BlockStatus::Assigning, _)
        | (
            BlockStatus::Assigned
            | BlockStatus::ErrorUnassigning
            | BlockStatus::Absent
            | BlockStatus::Other(_),
            true,
        ) => Attachment::Done,
        _ => Attachment::Needed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(cidr: &str, status: &str, assigned: Option<(&str, Option<&str>)>) -> IpBlock {
        let mut value = serde_json::json!({ "id": "b1", "cidr": cidr, "status": status });
        if let Some((kind, id)) = assigned {
            value["assignedResourceType"] = kind.into();
            value["assignedResourceId"] = id.into();
        }
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn the_third_address_is_the_services() {
        let address = |cidr: &str| service_address(&block(cidr, "", None)).map(|address| address.to_string());
        assert_eq!(address("198.51.100.8/29").as_deref(), Some("198.51.100.10"));
        assert_eq!(address("198.51.100.13/29").as_deref(), Some("198.51.100.10"));
        assert_eq!(address("203.0.113.0/28").as_deref(), Some("203.0.113.2"));
        assert_eq!(address("198.51.100.8/31"), None);
        assert_eq!(address("255.255.255.254/31"), None);
        assert_eq!(address("2001:db8::/64"), None);
        assert_eq!(address("many"), None);
    }

    #[test]
    fn every_state_and_place_has_its_answer() {
        use Attachment::{Done, Needed};
        let decide = |status: &str, assigned| attachment(&block("198.51.100.8/29", status, assigned), "net");
        let ours = Some(("public network", Some("net")));
        for (status, nowhere, here) in [
            ("unassigned", Some(Needed), None),
            ("creating", None, None),
            ("assigning", Some(Done), Some(Done)),
            ("assigned", None, Some(Done)),
            ("unassigning", None, None),
            ("error assigning", Some(Needed), Some(Needed)),
            ("error unassigning", None, Some(Done)),
            ("", Some(Needed), Some(Done)),
            ("lost", Some(Needed), Some(Done)),
        ] {
            if let Some(expected) = nowhere {
                assert_eq!(decide(status, None), expected, "{status}");
            }
            if let Some(expected) = here {
                assert_eq!(decide(status, ours), expected, "{status}");
            }
        }
        for status in ["creating", "unassigning"] {
            assert!(matches!(decide(status, None), Attachment::Later(_)), "{status}");
        }
        assert!(matches!(decide("subnetted", None), Attachment::Never(_)));
        for status in ["assigned", "unassigned", "error assigning", "unassigning"] {
            for place in [
                ("PUBLIC_NETWORK", Some("other")),
                ("public network", None),
                ("server", Some("s1")),
            ] {
                assert!(
                    matches!(decide(status, Some(place)), Attachment::Never(_)),
                    "{status} {place:?}"
                );
            }
        }
    }

    #[test]
    fn the_attached_one_comes_first_then_the_oldest() {
        let made = |id: &str, created: Option<&str>, assigned| {
            let mut block = block("198.51.100.8/29", "assigned", assigned);
            (block.id, block.created_on) = (id.to_owned(), created.map(str::to_owned));
            block
        };
        let mut blocks = [
            made("c", None, None),
            made("b", Some("2024-01-19T06:02:44.511Z"), None),
            made("a", Some("2025-01-19T06:02:44.511Z"), None),
            made("d", Some("odd"), Some(("PUBLIC_NETWORK", Some("net")))),
        ];
        sort(&mut blocks, "net");
        let order: Vec<&str> = blocks.iter().map(|block| block.id.as_str()).collect();
        assert_eq!(order, ["d", "b", "a", "c"]);
    }
}
