//! What a run goes by: the Services, and the blocks of the cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::orphans::Standing;
use bowline_cloud_provider::{Service, ServiceClasses, ServiceKey, facts};
use bowline_phoenixnap_client::IpBlock;

use crate::load_balancer::names::ClusterTags;
use crate::load_balancer::observe::busy::{Later, Move};
use crate::load_balancer::orphans::Evidence;
use crate::load_balancer::{blocks, evidence};

/// The cluster and its Services.
pub(crate) struct Intent {
    pub(super) cluster: ClusterTags,
    pub(super) services: BTreeMap<ServiceKey, Arc<Service>>,
    /// Which of them are served.
    pub(super) classes: ServiceClasses,
    /// What tells whose blocks are.
    pub(super) evidence: Evidence,
}

/// The cluster's blocks, and what could not be done with them in this run.
pub(crate) struct Observed {
    pub(super) blocks: Vec<IpBlock>,
    pub(super) failed: BTreeMap<String, String>,
    /// Those of which a write had no answer: they come last and alone, because the others would wait for them.
    pub(super) silent: BTreeSet<String>,
    /// Why the network makes no such move now.
    pub(super) busy: BTreeMap<Move, Later>,
    /// How long until the next look at what this process has on its way.
    pub(super) look: Option<Duration>,
    /// Blocks without their mark that this process began to give back; and whether the mark has to be sent again.
    pub(super) going: BTreeMap<String, bool>,
    /// The blocks that nobody's Service has, beyond doubt.
    pub(super) orphans: BTreeSet<String>,
    /// Services that show the address in their field, of which no list has had the block for a while.
    pub(super) unlisted: BTreeSet<(ServiceKey, IpAddr)>,
    /// Addresses that servers use in the public network, as far as it is known.
    pub(super) used: Vec<String>,
}

impl Intent {
    /// Whether a block looks like an orphan, or would but for a tag that marks nothing.
    pub(super) fn has_orphan(&self, block: &IpBlock) -> bool {
        let standing = self.evidence.found(block).standing;
        matches!(standing, Standing::Orphan | Standing::Persons)
    }

    /// The Service whose tags a block bears.
    fn service_of(&self, block: &IpBlock) -> Option<&Service> {
        let key = evidence::service_of(block)?;
        self.services.get(&key).map(|it| &**it)
    }

    /// Whether the Service whose tags a block bears sees to its release itself.
    pub(super) fn is_seen_to(&self, block: &IpBlock) -> bool {
        let service = self.service_of(block);
        service.is_some_and(|it| !self.classes.is_wanted(it) && facts::has_finalizer(it))
    }

    /// The Service that lives on an address of a block, and the address.
    pub(super) fn user_of(&self, block: &IpBlock) -> Option<(&ServiceKey, IpAddr)> {
        self.services.iter().find_map(|(key, service)| {
            let address = self.address_of(service)?;
            blocks::contains(block, address).then_some((key, address))
        })
    }

    /// Whether the Service whose tags a block bears lives on an address of it.
    pub(super) fn serves_its_service(&self, block: &IpBlock) -> bool {
        let service = self.service_of(block);
        let address = service.and_then(|service| self.address_of(service));
        address.is_some_and(|address| blocks::contains(block, address))
    }

    /// Whether a Service shows the address in its field, so that there was a block.
    pub(super) fn shows(&self, (key, address): &(&ServiceKey, IpAddr)) -> bool {
        let shown = self.services.get(key).map(|it| facts::published_addresses(it));
        shown.is_some_and(|shown| shown.contains(&address.to_string()))
    }

    /// The Services that show the address in their field, if none of the blocks has it.
    pub(super) fn without_block(&self, blocks: &[IpBlock]) -> impl Iterator<Item = (ServiceKey, IpAddr)> {
        let living = self.services.iter();
        let living = living.filter_map(|(key, service)| Some((key, self.address_of(service)?)));
        let has = |address| blocks.iter().any(|block| blocks::contains(block, address));
        living
            .filter(move |it| self.shows(it) && !has(it.1))
            .map(|(key, address)| (key.clone(), address))
    }

    /// The address in a Service's field, if the Service asks for a balancer.
    pub(super) fn address_of(&self, service: &Service) -> Option<IpAddr> {
        let field = service.spec.as_ref()?.load_balancer_ip.as_deref()?;
        let is_live = self.classes.is_wanted(service);
        is_live.then(|| field.trim().parse().ok()).flatten()
    }
}
