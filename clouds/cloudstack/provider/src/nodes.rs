//! Virtual machines as the instances of Nodes.
//!
//! What proves that a virtual machine is gone: the API says that it is destroyed; or it refuses the ID as one that nothing has; or it
//! answers with a list without it, which a wrong project looks like as well, so it counts only while the virtual machine of another Node
//! is listed. And each time a list of all virtual machines, to the server's own count and not empty, has none of the Node's name.

mod labels;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_cloud_provider::{
    AbsenceProof, AddressType, CloudError, FoundBy, InstanceAnswer, InstanceDirectory, InstanceMetadata,
    InstanceQuery, InstanceResult, InstanceState, Node, NodeAddress, PowerState, Purpose, Sought,
};
use bowline_cloudstack_client::{Lookup, Nic, VirtualMachine, VirtualMachineId, VmState};

use crate::config::NodeOptions;
use crate::messages::MACHINE_STATES;
use crate::provider_id::{self, Reference};
use crate::virtual_machines::{VirtualMachineIndex, VirtualMachines, is_going};

/// What of a Node becomes a label.
const ZONE: &str = "zone";
const REGION: &str = "region";
const INSTANCE_TYPE: &str = "instance type";

/// The virtual machines that the keys see.
pub(crate) struct Instances {
    virtual_machines: Arc<VirtualMachines>,
    options: NodeOptions,
    /// The names that cannot stand in a label and were told of, by what they are names of.
    said: Mutex<BTreeSet<(&'static str, String)>>,
    /// The IDs that Nodes of the cluster have, in lower case, as far as they were asked about and are listed. A list with one of
    /// them is the cluster's.
    of_nodes: Mutex<BTreeSet<String>>,
}

/// Why a virtual machine seems to be gone.
enum Gone {
    /// The API says that it is destroyed.
    Destroyed,
    /// The API refuses its ID.
    Unknown,
    /// The API answered with a list without it.
    Unlisted,
}

impl Instances {
    pub(crate) fn new(virtual_machines: Arc<VirtualMachines>, options: NodeOptions) -> Self {
        Self {
            virtual_machines,
            options,
            said: Mutex::default(),
            of_nodes: Mutex::default(),
        }
    }

    /// Asks for one virtual machine; the outer error says why it seems to be gone.
    async fn by_id(&self, query: &InstanceQuery, id: &VirtualMachineId) -> Result<InstanceResult, Gone> {
        match self.virtual_machines.by_id(id).await {
            Ok(Lookup::Found(instance)) if is_going(&instance) => Err(Gone::Destroyed),
            Ok(Lookup::Found(instance)) => Ok(self.present(query, &instance, FoundBy::Id)),
            Ok(Lookup::Unknown) => Err(Gone::Unknown),
            Ok(Lookup::Unlisted) => Err(Gone::Unlisted),
            Err(error) => Ok(Err(self.unable(query, error))),
        }
    }

    /// Whether a virtual machine that seems to be gone is, by a list that has none of the Node's name. The error says why that is
    /// not certain.
    fn judge(
        &self,
        node: &Node,
        id: &VirtualMachineId,
        gone: &Gone,
        listing: &VirtualMachineIndex,
    ) -> Result<String, String> {
        if let Some(flaw) = listing.flaw() {
            let reason = format!("the list of virtual machines {flaw}, which proves nothing about {id}");
            return Err(reason);
        }
        let said = match gone {
            Gone::Destroyed => return Ok(format!("the API says that virtual machine {id} is destroyed")),
            Gone::Unknown => "knows no",
            Gone::Unlisted if self.has_other(listing, id) => "does not list",
            Gone::Unlisted => {
                return Err(format!(
                    "the API does not list virtual machine {id}, nor that of any other node, which proves nothing: see whether keys and \
                     project are those of the cluster"
                ));
            }
        };
        let name = &node.name;
        Ok(format!(
            "the API {said} virtual machine {id}, and lists none of the name of node {name}"
        ))
    }

    /// Whether a list has the virtual machine of another Node.
    fn has_other(&self, listing: &VirtualMachineIndex, id: &VirtualMachineId) -> bool {
        let of_nodes = self.of_nodes();
        let mut others = of_nodes
            .iter()
            .filter(|other| !other.eq_ignore_ascii_case(id.as_str()));
        others.any(|other| listing.with_id(other).is_some())
    }

    fn of_nodes(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.of_nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer that the Node's name gives; `None` if no virtual machine has it.
    async fn by_name(&self, query: &InstanceQuery, listing: &VirtualMachineIndex) -> Option<InstanceResult> {
        let name = query.node.name.as_str();
        let several = match self.with_name(listing, name) {
            Ok(found) => return found.map(|instance| self.present(query, instance, FoundBy::Name)),
            Err(several) => several,
        };
        // Keys of an administrator see the virtual machines of all accounts. Those of their own go first.
        let host = name.split('.').next().unwrap_or_default();
        let own = match self.virtual_machines.own_named(host).await {
            Ok(own) => own,
            Err(error) => return Some(Err(self.unable(query, error))),
        };
        Some(match self.with_name(&own, name) {
            Ok(Some(instance)) => self.present(query, instance, FoundBy::Name),
            Ok(None) | Err(_) => Err(self.unable(query, several)),
        })
    }

    /// The answer by a list of all, and by what the API said before of the ID, if it was asked.
    async fn conclude(
        &self,
        query: &InstanceQuery,
        id: Option<&VirtualMachineId>,
        gone: Option<Gone>,
        listing: &VirtualMachineIndex,
    ) -> InstanceResult {
        if let Some(instance) = id.and_then(|id| self.with_id(listing, id)) {
            return self.present(query, instance, FoundBy::Id);
        }
        if let Some(answer) = self.by_name(query, listing).await {
            return answer;
        }
        if query.purpose != Purpose::Existence {
            return Err(self.not_found(query));
        }
        let Some(id) = id else {
            return nobody(&query.node, listing);
        };
        let is_listed = listing.with_id(id.as_str()).is_some();
        let gone = match gone.or(is_listed.then_some(Gone::Destroyed)) {
            Some(gone) => gone,
            // A miss in a list proves nothing: the virtual machine itself is asked for.
            None => match self.by_id(query, id).await {
                Ok(answer) => return answer,
                Err(gone) => gone,
            },
        };
        match self.judge(&query.node, id, &gone, listing) {
            Ok(evidence) => Ok(absent(evidence)),
            Err(reason) => Err(CloudError::not_found(format!(
                "instance not found: {reason}. If the instance of node {} is gone, delete the node by hand",
                query.node.name
            ))),
        }
    }

    /// A name as the value of a label; told once if it had to be changed, because Nodes with it are not found by it.
    fn label(&self, what: &'static str, name: &str) -> String {
        let value = labels::value(name);
        if value != name && self.said().insert((what, name.to_owned())) {
            tracing::warn!(
                what,
                name,
                label = value,
                "The name cannot be a label, changed it"
            );
        }
        value
    }

    /// Forgets the names that no virtual machine has any more.
    fn forget_labels(&self, listing: &VirtualMachineIndex) {
        let of_instances = listing
            .iter()
            .flat_map(|instance| [(ZONE, &instance.zone_name), (INSTANCE_TYPE, &instance.offering)]);
        let region = self.options.region.iter().map(|region| (REGION, region));
        let names: BTreeSet<_> = of_instances.chain(region).collect();
        self.said().retain(|(what, name)| names.contains(&(*what, name)));
    }

    fn said(&self) -> MutexGuard<'_, BTreeSet<(&'static str, String)>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InstanceDirectory for Instances {
    type Id = VirtualMachineId;
    type Item = VirtualMachine;
    type Listing = VirtualMachineIndex;

    fn sought(&self, query: &InstanceQuery) -> Result<Sought<VirtualMachineId>, CloudError> {
        let node = &*query.node;
        match node.provider_id.as_deref().map(provider_id::parse) {
            Some(Reference::Instance(id)) => {
                self.of_nodes().insert(id.to_ascii_lowercase());
                Ok(Sought::Id(id.into()))
            }
            Some(Reference::Foreign) => Ok(Sought::Foreign),
            None | Some(Reference::Unreadable) if node.name.as_str().is_empty() => {
                Err(CloudError::invalid("node name cannot be empty"))
            }
            None | Some(Reference::Unreadable) => Ok(Sought::Name),
        }
    }

    async fn list(&self) -> Result<Arc<VirtualMachineIndex>, CloudError> {
        let listing = self.virtual_machines.all().await?;
        if listing.flaw().is_none() {
            self.of_nodes().retain(|id| listing.with_id(id).is_some());
            self.forget_labels(&listing);
        }
        Ok(listing)
    }

    /// If the virtual machine is gone, there must be none of the Node's name either.
    async fn ask(&self, query: &InstanceQuery, id: &VirtualMachineId) -> InstanceResult {
        let gone = match self.by_id(query, id).await {
            Ok(answer) => return answer,
            Err(gone) => gone,
        };
        let listing = self.virtual_machines.all().await;
        let listing = listing.map_err(|error| self.unable(query, error))?;
        self.conclude(query, Some(id), Some(gone), &listing).await
    }

    fn with_id<'a>(
        &self,
        listing: &'a VirtualMachineIndex,
        id: &VirtualMachineId,
    ) -> Option<&'a VirtualMachine> {
        listing
            .with_id(id.as_str())
            .filter(|instance| !is_going(instance))
    }

    fn named<'a>(
        &self,
        listing: &'a VirtualMachineIndex,
        name: &str,
    ) -> Result<Vec<&'a VirtualMachine>, CloudError> {
        Ok(listing.with_name(name))
    }

    fn names(&self, listing: &VirtualMachineIndex) -> Vec<String> {
        listing.iter().map(|it| it.name.clone()).collect()
    }

    fn id_of(&self, instance: &VirtualMachine) -> String {
        instance.id.to_string()
    }

    async fn look_up(
        &self,
        query: &InstanceQuery,
        id: Option<&VirtualMachineId>,
        listing: &VirtualMachineIndex,
    ) -> InstanceResult {
        self.conclude(query, id, None, listing).await
    }

    fn metadata(&self, _: &Node, instance: &VirtualMachine) -> Result<InstanceMetadata, CloudError> {
        if self.options.leaseweb {
            return Ok(InstanceMetadata {
                provider_id: Some(provider_id::format_leaseweb(&instance.id)),
                instance_type: labels::leaseweb(&instance.offering),
                zone: labels::leaseweb(&instance.zone_name),
                region: labels::leaseweb(self.options.region.as_deref().unwrap_or_default()),
                addresses: addresses(instance, self.options.ipv6_addresses)?,
                ..InstanceMetadata::default()
            });
        }
        let zone = self.label(ZONE, &instance.zone_name);
        let region = match &self.options.region {
            Some(region) => self.label(REGION, region),
            None => zone.clone(),
        };
        Ok(InstanceMetadata {
            provider_id: Some(provider_id::format(&instance.id)),
            instance_type: if self.options.full_instance_types {
                self.label(INSTANCE_TYPE, &instance.offering)
            } else {
                labels::instance_type(&instance.offering)
            },
            zone,
            region,
            addresses: addresses(instance, self.options.ipv6_addresses)?,
            ..InstanceMetadata::default()
        })
    }

    fn power(&self, instance: &VirtualMachine) -> PowerState {
        match instance.state {
            VmState::Stopped | VmState::Shutdown => PowerState::Off,
            _ => PowerState::On,
        }
    }

    fn state(&self, instance: &VirtualMachine) -> InstanceState {
        InstanceState::new(instance.state.to_string(), "Running", MACHINE_STATES)
    }

    fn not_found(&self, query: &InstanceQuery) -> CloudError {
        CloudError::not_found(format!(
            "instance not found: no virtual machine belongs to node {}",
            query.node.name
        ))
    }

    fn unable(&self, query: &InstanceQuery, error: CloudError) -> CloudError {
        error.context(match query.purpose {
            Purpose::Metadata => "error retrieving instance ID",
            Purpose::Existence | Purpose::CredentialCheck => "error retrieving instance",
        })
    }
}

/// The answer about a Node whose name no virtual machine of a whole list has.
fn nobody(node: &Node, listing: &VirtualMachineIndex) -> InstanceResult {
    match &node.provider_id {
        Some(id) => Err(CloudError::invalid(format!(
            "instance not found: no virtual machine has the name of node {}, but its providerID `{id}` does not say \
             which one it was, so this proves nothing",
            node.name
        ))),
        None => match listing.flaw() {
            Some(flaw) => Err(CloudError::not_found(format!(
                "instance not found: the list of virtual machines {flaw}, which proves nothing about node {}",
                node.name
            ))),
            None => Ok(absent(format!(
                "node {} has no providerID, and the API lists no virtual machine of its name",
                node.name
            ))),
        },
    }
}

fn absent(evidence: String) -> InstanceAnswer {
    InstanceAnswer::Absent(AbsenceProof::new(evidence))
}

/// The one internal address, which is that of the default interface, its IPv6 address if that is wanted, and the address that
/// leads to the virtual machine from outside.
///
/// The server's `hostname` is the hypervisor's; the kubelet knows the Node's.
fn addresses(instance: &VirtualMachine, with_ipv6: bool) -> Result<Vec<NodeAddress>, CloudError> {
    let of_nic = |nic: &Nic| address(instance, nic.ip_address.as_deref()?);
    let default = instance.default_nic();
    let Some(internal) = default.into_iter().chain(&instance.nics).find_map(of_nic) else {
        return Err(CloudError::other(format!(
            "error retrieving node addresses: instance does not have an internal IP: none of the interfaces of \
             virtual machine {} has an IPv4 address",
            instance.id
        )));
    };
    let ipv6 = default.filter(|_| with_ipv6);
    let ipv6 = ipv6.and_then(|nic| address(instance, nic.ip6_address.as_deref()?));
    let external = instance.public_ip.as_deref();
    let external = external.and_then(|text| address(instance, text));
    let kinds = [
        (AddressType::InternalIp, Some(internal)),
        (AddressType::InternalIp, ipv6),
        (AddressType::ExternalIp, external),
    ];
    let addresses = kinds.into_iter();
    Ok(addresses
        .filter_map(|(kind, text)| Some(NodeAddress::new(kind, text?)))
        .collect())
}

fn address(instance: &VirtualMachine, text: &str) -> Option<String> {
    let is_address = text.parse::<IpAddr>().is_ok();
    if !is_address {
        tracing::warn!(instance = %instance.id, address = text, "Not an IP address, left out");
    }
    is_address.then(|| text.to_owned())
}
