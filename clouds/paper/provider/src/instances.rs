//! Machines as the instances of Nodes.

use std::net::IpAddr;
use std::sync::Arc;

use bowline_cloud_provider::{
    AbsenceProof, AddressType, CloudError, Instance, InstanceAnswer, InstanceMetadata, InstanceQuery,
    InstanceResult, InstancesV2, Node, NodeAddress, PowerState, Purpose,
};
use bowline_paper_client::{Client, Machine, Power};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};

use crate::observe::{Machines, Reads};
use crate::provider_id::{self, ProviderIdError};

/// The machines of the project.
pub(crate) struct Instances {
    pub(crate) client: Client,
    pub(crate) reads: Arc<Reads>,
}

// guide: instances
impl InstancesV2 for Instances {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        async move {
            // One listing answers them all, however many Nodes there are; for Nodes of other clouds it costs no call.
            let machines = match queries.iter().all(|query| is_foreign(&query.node)) {
                true => Ok(Arc::default()),
                false => self.reads.machines().await,
            };
            join_all(queries.iter().map(|query| self.answer(query, &machines))).await
        }
        .boxed()
    }
}
// guide: end

impl Instances {
    // guide: answer
    async fn answer(
        &self,
        query: &InstanceQuery,
        machines: &Result<Arc<Machines>, CloudError>,
    ) -> InstanceResult {
        let node = &*query.node;
        if is_foreign(node) {
            return Ok(InstanceAnswer::Foreign);
        }
        let unable =
            |error: CloudError| error.context(format!("cannot tell the machine of node {}", node.name));
        // A failed listing says nothing about anybody: unknown, never absent.
        let machines = machines.as_ref().map_err(|error| unable(error.clone()))?;
        match machines.of(node) {
            // A name is too weak to delete a Node on.
            _ if query.purpose == Purpose::Existence && node.provider_id.is_none() => {
                Err(unable(CloudError::other("it has no provider ID")))
            }
            Ok(Some(machine)) => Ok(present(machine)),
            Ok(None) if query.purpose == Purpose::Existence => self.look_again(query).await.map_err(unable),
            Ok(None) => Err(unable(CloudError::not_found("there is none"))),
            Err(error) => Err(unable(CloudError::invalid(error.to_string()))),
        }
    }
    // guide: end

    // guide: proof
    /// Asks for one machine by its id. Only the API's own 404 to this very id is proof; a miss in a listing is none.
    async fn look_again(&self, query: &InstanceQuery) -> InstanceResult {
        let text = query.node.provider_id.as_deref().unwrap_or_default();
        let id = provider_id::parse(text).map_err(|error| CloudError::invalid(error.to_string()))?;
        match self.client.machine(&id).await {
            Ok(machine) => Ok(present(&machine)),
            Err(error) if error.proves_absence() => {
                let proof = format!("the API answered 404 to machine {id}");
                Ok(InstanceAnswer::Absent(AbsenceProof::new(proof)))
            }
            Err(error) => Err(error.into()),
        }
    }
    // guide: end
}

fn is_foreign(node: &Node) -> bool {
    let id = node.provider_id.as_deref().map(provider_id::parse);
    matches!(id, Some(Err(ProviderIdError::Foreign(_))))
}

fn present(machine: &Machine) -> InstanceAnswer {
    let metadata = InstanceMetadata {
        provider_id: Some(provider_id::format(&machine.id)),
        instance_type: machine.kind.clone(),
        zone: machine.zone.clone(),
        region: machine.region.clone(),
        addresses: node_addresses(&machine.name, &machine.private, &machine.public),
        ..InstanceMetadata::default()
    };
    let power = match machine.power {
        Power::Off => PowerState::Off,
        // On its way somewhere is not off: an off machine's Node is tainted.
        Power::On | Power::Other(_) => PowerState::On,
    };
    InstanceAnswer::Present(Box::new(Instance { metadata, power }))
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
