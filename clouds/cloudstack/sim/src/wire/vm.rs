//! A virtual machine, of which a caller may ask for parts only.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{object, owned, zone_name};
use crate::error::ApiError;
use crate::model::{Nic, VirtualMachine};
use crate::options::Role;
use crate::state::State;

/// The words of `details` that the server knows.
const WORDS: [&str; 14] = [
    "all", "group", "nics", "stats", "secgrp", "tmpl", "servoff", "diskoff", "backoff", "iso", "volume",
    "min", "affgrp", "vnfnics",
];

/// Which parts of virtual machines are shown, and to whom.
#[derive(Clone, Debug)]
pub(crate) struct Details {
    /// All of them, if empty.
    parts: BTreeSet<String>,
    role: Role,
}

impl Details {
    /// Everything.
    pub(crate) fn all(role: Role) -> Self {
        Self {
            parts: BTreeSet::new(),
            role,
        }
    }

    /// What a list of words asks for.
    pub(crate) fn parse(words: Option<Vec<&str>>, role: Role) -> Result<Self, ApiError> {
        let words = words.unwrap_or_default();
        if let Some(word) = words.iter().find(|it| !WORDS.contains(it)) {
            return Err(ApiError::parameter(format!(
                "The details parameter contains a non permitted value: {word}. The allowed values are: [{}]",
                WORDS.join(", ")
            )));
        }
        let mut parts: BTreeSet<String> = words.into_iter().map(str::to_owned).collect();
        if parts.contains("all") {
            parts.clear();
        }
        Ok(Self { parts, role })
    }

    fn has(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.contains(part)
    }
}

pub(crate) fn virtual_machine(state: &State, vm: &VirtualMachine, details: &Details) -> Value {
    let is_admin = details.role == Role::Admin;
    let public = state.addresses.values();
    let public = public
        .into_iter()
        .find(|it| it.static_nat.as_ref() == Some(&vm.id));
    let nics = || -> Vec<Value> { vm.nics.iter().map(|it| nic(state, it)).collect() };
    let offers = details.has("servoff");
    let value = json!({
        "id": vm.id,
        "name": vm.name,
        "displayname": vm.display_name,
        "state": vm.state.name(),
        "created": vm.created,
        "zoneid": vm.zone,
        "zonename": zone_name(state, &vm.zone),
        "hypervisor": "KVM",
        "haenable": false,
        "publicip": public.map(|it| it.address),
        "publicipid": public.map(|it| &it.id),
        "instancename": is_admin.then(|| format!("i-2-{}-VM", vm.number)),
        "hostname": is_admin.then_some(&vm.host),
        "serviceofferingname": offers.then_some(&vm.offering),
        "cpunumber": offers.then_some(4),
        "memory": offers.then_some(8192),
        "nic": details.has("nics").then(nics),
        "tags": [],
    });
    owned(state, Some(&vm.owner), object(value))
}

fn nic(state: &State, nic: &Nic) -> Value {
    let network = state.networks.get(&nic.network);
    object(json!({
        "id": nic.id,
        "networkid": nic.network,
        "networkname": network.map(|it| &it.name),
        "type": network.map(|it| &it.kind),
        "netmask": network.map(|it| it.cidr.netmask()),
        "gateway": network.and_then(|it| bowline_cloud_kit::addresses::first_host(it.cidr)),
        "ipaddress": nic.address,
        "ip6address": nic.ipv6,
        "isdefault": nic.is_default,
        "traffictype": "Guest",
    }))
}
