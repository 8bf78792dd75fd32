//! Who holds which networks, as plain data: nothing here reads, writes or waits.

use std::collections::BTreeMap;

use bowline_cloud_provider::{Node, NodeName};
use ipnet::IpNet;

use super::cidr_set::CidrSet;
use super::ranges::Ranges;
use crate::cluster_cidr;

/// The networks of all Nodes.
#[derive(Debug)]
pub(super) struct Allocator {
    /// In the order of the cluster's networks, which is that of a Node's.
    sets: Vec<Account>,
    held: BTreeMap<NodeName, Holding>,
}

/// One network of the cluster with its allocations.
#[derive(Debug)]
pub(super) struct Account {
    set: CidrSet,
    /// Blocks taken so far, ever.
    pub(super) allocations: u64,
    /// Blocks freed so far, ever.
    pub(super) releases: u64,
}

#[derive(Debug)]
struct Holding {
    uid: Box<str>,
    networks: Vec<IpNet>,
    /// Whether the Node is known to show them.
    is_written: bool,
    /// Whether the answer to a write of them was lost: the Node may show them.
    is_in_doubt: bool,
}

/// What a Node without networks is given.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Grant {
    /// These; the same again until they are written or given back.
    Networks(Vec<IpNet>),
    /// Nothing: it has networks, and the cache does not show it yet.
    Written,
    /// Nothing: one of the cluster's networks has no block left.
    Exhausted,
}

/// What is odd about the networks that a Node shows. It keeps them, and nothing that overlaps them is given.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Odd {
    /// Those that cannot be read or are not in `--cluster-cidr`, as they stand.
    pub(super) outside: Vec<String>,
    /// Other Nodes that show some of the same addresses.
    pub(super) shared_with: Vec<NodeName>,
}

impl Allocator {
    /// All blocks are free but those that touch a network of the Services.
    pub(super) fn new(ranges: &Ranges) -> Self {
        let account = |(network, mask): &(IpNet, u8)| {
            let mut set = CidrSet::new(*network, *mask);
            for services in &ranges.services {
                set.occupy(services);
            }
            Account {
                set,
                allocations: 0,
                releases: 0,
            }
        };
        Self {
            sets: ranges.cluster.iter().map(account).collect(),
            held: BTreeMap::new(),
        }
    }

    /// Takes note of the networks that a Node shows; gives what is odd about them.
    pub(super) fn observe(&mut self, node: &Node) -> Odd {
        let mut odd = Odd::default();
        let mut networks: Vec<IpNet> = Vec::new();
        for text in &node.pod_cidrs {
            match cluster_cidr::pod_network(text) {
                Some(network) if self.sets.iter().any(|account| account.set.touches(&network)) => {
                    networks.push(network);
                }
                _ => odd.outside.push(text.clone()),
            }
        }
        if self.hold(node, &networks, true) {
            odd.shared_with = self.others_with(node, &networks);
        }
        odd
    }

    /// The other Nodes that hold some of these addresses. Goes through all Nodes, so it is asked only where there are some.
    fn others_with(&self, node: &Node, networks: &[IpNet]) -> Vec<NodeName> {
        let overlaps = |held: &IpNet| {
            let overlaps = |network: &IpNet| held.contains(network) || network.contains(held);
            networks.iter().any(overlaps)
        };
        let others = self.held.iter().filter(|(name, _)| **name != node.name);
        let others = others.filter(|(_, holding)| holding.networks.iter().any(overlaps));
        others.map(|(name, _)| name.clone()).collect()
    }

    /// Gives a Node without networks a block of each of the cluster's. Also the number of taken blocks that were passed
    /// over, of each.
    pub(super) fn grant(&mut self, node: &Node) -> (Grant, Vec<usize>) {
        match self.held.get(&node.name) {
            Some(holding) if *holding.uid == *node.uid && holding.is_written => {
                return (Grant::Written, Vec::new());
            }
            Some(holding) if *holding.uid == *node.uid => {
                return (Grant::Networks(holding.networks.clone()), Vec::new());
            }
            Some(_) => drop(self.drop_holding(&node.name)),
            None => {}
        }
        if self
            .sets
            .iter()
            .any(|account| account.set.taken() == account.set.blocks())
        {
            return (Grant::Exhausted, Vec::new());
        }
        let (mut networks, mut passed) = (Vec::new(), Vec::new());
        for account in &mut self.sets {
            if let Some((network, skipped)) = account.set.take_next() {
                account.allocations += 1;
                networks.push(network);
                passed.push(skipped);
            }
        }
        let holding = Holding {
            uid: (*node.uid).into(),
            networks: networks.clone(),
            is_written: false,
            is_in_doubt: false,
        };
        self.held.insert(node.name.clone(), holding);
        (Grant::Networks(networks), passed)
    }

    /// What was given is written, unless the Node is gone by now.
    pub(super) fn written(&mut self, node: &Node) {
        if let Some(holding) = self.held.get_mut(&node.name)
            && *holding.uid == *node.uid
        {
            holding.is_written = true;
        }
    }

    /// What was given may be written or not: it stays this Node's until it shows something, or is gone.
    pub(super) fn doubt(&mut self, node: &Node) {
        if let Some(holding) = self.held.get_mut(&node.name)
            && *holding.uid == *node.uid
        {
            holding.is_in_doubt = true;
        }
    }

    /// Frees what this very Node was given and certainly does not show; gives whether a block is free by that.
    pub(super) fn give_back(&mut self, node: &Node) -> bool {
        let is_given =
            |holding: &Holding| *holding.uid == *node.uid && !holding.is_written && !holding.is_in_doubt;
        self.held.get(&node.name).is_some_and(is_given) && self.drop_holding(&node.name)
    }

    /// Frees what this very Node held; gives whether a block is free by that.
    pub(super) fn release(&mut self, node: &Node) -> bool {
        let is_it = |holding: &Holding| *holding.uid == *node.uid;
        self.held.get(&node.name).is_some_and(is_it) && self.drop_holding(&node.name)
    }

    /// The allocations, in the order of the cluster's networks.
    pub(super) fn accounts(&self) -> &[Account] {
        &self.sets
    }

    /// Gives whether somebody else holds some of it. That is found out once, when the Node is seen to hold it.
    fn hold(&mut self, node: &Node, networks: &[IpNet], is_written: bool) -> bool {
        if let Some(holding) = self.held.get_mut(&node.name)
            && *holding.uid == *node.uid
            && holding.networks == networks
        {
            holding.is_written |= is_written;
            return false;
        }
        self.drop_holding(&node.name);
        let mut is_shared = false;
        for account in &mut self.sets {
            for network in networks {
                let free = account.set.occupy(network);
                account.allocations += free as u64;
                is_shared |= free < account.set.touched(network);
            }
        }
        let holding = Holding {
            uid: (*node.uid).into(),
            networks: networks.to_vec(),
            is_written,
            is_in_doubt: false,
        };
        self.held.insert(node.name.clone(), holding);
        is_shared
    }

    fn drop_holding(&mut self, name: &NodeName) -> bool {
        let networks = self
            .held
            .remove(name)
            .map_or_else(Vec::new, |holding| holding.networks);
        let mut freed = 0;
        for account in &mut self.sets {
            let of_set: usize = networks.iter().map(|network| account.set.release(network)).sum();
            account.releases += of_set as u64;
            freed += of_set;
        }
        freed > 0
    }
}

impl Account {
    pub(super) fn network(&self) -> &IpNet {
        self.set.network()
    }

    pub(super) fn blocks(&self) -> usize {
        self.set.blocks()
    }

    /// The share of the blocks that is taken.
    pub(super) fn usage(&self) -> f64 {
        self.set.taken() as f64 / self.set.blocks() as f64
    }
}

#[cfg(test)]
mod tests;
