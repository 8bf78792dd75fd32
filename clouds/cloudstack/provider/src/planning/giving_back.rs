//! After a failure: nothing new is begun, what is under way is waited for, and an address that was acquired for a balancer
//! which was never complete is given back, with everything that was made on it.
//!
//! Only if the API itself said that the write failed. If its answer was lost, the write may have had its effect; the claim
//! on the address and the names of the rules find it at the next try.

use super::Draft;
use crate::claim::Claimed;
use crate::intent::Intent;
use crate::objects::AclRef;
use crate::step::CloudStep;

/// Decides what is taken back.
pub(super) fn plan(draft: &mut Draft<'_>, intent: &Intent) {
    let observed = draft.observed;
    let (Some(failure), Intent::Wanted(wanted)) = (&observed.failure, intent) else {
        return;
    };
    draft.notes.extend(wanted.notes.iter().cloned());
    if !observed.pending.is_empty() || !failure.is_definite || observed.made.is_stuck {
        return;
    }
    let claim = &wanted.identity.claim;
    if let Some(address) = &observed.made.address {
        let items = observed.made.acl_items.iter().filter_map(|(list, id)| {
            let item = observed.acls.get(list)?.iter().find(|item| item.id == *id)?;
            Some(CloudStep::CloseAcl {
                list: AclRef {
                    id: list.clone(),
                    name: list.clone(),
                },
                opening: item.opening,
                item: id.clone(),
                is_replaced: true,
            })
        });
        let items: Vec<CloudStep> = items.collect();
        if items.is_empty() {
            draft.cloud(CloudStep::Release {
                address: address.clone(),
                is_live: false,
            });
        }
        for item in items {
            draft.cloud(item);
        }
        return;
    }
    // What is known to be nobody's is not held.
    let is_nobodys = |claimed: &Claimed| match claimed {
        Claimed::Address(id) => matches!(observed.addresses.get(id), Some(None)),
        Claimed::AnySince(_) => observed.made.is_refused,
    };
    if claim.held.iter().flatten().any(is_nobodys) {
        draft.annotate(claim.keeping(|claimed| !is_nobodys(claimed)));
    }
}
