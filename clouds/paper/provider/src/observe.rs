//! What the cloud says. Listings are read once for all who ask at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_cloud_provider::{CloudError, Node};
use bowline_paper_client::{Balancer, Client, Machine, MachineId};
use futures::try_join;

use crate::intent::Intent;
use crate::provider_id::{self, ProviderIdError};

/// How long a listing of balancers waits for others who want it: Services come in groups, some milliseconds apart.
const GATHER: Duration = Duration::from_millis(25);

type Listing<T> = SharedRead<Result<Arc<T>, CloudError>>;

/// The reads that many share.
pub(crate) struct Reads {
    machines: Listing<Machines>,
    balancers: Listing<Vec<Balancer>>,
}

impl Reads {
    // guide: reads
    pub(crate) fn new(client: &Client) -> Self {
        let (of_machines, of_balancers) = (client.clone(), client.clone());
        Self {
            machines: SharedRead::new(Listing::<Machines>::INTERVAL, move || {
                let client = of_machines.clone();
                async move {
                    let machines = client.machines().await?;
                    Ok(Arc::new(Machines::new(machines)))
                }
            }),
            balancers: SharedRead::gathering(GATHER, Listing::<Machines>::INTERVAL, move || {
                let client = of_balancers.clone();
                async move { Ok(Arc::new(client.balancers().await?)) }
            }),
        }
    }
    // guide: end

    /// All machines of the project.
    pub(crate) async fn machines(&self) -> Result<Arc<Machines>, CloudError> {
        self.machines.ask().await
    }

    // guide: observe
    /// Everything that a plan needs.
    ///
    /// What is ours is told by its owner, which stands in the create call: a balancer whose creation was never answered
    /// is found here as well, and one that bears no mark or another one is not even seen.
    pub(crate) async fn all(&self, intent: &Intent) -> Result<Observed, CloudError> {
        let (machines, balancers) = match intent {
            Intent::Wanted(_) => try_join!(self.machines(), self.balancers.ask())?,
            Intent::Absent(_) => (Arc::default(), self.balancers.ask().await?),
        };
        let is_own = |balancer: &&Balancer| balancer.owner.as_ref() == Some(intent.owner());
        let mut own: Vec<Balancer> = balancers.iter().filter(is_own).cloned().collect();
        own.sort_by(|one, other| (&one.created_at, &one.id).cmp(&(&other.created_at, &other.id)));
        Ok(Observed {
            own,
            machines,
            looks: 0,
        })
    }
    // guide: end
}

/// What one reconcile sees.
pub(crate) struct Observed {
    /// The Service's balancers, oldest first: more than one if the answer to a creation was lost.
    pub(crate) own: Vec<Balancer>,
    /// The machines of the project.
    pub(crate) machines: Arc<Machines>,
    /// How often it was waited before.
    pub(crate) looks: u32,
}

/// One listing of the project's machines.
#[derive(Debug, Default)]
pub(crate) struct Machines {
    by_id: BTreeMap<MachineId, Machine>,
    by_name: BTreeMap<String, MachineId>,
}

impl Machines {
    fn new(machines: Vec<Machine>) -> Self {
        Self {
            by_name: machines
                .iter()
                .map(|machine| (machine.name.clone(), machine.id.clone()))
                .collect(),
            by_id: machines
                .into_iter()
                .map(|machine| (machine.id.clone(), machine))
                .collect(),
        }
    }

    pub(crate) fn with_id(&self, id: &MachineId) -> Option<&Machine> {
        self.by_id.get(id)
    }

    /// A Node's machine: by provider ID if it has one, whatever its name, else by name.
    pub(crate) fn of(&self, node: &Node) -> Result<Option<&Machine>, ProviderIdError> {
        self.behind(node.name.as_str(), node.provider_id.as_deref())
    }

    /// The same for the name of a Node and its provider ID.
    pub(crate) fn behind(&self, name: &str, id: Option<&str>) -> Result<Option<&Machine>, ProviderIdError> {
        match id {
            Some(text) => Ok(self.with_id(&provider_id::parse(text)?)),
            None => Ok(self.by_name.get(name).and_then(|id| self.with_id(id))),
        }
    }
}
