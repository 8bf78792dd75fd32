//! Virtual machines (`listVirtualMachines`, `listLoadBalancerRuleInstances`).

use serde::Deserialize;

use super::{NetworkId, ProjectId, VirtualMachineId, VmState};
use crate::paging::Listed;
use crate::sign::Parameters;

/// A virtual machine.
///
/// The server also tells a `hostname`, which is the hypervisor's and of no use here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct VirtualMachine {
    /// Its id.
    pub id: VirtualMachineId,
    /// Its name, which is the host name of the guest. Not the display name.
    #[serde(default, deserialize_with = "super::or_default")]
    pub name: String,
    /// The project that it belongs to, if it does to one.
    #[serde(default, rename = "projectid", deserialize_with = "super::id_or_none")]
    pub project_id: Option<ProjectId>,
    /// Its state.
    #[serde(default, deserialize_with = "super::or_default")]
    pub state: VmState,
    /// That zone's name.
    #[serde(default, rename = "zonename", deserialize_with = "super::or_default")]
    pub zone_name: String,
    /// The name of its compute offering.
    #[serde(
        default,
        rename = "serviceofferingname",
        deserialize_with = "super::or_default"
    )]
    pub offering: String,
    /// The address that leads to it alone (static NAT).
    #[serde(default, rename = "publicip", deserialize_with = "super::text_or_none")]
    pub public_ip: Option<String>,
    /// Its network interfaces, in the server's order: see [`VirtualMachine::default_nic`].
    #[serde(default, rename = "nic", deserialize_with = "super::list")]
    pub nics: Vec<Nic>,
}

/// A network interface of a virtual machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Nic {
    /// The network that it is in.
    #[serde(default, rename = "networkid", deserialize_with = "super::id_or_none")]
    pub network_id: Option<NetworkId>,
    /// Its IPv4 address.
    #[serde(default, rename = "ipaddress", deserialize_with = "super::text_or_none")]
    pub ip_address: Option<String>,
    /// Its IPv6 address.
    #[serde(default, rename = "ip6address", deserialize_with = "super::text_or_none")]
    pub ip6_address: Option<String>,
    /// Whether it leads to the default gateway.
    #[serde(default, rename = "isdefault", deserialize_with = "super::yes")]
    pub is_default: bool,
}

impl VirtualMachine {
    /// The interface that leads to the default gateway, else the first.
    pub fn default_nic(&self) -> Option<&Nic> {
        self.nics.iter().find(|nic| nic.is_default).or(self.nics.first())
    }
}

/// A virtual machine as a member of a load balancer rule.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Member(pub(crate) VirtualMachine);

impl Listed for Member {
    const KEY: &'static str = "loadbalancerruleinstance";

    fn id(&self) -> &str {
        self.0.id.as_str()
    }
}

/// How much of each virtual machine is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// All that the server shows.
    All,
    /// Id, name, state and zone, and the network interfaces.
    Networks,
}

/// Which virtual machines are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VirtualMachineQuery {
    /// All that the keys may see, and how much of each.
    All(Detail),
    /// Those of the account, or of the project, whose name has this in it, whatever the case. Compare again.
    Own(String),
}

impl VirtualMachineQuery {
    pub(crate) fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::default();
        match self {
            Self::All(detail) => {
                parameters.set("listall", "true");
                if *detail == Detail::Networks {
                    parameters.set("details", "min,nics");
                }
            }
            Self::Own(name) => parameters.set("name", name.as_str()),
        }
        parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The members that matter, and some that must not disturb, as 4.22 shows them.
    const INSTANCE: &str = r#"{"id":"0b6f6a52-93a1-4f6d-9d6a-5d3f0f2a7c11","name":"pool-a-7","displayname":"Pool A 7",
        "instancename":"i-2-31-VM","account":"team","state":"Running","zoneid":"z","zonename":"Zurich-1",
        "hostname":"kvm-host-12","serviceofferingname":"Medium 4c/8g","publicip":"198.51.100.20","cpunumber":4,
        "nic":[{"id":"n1","networkid":"6d0e","ipaddress":"172.20.0.5","isdefault":false},
               {"id":"n2","networkid":"77aa","ipaddress":"10.1.1.47","isdefault":true,"ip6address":"2001:db8::47"}],
        "securitygroup":[],"affinitygroup":[],"tags":[],"details":{"a":"b"}}"#;

    #[test]
    fn a_machine_is_read_and_its_default_interface_found() {
        let instance: VirtualMachine = serde_json::from_str(INSTANCE).unwrap();
        assert_eq!(instance.state, VmState::Running);
        assert_eq!(instance.offering, "Medium 4c/8g");
        assert_eq!(instance.public_ip.as_deref(), Some("198.51.100.20"));
        let nic = instance.default_nic().unwrap();
        assert_eq!(nic.ip_address.as_deref(), Some("10.1.1.47"));
        assert_eq!(nic.network_id, Some("77aa".into()));
    }

    #[test]
    fn only_the_id_is_needed() {
        let instance: VirtualMachine =
            serde_json::from_str(r#"{"id":"v","name":null,"state":"Dreaming","nic":null,"publicip":""}"#)
                .unwrap();
        assert_eq!(instance.state.as_str(), "Dreaming");
        assert_eq!((instance.default_nic(), &instance.public_ip), (None, &None));
    }
}
