//! Who has an address: all rules about it.
//!
//! CloudStack's addresses bear no mark. What is written on the Service tells which ones are its own ([`Claim`]), and the
//! Services of the cluster, the rules on an address and the network that it leads to tell the rest. From these facts follows
//! one [`State`], and from the state what is done:
//!
//! | state | how it is told | to have it | needed no more |
//! | --- | --- | --- | --- |
//! | free | nobody has it | it is claimed, then acquired | it is taken off the claim |
//! | claimed | nobody has it, and it was asked for, or may be under the claim | it is acquired | it stays claimed until it cannot come any more |
//! | come | it was asked for, and somebody has it | it is claimed by its ID alone, and stands in nobody's way | the same |
//! | acquiring | it is on its way to somebody | it is waited for, tried, and, if nobody else can want it, released to be acquired anew | it is waited for for ten seconds; then it is told as if it were there |
//! | releasing | it is on its way back, or the claim says that it goes | it is waited for, or released once more | the same for twenty seconds |
//! | held | it was acquired for the Service: the claim names it, for the requested one the mark is on it, or nothing is written and the rule of earlier managers counts; nobody else is on it | it is used | it is released |
//! | shared | it is held, and rules of others are on it | it is used | it stays, and is claimed: the last one releases it |
//! | borrowed | another Service of the cluster holds it, or claims it too | it is used, and that is noted on the Service | it stays |
//! | given away | it leads elsewhere than when it was claimed: somebody acquired it anew | it is refused | it stays, with an event; nothing on it is closed |
//! | a person's | nothing tells that it was acquired for the Service, or people took the mark off, or it forwards ports | it is used if it is requested | it stays |
//!
//! A balancer that is served has its address by its rules. Where its only rule is away, [`can_serve_again`] tells whether it goes back to
//! the address; where it never came to be, [`never_served`] tells what is given back.
//!
//! Which of several addresses falls to a Service that let the cloud choose is told by `plan::any_address`.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_cloud_provider::evidence::{Claims, Traces};
use bowline_cloud_provider::{ServiceList, facts};
use jiff::Timestamp;

use crate::load_balancer::annotations::{self, KEEP_IP, requested};
use crate::load_balancer::claim::{Claim, Claimed, is_fresh};
use crate::load_balancer::intent::{Absent, Identity};
use crate::load_balancer::objects::{Address, AddressRef, AddressState, Network, Place, PublicIpId, Rule};
use crate::load_balancer::observe::observed::{Observed, Seen, Unread};
use crate::load_balancer::observe::times::{RELEASED, RELEASED_AGAIN};

/// Why an address stays that somebody acquired anew.
pub(super) const ACQUIRED_ANEW: &str = "it does not lead where it did when it was claimed for this service, so somebody has acquired it anew; \
     release it by hand if nobody needs it";

/// Why an address stays that no rule is on.
pub(super) const UNPLACED: &str = "no rule of this service is on it any more, and nothing tells for which network it was acquired, so it may be \
     somebody else's by now; release it by hand if nobody needs it";

/// Why an address stays that the balancer leaves, or goes from.
pub(super) const UNPROVED: &str =
    "nothing proves that it was acquired for this service; release it by hand if nobody needs it";

/// How a Service stands to an address. See the table above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State<'a> {
    Free,
    /// When it was claimed.
    Claimed(Timestamp),
    Come,
    Acquiring {
        /// Whether nobody else can want it.
        is_own: bool,
    },
    Releasing,
    Held,
    /// With this rule of somebody else.
    Shared(&'a Rule),
    Borrowed,
    /// Why it stays.
    GivenAway(&'static str),
    /// Why it stays, if that is to be told.
    Persons(Option<String>),
}

/// How a Service stands to an address from which it goes, with these rules of its own on it. `absent`: for good.
pub(super) fn left<'a>(
    identity: &Identity,
    observed: &'a Seen,
    id: &PublicIpId,
    rules: &[&Rule],
    absent: Option<&Absent>,
) -> Result<State<'a>, Unread> {
    let Some(address) = taken(observed, id)? else {
        return Ok(State::Free);
    };
    let (own, serves) = (&observed.memory.own, !rules.is_empty());
    let leads_there = match absent {
        _ if serves => Some(leads_to_rules(&identity.claim, address, rules)),
        Some(_) => leads_there(identity, observed, address)?,
        None => Some(true),
    };
    match leads_there {
        Some(true) => {}
        Some(false) => return Ok(State::GivenAway(ACQUIRED_ANEW)),
        None => return Ok(State::Persons(Some(UNPLACED.to_owned()))),
    }
    if let Some(absent) = absent
        && !serves
        && let Some(opened) = opened_by_others(absent, observed, address)?
    {
        return Ok(State::Persons(Some(format!("others use it, such as {opened}"))));
    }
    if let Some(state) = on_the_way(address, serves, own.on_the_way.time(id)) {
        return Ok(state);
    }
    if !identity.is_held(&address.address, absent.is_some()) {
        // Where nothing is written, somebody may have stripped it off before this process began.
        let is_unclear = match absent {
            Some(_) => identity.claim.held.is_none() && !address.is_nat(),
            None => !own.known.persons.contains(id),
        };
        let is_told = is_unclear && !identity.keeps_ip;
        return Ok(State::Persons(is_told.then(|| UNPROVED.to_owned())));
    }
    // What the API does not take back under its rules goes when they are deleted.
    let goes_bare = serves && own.unreleased.contains(id);
    if goes_bare || address.is_nat() {
        return Ok(State::Persons(None));
    }
    // Without a rule on it, only the claim tells whose it is.
    if !serves && !identity.claim.shares(id) && identity.is_claimed_by_others(id) {
        return Ok(State::Borrowed);
    }
    let state = held(observed, id, observed.rules_of_others(id)?);
    // Its own rules may be away for a moment.
    Ok(match state {
        State::Held if identity.is_published_by_others(&address.address) => State::Borrowed,
        state => state,
    })
}

/// The same for one that is claimed or shared, and not used: the balancer is elsewhere, in this network. Until the status shows that
/// (`is_shown`), what is on its way counts as such however long it takes.
pub(super) fn unused<'a>(
    identity: &Identity,
    observed: &'a Seen,
    id: &PublicIpId,
    (network, is_shown): (&Network, bool),
) -> Result<State<'a>, Unread> {
    let claim = &identity.claim;
    let Some(address) = taken(observed, id)? else {
        let comes = |claimed: &&Claimed| comes_within(identity, observed, claimed).is_some();
        let mut asked = claim.all().filter(|claimed| claimed.own_id() == Some(id));
        let asked = asked.find(comes).and_then(Claimed::asked);
        return Ok(asked.map_or(State::Free, |asked| State::Claimed(asked.since)));
    };
    if claim.asked(id).is_some() {
        return Ok(State::Come);
    }
    let time = is_shown.then(|| observed.memory.own.on_the_way.time(id));
    if let Some(state) = on_the_way(address, false, time.unwrap_or_default()) {
        return Ok(state);
    }
    let rules_of_others = observed.rules_of_others(id)?;
    let is_others = identity.is_published_by_others(&address.address)
        || match claim.names(id) {
            true => identity.is_claimed_by_others(id),
            false => identity.is_owned_by_others(&address.address, true),
        };
    let leads_there = match claim.place(id) {
        Some(place) => address.is_at(place),
        None => address.is_of(network),
    };
    let may_fit = (leads_there && !address.is_nat()) || address.is_underway_anywhere();
    Ok(match may_fit {
        // What is somebody else's anyhow needs no event.
        false if !is_others && rules_of_others.is_empty() && !identity.keeps_ip => {
            State::GivenAway(ACQUIRED_ANEW)
        }
        true if is_others && !identity.keeps_ip => State::Borrowed,
        true if !identity.keeps_ip => held(observed, id, rules_of_others),
        _ => State::Persons(None),
    })
}

/// That of an address which was acquired for the Service, with these rules of others on it.
fn held<'a>(observed: &Seen, id: &PublicIpId, rules_of_others: &'a [Rule]) -> State<'a> {
    match (rules_of_others.first(), observed.memory.own.forwarded.get(id)) {
        (Some(rule), _) => State::Shared(rule),
        (None, Some(forwarded)) => State::Persons(Some(format!("others use it, such as {forwarded}"))),
        (None, None) => State::Held,
    }
}

/// That of one which is on its way for this time, and which the Service does not need. It is not waited for as long as by a balancer,
/// and not at all if it came to serve. Nobody may ask after the job by which it goes: then it is released once more.
fn on_the_way(address: &Address, serves: bool, time: Duration) -> Option<State<'static>> {
    match address.state {
        AddressState::Allocating if !serves && time < RELEASED => Some(State::Acquiring { is_own: false }),
        AddressState::Releasing if time < RELEASED_AGAIN => Some(State::Releasing),
        _ => None,
    }
}

/// How a Service that lets the cloud choose stands to an address that it claims.
pub(super) fn of_claimed(
    identity: &Identity,
    observed: &Observed,
    address: &Address,
    network: &Network,
) -> Result<State<'static>, Unread> {
    let id = &address.address.id;
    let may_fit = address.is_fit(network) || address.is_underway_anywhere();
    let is_free = address.state == AddressState::Free;
    let is_own = !is_free
        && observed.is_alone(id)?
        && !identity.is_claimed_first(id)
        && !identity.is_published_by_others(&address.address)
        && may_fit;
    Ok(match address.state {
        AddressState::Free => State::Free,
        AddressState::Allocating => State::Acquiring { is_own },
        AddressState::Releasing => State::Releasing,
        AddressState::Allocated if is_own => State::Held,
        AddressState::Allocated => State::Persons(None),
    })
}

/// How a Service stands to the address that it asks for.
pub(super) fn of_requested(
    identity: &Identity,
    observed: &Seen,
    address: &Address,
    (network, now): (&Network, Timestamp),
) -> Result<State<'static>, Unread> {
    let (claim, id) = (&identity.claim, &address.address.id);
    Ok(match address.state {
        AddressState::Free => {
            let asked = claim.asked(id).filter(|_| claim.is_marked);
            let fresh = asked.filter(|since| is_fresh(*since, now));
            fresh.map_or(State::Free, State::Claimed)
        }
        AddressState::Allocating if claim.asked(id).is_some() => State::Come,
        AddressState::Allocating => State::Acquiring {
            is_own: claim.names(id) && claim.is_marked && observed.is_alone(id)?,
        },
        AddressState::Releasing => State::Releasing,
        AddressState::Allocated => of_taken(identity, observed, address, network),
    })
}

/// The same where somebody has it: the user, or the Service itself by now.
pub(super) fn of_taken(
    identity: &Identity,
    observed: &Seen,
    address: &Address,
    network: &Network,
) -> State<'static> {
    let claim = &identity.claim;
    // Its rules are gone, and it is shown: else the annotation may be copied.
    let is_leasewebs = identity.is_leasewebs(&address.address) && identity.shows(&address.address);
    if address.is_static_nat {
        State::GivenAway("leads to one virtual machine by static NAT")
    } else if address.is_elsewhere(network) {
        State::GivenAway("belongs to another network, tier or VPC than the nodes")
    } else if claim.names(&address.address.id)
        || is_leasewebs
        || (claim.is_inherited() && observed.rules.is_empty())
    {
        State::Held
    } else if identity.is_owned_by_others(&address.address, false) {
        // There is no rule of the Service on it yet, so it is shared only with somebody who is there.
        State::Borrowed
    } else {
        State::Persons(None)
    }
}

/// Whether an address with these rules of the Service leads where they say; if they do not say it, where the claim says.
fn leads_to_rules(claim: &Claim, address: &Address, rules: &[&Rule]) -> bool {
    let mut led = rules.iter().map(|rule| &rule.network);
    match (&address.network, led.find(|network| !network.is_empty())) {
        _ if address.state != AddressState::Allocated => true,
        (Some(leads), Some(led)) => leads == led,
        _ => claim
            .place(&address.address.id)
            .is_none_or(|place| address.is_at(place)),
    }
}

/// Whether an address without a rule leads where it did when it was the Service's; `None` if nothing tells.
fn leads_there(identity: &Identity, observed: &Observed, address: &Address) -> Result<Option<bool>, Unread> {
    let id = &address.address.id;
    if address.is_underway_anywhere() {
        return Ok(Some(true));
    }
    if let Some(place) = identity.claim.place(id) {
        return Ok(Some(address.is_at(place)));
    }
    let mut replaced = identity.replaced.iter();
    if let Some(replaced) = replaced.find(|replaced| replaced.address.id == *id) {
        let network = replaced.network.clone();
        let vpc = observed
            .network(&network)?
            .and_then(|network| network.vpc.clone());
        let is_told = !network.is_empty();
        return Ok(is_told.then(|| address.is_at(&Place { network, vpc })));
    }
    if identity.is_leasewebs(&address.address) && address.vpc.is_none() {
        let noted = identity.claim.leaseweb.network.as_ref();
        return Ok(noted.map(|network| address.network.as_ref() == Some(network)));
    }
    // An earlier manager marked the Service before it made any rule.
    Ok(identity.has_mark_for(&address.address).then_some(true))
}

/// What of somebody else lets ports in at an address without a rule of the Service. It was free when it was claimed; if it never
/// came to serve, somebody else may have been faster.
fn opened_by_others(absent: &Absent, observed: &Seen, address: &Address) -> Result<Option<String>, Unread> {
    let identity = &absent.identity;
    let may_be_anothers = address.state == AddressState::Allocated
        && address.vpc.is_none()
        && !identity.shows(&address.address)
        && !identity.has_mark_for(&address.address);
    if !may_be_anothers {
        return Ok(None);
    }
    let mut firewall = observed.firewall_of(&address.address.id)?.iter();
    let theirs = firewall.find(|rule| !absent.ingress_ports.contains(&rule.ingress));
    Ok(theirs.map(|rule| format!("firewall rule {} for {}", rule.id, rule.ingress)))
}

/// An address, if somebody has it.
fn taken<'a>(observed: &'a Observed, id: &PublicIpId) -> Result<Option<&'a Address>, Unread> {
    let address = observed.address(id)?;
    Ok(address.filter(|address| address.state != AddressState::Free))
}

/// Whether somebody has an address, by whatever was read of it.
pub(super) fn is_taken(observed: &Observed, id: &PublicIpId) -> Result<bool, Unread> {
    let mut known = observed.known_addresses();
    match known.find(|known| known.address.id == *id) {
        Some(known) => Ok(known.state != AddressState::Free),
        None => Ok(taken(observed, id)?.is_some()),
    }
}

/// Whether an address at which the balancer served without a rule left can have one again. It may be one for source NAT as well.
pub(super) fn can_serve_again(address: &Address, network: &Network) -> bool {
    address.state == AddressState::Allocated && address.is_of(network) && !address.is_static_nat
}

/// What was acquired for a balancer that never came to be, and is not shown yet, unless people keep it: it is given back.
pub(super) fn never_served<'a>(identity: &Identity, observed: &'a Seen) -> Option<&'a AddressRef> {
    let made = observed.memory.own.made.address.as_ref();
    made.filter(|made| !identity.keeps_ip && !identity.shows(made))
}

/// For how long something may still come that was asked for; `None` if it cannot any more, or people keep what comes.
pub(super) fn comes_within(identity: &Identity, observed: &Seen, claimed: &Claimed) -> Option<Duration> {
    let left = observed.memory.own.known.standing.get(&claimed.asked()?);
    left.filter(|_| !identity.keeps_ip).copied()
}

/// What of a claim is known to be nobody's: it is not held any more.
pub(super) fn is_nobodys(observed: &Seen, claimed: &Claimed) -> bool {
    match claimed {
        Claimed::Address(id) | Claimed::Going(id) | Claimed::Shared(id) => observed.is_known_absent(id),
        Claimed::Asked(id, _) => observed.memory.own.made.refused.contains(id),
        Claimed::Any(_) => observed.memory.own.made.is_refused,
    }
}

impl Identity {
    /// The addresses of rules that are not the Service's own: where anything is written on it, that names all that are.
    pub(super) fn not_own(&self, rules: &[Rule]) -> BTreeSet<PublicIpId> {
        let ids = rules.iter().map(|rule| &rule.address.id);
        let is_not = |id: &&PublicIpId| self.claim.held.is_some() && !self.claim.names(id);
        ids.filter(is_not).cloned().collect()
    }

    /// What other Services of the cluster claim, with the UID of each.
    pub(super) fn claims_of_others(&self) -> Vec<(String, Claim)> {
        let services = self.services.services();
        let claims = services.iter();
        let claims = claims.filter_map(|service| Some((service.metadata.uid.clone()?, Claim::of(service))));
        claims
            .filter(|(uid, claim)| *uid != self.uid && claim.held.is_some())
            .collect()
    }

    /// Whether another Service of the cluster claims an address.
    pub(super) fn is_claimed_by_others(&self, address: &PublicIpId) -> bool {
        let others = self.claims_of_others();
        others.iter().any(|(_, claim)| claim.names(address))
    }

    /// Whether a living Service of the cluster is served by an address, as its status tells: the same evidence as on the other clouds,
    /// for what is taken, what is surplus and what goes. One that notes another address, and asks for no such one, has lost this one: its
    /// status is older than that.
    pub(super) fn is_published_by_others(&self, address: &AddressRef) -> bool {
        let traces = Traces {
            id: address.id.as_str(),
            addresses: vec![&address.ip],
            ..Traces::default()
        };
        let mut services = self.services.services();
        services.retain(|service| {
            let claim = Claim::of(service);
            let notes_another =
                claim.all().next().is_some() && !claim.names(&address.id) && !claim.shares(&address.id);
            !notes_another || requested(service) == Some(&address.ip)
        });
        let classes = self.services.classes().clone();
        Claims::of(&ServiceList { services, classes }, |_| None).is_held(&traces, &self.uid)
    }

    /// Whether another Service that claims the same address goes first. Two choose one only if they cannot see each other's
    /// claim yet; then the cloud gives it to one of them, and if neither knows to whom, the smaller UID counts.
    fn is_claimed_first(&self, address: &PublicIpId) -> bool {
        let others = self.claims_of_others();
        others
            .iter()
            .any(|(uid, claim)| claim.names(address) && *uid < self.uid)
    }

    /// Whether an address was acquired for another Service of the cluster, or is shared by one. `is_live`: one that goes does
    /// not count, and one that shares it does not either.
    fn is_owned_by_others(&self, address: &AddressRef, is_live: bool) -> bool {
        let services = self.services.services();
        services.iter().any(|service| {
            let is_going = !self.services.classes().is_wanted(service);
            let is_other = service.metadata.uid.as_deref() != Some(&self.uid);
            if !is_other || (is_going && (is_live || !facts::has_finalizer(service))) {
                return false;
            }
            let claim = Claim::of(service);
            let serves = facts::published_addresses(service).contains(&address.ip);
            let keeps_ip = annotations::flag(service, &KEEP_IP);
            (!is_live && claim.shares(&address.id))
                || (!keeps_ip && claim.holds(requested(service), address, serves))
        })
    }

    /// Whether a person took an address from the Service that it was acquired for: by taking the mark off, or by asking that it be
    /// kept.
    fn is_disowned(&self, address: &AddressRef) -> bool {
        let services = self.services.services();
        services.iter().any(|service| {
            let claim = Claim::of(service);
            let is_unmarked = requested(service) == Some(address.ip.as_str()) && !claim.is_marked;
            claim.names(&address.id) && (is_unmarked || annotations::flag(service, &KEEP_IP))
        })
    }

    /// Whether an address is to be released when the Service needs it no more. Where nothing is written on the Service, the
    /// rule of earlier managers holds if it `counts`.
    pub(super) fn is_held(&self, address: &AddressRef, counts: bool) -> bool {
        let (claim, requested) = (&self.claim, self.requested.as_deref());
        // One that was acquired for another Service is that one's, as long as it lives.
        let is_left = || {
            claim.shares(&address.id) && !self.is_owned_by_others(address, true) && !self.is_disowned(address)
        };
        let is_inherited = counts && self.is_leasewebs(address);
        !self.keeps_ip && (claim.holds(requested, address, counts) || is_inherited || is_left())
    }

    /// Whether the address at which the balancer is has to be noted as another Service's.
    pub(super) fn is_borrowed(&self, at: &AddressRef) -> bool {
        let claim = &self.claim;
        match (claim.names(&at.id), claim.shares(&at.id)) {
            (true, _) => false,
            (false, true) => !self.is_disowned(at),
            // The other Service's claim may not have been known yet.
            (false, false) => {
                let is_requested = self.requested.as_ref() == Some(&at.ip);
                claim.held.is_some() && is_requested && self.is_owned_by_others(at, false)
            }
        }
    }

    /// Whether the Service's status shows an address.
    pub(super) fn shows(&self, address: &AddressRef) -> bool {
        self.published.contains(&address.ip)
    }

    /// Whether all that tells of an address is the mark of an earlier manager.
    fn has_mark_for(&self, address: &AddressRef) -> bool {
        self.claim.is_inherited() && self.requested.as_ref() == Some(&address.ip)
    }
}

impl Claim {
    /// Whether an address was acquired for a Service that asks for `requested`, by what is written on it. For the requested
    /// address the mark alone decides, so that whoever takes it off keeps the address. Where nothing is written, the rule of
    /// earlier managers holds if it `counts`: every other address is theirs.
    fn holds(&self, requested: Option<&str>, address: &AddressRef, counts: bool) -> bool {
        if requested == Some(address.ip.as_str()) {
            return self.is_marked;
        }
        match self.held {
            Some(_) => self.names(&address.id),
            None => counts || self.is_marked,
        }
    }

    /// Whether all that is written is the mark, as earlier managers write it.
    pub(super) fn is_inherited(&self) -> bool {
        self.held.is_none() && self.is_marked
    }
}
