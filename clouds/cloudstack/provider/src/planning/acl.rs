//! The ACL list of a tier of a VPC. It may serve several tiers, balancers and people.

use super::Draft;
use crate::cidrs::Sources;
use crate::claim::Claim;
use crate::intent::{Identity, Wanted};
use crate::objects::{AclItem, AclRef, Opening};
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
    network: &str,
    opening: Opening,
    sources: &Sources,
    identity: &Identity,
) {
    let claim = &identity.claim;
    let Some(items) = items(draft, list, opening) else {
        return;
    };
    let wanted = &sources.cidrs;
    let (mut right, others): (Vec<&AclItem>, Vec<&AclItem>) = items
        .into_iter()
        .partition(|item| !item.is_going && item.sources.is_same(wanted));
    // The Service's own one is not surplus because a person made one like it.
    right.sort_by_key(|item| item.has_reason);
    let obsolete: Vec<&AclItem> = others.into_iter().filter(|item| is_own(item, claim)).collect();
    let Some(obsolete) = without_those_of_others(draft, list, network, obsolete, identity) else {
        return;
    };
    let Some((kept, surplus)) = right.split_first() else {
        if !wanted.is_everything() && !claim.has_opened(wanted) {
            draft.annotate(claim.opening(sources));
            return;
        }
        draft.cloud(CloudStep::OpenAcl {
            list: list.clone(),
            network: network.to_owned(),
            opening,
            sources: sources.texts().to_vec(),
        });
        return;
    };
    for item in surplus.iter().filter(|item| is_own(item, claim)) {
        draft.cloud(close(list, item, Some(kept), true));
    }
    for item in obsolete {
        draft.cloud(close(list, item, None, true));
    }
}

/// Notes for which sources items will have to be made.
pub(super) fn foresee(draft: &mut Draft<'_>, list: &AclRef, wanted: &Wanted) {
    let (sources, claim) = (&wanted.sources, &wanted.identity.claim);
    let items = draft.observed.acls.get(&list.id).map_or(&[][..], Vec::as_slice);
    let is_open = |opening: &Opening| {
        let mut items = items.iter();
        items.any(|item| item.opening == *opening && item.sources.is_same(&sources.cidrs))
    };
    if !sources.cidrs.is_everything()
        && !claim.has_opened(&sources.cidrs)
        && !wanted.openings().iter().all(is_open)
    {
        draft.annotate(claim.opening(sources));
    }
}

/// Whether an item was made for the Service, as far as that can be told.
fn is_own(item: &AclItem, claim: &Claim) -> bool {
    !item.has_reason && (item.sources.is_everything() || claim.has_opened(&item.sources))
}

/// How far the closing of a port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shut {
    /// Nothing is let in for the Service any more.
    Done,
    /// What was opened for the Service is left: others rely on it.
    Left,
    /// More has to be read, or done.
    NotYet,
}

/// Plans that the port of a removed rule is not let in any more.
///
/// Only what was made for the Service goes: items for its sources, or for everybody as earlier managers made them.
pub(super) fn shut(
    draft: &mut Draft<'_>,
    list: &AclRef,
    network: &str,
    opening: Opening,
    sources: &Sources,
    identity: &Identity,
) -> Shut {
    if draft.has_given_up(&list.id, "the network ACL list", opening) {
        return Shut::Done;
    }
    let Some(items) = items(draft, list, opening) else {
        return Shut::NotYet;
    };
    let own: Vec<&AclItem> = items
        .into_iter()
        .filter(|item| !item.has_reason)
        .filter(|item| item.sources.is_same(&sources.cidrs) || is_own(item, &identity.claim))
        .filter(|item| !draft.has_given_up(&item.id, "network ACL item", opening))
        .collect();
    if own.is_empty() {
        return Shut::Done;
    }
    let Some(unneeded) = without_those_of_others(draft, list, network, own, identity) else {
        return Shut::NotYet;
    };
    if unneeded.is_empty() {
        return Shut::Left;
    }
    for item in unneeded {
        draft.cloud(close(list, item, None, false));
    }
    Shut::NotYet
}

fn items<'a>(draft: &mut Draft<'a>, list: &AclRef, opening: Opening) -> Option<Vec<&'a AclItem>> {
    let all = draft.acl(&list.id)?;
    Some(all.iter().filter(|item| item.opening == opening).collect())
}

/// The items that no rule of somebody else behind the same list relies on; none if that has to be read first.
fn without_those_of_others<'a>(
    draft: &mut Draft<'_>,
    list: &AclRef,
    network: &str,
    mut items: Vec<&'a AclItem>,
    identity: &Identity,
) -> Option<Vec<&'a AclItem>> {
    if items.is_empty() {
        return Some(items);
    }
    let neighbours = draft.neighbours(network)?;
    let all = draft.acl(&list.id)?;
    items.retain(|item| {
        !neighbours
            .iter()
            .any(|rule| identity.is_relied_on(item, all, rule))
    });
    Some(items)
}

fn close(list: &AclRef, item: &AclItem, twin: Option<&AclItem>, is_replaced: bool) -> CloudStep {
    CloudStep::CloseAcl {
        list: list.clone(),
        item: item.clone(),
        twin: twin.map(|twin| twin.id.clone()),
        is_replaced,
    }
}
