//! What the cloud says. Listings are read once for all who ask at the same time.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_cloud_provider::{CloudError, InstanceIndex};
use bowline_paper_client::{Balancer, Client, Machine, MachineId};
use futures::try_join;

use crate::intent::Intent;

/// How long a listing of balancers waits for others who want it: Services come in groups, some milliseconds apart.
const GATHER: Duration = Duration::from_millis(25);

type Listing<T> = SharedRead<Result<Arc<T>, CloudError>>;

/// One listing of the project's machines, found by id or by name.
pub(crate) type Machines = InstanceIndex<MachineId, Machine>;

/// The reads that many share.
pub(crate) struct Reads {
    machines: Listing<Machines>,
    balancers: Listing<Vec<Balancer>>,
}

impl Reads {
    // guide: reads
    pub(crate) fn new(client: &Client) -> Self {
        Self {
            machines: SharedRead::listing(Duration::ZERO, client, |client| async move {
                let (id, name) = (|it: &Machine| it.id.clone(), |it: &Machine| it.name.clone());
                Ok(Arc::new(Machines::new(client.machines().await?, id, name)))
            }),
            balancers: SharedRead::listing(GATHER, client, |client| async move {
                Ok(Arc::new(client.balancers().await?))
            }),
        }
    }
    // guide: end

    /// All machines of the project.
    pub(crate) async fn machines(&self) -> Result<Arc<Machines>, CloudError> {
        self.machines.ask().await
    }

    /// All balancers of the project.
    pub(crate) async fn balancers(&self) -> Result<Arc<Vec<Balancer>>, CloudError> {
        self.balancers.ask().await
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
        Ok(Observed { own, machines })
    }
    // guide: end
}

/// What one reconcile sees.
pub(crate) struct Observed {
    /// The Service's balancers, oldest first: more than one if the answer to a creation was lost.
    pub(crate) own: Vec<Balancer>,
    /// The machines of the project.
    pub(crate) machines: Arc<Machines>,
}
