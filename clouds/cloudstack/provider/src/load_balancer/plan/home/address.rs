//! The address of a balancer that has none yet, or that shall have another one.

use bowline_plan::Refusal;
use jiff::Timestamp;

use crate::load_balancer::claim::{AnyAddress, Claimed, is_fresh};
use crate::load_balancer::evidence::{self, State};
use crate::load_balancer::intent::Wanted;
use crate::load_balancer::objects::{Address, AddressRef, Filtering, Network, Place, PublicIpId};
use crate::load_balancer::observe::observed::Pending;
use crate::load_balancer::observe::times::STUCK;
use crate::load_balancer::plan::acl;
use crate::load_balancer::plan::any_address;
use crate::load_balancer::plan::draft::{Arrival, Draft, Stop, pending};
use crate::load_balancer::step::{Acquisition, CloudStep};
use crate::messages::ADDRESS_PENDING;

fn associate(network: &Network, address: Option<AddressRef>, since: Timestamp) -> CloudStep {
    CloudStep::Associate(Acquisition {
        address,
        since,
        to: Place::of(network),
    })
}

fn claimed(id: &PublicIpId) -> Claimed {
    Claimed::Address(id.clone())
}

/// Claims what earlier managers held under their mark, before anything else is written.
fn inherit(draft: &mut Draft<'_>) {
    if draft.identity.claim.is_inherited() {
        for rule in &draft.observed.rules {
            draft.leads_by(rule);
            draft.claim.insert(claimed(&rule.address.id));
        }
    }
}

/// The address in `spec.loadBalancerIP`.
pub(super) fn requested_address(
    draft: &mut Draft<'_>,
    wanted: &Wanted,
    network: &Network,
    ip: &str,
) -> Result<AddressRef, Stop> {
    let found = draft.observed.looked_up(ip)?;
    let [address] = found else {
        let count = found.len();
        let refusal = Refusal::new(format!("could not find IP address {ip}. Found {count} addresses"));
        let remedy = "ask for a public IP address of the zone, or for none";
        return Err(refusal.with_remedy(remedy).into());
    };
    let AddressRef { id, .. } = &address.address;
    let now = draft.now();
    match evidence::of_requested(&wanted.identity, draft.observed, address, (network, now))? {
        State::Releasing => draft.wait_for_address(&address.address),
        State::Come => drop(draft.came(id)),
        State::Acquiring { is_own } => match draft.bring(address, is_own) {
            Arrival::Tried => {
                let state = evidence::of_taken(&wanted.identity, draft.observed, address, network);
                return taken_address(draft, wanted, network, address, &state);
            }
            Arrival::Waits => {}
            Arrival::Stuck => draft.wait_for_address(&address.address),
        },
        State::Free | State::Claimed(_) if draft.is_blocked()? => {}
        State::Claimed(since) => {
            draft.cloud(associate(network, Some(address.address.clone()), since));
        }
        State::Free => {
            // In one write: whoever finds the address without the mark later knows that a person took it off.
            inherit(draft);
            draft.claim.insert(Claimed::Asked(id.clone(), now));
            draft.leads(id, network);
            draft.claim.is_marked = true;
        }
        state => return taken_address(draft, wanted, network, address, &state),
    }
    Err(Stop::Planned)
}

/// A requested address that somebody has: the user, or the Service itself by now.
fn taken_address(
    draft: &mut Draft<'_>,
    wanted: &Wanted,
    network: &Network,
    address: &Address,
    state: &State<'_>,
) -> Result<AddressRef, Stop> {
    let AddressRef { id, ip } = &address.address;
    let claim = &wanted.identity.claim;
    if let State::GivenAway(reason) = state {
        if !claim.names(id) {
            return Err(Refusal::new(format!("IP address {ip} cannot be used: it {reason}")).into());
        }
        // Somebody else has taken it since.
        draft.claim.retain(|held| held.own_id() != Some(id));
        draft.claim.is_marked = false;
        return Err(Stop::Planned);
    }
    if network.filtering() == Filtering::Addresses {
        draft.take(draft.observed.firewall_of(id)); // for its ports, later
    }
    if *state == State::Held {
        if !claim.names(id) {
            draft.claim.insert(claimed(id));
            draft.leads(id, network);
            return Err(Stop::Planned);
        }
        return Ok(address.address.clone());
    }
    let shares = *state == State::Borrowed;
    if claim.held.is_none() || claim.is_marked || shares != claim.shares(id) {
        // Nothing of it is ours, and nobody shall take it for ours later.
        inherit(draft);
        let shared = Claimed::Shared(id.clone());
        draft.claim.retain(|held| *held != shared);
        if shares {
            draft.claim.insert(shared);
            draft.leads(id, network);
        }
        draft.claim.is_marked = false;
        return Err(Stop::Planned);
    }
    Ok(address.address.clone())
}

/// An address that the Service claims already, or any that the cloud chooses.
pub(super) fn automatic_address(
    draft: &mut Draft<'_>,
    wanted: &Wanted,
    network: &Network,
) -> Result<AddressRef, Stop> {
    let claim = &wanted.identity.claim;
    let is_choice =
        |pending: &&Pending| matches!(&pending.step, CloudStep::Associate(new) if new.address.is_none());
    if let Some(choice) = draft.observed.pending.iter().find(is_choice) {
        // Whoever comes next need not search for it.
        let told = choice.makes.address();
        if let Some(id) = told.filter(|id| !claim.names(id)).cloned() {
            draft.choose(&id, network);
        }
        return Err(Stop::Planned);
    }
    if let Some(made) = &draft.observed.memory.own.made.address
        && !claim.names(&made.id)
    {
        draft.choose(&made.id, network);
        return Err(Stop::Planned);
    }
    let made = draft.observed.memory.own.made.address.as_ref();
    let is_made = |id: &PublicIpId| made.is_some_and(|made| made.id == *id);
    // They stay claimed, so that they are released later.
    let mut stuck = Vec::new();
    for id in claim.ids() {
        let Some(address) = draft.observed.address(id)? else {
            continue;
        };
        match evidence::of_claimed(&wanted.identity, draft.observed, address, network)? {
            State::Held => return Ok(address.address.clone()),
            State::Acquiring { is_own } => match draft.bring(address, is_own) {
                Arrival::Tried if is_own => return Ok(address.address.clone()),
                Arrival::Tried => {}
                Arrival::Waits => return Err(Stop::Planned),
                Arrival::Stuck => {
                    draft.notes.push(ADDRESS_PENDING.note(pending(&address.address)));
                    stuck.push(claimed(id));
                }
            },
            // Unless its release fails: then it is released once more.
            State::Releasing => stuck.push(claimed(id)),
            // The cloud gave it to this very reconcile: what another Service notes of it is older.
            State::Persons(_) if is_made(id) && draft.observed.is_alone(id)? => {
                return Ok(address.address.clone());
            }
            _ => {}
        }
    }
    if let Some(claimed) = claim.any_address() {
        any_address::adopt(draft, STUCK)?;
        if draft.is_blocked()? {
            return Err(Stop::Planned);
        }
        if claimed.network != network.id {
            draft.claim.retain(|kept| !matches!(kept, Claimed::Any(_)));
            return Err(Stop::Planned);
        }
        if let Some(since) = claimed.since.filter(|since| is_fresh(*since, draft.now())) {
            draft.cloud(associate(network, None, since));
            return Err(Stop::Planned);
        }
        // It is dated anew, or what comes now would be taken for somebody else's.
    } else if draft.is_blocked()? {
        return Err(Stop::Planned);
    }
    // What is there already is not what will be chosen. In one write with taking back what turned out not to be ours.
    let known = draft.observed.recovered(&network.id)?.iter();
    let known = known.map(|address| address.address.id.clone());
    stuck.push(Claimed::Any(AnyAddress {
        network: network.id.clone(),
        since: Some(draft.now()),
        known: known.collect(),
    }));
    draft.claim.held = Some(stuck);
    if let Filtering::Acl(list) = network.filtering() {
        acl::foresee(draft, list, wanted); // in the same write
    }
    Err(Stop::Planned)
}
