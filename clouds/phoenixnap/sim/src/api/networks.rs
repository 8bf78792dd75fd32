//! `/networks/v1/public-networks`

use http::StatusCode;
use serde::Deserialize;

use super::{Answer, Call, reply};
use crate::error::ApiError;
use crate::model::{BlockStatus, NetworkStatus};
use crate::state::State;
use crate::wire;

#[derive(Deserialize)]
struct Attachment {
    id: String,
}

impl Call<'_> {
    pub(super) fn read_network(&self, id: &str) -> Answer {
        let network = self.state.network(id)?;
        reply(StatusCode::OK, wire::network(self.state, network))
    }

    pub(super) fn attach_block(&mut self, network_id: &str) -> Answer {
        let Attachment { id } = self.body()?;
        let network = self.state.network(network_id)?;
        let block = self.state.block(&id)?;
        if block.location != network.location {
            return Err(ApiError::bad(format!(
                "The IP block {id} is in {} and the network {network_id} in {}.",
                block.location, network.location
            )));
        }
        let status = State::network_status(network);
        if status != NetworkStatus::Ready {
            return Err(ApiError::conflict(format!(
                "The network {network_id} is not READY but {status:?}."
            )));
        }
        // A failed attachment may be tried again; what was attached half to another network may not. A status that
        // somebody made up says nothing.
        let is_open = matches!(block.status, BlockStatus::Unassigned | BlockStatus::Other(_));
        let is_loose = block.assignment.is_none() && is_open;
        let is_retried = block.status == BlockStatus::ErrorAssigning
            && !self.state.behaviour.failed_attachment_is_final
            && block
                .assignment
                .as_ref()
                .is_none_or(|it| it.is_network(network_id));
        if !is_loose && !is_retried {
            return Err(ApiError::conflict(format!(
                "The IP block {id} is {} and cannot be assigned.",
                block.status.words()
            )));
        }
        let is_v6 = block.cidr.addr().is_ipv6();
        let most = if is_v6 {
            1
        } else {
            self.state.behaviour.quota.blocks_per_network
        };
        let others = self.state.blocks_of(network_id);
        let others = others.filter(|it| it.id != id && it.cidr.addr().is_ipv6() == is_v6);
        if others.count() >= most {
            return Err(ApiError::conflict(format!(
                "The network {network_id} cannot have more than {most} IP blocks of a version."
            )));
        }
        self.state.attach(network_id, &id);
        let block = self.state.block(&id)?;
        reply(
            StatusCode::ACCEPTED,
            wire::network_block(self.state, network_id, block),
        )
    }

    pub(super) fn detach_block(&mut self, network_id: &str, id: &str) -> Answer {
        let network = self.state.network(network_id)?;
        let block = self.state.block(id)?;
        let is_forced = self.query("force").iter().any(|it| it == "true");
        let is_attached = matches!(
            block.status,
            BlockStatus::Assigned | BlockStatus::ErrorUnassigning | BlockStatus::ErrorAssigning
        );
        let assignment = block.assignment.as_ref();
        if !is_attached || !assignment.is_some_and(|it| it.is_network(network_id)) {
            return Err(ApiError::conflict(format!(
                "The IP block {id} is not assigned to the network {network_id}."
            )));
        }
        if !is_forced && self.state.used_addresses(network_id, block.cidr) > 0 {
            return Err(ApiError::conflict(format!(
                "Members of the network {network_id} use addresses of the IP block {id}."
            )));
        }
        let is_busy = State::network_status(network) == NetworkStatus::Busy;
        if is_busy && self.state.behaviour.busy_refuses_detachment {
            return Err(ApiError::conflict(format!("The network {network_id} is BUSY.")));
        }
        self.state.detach(id);
        let text = format!("The IP block {id} is being removed from the network {network_id}.");
        reply(StatusCode::ACCEPTED, text)
    }
}
