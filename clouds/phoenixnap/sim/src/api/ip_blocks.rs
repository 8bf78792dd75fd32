//! `/ips/v1/ip-blocks`

use bowline_cloud_kit::clock::{later, pending};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json as value};

use super::{Answer, Call, reply, tags};
use crate::error::ApiError;
use crate::model::{Block, BlockStatus, Tag};
use crate::options::LOCATIONS;
use crate::wire;

/// Sizes that can be had without asking somebody.
const V4_SIZES: [&str; 4] = ["/31", "/30", "/29", "/28"];
const V6_SIZES: [&str; 1] = ["/64"];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewBlock {
    location: Option<String>,
    cidr_block_size: Option<String>,
    ip_version: Option<String>,
    description: Option<String>,
    #[serde(default)]
    tags: Vec<Tag>,
}

impl NewBlock {
    /// The length of the prefix and whether it is IPv6, after all that is wrong was collected.
    fn size(&self, errors: &mut Vec<String>) -> Option<(u8, bool)> {
        let (is_v6, sizes) = match self.ip_version.as_deref() {
            None | Some("V4") => (false, V4_SIZES.as_slice()),
            Some("V6") => (true, V6_SIZES.as_slice()),
            Some(other) => {
                errors.push(format!("ipVersion: {other} is neither V4 nor V6"));
                return None;
            }
        };
        let size = self.cidr_block_size.as_deref();
        let Some(size) = size.filter(|size| sizes.contains(size)) else {
            let size = size.unwrap_or("nothing");
            errors.push(format!("cidrBlockSize: {size} is none of {}", sizes.join(", ")));
            return None;
        };
        let length = size.trim_start_matches('/').parse().ok()?;
        Some((length, is_v6))
    }
}

impl Call<'_> {
    pub(super) fn list_blocks(&self) -> Answer {
        let conditions = self.query("tag");
        let blocks = self.state.blocks.values();
        let blocks = blocks.filter(|it| !pending(it.listed_from) && self.passes(&conditions, &it.tags));
        reply(
            StatusCode::OK,
            blocks.map(|it| wire::block(self.state, it)).collect::<Value>(),
        )
    }

    pub(super) fn read_block(&self, id: &str) -> Answer {
        self.block_reply(StatusCode::OK, id)
    }

    pub(super) fn create_block(&mut self) -> Answer {
        let wish: NewBlock = self.body()?;
        let mut errors = Vec::new();
        let location = wish.location.clone().unwrap_or_default();
        if !LOCATIONS.contains(&location.as_str()) {
            let known = LOCATIONS.join(", ");
            errors.push(format!("location: {location:?} is none of {known}"));
        }
        let size = wish.size(&mut errors);
        tags::check_description(wish.description.as_deref(), &mut errors);
        tags::check(self.state, &wish.tags, &mut errors);
        let Some((length, is_v6)) = size.filter(|_| errors.is_empty()) else {
            return Err(ApiError::validation(errors));
        };
        let quota = self.state.behaviour.quota.blocks;
        let is_full = quota.is_some_and(|most| self.state.blocks.len() >= most);
        let range = self.state.free_range(&location, length, is_v6);
        let Some(cidr) = range.filter(|_| !is_full) else {
            let text = format!("No IP block of size /{length} is available in {location}.");
            return Err(ApiError::new(StatusCode::NOT_ACCEPTABLE, text));
        };
        let id = self.state.id();
        self.state.buy(Block {
            id: id.clone(),
            location,
            cidr,
            shown_cidr: None,
            status: BlockStatus::Creating,
            change: None,
            assignment: None,
            description: wish.description,
            tags: wish.tags,
            created_on: self.state.clock.rfc3339_millis(),
            listed_from: later(self.state.behaviour.list_lag),
        });
        self.block_reply(StatusCode::CREATED, &id)
    }

    /// Replaces all tags.
    pub(super) fn tag_block(&mut self, id: &str) -> Answer {
        self.state.block(id)?;
        let wish: Vec<Tag> = self.body()?;
        let mut errors = Vec::new();
        tags::check(self.state, &wish, &mut errors);
        ApiError::if_any(errors)?;
        if let Some(block) = self.state.blocks.get_mut(id) {
            block.tags = wish;
        }
        self.block_reply(StatusCode::OK, id)
    }

    pub(super) fn delete_block(&mut self, id: &str) -> Answer {
        let block = self.state.block(id)?;
        let is_free = match block.status {
            BlockStatus::Unassigned => true,
            BlockStatus::ErrorAssigning => !self.state.behaviour.failed_attachment_is_final,
            _ => false,
        };
        if !is_free || block.assignment.is_some() {
            let status = block.status.words();
            let text = format!("The IP block {id} is {status} and cannot be deleted.");
            return Err(ApiError::switched(self.state.behaviour.delete_used_status, text));
        }
        self.state.blocks.shift_remove(id);
        let text = format!("The IP block {id} has been deleted.");
        reply(StatusCode::OK, value!({ "result": text, "ipBlockId": id }))
    }

    fn block_reply(&self, status: StatusCode, id: &str) -> Answer {
        let block = self.state.block(id)?;
        reply(status, wire::block(self.state, block))
    }
}
