//! Which addresses a balancer can have.

use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::{ErrorKind, IpState, PublicIpQuery};

use super::super::Observed;
use super::{Reads, context, lock};
use crate::intent::Identity;
use crate::objects::{Address, AddressRef, AddressState};

impl Reads {
    /// Free addresses of the network's zone. What the Service claims already comes first, then the server's own order counts.
    /// Empty if the account may not see free ones.
    pub(super) async fn candidates(
        &self,
        identity: &Identity,
        observed: &Observed,
        network: &str,
    ) -> Result<Vec<AddressRef>, CloudError> {
        let zone = observed
            .networks
            .get(network)
            .and_then(Option::as_ref)
            .map(|network| network.zone.clone());
        let zone = zone.filter(|zone| !zone.is_empty());
        let query = PublicIpQuery {
            free_too: true,
            state: Some(IpState::Free),
            zone: zone.as_deref().map(Into::into),
            ..PublicIpQuery::default()
        };
        let found = match self.addresses(&query).await {
            Ok(found) => found,
            Err(error)
                if matches!(
                    error.kind,
                    ErrorKind::CommandUnavailable | ErrorKind::Forbidden | ErrorKind::Invalid
                ) =>
            {
                tracing::debug!(err = %error, "free addresses cannot be listed");
                Vec::new()
            }
            Err(error) => return Err(context("error retrieving IP address")(error)),
        };
        let others = identity.claims_of_others();
        let mut reserved = lock(&self.reserved);
        let is_open = |address: &Address| {
            let id = &address.address.id;
            address.state == AddressState::Free
                && zone
                    .as_ref()
                    .is_none_or(|zone| address.zone.is_empty() || address.zone == *zone)
                && !others.iter().any(|(_, claim)| claim.names(id))
                && !identity.is_requested_by_others(&address.address.ip)
                && !reserved
                    .iter()
                    .any(|(uid, taken)| taken == id && *uid != identity.uid)
        };
        let mut open: Vec<AddressRef> = found
            .iter()
            .filter(|address| is_open(address))
            .map(|address| address.address.clone())
            .collect();
        open.sort_by_key(|address| !identity.claim.names(&address.id)); // stable
        if let Some(first) = open
            .iter()
            .find(|address| !observed.refused.contains(&address.id))
        {
            reserved.insert(identity.uid.clone(), first.id.clone());
        }
        Ok(open)
    }

    /// The addresses that lead to a network, or to the VPC of which it is a tier, and those that are on their way and do not tell
    /// where to.
    pub(super) async fn recovered(
        &self,
        observed: &Observed,
        network: &str,
    ) -> Result<Vec<Address>, CloudError> {
        let found = self.addresses(&PublicIpQuery::default()).await;
        let mut found = found.map_err(context("error retrieving IP address"))?;
        if let Some(Some(network)) = observed.networks.get(network) {
            found.retain(|address| address.is_of(network) || address.is_underway_anywhere());
        }
        Ok(found)
    }
}
