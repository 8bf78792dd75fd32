//! Everything an account holds, and the clock-driven changes to it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use bowline_cloud_kit::addresses::{host_count, nth};
use bowline_cloud_kit::clock::{later, pending};
use bowline_cloud_kit::dataplane::Bound;
use bowline_cloud_kit::{Clock, Moved, Seed, Simulated};
use indexmap::IndexMap;
use ipnet::IpNet;
use serde::Serialize;
use tokio::time::Instant;

use crate::announcements::Announcement;
use crate::behaviour::Behaviour;
use crate::error::ApiError;
use crate::model::{
    Assignment, Block, BlockStatus, Change, Network, NetworkStatus, PUBLIC_NETWORK, Server, TagName,
};
use crate::options::{Options, Scope};

/// The first host number handed out of the servers' ranges; those below are for routers and the like.
const FIRST_HOST: u128 = 10;

/// The VLAN of the first network; the next ones count on.
const FIRST_VLAN: u16 = 1000;

/// The state of one simulated account. All maps keep the order of creation.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) options: Options,
    pub(crate) behaviour: Behaviour,
    pub(crate) seed: Seed,
    pub(crate) clock: Clock,
    pub(crate) tokens: BTreeMap<String, Grant>,
    pub(crate) token_requests: Vec<TokenRequest>,
    pub(crate) servers: IndexMap<String, Server>,
    pub(crate) blocks: IndexMap<String, Block>,
    pub(crate) networks: IndexMap<String, Network>,
    /// By name.
    pub(crate) tags: IndexMap<String, TagName>,
    pub(crate) announcements: Vec<Announcement>,
    /// What the data plane listens on.
    pub(crate) bound: Vec<Bound>,
    /// Where servers' ports really are that cannot be bound at their own place.
    pub(crate) moved: Moved,
    /// The next host number of the private and of the public range.
    hosts: (u128, u128),
}

/// What a token is good for.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) scopes: BTreeSet<Scope>,
    pub(crate) until: Instant,
}

/// A request for a token. The journal has them too, though not what is in their headers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenRequest {
    /// Who asked; empty if that could not be read.
    pub client_id: String,
    /// Time since the simulator's start.
    pub at: Duration,
    /// Whether the credentials were in the Basic header rather than in the form.
    pub in_header: bool,
    /// Whether there was a token in the answer.
    pub is_granted: bool,
}

impl State {
    pub(crate) fn new(options: Options, behaviour: Behaviour, seed: Seed, clock: Clock) -> Self {
        Self {
            options,
            behaviour,
            seed,
            clock,
            hosts: (FIRST_HOST, FIRST_HOST),
            ..Self::default()
        }
    }

    /// A new id: 24 hexadecimal digits.
    pub(crate) fn id(&self) -> String {
        let mut digits = self.seed.uuid().simple().to_string();
        digits.truncate(24);
        digits
    }

    /// The next private address for a server. Addresses are not used twice.
    pub(crate) fn private_address(&mut self) -> String {
        take_host(self.options.private, &mut self.hosts.0)
    }

    /// The next public address for a server.
    pub(crate) fn public_address(&mut self) -> String {
        take_host(self.options.public, &mut self.hosts.1)
    }

    pub(crate) fn next_vlan(&self) -> u16 {
        let highest = self.networks.values().map(|it| it.vlan_id).max();
        highest.map_or(FIRST_VLAN, |vlan| vlan.saturating_add(1))
    }

    /// The next free range of a size in a location.
    pub(crate) fn free_range(&self, location: &str, length: u8, v6: bool) -> Option<IpNet> {
        let taken: Vec<IpNet> = self.blocks.values().map(|block| block.cidr).collect();
        let pools = self.options.pools.get(location).into_iter().flatten();
        let fitting = pools.filter(|pool| pool.addr().is_ipv6() == v6 && pool.prefix_len() <= length);
        fitting
            .flat_map(|pool| pool.subnets(length).into_iter().flatten())
            .find(|range| !taken.iter().any(|block| overlaps(*block, *range)))
    }

    pub(crate) fn server(&self, id: &str) -> Result<&Server, ApiError> {
        self.shown(&self.servers, "server", id)
    }

    pub(crate) fn block(&self, id: &str) -> Result<&Block, ApiError> {
        self.shown(&self.blocks, "IP block", id)
    }

    pub(crate) fn network(&self, id: &str) -> Result<&Network, ApiError> {
        self.shown(&self.networks, "public network", id)
    }

    fn shown<'a, T>(&self, all: &'a IndexMap<String, T>, kind: &str, id: &str) -> Result<&'a T, ApiError> {
        all.get(id)
            .filter(|_| !self.behaviour.shows_other_account)
            .ok_or_else(|| self.missing(kind, id))
    }

    fn missing(&self, kind: &str, id: &str) -> ApiError {
        ApiError::switched(
            self.behaviour.missing_status,
            format!("You may not access the {kind} {id}."),
        )
    }

    pub(crate) fn network_status(network: &Network) -> NetworkStatus {
        match network.status {
            Some(status) => status,
            None if pending(network.busy_until) => NetworkStatus::Busy,
            None => NetworkStatus::Ready,
        }
    }

    /// The blocks of a network, those on their way to or from it included.
    pub(crate) fn blocks_of(&self, network: &str) -> impl Iterator<Item = &Block> {
        self.blocks.values().filter(move |block| {
            let assignment = block.assignment.as_ref();
            assignment.is_some_and(|it| it.is_network(network))
        })
    }

    /// How many addresses of a range the members of a network use.
    pub(crate) fn used_addresses(&self, network: &str, cidr: IpNet) -> usize {
        let members = self.networks.get(network).into_iter().flat_map(|it| &it.members);
        let used = members.flat_map(|member| &member.ips);
        used.filter(|address| cidr.contains(*address)).count()
    }

    /// Begins to attach a block. The caller has checked that it can be.
    pub(crate) fn attach(&mut self, network: &str, block: &str) {
        let until = later(self.behaviour.attach_time);
        let is_failing = take_one(&mut self.behaviour.failing_attachments);
        let to = if is_failing {
            BlockStatus::ErrorAssigning
        } else {
            BlockStatus::Assigned
        };
        let assignment = Assignment {
            resource_id: Some(network.to_owned()),
            resource_type: Some(self.behaviour.spelling.apply(PUBLIC_NETWORK)),
        };
        let attached = !is_failing || self.behaviour.failed_attachment_stays;
        if let Some(network) = self.networks.get_mut(network) {
            network.busy_until = until;
        }
        if let Some(block) = self.blocks.get_mut(block) {
            block.assignment = Some(assignment);
            begin(block, BlockStatus::Assigning, to, attached, until);
        }
        self.settle();
    }

    /// Begins to detach a block. The caller has checked that it can be.
    pub(crate) fn detach(&mut self, block: &str) {
        let until = later(self.behaviour.detach_time);
        let is_failing = take_one(&mut self.behaviour.failing_detachments);
        let to = if is_failing {
            BlockStatus::ErrorUnassigning
        } else {
            BlockStatus::Unassigned
        };
        if let Some(block) = self.blocks.get_mut(block) {
            let network = block.assignment.as_ref().and_then(|it| it.resource_id.as_ref());
            if let Some(network) = network.and_then(|id| self.networks.get_mut(id))
                && self.behaviour.busy_refuses_detachment
            {
                network.busy_until = until;
            }
            begin(block, BlockStatus::Unassigning, to, is_failing, until);
        }
        self.settle();
    }

    /// Adds a block that is attached to nothing.
    pub(crate) fn buy(&mut self, mut block: Block) {
        let until = later(self.behaviour.block_create_time);
        begin(
            &mut block,
            BlockStatus::Creating,
            BlockStatus::Unassigned,
            false,
            until,
        );
        self.blocks.insert(block.id.clone(), block);
        self.settle();
    }

    /// Adds a tag name; whether it is new.
    pub(crate) fn insert_tag(&mut self, name: &str, description: Option<String>, is_billing: bool) -> bool {
        if self.tags.contains_key(name) {
            return false;
        }
        let tag = TagName {
            id: self.id(),
            name: name.to_owned(),
            description,
            is_billing,
        };
        self.tags.insert(name.to_owned(), tag);
        true
    }

    /// Detaches every block from a server or network that is gone.
    pub(crate) fn release_blocks_of(&mut self, resource: &str) {
        for block in self.blocks.values_mut() {
            let assigned = block.assignment.as_ref().and_then(|it| it.resource_id.as_deref());
            if assigned == Some(resource) {
                (block.status, block.change, block.assignment) = (BlockStatus::Unassigned, None, None);
            }
        }
    }
}

impl Simulated for State {
    fn settle(&mut self) {
        let now = Instant::now();
        for block in self.blocks.values_mut() {
            if let Some(change) = block.change.take_if(|change| change.at <= now) {
                block.status = change.to;
                if !change.attached {
                    block.assignment = None;
                }
            }
        }
    }
}

fn begin(block: &mut Block, by_way_of: BlockStatus, to: BlockStatus, attached: bool, until: Option<Instant>) {
    block.status = by_way_of;
    block.change = Some(Change {
        at: until.unwrap_or_else(Instant::now),
        to,
        attached,
    });
}

fn take_one(count: &mut u32) -> bool {
    let is_left = *count > 0;
    *count = count.saturating_sub(1);
    is_left
}

fn take_host(range: IpNet, next: &mut u128) -> String {
    // A range that is used up starts anew: servers with equal addresses are better than none in a test of thousands.
    let host = *next % host_count(range).max(1);
    *next += 1;
    nth(range, host).to_string()
}

pub(crate) fn overlaps(one: IpNet, other: IpNet) -> bool {
    one.contains(&other) || other.contains(&one)
}

/// Whether clients can use an address of a block: not the network's own, not the gateway's, not the broadcast address.
pub(crate) fn is_usable(cidr: IpNet, address: IpAddr) -> bool {
    cidr.contains(&address)
        && address != nth(cidr, 0)
        && address != nth(cidr, 1)
        && (address.is_ipv6() || address != cidr.broadcast())
}
