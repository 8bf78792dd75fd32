//! What a plan is made from, and what it lacks.
//!
//! Whoever decides asks the view. What was not read is noted when it is asked for, and looks empty; a plan that lacks something is
//! not used, the session reads all that it lacks in one round, and the plan is made anew. So nothing unread is taken for empty.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use bowline_openstack_client::{
    FloatingIp, LoadBalancer, LoadBalancerId, Monitor, MonitorId, Network, PoolId, Port, PortId,
    ProvisioningStatus, SecurityGroup, Subnet,
};

use crate::load_balancer::evidence::marks;
use crate::load_balancer::features::Features;
use crate::load_balancer::intent::{Identity, TlsKey};
use crate::load_balancer::memory::{Memory, Seen};
use crate::load_balancer::names;
use crate::load_balancer::observed::{KeyAnswer, Leaked, Observed, Parts};

/// One thing to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Need {
    /// The load balancers that could be meant.
    Balancers,
    /// One that is named and that the list does not have.
    Balancer(LoadBalancerId),
    /// One that a port names and that the list does not have.
    Unlisted(LoadBalancerId),
    /// The pools of these, which tell whose they are.
    Marks(Vec<LoadBalancerId>),
    /// What Octavia can do.
    Features,
    /// Listeners and pools of a load balancer.
    Parts(LoadBalancerId),
    /// The members of pools of a load balancer.
    Members(LoadBalancerId, Vec<PoolId>),
    /// The health monitors of a load balancer.
    Monitors(LoadBalancerId),
    /// The ports of the project.
    Ports,
    /// Whether this one is there.
    Port(PortId),
    /// What a creation that was refused left behind.
    Leaked,
    /// The floating IPs of the project.
    FloatingIps,
    /// The one of this address, which the list does not have.
    FloatingIp(String),
    /// The networks.
    Networks,
    /// The subnets.
    Subnets,
    /// The security groups of this name.
    Groups(String),
    /// The security groups of these names, of Services before this one.
    FormerGroups(Vec<String>),
    /// Whether there is a certificate.
    Key(TlsKey),
}

/// What a reconcile has seen, as a plan sees it.
pub(crate) struct View<'a> {
    observed: &'a Observed,
    pub(crate) memory: &'a Memory,
    lacking: RefCell<Vec<Need>>,
}

impl Deref for View<'_> {
    type Target = Observed;

    fn deref(&self) -> &Observed {
        self.observed
    }
}

impl<'a> View<'a> {
    pub(crate) fn new(observed: &'a Observed, memory: &'a Memory) -> Self {
        Self {
            observed,
            memory,
            lacking: RefCell::default(),
        }
    }

    pub(crate) fn of(seen: &'a Seen) -> Self {
        Self::new(&seen.observed, &seen.memory)
    }

    /// What was asked for and was not read, each once.
    pub(crate) fn lacking(self) -> Vec<Need> {
        let mut once: Vec<Need> = Vec::new();
        for need in self.lacking.into_inner() {
            if !once.contains(&need) {
                once.push(need);
            }
        }
        once
    }

    /// How often something was asked for that was not read.
    pub(crate) fn misses(&self) -> usize {
        self.lacking.borrow().len()
    }

    /// Notes that something has to be read.
    pub(crate) fn lack(&self, need: Need) {
        self.lacking.borrow_mut().push(need);
    }

    fn known<T>(&self, read: Option<&'a T>, need: impl FnOnce() -> Need) -> Option<&'a T> {
        if read.is_none() {
            self.lack(need());
        }
        read
    }

    fn list<T>(&self, read: &'a Option<Arc<Vec<T>>>, need: Need) -> &'a [T] {
        self.known(read.as_ref(), || need).map_or(&[], |list| list)
    }

    /// The ports of the project.
    pub(crate) fn ports(&self) -> &'a [Port] {
        self.list(&self.observed.ports, Need::Ports)
    }

    /// Whether a port is surely gone: Neutron was asked for it.
    pub(crate) fn lacks_port(&self, id: &PortId) -> bool {
        let is_there = self.observed.asked_ports.get(id);
        self.known(is_there, || Need::Port(id.clone())) == Some(&false)
    }

    /// All load balancers of the project.
    pub(crate) fn all_listed(&self) -> &'a [LoadBalancer] {
        self.list(&self.observed.listed, Need::Balancers)
    }

    /// A load balancer on a port, beside the Service's `own`. Octavia makes several on one that is given, because it asks for the port's
    /// device alone (`check_port_in_use` in `octavia/common/validate.py`), and its address then leads to any of them.
    pub(crate) fn other_on(&self, port: &PortId, own: Option<&LoadBalancerId>) -> Option<&'a LoadBalancer> {
        let (gone, left_alone) = (&self.observed.gone, &self.observed.left_alone);
        let mut others = self.all_listed().iter().filter(|there| {
            let is_gone =
                there.provisioning_status == ProvisioningStatus::Deleted || gone.contains(&there.id);
            !is_gone && Some(&there.id) != own && !left_alone.contains(&there.id)
        });
        others.find(|there| there.vip_port_id.as_ref() == Some(port))
    }

    /// The subnets that the project sees.
    pub(crate) fn subnets(&self) -> &'a [Subnet] {
        self.list(&self.observed.subnets, Need::Subnets)
    }

    /// The floating IPs of the project.
    pub(crate) fn floating_ips(&self) -> &'a [FloatingIp] {
        self.list(&self.observed.floating_ips, Need::FloatingIps)
    }

    /// The networks that the project sees, or why they could not be listed.
    pub(crate) fn networks(&self) -> Result<&'a [Network], &'a str> {
        match self.known(self.observed.networks.as_ref(), || Need::Networks) {
            Some(Ok(list)) => Ok(list),
            Some(Err(why)) => Err(why),
            None => Ok(&[]),
        }
    }

    /// What Octavia can do; as long as that is not known, everything.
    pub(crate) fn features(&self) -> Features {
        let known = self.known(self.observed.features.as_ref(), || Need::Features);
        known.copied().unwrap_or(Features::of(Some((2, u32::MAX))))
    }

    /// What the store of keys says about a certificate.
    pub(crate) fn key(&self, key: &TlsKey) -> Option<&'a KeyAnswer> {
        let read = self.observed.key.as_ref().filter(|(asked, _)| asked == key);
        let known = self.known(read, || Need::Key(key.clone()));
        known.map(|(_, answer)| answer)
    }

    /// What a creation that was refused left behind, if one was.
    pub(crate) fn leaked(&self) -> Option<&'a Leaked> {
        let read = self.observed.leaked.as_ref();
        match self.memory.own.refused_creation {
            Some(_) => self.known(read, || Need::Leaked),
            None => read,
        }
    }

    /// The parts of a load balancer.
    pub(crate) fn parts(&self, of: &LoadBalancerId) -> Option<&'a Parts> {
        self.known(self.observed.parts.get(of), || Need::Parts(of.clone()))
    }

    /// The monitors of a load balancer, where they can be read.
    pub(crate) fn monitors(&self, parts: &'a Parts) -> Option<&'a BTreeMap<MonitorId, Monitor>> {
        let is_asked = parts.monitors.is_some() || parts.unread.monitors.is_some();
        if !is_asked {
            self.lack(Need::Monitors(parts.of.clone()));
        }
        parts.monitors.as_ref()
    }

    /// The security groups of the Service's name.
    pub(crate) fn groups(&self, identity: &Identity) -> &'a [SecurityGroup] {
        let name = || names::security_group(&identity.uid, &identity.service);
        let known = self.known(self.observed.groups.as_ref(), || Need::Groups(name()));
        known.map_or(&[], Vec::as_slice)
    }

    /// The security groups of Services of this name that the cluster had before, of which pools tell.
    pub(crate) fn former_groups(&self, identity: &Identity) -> &'a [SecurityGroup] {
        let pools = self.observed.parts.values().flat_map(|parts| &parts.pools);
        let uids = marks::former(identity, pools);
        let names: Vec<String> = uids
            .map(|uid| names::security_group(uid, &identity.service))
            .collect();
        let known = self.observed.former_groups.as_ref();
        let known = match names.is_empty() {
            true => known,
            false => self.known(known, || Need::FormerGroups(names)),
        };
        known.map_or(&[], Vec::as_slice)
    }

    /// Whether it is known what a load balancer is to the Service.
    pub(crate) fn knows_balancer(&self, id: &LoadBalancerId) -> bool {
        let is_known = self.observed.is_known(id);
        if !is_known {
            self.lack(Need::Balancer(id.clone()));
        }
        is_known
    }

    /// Whether the load balancers that the Service could mean are listed. Notes what else it takes to tell them apart: where the parts of
    /// one are read too, its marks cost no request, because the list of pools is one for both.
    pub(crate) fn is_listed(&self, identity: &Identity) -> bool {
        if self.observed.listed.is_none() {
            self.lack(Need::Balancers);
            return false;
        }
        if let Some(id) = &identity.annotated {
            self.knows_balancer(id);
        }
        let in_doubt = self.observed.balancers.iter().filter(|balancer| {
            marks::is_in_doubt(identity, balancer)
                && self.memory.own.created.as_ref() != Some(&balancer.id)
                && !self.observed.cleared.contains(&balancer.id)
        });
        let ids: Vec<LoadBalancerId> = in_doubt.map(|balancer| balancer.id.clone()).collect();
        if !ids.is_empty() {
            self.lack(Need::Marks(ids));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_and_was_not_read_is_named_once() {
        let (observed, memory) = (
            Observed {
                ports: Some(Arc::default()),
                ..Observed::default()
            },
            Memory::default(),
        );
        let view = View::new(&observed, &memory);
        assert!(view.ports().is_empty() && view.misses() == 0);
        assert!(view.subnets().is_empty() && view.subnets().is_empty() && view.parts(&"lb".into()).is_none());
        assert_eq!(view.misses(), 3);
        assert_eq!(view.lacking(), [Need::Subnets, Need::Parts("lb".into())]);
    }
}
