//! Which addresses of which subnet are in use.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bowline_cloud_kit::addresses::{host_count, nth};

use super::State;
use crate::model::Id;
use crate::model::network::FixedIp;

/// The first host number handed out of a subnet; those below are for routers and the like.
const FIRST_HOST: u128 = 11;

/// Which addresses are in use, and where the search for the next one begins.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    taken: BTreeSet<(Id, IpAddr)>,
    cursors: BTreeMap<Id, u128>,
}

/// Why an address cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoAddress {
    /// There is no such subnet.
    NoSubnet(Id),
    /// All are in use.
    Exhausted(Id),
    /// It is not in the subnet's range.
    Outside(FixedIp),
    /// It is in use.
    Taken(FixedIp),
}

impl State {
    /// Reserves the next free address of a subnet.
    pub(crate) fn allocate(&mut self, subnet: Id) -> Result<FixedIp, NoAddress> {
        let found = self.subnets.get(&subnet).ok_or(NoAddress::NoSubnet(subnet))?;
        let (cidr, gateway) = (found.cidr, found.gateway);
        let hosts = host_count(cidr);
        let Addresses { taken, cursors } = &mut self.addresses;
        let cursor = cursors
            .entry(subnet)
            .or_insert_with(|| FIRST_HOST.min(hosts.saturating_sub(2)).max(1));
        for _ in 0..hosts.min(1 << 20) {
            let host = *cursor;
            // Host 0 is the network and the last one the broadcast address.
            *cursor = if host + 2 >= hosts { 1 } else { host + 1 };
            let address = nth(cidr, host);
            if host + 1 < hosts && Some(address) != gateway && taken.insert((subnet, address)) {
                return Ok(FixedIp { subnet, address });
            }
        }
        Err(NoAddress::Exhausted(subnet))
    }

    /// Reserves one address of a subnet.
    pub(crate) fn reserve(&mut self, wish: FixedIp) -> Result<FixedIp, NoAddress> {
        let FixedIp { subnet, address } = wish;
        let found = self.subnets.get(&subnet).ok_or(NoAddress::NoSubnet(subnet))?;
        if !found.cidr.contains(&address) {
            return Err(NoAddress::Outside(wish));
        }
        match self.addresses.taken.insert((subnet, address)) {
            true => Ok(wish),
            false => Err(NoAddress::Taken(wish)),
        }
    }

    pub(crate) fn release(&mut self, fixed_ip: FixedIp) {
        self.addresses.taken.remove(&(fixed_ip.subnet, fixed_ip.address));
    }
}
