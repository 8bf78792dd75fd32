//! The ACL list of a tier of a VPC. It may serve several tiers, balancers and people.

use super::Draft;
use crate::cidrs::Sources;
use crate::claim::Claim;
use crate::intent::{Identity, Wanted};
use crate::objects::{AclRef, Firewall, FirewallId, FirewallRule, IngressPort, NetworkId};
use crate::observe::{Observed, Unread};
use crate::step::CloudStep;

/// Plans that a port is let in from exactly these sources. An item that says so is taken as it is, whoever made it. One that
/// tells what it is for was made by a person, and stays whatever it says.
///
/// Items for other sources that were made for the Service go, and those for everybody if not everybody may connect: earlier
/// managers made them, and they would make the restriction void. So do those of the Service that say the same once more, as
/// when a list did not show yet what was made.
pub(super) fn open(
    draft: &mut Draft<'_>,
    list: &AclRef,
    network: &NetworkId,
    ingress: IngressPort,
    sources: &Sources,
    identity: &Identity,
) -> Result<(), Unread> {
    let claim = &identity.claim;
    let at = Firewall::Acl(list.clone());
    let items = draft.observed.allowing(&at, ingress)?;
    let wanted = &sources.cidrs;
    let (mut right, others): (Vec<&FirewallRule>, Vec<&FirewallRule>) = items
        .into_iter()
        .partition(|item| !item.is_going && item.sources.is_same(wanted));
    // The Service's own one is not surplus because a person made one like it.
    right.sort_by_key(|item| item.has_reason);
    let obsolete: Vec<&FirewallRule> = others.into_iter().filter(|item| is_own(item, claim)).collect();
    let obsolete = without_those_of_others(draft.observed, list, network, obsolete, identity)?;
    let Some((kept, surplus)) = right.split_first() else {
        if !wanted.is_everything() && !claim.has_opened(wanted) {
            draft.claim.open(sources);
            return Ok(());
        }
        draft.cloud(CloudStep::Open {
            at,
            network: network.clone(),
            ingress,
            sources: sources.texts().to_vec(),
            stands_in: false,
        });
        return Ok(());
    };
    for item in surplus.iter().filter(|item| is_own(item, claim)) {
        draft.cloud(CloudStep::Close {
            at: at.clone(),
            rule: (*item).clone(),
            twin: Some(kept.id.clone()),
            is_replaced: true,
        });
    }
    for item in obsolete {
        draft.cloud(CloudStep::close(&at, item, true));
    }
    Ok(())
}

/// Notes for which sources items will have to be made.
pub(super) fn foresee(draft: &mut Draft<'_>, list: &AclRef, wanted: &Wanted) {
    let (sources, claim) = (&wanted.sources, &wanted.identity.claim);
    let items = draft.observed.firewalls.get(&FirewallId::Acl(list.id.clone()));
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
    observed: &Observed,
    list: &AclRef,
    network: &NetworkId,
    mut items: Vec<&'a FirewallRule>,
    identity: &Identity,
) -> Result<Vec<&'a FirewallRule>, Unread> {
    if !items.is_empty() {
        let neighbours = observed.neighbours(network)?;
        let all = observed.firewall(&FirewallId::Acl(list.id.clone()))?;
        items.retain(|item| {
            let mut neighbours = neighbours.iter();
            !neighbours.any(|rule| identity.is_relied_on(item, all, rule))
        });
    }
    Ok(items)
}
