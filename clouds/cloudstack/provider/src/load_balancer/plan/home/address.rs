//! The address of a balancer that has none yet, or that shall have another one.

use bowline_plan::{Refusal, refusal};
use jiff::Timestamp;

use crate::load_balancer::claim::{AnyAddress, Claimed, is_fresh};
use crate::load_balancer::evidence::{self, State};
use crate::load_balancer::intent::Wanted;
use crate::load_balancer::objects::{
    Address, AddressRef, AddressState, Filtering, Network, Place, PublicIpId,
};
use crate::load_balancer::observe::observed::Pending;
use crate::load_balancer::observe::times::STUCK;
use crate::load_balancer::plan::builder::{Arrival, Builder, Stop, pending};
use crate::load_balancer::plan::{acl, any_address};
use crate::load_balancer::step::{Acquisition, CloudStep};
use crate::messages::{ADDRESS_GONE, ADDRESS_PENDING};

fn associate(network: &Network, address: Option<AddressRef>, since: Timestamp) -> CloudStep {
    CloudStep::Associate(Acquisition {
        address,
        since,
        to: Place::of(network),
    })
}

/// Whether an address may be claimed: nothing is written for a request that is held back.
fn claimable(plan: &Builder<'_>, request: &CloudStep) -> Result<(), Refusal> {
    plan.held(request).map_or(Ok(()), |why| Err(why.clone()))
}

fn claimed(id: &PublicIpId) -> Claimed {
    Claimed::Address(id.clone())
}

/// Claims what earlier managers held under their mark, before anything else is written.
fn inherit(plan: &mut Builder<'_>) {
    if plan.identity.claim.is_inherited() {
        for rule in &plan.observed.rules {
            plan.leads_by(rule);
            plan.claim.insert(claimed(&rule.address.id));
        }
    }
}

/// The address in `spec.loadBalancerIP`.
pub(super) fn requested_address(
    plan: &mut Builder<'_>,
    wanted: &Wanted,
    network: &Network,
    ip: &str,
) -> Result<AddressRef, Stop> {
    let found = plan.observed.looked_up(ip)?;
    let [address] = found else {
        let count = found.len();
        let reason = refusal!(
            "could not find IP address {ip}. Found {count} addresses";
            "ask for a public IP address of the zone, or for none"
        );
        return Err(reason.into());
    };
    let AddressRef { id, .. } = &address.address;
    let now = plan.now();
    match evidence::of_requested(&wanted.identity, plan.observed, address, (network, now))? {
        State::Releasing => plan.wait_for_address(&address.address),
        State::Come => drop(plan.came(id)),
        State::Acquiring { is_own } => match plan.bring(address, is_own) {
            Arrival::Tried => {
                let state = evidence::of_taken(&wanted.identity, plan.observed, address, network);
                return taken_address(plan, wanted, network, address, &state);
            }
            Arrival::Waits => {}
            Arrival::Stuck => plan.wait_for_address(&address.address),
        },
        State::Free | State::Claimed(_) if plan.is_blocked()? => {}
        State::Claimed(since) => {
            plan.cloud(associate(network, Some(address.address.clone()), since));
        }
        State::Free => {
            claimable(plan, &associate(network, Some(address.address.clone()), now))?;
            // In one write: whoever finds the address without the mark later knows that a person took it off.
            inherit(plan);
            plan.claim.insert(Claimed::Asked(id.clone(), now));
            plan.leads(id, network);
            plan.claim.is_marked = true;
        }
        state => return taken_address(plan, wanted, network, address, &state),
    }
    Err(Stop::Planned)
}

/// A requested address that somebody has: the user, or the Service itself by now.
fn taken_address(
    plan: &mut Builder<'_>,
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
        plan.claim.retain(|held| held.own_id() != Some(id));
        plan.claim.is_marked = false;
        return Err(Stop::Planned);
    }
    if network.filtering() == Filtering::Addresses {
        plan.take(plan.observed.firewall_of(id)); // for its ports, later
    }
    if *state == State::Held {
        if !claim.names(id) {
            plan.claim.insert(claimed(id));
            plan.leads(id, network);
            return Err(Stop::Planned);
        }
        return Ok(address.address.clone());
    }
    let shares = *state == State::Borrowed;
    if claim.held.is_none() || claim.is_marked || shares != claim.shares(id) {
        // Nothing of it is ours, and nobody shall take it for ours later.
        inherit(plan);
        let shared = Claimed::Shared(id.clone());
        plan.claim.retain(|held| *held != shared);
        if shares {
            plan.claim.insert(shared);
            plan.leads(id, network);
        }
        plan.claim.is_marked = false;
        return Err(Stop::Planned);
    }
    Ok(address.address.clone())
}

/// How many lost addresses are named.
const NAMED: usize = 5;

/// Says that what the status shows is gone, where it is what the Service claims, and this process did not release it.
fn tell_lost(plan: &mut Builder<'_>) {
    let (identity, observed) = (plan.identity, plan.observed);
    let released = &observed.memory.own.known.released;
    let is_lost = |id: &PublicIpId| match observed.known_address(id) {
        None => observed.is_known_absent(id) && !released.has(id),
        Some(address) => address.state != AddressState::Allocating,
    };
    let is_served = !observed.rules.is_empty();
    let mut shown = identity.published.iter().map(String::as_str);
    let named: Vec<&str> = shown.by_ref().take(NAMED).collect();
    if !named.is_empty()
        && !is_served
        && identity.claim.going().next().is_none()
        && identity.claim.ids().any(is_lost)
    {
        let more = match shown.count() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let text = format!(
            "the service has lost public IP {}{more}, released in CloudStack, or another account's or another network's now: another one is \
             acquired. What leads to the old address, such as DNS, has to follow",
            named.join(", ")
        );
        plan.notes.push(ADDRESS_GONE.note(text).even_at_start());
    }
}

/// An address that the Service claims already, or any that the cloud chooses.
pub(super) fn automatic_address(
    plan: &mut Builder<'_>,
    wanted: &Wanted,
    network: &Network,
) -> Result<AddressRef, Stop> {
    let claim = &wanted.identity.claim;
    let is_choice =
        |pending: &&Pending| matches!(&pending.step, CloudStep::Associate(new) if new.address.is_none());
    if let Some(choice) = plan.observed.pending.iter().find(is_choice) {
        // Whoever comes next need not search for it.
        let told = choice.makes.address();
        if let Some(id) = told.filter(|id| !claim.names(id)).cloned() {
            plan.choose(&id, network);
        }
        return Err(Stop::Planned);
    }
    if let Some(made) = &plan.observed.memory.own.made.address
        && !claim.names(&made.id)
    {
        plan.choose(&made.id, network);
        return Err(Stop::Planned);
    }
    let made = plan.observed.memory.own.made.address.as_ref();
    let is_made = |id: &PublicIpId| made.is_some_and(|made| made.id == *id);
    // They stay claimed, so that they are released later.
    let mut stuck = Vec::new();
    for id in claim.ids() {
        let Some(address) = plan.observed.address(id)? else {
            continue;
        };
        match evidence::of_claimed(&wanted.identity, plan.observed, address, network)? {
            State::Held => return Ok(address.address.clone()),
            State::Acquiring { is_own } => match plan.bring(address, is_own) {
                Arrival::Tried if is_own => return Ok(address.address.clone()),
                Arrival::Tried => {}
                Arrival::Waits => return Err(Stop::Planned),
                Arrival::Stuck => {
                    plan.notes.push(ADDRESS_PENDING.note(pending(&address.address)));
                    stuck.push(claimed(id));
                }
            },
            // Unless its release fails: then it is released once more.
            State::Releasing => stuck.push(claimed(id)),
            // The cloud gave it to this very reconcile: what another Service notes of it is older.
            State::Persons(_) if is_made(id) && plan.observed.is_alone(id)? => {
                return Ok(address.address.clone());
            }
            _ => {}
        }
    }
    if let Some(claimed) = claim.any_address() {
        any_address::adopt(plan, STUCK)?;
        if plan.is_blocked()? {
            return Err(Stop::Planned);
        }
        if claimed.network != network.id {
            plan.claim.retain(|kept| !matches!(kept, Claimed::Any(_)));
            return Err(Stop::Planned);
        }
        if let Some(since) = claimed.since.filter(|since| is_fresh(*since, plan.now())) {
            plan.cloud(associate(network, None, since));
            return Err(Stop::Planned);
        }
        // It is dated anew, or what comes now would be taken for somebody else's.
    } else if plan.is_blocked()? {
        return Err(Stop::Planned);
    }
    claimable(plan, &associate(network, None, plan.now()))?;
    tell_lost(plan);
    // What is there already is not what will be chosen. In one write with taking back what turned out not to be ours.
    let known = plan.observed.recovered(&network.id)?.iter();
    let known = known.map(|address| address.address.id.clone());
    stuck.push(Claimed::Any(AnyAddress {
        network: network.id.clone(),
        since: Some(plan.now()),
        known: known.collect(),
    }));
    plan.claim.held = Some(stuck);
    if let Filtering::Acl(list) = network.filtering() {
        acl::foresee(plan, list, wanted); // in the same write
    }
    Err(Stop::Planned)
}
