//! The ACL list of a tier of a VPC. It may serve several tiers, balancers and people.

use super::draft::Draft;
use crate::load_balancer::cidrs::Sources;
use crate::load_balancer::claim::Claim;
use crate::load_balancer::intent::Wanted;
use crate::load_balancer::objects::{Firewall, FirewallRule, IngressPort, NetworkId};
use crate::load_balancer::observe::observed::Unread;
use crate::load_balancer::step::{Closing, CloudStep, Opening};
use crate::messages::ITEM_KEPT;

/// Plans that a port is let in from exactly these sources. An item that says so is taken as it is, whoever made it. One that
/// tells what it is for was made by a person, and stays whatever it says.
///
/// Items for other sources that were made for the Service go, and those for everybody if not everybody may connect: earlier
/// managers made them, and they would make the restriction void. Those that others may need stay, and people are told. Those of
/// the Service that say the same once more go too, as when a list did not show yet what was made.
pub(super) fn open(draft: &mut Draft<'_>, new: Opening, sources: &Sources) -> Result<(), Unread> {
    let claim = &draft.identity.claim;
    let items = draft.observed.allowing(&new.at, new.ingress)?;
    let wanted = &sources.cidrs;
    let (mut right, mut obsolete): (Vec<_>, Vec<_>) = items
        .into_iter()
        .partition(|item| !item.is_going && item.sources.is_same(wanted));
    // The Service's own one is not surplus because a person made one like it.
    right.sort_by_key(|item| item.has_reason);
    obsolete.retain(|item| is_own(item, claim));
    let before = obsolete.clone();
    let obsolete = without_those_of_others(draft, &new.at, &new.network, obsolete)?;
    for left in before.iter().filter(|item| !obsolete.contains(item)) {
        draft.notes.push(ITEM_KEPT.note(format!(
            "item {} of ACL list {} lets more in at {} than the service asks for, and stays, because others may need it{}",
            left.id,
            new.at.name,
            new.ingress,
            for_example(draft, &new, left)
        )));
    }
    let Some((kept, surplus)) = right.split_first() else {
        if !wanted.is_everything() && !claim.has_opened(wanted) {
            draft.claim.open(sources);
        } else {
            draft.cloud(CloudStep::Open(new));
        }
        return Ok(());
    };
    for item in surplus.iter().filter(|item| is_own(item, claim)) {
        draft.cloud(CloudStep::Close(Closing {
            at: new.at.clone(),
            rule: (*item).clone(),
            twin: Some(kept.id.clone()),
            is_replaced: true,
        }));
    }
    for item in obsolete {
        draft.cloud(CloudStep::close(&new.at, item, true));
    }
    Ok(())
}

/// The first of those who may need an item.
fn for_example(draft: &Draft<'_>, new: &Opening, item: &FirewallRule) -> String {
    let observed = draft.observed;
    let (Ok(neighbours), Ok(items)) = (observed.neighbours(&new.network), observed.firewall(&new.at.id))
    else {
        return String::new();
    };
    let mut neighbours = neighbours.iter();
    let first = neighbours.find(|other| draft.identity.is_relied_on(item, items, other));
    first.map_or_else(String::new, |other| format!(", such as {other}"))
}

/// Notes for which sources items will have to be made.
pub(super) fn foresee(draft: &mut Draft<'_>, list: &Firewall, wanted: &Wanted) {
    let (sources, claim) = (&wanted.sources, &wanted.identity.claim);
    let items = draft.observed.firewalls.get(&list.id);
    let items = items.map_or(&[][..], Vec::as_slice);
    let is_open = |ingress: &IngressPort| {
        let mut items = items.iter();
        items.any(|item| item.ingress == *ingress && item.sources.is_same(&sources.cidrs))
    };
    if !sources.cidrs.is_everything()
        && !claim.has_opened(&sources.cidrs)
        && !wanted.ingress_ports().iter().all(is_open)
    {
        draft.claim.open(sources);
    }
}

/// Whether an item was made for the Service, as far as that can be told: for sources that it had, or for everybody, as earlier
/// managers made them.
pub(super) fn is_own(item: &FirewallRule, claim: &Claim) -> bool {
    !item.has_reason && (item.sources.is_everything() || claim.has_opened(&item.sources))
}

/// The items that nothing of somebody else behind the same list relies on.
pub(super) fn without_those_of_others<'a>(
    draft: &Draft<'a>,
    list: &Firewall,
    network: &NetworkId,
    mut items: Vec<&'a FirewallRule>,
) -> Result<Vec<&'a FirewallRule>, Unread> {
    if !items.is_empty() {
        let neighbours = draft.observed.neighbours(network)?;
        let all = draft.observed.firewall(&list.id)?;
        let is_relied_on = |item: &FirewallRule, other| draft.identity.is_relied_on(item, all, other);
        items.retain(|item| !neighbours.iter().any(|other| is_relied_on(item, other)));
    }
    Ok(items)
}
