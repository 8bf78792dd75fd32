//! The blocks of one pod network: one bit each, so that a /8 in blocks of /24 takes 8 KiB.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The most bits that a block may be longer than its network: 2 MiB of memory.
pub(super) const MOST_BITS: u8 = 24;

/// The blocks of one network, and which of them are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CidrSet {
    network: IpNet,
    /// The prefix length of a block.
    mask: u8,
    blocks: usize,
    /// A set bit is a block that is taken.
    bits: Vec<u64>,
    /// How many further owners a block has that has more than one: a mistake of others that must not become ours when
    /// the first of them goes.
    shared: BTreeMap<usize, u32>,
    taken: usize,
    /// Where to look first.
    next: usize,
}

impl CidrSet {
    /// The blocks of a network with this prefix length, none of them taken. The length must be the network's or up to
    /// [`MOST_BITS`] longer.
    pub(super) fn new(network: IpNet, mask: u8) -> Self {
        let bits = mask.saturating_sub(network.prefix_len()).min(MOST_BITS);
        let blocks = 1_usize << bits;
        Self {
            network,
            mask,
            blocks,
            bits: vec![0; blocks.div_ceil(64)],
            shared: BTreeMap::new(),
            taken: 0,
            next: 0,
        }
    }

    pub(super) fn network(&self) -> &IpNet {
        &self.network
    }

    pub(super) fn blocks(&self) -> usize {
        self.blocks
    }

    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// Whether a network has addresses in common with this one.
    pub(super) fn touches(&self, network: &IpNet) -> bool {
        self.range(network).is_some()
    }

    /// How many blocks a network touches.
    pub(super) fn touched(&self, network: &IpNet) -> usize {
        self.range(network)
            .map_or(0, |range| range.end() - range.start() + 1)
    }

    /// Marks every block that a network touches; gives how many were free.
    pub(super) fn occupy(&mut self, network: &IpNet) -> usize {
        let before = self.taken;
        for block in self.range(network).into_iter().flatten() {
            if self.is_taken(block) {
                *self.shared.entry(block).or_default() += 1;
            } else {
                self.set(block, true);
            }
        }
        self.taken - before
    }

    /// Takes the mark of an owner off; gives how many blocks are free by that.
    pub(super) fn release(&mut self, network: &IpNet) -> usize {
        let before = self.taken;
        for block in self.range(network).into_iter().flatten() {
            match self.shared.get_mut(&block) {
                Some(1) => drop(self.shared.remove(&block)),
                Some(others) => *others -= 1,
                None => self.set(block, false),
            }
        }
        before - self.taken
    }

    /// Takes the next free block, going round from the last one that was given. Also gives how many taken ones were
    /// passed over.
    pub(super) fn take_next(&mut self) -> Option<(IpNet, usize)> {
        if self.taken == self.blocks {
            return None;
        }
        let block = self
            .first_free(self.next, self.blocks)
            .or_else(|| self.first_free(0, self.next))?;
        let passed = (block + self.blocks - self.next) % self.blocks;
        self.set(block, true);
        self.next = (block + 1) % self.blocks;
        Some((self.block(block)?, passed))
    }

    fn first_free(&self, from: usize, to: usize) -> Option<usize> {
        let mut at = from;
        while at < to {
            // Bits below the one looked for count as taken.
            let word = self.bits[at / 64] | ((1 << (at % 64)) - 1);
            if word != u64::MAX {
                let found = at / 64 * 64 + word.trailing_ones() as usize;
                return (found < to).then_some(found);
            }
            at = (at / 64 + 1) * 64;
        }
        None
    }

    fn is_taken(&self, block: usize) -> bool {
        self.bits[block / 64] & (1 << (block % 64)) != 0
    }

    fn set(&mut self, block: usize, is_taken: bool) {
        if self.is_taken(block) == is_taken {
            return;
        }
        self.bits[block / 64] ^= 1 << (block % 64);
        if is_taken {
            self.taken += 1;
        } else {
            self.taken -= 1;
        }
    }

    /// The blocks that a network touches.
    fn range(&self, network: &IpNet) -> Option<RangeInclusive<usize>> {
        let (own_first, own_last) = span(&self.network);
        let (first, last) = span(network);
        let (first, last) = (first.max(own_first), last.min(own_last));
        if network.max_prefix_len() != self.network.max_prefix_len() || first > last {
            return None;
        }
        let block = |address: u128| {
            let index = (address - own_first).checked_shr(self.block_bits()).unwrap_or(0);
            usize::try_from(index).unwrap_or(usize::MAX).min(self.blocks - 1)
        };
        Some(block(first)..=block(last))
    }

    fn block(&self, block: usize) -> Option<IpNet> {
        let (first, _) = span(&self.network);
        let offset = (block as u128).checked_shl(self.block_bits()).unwrap_or(0);
        let address = first + offset;
        match self.network {
            IpNet::V4(_) => {
                let address = Ipv4Addr::from(u32::try_from(address).ok()?);
                Ipv4Net::new(address, self.mask).ok().map(IpNet::V4)
            }
            IpNet::V6(_) => Ipv6Net::new(Ipv6Addr::from(address), self.mask)
                .ok()
                .map(IpNet::V6),
        }
    }

    /// How many bits of an address lie inside a block.
    fn block_bits(&self) -> u32 {
        u32::from(self.network.max_prefix_len() - self.mask.min(self.network.max_prefix_len()))
    }
}

/// The first and the last address as numbers.
fn span(network: &IpNet) -> (u128, u128) {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    (number(network.network()), number(network.broadcast()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn net(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    fn take(set: &mut CidrSet, count: usize) -> Vec<String> {
        let taken = std::iter::from_fn(|| set.take_next().map(|(block, _)| block.to_string()));
        taken.take(count).collect()
    }

    #[test]
    fn blocks_are_given_in_order_and_round() {
        let mut set = CidrSet::new(net("10.200.0.0/22"), 24);
        assert_eq!(set.blocks(), 4);
        assert_eq!(
            take(&mut set, 3),
            ["10.200.0.0/24", "10.200.1.0/24", "10.200.2.0/24"]
        );
        assert_eq!(set.release(&net("10.200.0.0/24")), 1);
        assert_eq!(take(&mut set, 9), ["10.200.3.0/24", "10.200.0.0/24"]);
        assert_eq!((set.taken(), set.take_next()), (4, None));
        set.release(&net("10.200.2.0/24"));
        assert_eq!(set.take_next(), Some((net("10.200.2.0/24"), 1)));
    }

    #[test]
    fn a_block_may_be_the_network_itself_or_a_single_address() {
        let mut set = CidrSet::new(net("10.200.0.0/24"), 24);
        assert_eq!(take(&mut set, 9), ["10.200.0.0/24"]);
        let mut set = CidrSet::new(net("255.255.255.254/31"), 32);
        assert_eq!(take(&mut set, 9), ["255.255.255.254/32", "255.255.255.255/32"]);
        let mut set = CidrSet::new(net("fd00::/48"), 64);
        assert_eq!(take(&mut set, 2), ["fd00::/64", "fd00:0:0:1::/64"]);
        assert_eq!(set.blocks(), 65536);
        let mut set = CidrSet::new(net("::/0"), 16);
        assert_eq!(take(&mut set, 65536).last().unwrap(), "ffff::/16");
    }

    #[test]
    fn a_large_network_is_cheap() {
        let mut set = CidrSet::new(net("10.0.0.0/8"), 24);
        assert_eq!((set.blocks(), set.bits.len() * 8), (65536, 8192));
        assert_eq!(set.occupy(&net("10.0.0.0/9")), 32768);
        assert_eq!(set.take_next(), Some((net("10.128.0.0/24"), 32768)));
    }

    #[test]
    fn networks_of_any_size_take_the_blocks_they_touch() {
        let mut set = CidrSet::new(net("10.200.0.0/22"), 24);
        assert_eq!(set.occupy(&net("10.200.1.128/25")), 1);
        assert_eq!(set.occupy(&net("10.200.2.0/23")), 2);
        assert_eq!(set.occupy(&net("192.168.0.0/16")), 0);
        assert_eq!(set.occupy(&net("fd00::/48")), 0);
        assert!(set.touches(&net("10.0.0.0/8")) && !set.touches(&net("10.201.0.0/16")));
        assert_eq!(take(&mut set, 9), ["10.200.0.0/24"]);
        assert_eq!(set.occupy(&net("10.0.0.0/8")), 0);
    }

    #[test]
    fn a_block_with_two_owners_is_free_when_both_are_gone() {
        let mut set = CidrSet::new(net("10.200.0.0/23"), 24);
        let block = net("10.200.0.0/24");
        assert_eq!((set.occupy(&block), set.occupy(&block)), (1, 0));
        assert_eq!((set.release(&block), set.release(&block)), (0, 1));
        assert_eq!((set.release(&block), set.taken()), (0, 0));
    }

    proptest! {
        #[test]
        fn the_bits_agree_with_a_plain_table(steps in proptest::collection::vec((0..4_u8, 0..16_u8, 24..28_u8), 1..80)) {
            let mut set = CidrSet::new(net("10.200.0.0/24"), 28);
            let mut owners = [0_u32; 16];
            let mut held: Vec<IpNet> = Vec::new();
            for (step, block, mask) in steps {
                let network: IpNet = net(&format!("10.200.0.{}/{mask}", u32::from(block) * 16)).trunc();
                let touched = owners.iter_mut().enumerate().filter(|(at, _)| {
                    network.contains(&net(&format!("10.200.0.{}/28", at * 16)))
                });
                match step {
                    0 | 1 => {
                        set.occupy(&network);
                        touched.for_each(|(_, owners)| *owners += 1);
                        held.push(network);
                    }
                    2 => if let Some(at) = held.iter().position(|held| *held == network) {
                        held.swap_remove(at);
                        set.release(&network);
                        touched.for_each(|(_, owners)| *owners -= 1);
                    }
                    _ => match set.take_next() {
                        Some((given, _)) => {
                            let at = (span(&given).0 - span(&net("10.200.0.0/24")).0) / 16;
                            let at = usize::try_from(at).unwrap();
                            prop_assert_eq!(owners[at], 0);
                            owners[at] = 1;
                            held.push(given);
                        }
                        None => prop_assert!(owners.iter().all(|owners| *owners > 0)),
                    }
                }
                prop_assert_eq!(set.taken(), owners.iter().filter(|owners| **owners > 0).count());
            }
        }
    }
}
