//! The reads. Lists of the whole project are read once for all who ask together.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_cloud_provider::{CloudError, Node};
use bowline_cloudscale_client::{
    Client, FloatingIp, Listener, LoadBalancer, LoadBalancerId, Member, Monitor, Pool, PoolId, ServerId,
};
use futures::future::{FutureExt as _, TryFutureExt as _, join_all, try_join_all};
use futures::try_join;

use crate::load_balancer::evidence;
use crate::load_balancer::floating_ips::FloatingAddress;
use crate::load_balancer::intent::{Identity, Intent};
use crate::load_balancer::observe::{Memory, Observed, ObservedPool, assemble, sort_members};
use crate::nodes::servers::{self, ServerIndex, ServerReads};

/// How long a deletion may take to show before the reconcile fails and is tried again by the schedule.
const DELETION_LIMIT: Duration = Duration::from_secs(120);

/// How long a list of balancers or their parts waits for others who want it. Services are created and deleted in
/// groups, some milliseconds apart; without the wait, all but the first would wait for the second list.
const GATHER: Duration = Duration::from_millis(25);

/// A list of the project.
type Listing<T> = SharedRead<Result<Arc<T>, CloudError>>;

/// Reads from the API.
pub(crate) struct Reads {
    client: Client,
    servers: Arc<ServerReads>,
    balancers: Listing<Vec<LoadBalancer>>,
    pools: Listing<Vec<Pool>>,
    listeners: Listing<Vec<Listener>>,
    monitors: Listing<Vec<Monitor>>,
    floating_ips: Listing<Vec<FloatingIp>>,
}

impl Reads {
    pub(crate) fn new(client: &Client, servers: Arc<ServerReads>) -> Self {
        Self {
            servers,
            balancers: SharedRead::listing(GATHER, client, |client| async move {
                Ok(Arc::new(client.load_balancers().await?))
            }),
            pools: SharedRead::listing(GATHER, client, |client| async move {
                Ok(Arc::new(client.pools().await?))
            }),
            listeners: SharedRead::listing(GATHER, client, |client| async move {
                Ok(Arc::new(client.listeners().await?))
            }),
            monitors: SharedRead::listing(GATHER, client, |client| async move {
                Ok(Arc::new(client.monitors().await?))
            }),
            floating_ips: SharedRead::listing(GATHER, client, |client| async move {
                Ok(Arc::new(client.floating_ips().await?))
            }),
            client: client.clone(),
        }
    }

    /// All balancers of the project.
    pub(crate) async fn balancers(&self) -> Result<Arc<Vec<LoadBalancer>>, CloudError> {
        self.balancers.ask().await
    }

    /// One balancer; none if the API says that there is no such one.
    async fn balancer(&self, id: LoadBalancerId) -> Result<Option<LoadBalancer>, CloudError> {
        match self.client.load_balancer(id).await {
            Ok(balancer) => Ok(Some(balancer)),
            Err(error) if error.proves_absence() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Everything that the plan needs.
    pub(crate) async fn all(&self, intent: &Intent, memory: &mut Memory) -> Result<Observed, CloudError> {
        self.look(intent, Observed::default(), memory).await
    }

    /// What may be in doubt after writes that all were answered: the lists of the project. Members that were read before
    /// or come from answers are not read again, nor are servers.
    pub(crate) async fn after_writes(
        &self,
        intent: &Intent,
        seen: Observed,
        memory: &mut Memory,
    ) -> Result<Observed, CloudError> {
        let is_known = seen.pools_of.is_some() && seen.covers(intent);
        if intent.needs().is_some() && !is_known {
            return self.all(intent, memory).await;
        }
        self.look(intent, seen, memory).await
    }

    /// Reads what the plan needs, but for what holds of what was seen.
    async fn look(
        &self,
        intent: &Intent,
        seen: Observed,
        memory: &mut Memory,
    ) -> Result<Observed, CloudError> {
        let is_reshaped = memory.own.is_reshaped;
        memory.new_wait();
        memory.own.read_anew();
        let identity = intent.identity();
        let Some(needs) = intent.needs() else {
            let (balancers, gone) = self.candidates(identity, &seen.gone).await?;
            return Ok(Observed {
                balancers,
                gone,
                ..Observed::default()
            });
        };
        let ((mut balancers, gone), (servers, absent_servers), shape, floating_ips) = try_join!(
            self.candidates(identity, &seen.gone),
            async {
                match seen.pools_of {
                    Some(_) => Ok((Arc::clone(&seen.servers), seen.absent_servers.clone())),
                    None => self.servers_of(needs.nodes).await,
                }
            },
            async {
                match (seen.pools_of, identity.annotated) {
                    (Some(_), _) => self.shape(&seen, is_reshaped).await,
                    // Most likely there is a balancer if the Service names one, and most likely there is none if not.
                    (None, Some(_)) => self.parts().await.map(Shape::Read),
                    (None, None) => Ok(Shape::Unread),
                }
            },
            self.floating_ips_of(needs.floating_ips).map(Ok),
        )?;
        // A duplicate whose deletion was accepted may still show for a moment.
        balancers.retain(|balancer| !seen.gone.contains(&balancer.uuid));
        let mut observed = Observed {
            balancers,
            gone,
            servers,
            absent_servers,
            floating_ips,
            ..Observed::default()
        };
        let Some(balancer) = observed.balancer(identity).map(|balancer| balancer.uuid) else {
            return Ok(observed);
        };
        observed.pools_of = Some(balancer);
        let parts = match shape {
            Shape::AsSeen if seen.pools_of == Some(balancer) => {
                (observed.pools, observed.loose_listeners) = (seen.pools, seen.loose_listeners);
                return Ok(observed);
            }
            Shape::Read(parts) => parts,
            Shape::AsSeen | Shape::Unread => self.parts().await?,
        };
        let (pools, loose) = parts.assemble(balancer);
        observed.pools = self.with_members(pools, &seen.pools).await?;
        observed.loose_listeners = loose;
        Ok(observed)
    }

    /// The pools and what hangs on them, besides members. Where only members were written, a look at the pools shows
    /// whether the rest can still be as it was seen.
    async fn shape(&self, seen: &Observed, is_reshaped: bool) -> Result<Shape, CloudError> {
        if is_reshaped {
            return self.parts().await.map(Shape::Read);
        }
        let pools = self.listed_pools().await?;
        let now = pools
            .iter()
            .filter(|pool| Some(pool.load_balancer.uuid) == seen.pools_of)
            .count();
        let are_there = seen.pools.iter().all(|known| pools.contains(&known.pool));
        if are_there && now == seen.pools.len() {
            return Ok(Shape::AsSeen);
        }
        self.parts().await.map(Shape::Read)
    }

    /// Looks again at what is being waited for: balancers that change or go.
    pub(crate) async fn poll(
        &self,
        intent: &Intent,
        mut observed: Observed,
        memory: &mut Memory,
    ) -> Result<Observed, CloudError> {
        let identity = intent.identity();
        let is_busy = memory.own.busy.is_now;
        let waits_for: Vec<LoadBalancerId> = if observed.deleting.is_empty() {
            let may_be_ours = observed
                .balancers
                .iter()
                .filter(|balancer| evidence::is_candidate(identity, balancer));
            may_be_ours
                .filter(|balancer| super::is_changing(balancer) || is_busy)
                .map(|balancer| balancer.uuid)
                .collect()
        } else {
            observed.deleting.clone()
        };
        if waits_for.is_empty() || !observed.covers(intent) {
            return self.all(intent, memory).await;
        }
        memory.own.busy.is_now = false; // to be seen anew
        let answers = join_all(waits_for.iter().map(|id| self.balancer(*id))).await;
        for (id, answer) in waits_for.into_iter().zip(answers) {
            match answer? {
                Some(balancer) => {
                    if super::is_changing(&balancer) {
                        memory.own.busy.is_explained();
                    }
                    if let Some(known) = observed.balancers.iter_mut().find(|known| known.uuid == id) {
                        *known = balancer;
                    }
                }
                None if observed.deleting.contains(&id) => observed.is_gone(id),
                // It went away while it was waited for: nothing that was seen of it counts.
                None => return self.all(intent, memory).await,
            }
        }
        if let Some(id) = observed
            .deleting
            .first()
            .filter(|_| memory.waited() >= DELETION_LIMIT)
        {
            return Err(CloudError::transient(format!(
                "load balancer {id} is still there {} s after its deletion",
                memory.waited().as_secs()
            )));
        }
        Ok(observed)
    }

    /// The balancers that the Service could mean, and those that are known not to exist.
    async fn candidates(
        &self,
        identity: &Identity,
        known_gone: &[LoadBalancerId],
    ) -> Result<(Vec<LoadBalancer>, Vec<LoadBalancerId>), CloudError> {
        let unable = |error: CloudError| {
            error.context(format!("unable to get load balancer for {}", identity.service))
        };
        let all = self.balancers.ask().await.map_err(unable)?;
        let mut candidates: Vec<LoadBalancer> = all
            .iter()
            .filter(|balancer| evidence::is_candidate(identity, balancer))
            .cloned()
            .collect();
        drop(all); // the next read may take long
        let mut gone = known_gone.to_vec();
        let is_unknown = |id: &LoadBalancerId| {
            !known_gone.contains(id) && candidates.iter().all(|balancer| balancer.uuid != *id)
        };
        if let Some(id) = identity.annotated.filter(is_unknown) {
            match self.balancer(id).await.map_err(unable)? {
                Some(balancer) => candidates.push(balancer),
                None => gone.push(id),
            }
        }
        Ok((candidates, gone))
    }

    /// The listing of servers, and those of the nodes' servers that are proved not to exist.
    async fn servers_of(&self, nodes: &[Arc<Node>]) -> Result<(Arc<ServerIndex>, Vec<ServerId>), CloudError> {
        let index = self.servers.all().await?;
        let unproven: Vec<ServerId> = nodes
            .iter()
            .filter_map(|node| servers::unproven(&index, node, &[]))
            .collect();
        if unproven.is_empty() {
            return Ok((index, Vec::new()));
        }
        // A miss in a listing is no proof, and a member is removed on this word.
        let (absent, found) = self.servers.prove(unproven).await?;
        let index = if found.is_empty() {
            index
        } else {
            Arc::new(servers::index(index.iter().cloned().chain(found).collect()))
        };
        Ok((index, absent))
    }

    /// The floating IPs of the project. No call if none is wanted. That the list cannot be read is no error: members and all else follow
    /// without it.
    async fn floating_ips_of(
        &self,
        wanted: &[FloatingAddress],
    ) -> Option<Result<Arc<Vec<FloatingIp>>, String>> {
        if wanted.is_empty() {
            return None;
        }
        let listed = self.floating_ips.ask().await;
        Some(listed.map_err(|error| error.context("lbstate: failed to load floating ips").to_string()))
    }

    async fn parts(&self) -> Result<Parts, CloudError> {
        let (pools, listeners, monitors) = try_join!(
            self.listed_pools(),
            self.listeners
                .ask()
                .map_err(|error| error.context("lb state: failed to load listeners")),
            self.monitors
                .ask()
                .map_err(|error| error.context("lb state: failed to load monitors")),
        )?;
        Ok(Parts {
            pools,
            listeners,
            monitors,
        })
    }

    async fn listed_pools(&self) -> Result<Arc<Vec<Pool>>, CloudError> {
        let listed = self.pools.ask().await;
        listed.map_err(|error| error.context("lb state: failed to load pools"))
    }

    /// Reads the members of all pools but those that are known, side by side.
    async fn with_members(
        &self,
        pools: Vec<ObservedPool>,
        known: &[ObservedPool],
    ) -> Result<Vec<ObservedPool>, CloudError> {
        try_join_all(pools.into_iter().map(|mut pool| async {
            let id = pool.pool.uuid;
            pool.members = match known.iter().find(|known| known.pool.uuid == id) {
                Some(known) => known.members.clone(),
                None => self.members(id).await?,
            };
            Ok(pool)
        }))
        .await
    }

    async fn members(&self, pool: PoolId) -> Result<Vec<Member>, CloudError> {
        let mut members = self.client.members(pool).await.map_err(|error| {
            CloudError::from(error).context(format!("lbstate: failed to load members for {pool}"))
        })?;
        sort_members(&mut members);
        Ok(members)
    }
}

/// What is known of the pools.
enum Shape {
    /// Nothing yet.
    Unread,
    /// What was seen holds.
    AsSeen,
    /// It was read again.
    Read(Parts),
}

/// The lists that hold the parts of all balancers.
struct Parts {
    pools: Arc<Vec<Pool>>,
    listeners: Arc<Vec<Listener>>,
    monitors: Arc<Vec<Monitor>>,
}

impl Parts {
    /// Those of one balancer. The lists go, so that nobody who goes on reading holds those of the whole project meanwhile.
    fn assemble(self, balancer: LoadBalancerId) -> (Vec<ObservedPool>, Vec<Listener>) {
        assemble(balancer, &self.pools, &self.listeners, &self.monitors)
    }
}
