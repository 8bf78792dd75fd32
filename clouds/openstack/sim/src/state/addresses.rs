//! Which addresses of which subnet are in use.

use super::State;
use crate::model::Id;
use crate::model::network::FixedIp;

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
        match self.addresses.next(subnet, cidr, gateway) {
            Some(address) => Ok(FixedIp { subnet, address }),
            None => Err(NoAddress::Exhausted(subnet)),
        }
    }

    /// Reserves one address of a subnet.
    pub(crate) fn reserve(&mut self, wish: FixedIp) -> Result<FixedIp, NoAddress> {
        let FixedIp { subnet, address } = wish;
        let found = self.subnets.get(&subnet).ok_or(NoAddress::NoSubnet(subnet))?;
        if !found.cidr.contains(&address) {
            return Err(NoAddress::Outside(wish));
        }
        match self.addresses.take(subnet, address) {
            true => Ok(wish),
            false => Err(NoAddress::Taken(wish)),
        }
    }

    pub(crate) fn release(&mut self, fixed_ip: FixedIp) {
        self.addresses.release(fixed_ip.subnet, fixed_ip.address);
    }
}
