//! Network ACL lists of VPCs and their items.

use ipnet::IpNet;

use super::firewall::{EVERYBODY, named};
use super::{Answer, Call};
use crate::error::ApiError;
use crate::jobs::{AclChange, Effect};
use crate::model::{AclItem, AclList, Owner, RuleState};
use crate::wire;

const KIND: &str = "NetworkAclItem";
const PROTOCOLS: [&str; 4] = ["tcp", "udp", "icmp", "all"];

impl Call<'_> {
    pub(super) fn list_acl_lists(&self) -> Answer {
        let scope = self.scope()?;
        self.check_id("id", |id| self.state.acl_lists.contains_key(id))?;
        self.check_id("networkid", |id| self.state.networks.contains_key(id))?;
        let network = self.params.text("networkid");
        let of_network = network.map(|id| self.state.networks.get(id).and_then(|it| it.acl.as_deref()));
        let fits = |it: &&AclList| {
            let owner = self.owner_of_list(it);
            owner.is_none_or(|owner| self.sees(&scope, owner))
                && self.fits("id", Some(&it.id))
                && self.fits("name", Some(&it.name))
                && self.fits("vpcid", it.vpc.as_deref())
                && of_network.is_none_or(|acl| acl == Some(it.id.as_str()))
        };
        let found = self.state.acl_lists.values().filter(fits).collect();
        self.page("networkacllist", found, wire::acl_list)
    }

    /// Nobody owns the two lists that every zone has.
    fn owner_of_list(&self, list: &AclList) -> Option<&Owner> {
        let vpc = list.vpc.as_ref().and_then(|id| self.state.vpcs.get(id));
        vpc.map(|it| &it.owner)
    }

    pub(super) fn list_acl_items(&self) -> Answer {
        let scope = self.scope()?;
        let params = self.params;
        self.check_id("id", |id| self.state.acl_items.contains_key(id))?;
        self.check_id("aclid", |id| self.state.acl_lists.contains_key(id))?;
        self.check_id("networkid", |id| self.state.networks.contains_key(id))?;
        let network = params.text("networkid");
        let of_network = network.map(|id| self.state.networks.get(id).and_then(|it| it.acl.as_deref()));
        let fits = |it: &&AclItem| {
            let list = self.state.acl_lists.get(&it.list);
            let owner = list.and_then(|list| self.owner_of_list(list));
            owner.is_none_or(|owner| self.sees(&scope, owner))
                && self.fits("id", Some(&it.id))
                && self.fits("aclid", Some(&it.list))
                && of_network.is_none_or(|acl| acl == Some(it.list.as_str()))
                && self.passes("protocol", |wanted| it.protocol.eq_ignore_ascii_case(wanted))
                && self.passes("traffictype", |wanted| {
                    it.is_ingress == wanted.eq_ignore_ascii_case("ingress")
                })
                && self.passes("action", |wanted| {
                    it.is_allow == wanted.eq_ignore_ascii_case("allow")
                })
        };
        let mut found: Vec<&AclItem> = self.state.acl_items.values().filter(fits).collect();
        found.sort_by_key(|it| (&it.list, it.number));
        self.page("networkacl", found, |it| wire::acl_item(self.state, it))
    }

    pub(super) fn create_acl_item(&mut self) -> Answer {
        let params = self.params;
        let protocol = check_protocol(params.required("protocol")?)?;
        let list = match params.text("aclid") {
            Some(id) => id.to_owned(),
            None => {
                let id = params.required("networkid")?;
                let network = self.known(&self.state.networks, "networkid", id)?;
                network.acl.clone().ok_or_else(|| {
                    ApiError::parameter(format!("Network {id} is not part of a VPC and has no ACL list"))
                })?
            }
        };
        let lane = self.list_to_change("aclid", &list)?;
        let mut cidrs = named(params.list("cidrlist"));
        check_cidrs(&cidrs)?;
        if cidrs.is_empty() {
            cidrs.push(EVERYBODY.to_owned());
        }
        let number = match self.new_number(&list, None)? {
            Some(number) => number,
            None => self.items_of(&list).map(|it| it.number).max().unwrap_or(0) + 1,
        };
        let item = AclItem {
            id: self.state.id(),
            list,
            number,
            protocol,
            ports: self.ports()?,
            cidrs,
            is_allow: self.action()?.unwrap_or(true),
            is_ingress: self.traffic()?.unwrap_or(true),
            reason: params.text("reason").map(str::to_owned),
            state: RuleState::Add,
        };
        let id = item.id.clone();
        self.state.acl_items.insert(id.clone(), item);
        self.accept(lane, Some((KIND, &id)), Effect::CreateAcl(id.clone()))
    }

    pub(super) fn update_acl_item(&mut self) -> Answer {
        let params = self.params;
        let id = params.required("id")?;
        let item = self.known(&self.state.acl_items, "id", id)?;
        let list = item.list.clone();
        let lane = self.list_to_change("id", &list)?;
        let cidrs = params.list("cidrlist").map(|list| named(Some(list)));
        check_cidrs(cidrs.as_deref().unwrap_or_default())?;
        let change = AclChange {
            number: self.new_number(&list, Some(id))?,
            protocol: params.text("protocol").map(check_protocol).transpose()?,
            ports: self.ports()?,
            cidrs,
            is_allow: self.action()?,
            is_ingress: self.traffic()?,
            reason: params.text("reason").map(str::to_owned),
        };
        let item = id.to_owned();
        self.accept(lane, Some((KIND, id)), Effect::UpdateAcl { item, change })
    }

    pub(super) fn delete_acl_item(&mut self) -> Answer {
        let id = self.params.required("id")?;
        let item = self.known(&self.state.acl_items, "id", id)?;
        let lane = self.list_to_change("id", &item.list)?;
        self.accept(lane, Some((KIND, id)), Effect::DeleteAcl(id.to_owned()))
    }

    /// The lane of a list, which must be the caller's.
    fn list_to_change(&self, parameter: &str, list: &str) -> Result<Option<String>, ApiError> {
        let found = self.known(&self.state.acl_lists, parameter, list)?;
        if self.state.is_default_list(list) {
            return Err(ApiError::parameter(format!(
                "Default ACL {} cannot be modified",
                found.name
            )));
        }
        if let Some(owner) = self.owner_of_list(found) {
            self.permit(owner, list)?;
        }
        Ok(found.vpc.clone())
    }

    fn items_of(&self, list: &str) -> impl Iterator<Item = &AclItem> {
        self.state.acl_items.values().filter(move |it| it.list == list)
    }

    /// The number that is asked for, which no other item of the list may have.
    fn new_number(&self, list: &str, item: Option<&str>) -> Result<Option<u32>, ApiError> {
        let Some(number) = self.params.number::<u32>("number")? else {
            return Ok(None);
        };
        if number == 0 {
            return Err(ApiError::parameter("Invalid number. Number cannot be < 1"));
        }
        let mut items = self.items_of(list);
        if items.any(|it| it.number == number && Some(it.id.as_str()) != item) {
            return Err(ApiError::parameter(format!(
                "ACL item with number {number} already exists in ACL: {list}"
            )));
        }
        Ok(Some(number))
    }

    fn action(&self) -> Result<Option<bool>, ApiError> {
        let Some(word) = self.params.text("action") else {
            return Ok(None);
        };
        match word.to_lowercase().as_str() {
            "allow" => Ok(Some(true)),
            "deny" => Ok(Some(false)),
            _ => Err(ApiError::parameter(format!(
                "Invalid action [{word}]. Expected one of: [allow,deny]"
            ))),
        }
    }

    fn traffic(&self) -> Result<Option<bool>, ApiError> {
        let Some(word) = self.params.text("traffictype") else {
            return Ok(None);
        };
        match word.to_lowercase().as_str() {
            "ingress" => Ok(Some(true)),
            "egress" => Ok(Some(false)),
            _ => Err(ApiError::parameter(format!("Invalid traffic type {word}"))),
        }
    }
}

fn check_protocol(word: &str) -> Result<String, ApiError> {
    let lower = word.to_lowercase();
    if PROTOCOLS.contains(&lower.as_str()) || lower.parse::<u8>().is_ok() {
        Ok(lower)
    } else {
        Err(ApiError::parameter(format!(
            "Invalid protocol [{word}]. Expected one of: [tcp,udp,icmp,all]"
        )))
    }
}

fn check_cidrs(cidrs: &[String]) -> Result<(), ApiError> {
    match cidrs.iter().find(|it| it.parse::<IpNet>().is_err()) {
        Some(bad) => Err(ApiError::parameter(format!(
            "Source cidrs formatting error {bad}"
        ))),
        None => Ok(()),
    }
}
