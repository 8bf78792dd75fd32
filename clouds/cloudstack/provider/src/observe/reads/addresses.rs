//! Which addresses a balancer can have.

use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::PublicIpQuery;

use super::super::Observed;
use super::{Reads, context};
use crate::objects::Address;

impl Reads {
    /// The addresses that lead to a network, or to the VPC of which it is a tier, and those that are on their way and do not tell
    /// where to.
    pub(super) async fn recovered(
        &self,
        observed: &Observed,
        network: &str,
    ) -> Result<Vec<Address>, CloudError> {
        let found = self.addresses(&PublicIpQuery::Allocated).await;
        let mut found = found.map_err(context("error retrieving IP address"))?;
        if let Some(Some(network)) = observed.networks.get(network) {
            found.retain(|address| address.is_of(network) || address.is_underway_anywhere());
        }
        Ok(found)
    }
}
