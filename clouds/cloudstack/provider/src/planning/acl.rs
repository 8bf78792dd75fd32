//! The ACL list of a tier of a VPC. It may serve several tiers, balancers and people.

use super::Draft;
use crate::cidrs::Sources;
use crate::claim::Claim;
use crate::intent::Wanted;
use crate::objects::{Firewall, FirewallRule, IngressPort, NetworkId};
use crate::observe::Unread;
use crate::step::{Closing, CloudStep, Opening};

/// Plans that a port is let in from exactly these sources. An item that says so is taken as it is, whoever made it. One that
/// tells what it is for was made by a person, and stays whatever it says.
///
/// Items for other sources that were made for the Service go, and those for everybody if not everybody may connect: earlier
/// managers made them, and they would make the restriction void. So do those of the Service that say the same once more, as
/// when a list did not show yet what was made.
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
    let obsolete = without_those_of_others(draft, &new.at, &new.network, obsolete)?;
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

/// The items that no rule of somebody else behind the same list relies on.
pub(super) fn without_those_of_others<'a>(
    draft: &Draft<'a>,
    list: &Firewall,
    network: &NetworkId,
    mut items: Vec<&'a FirewallRule>,
) -> Result<Vec<&'a FirewallRule>, Unread> {
    if !items.is_empty() {
        let neighbours = draft.observed.neighbours(network)?;
        let all = draft.observed.firewall(&list.id)?;
        let is_relied_on = |item: &FirewallRule, rule| draft.identity.is_relied_on(item, all, rule);
        items.retain(|item| !neighbours.iter().any(|rule| is_relied_on(item, rule)));
    }
    Ok(items)
}
