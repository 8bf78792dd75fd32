//! Which public IP addresses a Service holds: an annotation of the Service, written before an address is associated.
//!
//! Public IP addresses bear no mark of their own, and an address without rules is not found by any name. So what will be
//! acquired is written on the Service first, fenced by the resource version: the ID of a requested address, or that it is
//! any that the cloud chooses, until its ID is known. Whatever happens in between, the next look finds out what became of it.
//!
//! A Service that uses an address of another one notes that too: whoever of them goes last releases it.
//!
//! The annotation is absent on Services whose addresses an earlier manager associated; then its rule counts. Present and
//! empty, the Service holds none.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use bowline_cloud_provider::{Service, facts};
use jiff::{SignedDuration, Timestamp};

use crate::load_balancer::annotations::{
    ACL_SOURCES, BALANCER_ID, IP_ASSOCIATED, IP_IDS, IP_NETWORKS, NETWORK_ID, STICKY_POLICIES, flag, text,
};
use crate::load_balancer::cidrs::{Cidrs, Sources};
use crate::load_balancer::objects::{NetworkId, Place, PublicIpId, VpcId};

/// What is written on a Service about its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Claim {
    /// The addresses; `None` if nothing is written.
    pub(crate) held: Option<Vec<Claimed>>,
    /// Whether the requested address was associated for the Service: the mark that earlier managers know too.
    pub(crate) is_marked: bool,
    /// For which sources items of an ACL list were made, where not for everybody. They bear no mark either.
    opened: Vec<String>,
    /// Whether rules may have stickiness policies that were made for the Service.
    pub(crate) is_sticky: bool,
    /// Where addresses led when they were claimed, by their ID. Not all claims tell.
    places: BTreeMap<PublicIpId, Place>,
    /// What Leaseweb's manager wrote.
    pub(crate) leaseweb: Leaseweb,
}

/// What Leaseweb's manager writes: the address of the load balancer, and its network. It releases the address with the Service, whoever
/// acquired it, unless people keep it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Leaseweb {
    pub(crate) address: Option<PublicIpId>,
    pub(crate) network: Option<NetworkId>,
}

/// One address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claimed {
    /// The one with this ID.
    Address(PublicIpId),
    /// The one with this ID, and when it was claimed, right before it was asked for.
    Asked(PublicIpId, Timestamp),
    /// The one with this ID, which is released: it is not used again before it is gone.
    Going(PublicIpId),
    /// The one with this ID, which was acquired for another Service.
    Shared(PublicIpId),
    /// Any that the cloud chooses.
    Any(AnyAddress),
}

/// That an address may have been asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AddressRequest {
    pub(crate) subject: Subject,
    /// When it was claimed.
    pub(crate) since: Timestamp,
}

/// Which address that is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// The one with this ID.
    Address(PublicIpId),
    /// Any that the cloud chooses for the network with this ID.
    Any(NetworkId),
}

/// An address that only the cloud knows: it came to a network when others were there already.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AnyAddress {
    /// The ID of the network.
    pub(crate) network: NetworkId,
    /// When it was claimed, right before it was asked for.
    pub(crate) since: Option<Timestamp>,
    /// The IDs of the others.
    pub(crate) known: BTreeSet<PublicIpId>,
}

/// Any address is written as `any-of NETWORK since TIME but ADDRESS ADDRESS`.
const ANY: &str = "any-of ";
const SINCE: &str = "since";
const BUT: &str = "but";

/// How long after a claim an address may be asked for under it.
const FRESH: SignedDuration = SignedDuration::from_secs(30);

/// How old a claim must be before another address is asked for, or the Service is let go, if nobody knows what came of the
/// request. It is longer than [`VALIDITY`] by what a server may take for a request that it was sent.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// To what the times of claims are written.
const WRITTEN_TO: Duration = Duration::from_secs(1);

/// How long after the job of a request failed another address may be asked for: nothing is under way any more, and what came all
/// the same has this long to be listed.
pub(crate) const AFTERMATH: Duration = Duration::from_secs(10);

/// How long an answer is waited for. A request that is not sent by then is not sent any more.
pub(crate) const VALIDITY: Duration = Duration::from_secs(60);

/// How long after that the server may take a request: as long as an answer is waited for, and what two clocks may differ.
const TAKEN_WITHIN: SignedDuration = SignedDuration::from_mins(2);

/// A shared address is written as `shared ADDRESS`.
const SHARED: &str = "shared ";

/// One that is released is written as `going ADDRESS`.
const GOING: &str = "going ";

/// One that was asked for is written as `ADDRESS since TIME`.
const ASKED: &str = " since ";

/// Whether an address may be asked for under a claim of that time.
pub(crate) fn is_fresh(since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since).abs() <= FRESH
}

/// How long a claim of that time still stands in the way of another one, for whoever does not know more about it. A time in the
/// future comes from another clock: it counts by its distance, or it would stand for good.
pub(crate) fn stands_for(since: Timestamp, now: Timestamp) -> Option<Duration> {
    let age = now.duration_since(since).unsigned_abs();
    (PATIENCE + WRITTEN_TO)
        .checked_sub(age)
        .filter(|left| !left.is_zero())
}

impl AnyAddress {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let network = words.next()?.into();
        let mut since = None;
        for word in words.by_ref().take_while(|word| *word != BUT) {
            since = since.or_else(|| word.parse().ok());
        }
        Some(Self {
            network,
            since,
            known: words.map(PublicIpId::from).collect(),
        })
    }

    /// Whether an address that somebody has since `allocated` came too early or too late to be the one. Other people's are not
    /// to be taken for it.
    pub(crate) fn is_over(&self, allocated: Option<Timestamp>) -> bool {
        let times = self.since.zip(allocated);
        times.is_some_and(|(since, allocated)| allocated.duration_since(since).abs() > FRESH + TAKEN_WITHIN)
    }
}

impl Claimed {
    fn parse(text: &str) -> Option<Self> {
        if let Some(any_address) = text.strip_prefix(ANY) {
            return AnyAddress::parse(any_address).map(Self::Any);
        }
        if let Some(id) = text.strip_prefix(SHARED) {
            return Some(Self::Shared(id.trim().into()));
        }
        if let Some(id) = text.strip_prefix(GOING) {
            return Some(Self::Going(id.trim().into()));
        }
        let asked = text.rsplit_once(ASKED);
        let asked = asked.and_then(|(id, time)| Some((id, time.trim().parse().ok()?)));
        Some(match asked {
            Some((id, since)) => Self::Asked(id.trim().into(), since),
            None => Self::Address(text.into()),
        })
    }

    /// The ID of the address; none if only the cloud knows it.
    pub(crate) fn id(&self) -> Option<&PublicIpId> {
        match self {
            Self::Address(id) | Self::Asked(id, _) | Self::Going(id) | Self::Shared(id) => Some(id),
            Self::Any(_) => None,
        }
    }

    /// The ID of an address that is the Service's.
    pub(crate) fn own_id(&self) -> Option<&PublicIpId> {
        match self {
            Self::Address(id) | Self::Asked(id, _) | Self::Going(id) => Some(id),
            Self::Shared(_) | Self::Any(_) => None,
        }
    }

    /// Whether both are about the same address.
    fn is_about(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any(_), Self::Any(_)) => true,
            (Self::Shared(one), Self::Shared(other)) => one == other,
            _ => self.own_id().is_some() && self.own_id() == other.own_id(),
        }
    }

    /// When it was asked for, if it is not known whether it came.
    pub(crate) fn asked(&self) -> Option<AddressRequest> {
        let (subject, since) = match self {
            Self::Asked(id, since) => (Subject::Address(id.clone()), *since),
            Self::Any(AnyAddress { network, since, .. }) => (Subject::Any(network.clone()), (*since)?),
            Self::Address(_) | Self::Going(_) | Self::Shared(_) => return None,
        };
        Some(AddressRequest { subject, since })
    }
}

/// Where addresses lead: `ADDRESS NETWORK` or `ADDRESS NETWORK VPC`.
fn parse_places(text: &str) -> BTreeMap<PublicIpId, Place> {
    let place = |item: &str| {
        let mut words = item.split_whitespace();
        let (id, network) = (words.next()?.into(), words.next()?.into());
        let vpc = words.next().map(VpcId::from);
        Some((id, Place { network, vpc }))
    };
    items(text, ',').filter_map(place).collect()
}

/// What stands between separators.
fn items(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let items = text.split(separator).map(str::trim);
    items.filter(|item| !item.is_empty())
}

impl fmt::Display for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(id) => write!(f, "{id}"),
            Self::Asked(id, since) => write!(f, "{id}{ASKED}{since:.0}"),
            Self::Going(id) => write!(f, "{GOING}{id}"),
            Self::Shared(id) => write!(f, "{SHARED}{id}"),
            Self::Any(AnyAddress {
                network,
                since,
                known,
            }) => {
                write!(f, "{ANY}{network} ")?;
                if let Some(since) = since {
                    write!(f, "{SINCE} {since:.0} ")?;
                }
                f.write_str(BUT)?;
                known.iter().try_for_each(|id| write!(f, " {id}"))
            }
        }
    }
}

impl Claim {
    /// The claim on a Service. What cannot be read in it holds nothing.
    pub(crate) fn of(service: &Service) -> Self {
        let held = facts::annotation(service, IP_IDS.key);
        let opened = items(text(service, &ACL_SOURCES), ';');
        Self {
            held: held.map(|text| items(text, ',').filter_map(Claimed::parse).collect()),
            is_marked: flag(service, &IP_ASSOCIATED),
            opened: opened.map(str::to_owned).collect(),
            is_sticky: flag(service, &STICKY_POLICIES),
            places: parse_places(text(service, &IP_NETWORKS)),
            leaseweb: Leaseweb {
                address: non_empty(text(service, &BALANCER_ID)).map(Into::into),
                network: non_empty(text(service, &NETWORK_ID)).map(Into::into),
            },
        }
    }

    /// Takes up what was written before, where nothing is written any more, or not where the same addresses led. Whoever takes off
    /// the mark alone means it.
    pub(crate) fn restore(&mut self, before: &Self) {
        if self.held.is_none() {
            let leaseweb = std::mem::take(&mut self.leaseweb);
            *self = Self {
                leaseweb,
                ..before.clone()
            };
        } else if self.held == before.held && self.places.is_empty() {
            self.places.clone_from(&before.places);
        }
    }

    /// Where an address led when it was claimed, if that is written.
    pub(crate) fn place(&self, id: &PublicIpId) -> Option<&Place> {
        self.places.get(id)
    }

    /// All that is claimed.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Claimed> {
        self.held.iter().flatten()
    }

    /// The IDs of the claimed addresses.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &PublicIpId> {
        self.all().filter_map(Claimed::own_id)
    }

    /// What may have been asked for, and nobody knows what came of it.
    pub(crate) fn open_requests(&self) -> impl Iterator<Item = AddressRequest> {
        self.all().filter_map(Claimed::asked)
    }

    /// When an address was asked for by its ID, if it is not known whether it came.
    pub(crate) fn asked(&self, id: &PublicIpId) -> Option<Timestamp> {
        self.all().find_map(|claimed| match claimed {
            Claimed::Asked(asked, since) if asked == id => Some(*since),
            _ => None,
        })
    }

    /// Whether an address is claimed.
    pub(crate) fn names(&self, id: &PublicIpId) -> bool {
        self.ids().any(|claimed| claimed == id)
    }

    /// The IDs of addresses that are released.
    pub(crate) fn going(&self) -> impl Iterator<Item = &PublicIpId> {
        self.all().filter_map(|claimed| match claimed {
            Claimed::Going(id) => Some(id),
            _ => None,
        })
    }

    /// Whether an address is released.
    pub(crate) fn is_going(&self, id: &PublicIpId) -> bool {
        self.going().any(|going| going == id)
    }

    /// The IDs of addresses that were acquired for other Services.
    pub(crate) fn shared(&self) -> impl Iterator<Item = &PublicIpId> {
        self.all().filter_map(|claimed| match claimed {
            Claimed::Shared(id) => Some(id),
            _ => None,
        })
    }

    /// Whether an address is used that was acquired for another Service.
    pub(crate) fn shares(&self, id: &PublicIpId) -> bool {
        self.shared().any(|shared| shared == id)
    }

    /// The address that is claimed without an ID.
    pub(crate) fn any_address(&self) -> Option<&AnyAddress> {
        self.all().find_map(|claimed| match claimed {
            Claimed::Any(any_address) => Some(any_address),
            _ => None,
        })
    }

    /// Whether items for these sources were made for the Service.
    pub(crate) fn has_opened(&self, sources: &Cidrs) -> bool {
        self.opened.iter().any(|list| cidrs(list).is_same(sources))
    }

    /// Notes that items for these sources are made: before the first one is.
    pub(crate) fn open(&mut self, sources: &Sources) {
        if !self.has_opened(&sources.cidrs) {
            self.opened.push(sources.texts.join(","));
        }
    }

    /// Forgets all sources but these.
    pub(crate) fn opens_only(&mut self, sources: &Cidrs) {
        self.opened.retain(|list| cidrs(list).is_same(sources));
    }

    /// Claims something, in place of what was claimed of the same address.
    pub(crate) fn insert(&mut self, claimed: Claimed) {
        self.retain(|known| !known.is_about(&claimed));
        self.held.get_or_insert_default().push(claimed);
    }

    /// Claims no more than is wanted. Then that is written, even if nothing is left.
    pub(crate) fn retain(&mut self, is_wanted: impl FnMut(&Claimed) -> bool) {
        self.held.get_or_insert_default().retain(is_wanted);
    }

    /// Notes where an address leads that is claimed.
    pub(crate) fn leads(&mut self, id: &PublicIpId, place: Place) {
        self.places.insert(id.clone(), place);
    }

    /// How it is written on a Service. Of places those of claimed addresses count.
    pub(crate) fn texts(&self) -> [(&'static str, Option<String>); 7] {
        let is_claimed = |id: &PublicIpId| self.names(id) || self.shares(id);
        let places = self.places.iter().filter(|(id, _)| is_claimed(id));
        let place = |(id, Place { network, vpc }): (&PublicIpId, &Place)| match vpc {
            Some(vpc) => format!("{id} {network} {vpc}"),
            None => format!("{id} {network}"),
        };
        let list =
            |items: Vec<String>, separator| Some(items.join(separator)).filter(|text| !text.is_empty());
        let ids: Vec<String> = self.all().map(ToString::to_string).collect();
        let leaseweb = &self.leaseweb;
        [
            (
                BALANCER_ID.key,
                leaseweb.address.as_ref().map(ToString::to_string),
            ),
            (NETWORK_ID.key, leaseweb.network.as_ref().map(ToString::to_string)),
            (STICKY_POLICIES.key, self.is_sticky.then(|| "true".to_owned())),
            (ACL_SOURCES.key, list(self.opened.clone(), ";")),
            (IP_ASSOCIATED.key, self.is_marked.then(|| "true".to_owned())),
            (IP_IDS.key, self.held.as_ref().map(|_| ids.join(","))),
            (IP_NETWORKS.key, list(places.map(place).collect(), ",")),
        ]
    }
}

fn non_empty(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| !text.is_empty())
}

fn cidrs(list: &str) -> Cidrs {
    list.split(',').map(str::trim).collect()
}

#[cfg(test)]
mod tests;
