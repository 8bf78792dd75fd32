//! The ACL list of a tier of a VPC. It may serve several tiers, balancers and people.

use super::Draft;
use crate::claim::Claim;
use crate::intent::Sources;
use crate::objects::{AclItem, AclRef, Opening};
use crate::observe::Need;
use crate::step::CloudStep;

/// Plans that a port is let in from exactly these sources. An item that says so is taken as it is, whoever made it.
///
/// Items for other sources that were made for the Service go, and those for everybody if not everybody may connect: earlier
/// managers made them, and they would make the restriction void.
pub(super) fn open(
    draft: &mut Draft<'_>,
    list: &AclRef,
    network: &str,
    opening: Opening,
    sources: &Sources,
    claim: &Claim,
) {
    let Some(items) = items(draft, list, opening) else {
        return;
    };
    let wanted = &sources.cidrs;
    let (right, others): (Vec<&AclItem>, Vec<&AclItem>) =
        items.into_iter().partition(|item| item.sources.is_same(wanted));
    let obsolete: Vec<&AclItem> = others.into_iter().filter(|item| is_own(item, claim)).collect();
    let is_needed = if obsolete.is_empty() {
        Some(true)
    } else {
        is_needed_by_others(draft, network, opening)
    };
    let Some(is_needed) = is_needed else {
        return;
    };
    if right.is_empty() {
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
    } else if !is_needed {
        for item in obsolete {
            draft.cloud(close(list, item, true));
        }
    }
}

/// Whether an item was made for the Service, as far as that can be told.
fn is_own(item: &AclItem, claim: &Claim) -> bool {
    item.sources.is_everything() || claim.has_opened(&item.sources)
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
    claim: &Claim,
) -> Shut {
    let Some(items) = items(draft, list, opening) else {
        return Shut::NotYet;
    };
    let own: Vec<&AclItem> = items
        .into_iter()
        .filter(|item| item.sources.is_same(&sources.cidrs) || is_own(item, claim))
        .collect();
    if own.is_empty() {
        return Shut::Done;
    }
    match is_needed_by_others(draft, network, opening) {
        None => Shut::NotYet,
        Some(true) => Shut::Left,
        Some(false) => {
            for item in own {
                draft.cloud(close(list, item, false));
            }
            Shut::NotYet
        }
    }
}

fn items<'a>(draft: &mut Draft<'a>, list: &AclRef, opening: Opening) -> Option<Vec<&'a AclItem>> {
    let Some(all) = draft.observed.acls.get(&list.id) else {
        draft.need(Need::Acl(list.id.clone()));
        return None;
    };
    Some(all.iter().filter(|item| item.opening == opening).collect())
}

/// Whether a rule of somebody else behind the same list has the port; none if that has to be read first.
fn is_needed_by_others(draft: &mut Draft<'_>, network: &str, opening: Opening) -> Option<bool> {
    let Some(neighbours) = draft.observed.neighbours.get(network) else {
        draft.need(Need::Neighbours(network.to_owned()));
        return None;
    };
    Some(neighbours.iter().any(|rule| rule.opening("") == Some(opening)))
}

fn close(list: &AclRef, item: &AclItem, is_replaced: bool) -> CloudStep {
    CloudStep::CloseAcl {
        list: list.clone(),
        opening: item.opening,
        item: item.id.clone(),
        is_replaced,
    }
}
