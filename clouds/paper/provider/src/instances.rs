//! Machines as the instances of Nodes.

use std::net::IpAddr;
use std::sync::Arc;

use bowline_cloud_provider::{
    AddressType, CloudError, InstanceDirectory, InstanceMetadata, InstanceQuery, InstanceResult,
    InstanceState, Node, NodeAddress, PowerState, Purpose, Sought,
};
use bowline_paper_client::{Client, Machine, MachineId, Power};

use crate::observe::{Machines, Reads};
use crate::provider_id::{self, ProviderIdError};

/// The machines of the project.
pub(crate) struct Instances {
    pub(crate) client: Client,
    pub(crate) reads: Arc<Reads>,
}

impl InstanceDirectory for Instances {
    // guide: sought
    type Id = MachineId;
    type Item = Machine;
    type Listing = Machines;

    fn sought(&self, query: &InstanceQuery) -> Result<Sought<MachineId>, CloudError> {
        let id = query.node.provider_id.as_deref().map(provider_id::parse);
        let unable = |error| Err(self.unable(query, error));
        match id {
            Some(Ok(id)) => Ok(Sought::Id(id)),
            Some(Err(ProviderIdError::Foreign(_))) => Ok(Sought::Foreign),
            Some(Err(error)) => unable(CloudError::invalid(error.to_string())),
            // A name is too weak to delete a Node on.
            None if query.purpose == Purpose::Existence => unable(CloudError::other("it has no provider ID")),
            None => Ok(Sought::Name),
        }
    }
    // guide: end

    // guide: listing
    async fn list(&self) -> Result<Arc<Machines>, CloudError> {
        self.reads.machines().await
    }

    fn with_id<'a>(&self, machines: &'a Machines, id: &MachineId) -> Option<&'a Machine> {
        machines.with_id(id)
    }

    fn named<'a>(&self, machines: &'a Machines, name: &str) -> Result<Vec<&'a Machine>, CloudError> {
        Ok(machines.with_name(name))
    }

    fn names(&self, machines: &Machines) -> Vec<String> {
        machines.names()
    }

    fn id_of(&self, machine: &Machine) -> String {
        machine.id.to_string()
    }
    // guide: end

    // guide: proof
    /// Only the API's own 404 to this very id is proof; a miss in a listing is none, nor is any other failure.
    async fn ask(&self, query: &InstanceQuery, id: &MachineId) -> InstanceResult {
        match self.client.machine(id).await {
            Ok(machine) => self.answer(query, Ok(&machine)),
            Err(error) if error.proves_absence() => {
                self.answer(query, Err(format!("the API answered 404 to machine {id}")))
            }
            Err(error) => Err(self.unable(query, error.into())),
        }
    }
    // guide: end

    // guide: metadata
    fn metadata(&self, _: &Node, machine: &Machine) -> Result<InstanceMetadata, CloudError> {
        Ok(InstanceMetadata {
            provider_id: Some(provider_id::format(&machine.id)),
            instance_type: machine.kind.clone(),
            zone: machine.zone.clone(),
            region: machine.region.clone(),
            addresses: node_addresses(&machine.name, &machine.private, &machine.public),
            ..InstanceMetadata::default()
        })
    }

    fn power(&self, machine: &Machine) -> PowerState {
        match machine.power {
            Power::Off => PowerState::Off,
            // On its way somewhere is not off: an off machine's Node is tainted.
            Power::On | Power::Other(_) => PowerState::On,
        }
    }

    fn state(&self, machine: &Machine) -> InstanceState {
        let word = match &machine.power {
            Power::On => "on",
            Power::Off => "off",
            Power::Other(word) => word,
        };
        InstanceState::new(word, "on", &[])
    }
    // guide: end

    fn not_found(&self, query: &InstanceQuery) -> CloudError {
        self.unable(query, CloudError::not_found("there is none"))
    }

    fn unable(&self, query: &InstanceQuery, error: CloudError) -> CloudError {
        error.context(format!("cannot tell the machine of node {}", query.node.name))
    }
}

/// A machine's addresses in the words of a Node: host name, private ones, public ones.
pub(crate) fn node_addresses<'a>(
    name: &str,
    private: impl IntoIterator<Item = &'a IpAddr>,
    public: impl IntoIterator<Item = &'a IpAddr>,
) -> Vec<NodeAddress> {
    let private = private
        .into_iter()
        .map(|ip| NodeAddress::new(AddressType::InternalIp, ip.to_string()));
    let public = public
        .into_iter()
        .map(|ip| NodeAddress::new(AddressType::ExternalIp, ip.to_string()));
    let hostname = NodeAddress::new(AddressType::Hostname, name);
    std::iter::once(hostname).chain(private).chain(public).collect()
}
