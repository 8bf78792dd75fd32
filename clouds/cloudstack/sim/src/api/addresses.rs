//! Public addresses.

use super::{Answer, Call};
use crate::error::ApiError;
use crate::jobs::Effect;
use crate::model::{AddressState, Owner, PublicAddress};
use crate::wire;

/// The type of a public address in what is said about jobs.
const KIND: &str = "IpAddress";

impl Call<'_> {
    pub(super) fn list_addresses(&self) -> Answer {
        let scope = self.scope()?;
        let params = self.params;
        self.check_id("id", |id| self.state.addresses.contains_key(id))?;
        for name in ["associatednetworkid", "networkid"] {
            let exists =
                |id: &str| self.state.networks.contains_key(id) || id == self.state.home.public_network;
            self.check_id(name, exists)?;
        }
        self.check_id("vpcid", |id| self.state.vpcs.contains_key(id))?;
        let shows_free = params.flag("allocatedonly") == Some(false);
        let fits = |it: &&PublicAddress| {
            let is_visible = match &it.owner {
                Some(owner) => self.sees(&scope, owner),
                None => shows_free,
            };
            is_visible
                && self.fits("id", Some(&it.id))
                && self.fits("ipaddress", Some(&it.address.to_string()))
                && self.fits("associatednetworkid", it.network.as_deref())
                && self.fits("vpcid", it.vpc.as_deref())
                && self.fits("zoneid", Some(&it.zone))
                && self.passes("state", |state| it.state.name().eq_ignore_ascii_case(state))
                && params
                    .flag("issourcenat")
                    .is_none_or(|wanted| it.is_source_nat == wanted)
                && params
                    .flag("isstaticnat")
                    .is_none_or(|wanted| it.static_nat.is_some() == wanted)
                && self.fits_tags(&it.tags)
        };
        let found = self.state.addresses.values().filter(fits).collect();
        self.page("publicipaddress", found, |it| wire::address(self.state, it))
    }

    pub(super) fn associate_address(&mut self) -> Answer {
        let Place {
            zone,
            network,
            vpc,
            owner,
        } = self.place()?;
        self.permit(&owner, "the network of the address")?;
        let quota = self.state.behaviour.quota.addresses;
        if quota.is_some_and(|most| self.state.addresses_of(&owner) >= most) {
            return Err(ApiError::new(
                535,
                format!(
                    "Maximum number of resources of type 'public_ip' for account {} has been exceeded.",
                    self.caller.account
                ),
            ));
        }
        let id = match self.params.text("ipaddress") {
            Some(wanted) => {
                let mut all = self.state.addresses.values();
                let found = all.find(|it| it.address.to_string() == wanted && it.zone == zone);
                let found = found.filter(|it| it.state == AddressState::Free);
                found.map(|it| it.id.clone()).ok_or_else(|| {
                    ApiError::parameter(format!("The IP address {wanted} is not free or not in the zone."))
                })?
            }
            None => self.state.free_address(&zone).ok_or_else(|| {
                ApiError::new(
                    533,
                    format!("Insufficient address capacity: no public IP is free in zone {zone}"),
                )
            })?,
        };
        let lane = vpc.clone().or_else(|| network.clone());
        self.state.allocate(&id, owner, AddressState::Allocating);
        if let Some(address) = self.state.addresses.get_mut(&id) {
            (address.network, address.vpc) = (network, vpc);
        }
        self.accept(lane, Some((KIND, &id)), Effect::Associate(id.clone()))
    }

    /// Where an address is wanted: in a network that is no tier, or in a VPC.
    fn place(&self) -> Result<Place, ApiError> {
        let project = self.params.text("projectid");
        if let Some(id) = project.filter(|id| !self.state.projects.contains_key(*id)) {
            return Err(self.unknown("projectid", id));
        }
        let place = if let Some(id) = self.params.text("vpcid") {
            let vpc = self.known(&self.state.vpcs, "vpcid", id)?;
            Place {
                zone: vpc.zone.clone(),
                network: None,
                vpc: Some(vpc.id.clone()),
                owner: vpc.owner.clone(),
            }
        } else {
            let id = self.params.required("networkid")?;
            let network = self.known(&self.state.networks, "networkid", id)?;
            if network.vpc.is_some() {
                return Err(ApiError::parameter(
                    "Can't assign ip to the network directly when network belongs to VPC. Specify vpcId to associate \
                     ip address to VPC",
                ));
            }
            Place {
                zone: network.zone.clone(),
                network: Some(network.id.clone()),
                vpc: None,
                owner: network.owner.clone(),
            }
        };
        match project {
            Some(id) if place.owner != Owner::Project(id.to_owned()) => Err(ApiError::permission(
                &self.caller.account,
                "a network of another owner",
            )),
            _ => Ok(place),
        }
    }

    pub(super) fn disassociate_address(&mut self) -> Answer {
        let id = self.params.required("id")?;
        let address = self.known(&self.state.addresses, "id", id)?;
        let Some(owner) = &address.owner else {
            return Err(ApiError::parameter(format!(
                "IP address {} is not associated with any network.",
                address.address
            )));
        };
        self.permit(owner, &address.id)?;
        let has_rules = || self.state.rules.values().any(|rule| rule.address == *id);
        if self.state.behaviour.releases_refuse_rules && has_rules() {
            return Err(ApiError::parameter(format!(
                "IP address {} has load balancer rules.",
                address.address
            )));
        }
        let lane = address.vpc.clone().or_else(|| address.network.clone());
        self.accept(lane, Some((KIND, id)), Effect::Disassociate(id.to_owned()))
    }
}

struct Place {
    zone: String,
    network: Option<String>,
    vpc: Option<String>,
    owner: Owner,
}
