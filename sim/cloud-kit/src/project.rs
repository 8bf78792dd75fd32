//! A simulated project as its owner sees it, in the same words for every cloud: for what is played on several of them.

use std::net::{IpAddr, Ipv4Addr};

/// An instance, and what its Node has to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its name, which is the Node's name too.
    pub name: String,
    /// Whether it runs.
    pub is_on: bool,
    /// With the scheme of the cloud.
    pub provider_id: String,
    /// As the label has it.
    pub instance_type: String,
    /// `None` in a cloud without zones.
    pub zone: Option<String>,
    /// Where the zone lies.
    pub region: String,
    /// Type, as Nodes name it, and address, in the Node's order.
    pub addresses: Vec<(&'static str, String)>,
}

impl Instance {
    /// Its first address inside the project, where its workload listens.
    pub fn address(&self) -> IpAddr {
        let internal = self.addresses.iter().filter(|(kind, _)| *kind == "InternalIP");
        let mut addresses = internal.filter_map(|(_, address)| address.parse().ok());
        addresses.next().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }
}

/// What every simulator's handle lets the owner of the project do and see.
pub trait Project: Send + Sync {
    /// All instances in order of creation.
    fn instances(&self) -> Vec<Instance>;

    /// Starts or stops an instance; whether there is one of this name.
    fn switch_instance(&self, name: &str, is_on: bool) -> bool;

    /// Deletes an instance, so that the API proves from then on that it is gone; whether there was one of this name.
    fn delete_instance(&self, name: &str) -> bool;

    /// What must never be and is, in words; empty if all is well.
    fn violations(&self) -> Vec<String>;
}
