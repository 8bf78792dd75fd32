//! The reads. Lists of the whole project are read once for all who ask together.

mod again;
mod leaked;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_cloud_provider::CloudError;
use bowline_openstack_client::{
    ApiError, Class, Client, FloatingIp, Listener, LoadBalancer, LoadBalancerId, Monitor, MonitorId, Network,
    Pool, Port, PortFilter, Reference, SecurityGroup, Subnet,
};
use futures::FutureExt as _;
use futures::future::{ready, try_join_all};
use tokio::time::Instant;

use crate::load_balancer::evidence;
use crate::load_balancer::evidence::marks;
use crate::load_balancer::features::{self, Features};
use crate::load_balancer::intent::{Identity, Intent};
use crate::load_balancer::leaks::Leaks;
use crate::load_balancer::made_groups::MadeGroups;
use crate::load_balancer::memory::{Memory, Remembered};
use crate::load_balancer::observe::view::Need;
use crate::load_balancer::observed::{KeyAnswer, Observed, Parts, Told, Unread};
use crate::load_balancer::under_way::UnderWay;
use crate::load_balancer::vip_ports::{self, Known};

/// How long a list waits for others who want it: Services are created and deleted in groups, some milliseconds apart.
const GATHER: Duration = Duration::from_millis(25);

/// The same for the lists that a reconcile begins with, and for the look straight after a write: whoever shares it goes on in
/// step, and so shares all other lists too.
const GATHER_FIRST: Duration = Duration::from_millis(100);

/// The shortest time between two lists for those who wait. Where changes are known to take longer, so does this: then whoever
/// waits goes on in step with the others, and one list does for all.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long Octavia's version is believed: an upgrade shows without a restart.
const VERSION_LIFE: Duration = Duration::from_secs(3600);

/// More rounds than any plan needs, one leading to the other.
const MAX_ROUNDS: usize = 12;

/// A list of the project.
type Listing<T> = SharedRead<Result<Arc<Vec<T>>, CloudError>>;

/// Names what a plan lacks.
pub(crate) type Needs = fn(&Intent, &Observed, &Memory) -> Vec<Need>;

/// Reads from the APIs.
pub(crate) struct Reads {
    client: Client,
    needs: Needs,
    /// Octavia's newest version, and when it was read.
    version: Mutex<Option<(Instant, (u32, u32))>>,
    versions: SharedRead<Result<Option<(u32, u32)>, CloudError>>,
    balancers: Listing<LoadBalancer>,
    /// The same while Octavia is at work: whoever waits gets one list.
    polled: Listing<LoadBalancer>,
    /// The changes that this process made and Octavia is at work on.
    pub(crate) under_way: Arc<UnderWay>,
    /// The security groups that this process made and no list shows yet.
    pub(crate) made_groups: MadeGroups,
    /// What refused creations left behind. Without it, that would stay.
    pub(crate) leaks: Leaks,
    /// The ports of load balancers as they were listed first, and last: what comes after that may be left behind by a refused creation.
    vip_ports: Arc<Mutex<Option<(Known, Known)>>>,
    listeners: Listing<Listener>,
    pools: Listing<Pool>,
    /// `None` where Octavia has no such list.
    monitors: SharedRead<Result<Option<Arc<Vec<Monitor>>>, CloudError>>,
    ports: Listing<Port>,
    floating_ips: Listing<FloatingIp>,
    networks: Listing<Network>,
    subnets: Listing<Subnet>,
    groups: Listing<SecurityGroup>,
}

/// What a read adds to the observation.
type Answer = Box<dyn FnOnce(&mut Observed) + Send>;

/// Reads, and says what becomes of it.
async fn add<T: Send + 'static>(
    read: impl Future<Output = Result<T, CloudError>>,
    put: impl FnOnce(&mut Observed, T) + Send + 'static,
) -> Result<Answer, CloudError> {
    let read = read.await?;
    Ok(Box::new(move |observed| put(observed, read)))
}

/// The list of all that the project has of a kind. It waits for others for so long.
fn listing<T, F, R>(gather: Duration, client: &Client, read: F) -> Listing<T>
where
    T: Send + Sync + 'static,
    F: Fn(Client) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Vec<T>, ApiError>> + Send + 'static,
{
    SharedRead::listing(gather, client, move |client| {
        read(client).map(|read| read.map(Arc::new).map_err(CloudError::from))
    })
}

/// Octavia's newest version, where it tells any: a gateway may let nothing through but the calls of the API itself.
async fn newest_version(client: Client) -> Result<Option<(u32, u32)>, CloudError> {
    match client.load_balancer_versions().await {
        Ok(versions) => Ok(features::newest(&versions)),
        Err(error)
            if matches!(
                error.class,
                Class::NotFound | Class::Denied | Class::Invalid | Class::Unusable
            ) =>
        {
            tracing::warn!(err = %error, "Octavia does not list its versions, so nothing is asked of it that came after the first one");
            Ok(None)
        }
        // Octavia was not asked then, and nothing is made.
        Err(error) if error.is_of_login() => Err(error.into()),
        Err(error) => {
            tracing::warn!(err = %error, "Octavia's versions cannot be read: load balancers keep their parts, their members follow the Nodes, and new ones are made without what came after the first version; they are asked for again");
            Err(error.into())
        }
    }
}

async fn all_balancers(client: Client) -> Result<Arc<Vec<LoadBalancer>>, CloudError> {
    let all = client.load_balancers().await;
    all.map(Arc::new).map_err(CloudError::from)
}

/// All health monitors of the project. A service that speaks Octavia's API may know no list of them.
async fn all_monitors(client: Client) -> Result<Option<Arc<Vec<Monitor>>>, CloudError> {
    match client.monitors().await {
        Ok(all) => Ok(Some(Arc::new(all))),
        Err(error) if matches!(error.status(), Some(404 | 405)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Reads {
    pub(crate) fn new(client: &Client, needs: Needs) -> Self {
        let under_way = Arc::new(UnderWay::default());
        let changes = Arc::clone(&under_way);
        let pace = move || POLL_INTERVAL.max(changes.pause());
        let vip_ports: Arc<Mutex<Option<(Known, Known)>>> = Arc::default();
        let known = Arc::clone(&vip_ports);
        Self {
            version: Mutex::default(),
            versions: SharedRead::single(Duration::ZERO, client, newest_version),
            balancers: SharedRead::listing(GATHER_FIRST, client, all_balancers),
            polled: SharedRead::paced(GATHER, pace, client, all_balancers),
            under_way,
            made_groups: MadeGroups::default(),
            leaks: Leaks::default(),
            vip_ports,
            listeners: listing(GATHER, client, |client| async move { client.listeners().await }),
            pools: listing(GATHER, client, |client| async move { client.pools().await }),
            monitors: SharedRead::listing(GATHER, client, all_monitors),
            ports: listing(GATHER_FIRST, client, move |client| {
                let known = Arc::clone(&known);
                async move {
                    let ports = client.ports(&PortFilter::default()).await?;
                    let last = vip_ports::known(&ports);
                    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                    let first = known.as_ref().map_or(&last, |(first, _)| first);
                    *known = Some((Arc::clone(first), last));
                    Ok(ports)
                }
            }),
            floating_ips: listing(
                GATHER,
                client,
                |client| async move { client.floating_ips().await },
            ),
            networks: listing(GATHER, client, |client| async move { client.networks().await }),
            subnets: listing(
                GATHER_FIRST,
                client,
                |client| async move { client.subnets().await },
            ),
            groups: listing(
                GATHER,
                client,
                |client| async move { client.security_groups().await },
            ),
            client: client.clone(),
            needs,
        }
    }

    /// Everything that the plan needs.
    pub(crate) async fn all(&self, intent: &Intent, memory: &mut Memory) -> Result<Observed, CloudError> {
        memory.new_wait();
        (memory.own.is_unseen, memory.own.is_busy) = (false, false);
        memory.own.change_pause = self.under_way.pause();
        let known = self
            .vip_ports
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        (memory.own.first_ports, memory.own.ports_before) = known.unzip();
        let mut observed = Observed::default();
        self.complete(intent, &mut observed, memory).await?;
        Ok(observed)
    }

    /// Reads until the plan lacks nothing.
    async fn complete(
        &self,
        intent: &Intent,
        observed: &mut Observed,
        memory: &Memory,
    ) -> Result<(), CloudError> {
        for _ in 0..MAX_ROUNDS {
            let needs = (self.needs)(intent, observed, memory);
            if needs.is_empty() {
                return Ok(());
            }
            let seen = &*observed;
            let reads = needs
                .into_iter()
                .map(|need| self.read(intent.identity(), seen, &memory.own, need));
            for add in try_join_all(reads).await? {
                add(observed);
            }
        }
        Err(CloudError::other(
            "what has to be read for the load balancer has no end",
        ))
    }

    async fn read(
        &self,
        identity: &Identity,
        observed: &Observed,
        own: &Remembered,
        need: Need,
    ) -> Result<Answer, CloudError> {
        match need {
            Need::Balancers => {
                let put = |it: &mut Observed, (found, all)| (it.balancers, it.listed) = (found, Some(all));
                add(self.candidates(identity), put).await
            }
            Need::Balancer(id) => {
                let read = self.client.load_balancer(&id).await.map_err(|error| {
                    CloudError::from(error).context(format!("failed to get load balancer {id}"))
                });
                let put = move |it: &mut Observed, found| match found {
                    Some(balancer) => it.balancers.push(balancer),
                    None => it.is_gone(&id),
                };
                add(ready(read), put).await
            }
            Need::Unlisted(id) => {
                let read = self.client.load_balancer(&id).await.map_err(CloudError::from)?;
                let is_candidate = read
                    .as_ref()
                    .is_some_and(|it| evidence::is_candidate(identity, it));
                let put = move |it: &mut Observed, found| match found {
                    Some(balancer) => it.adopt(balancer, is_candidate),
                    None => it.is_gone(&id),
                };
                add(ready(Ok(read)), put).await
            }
            Need::Marks(ids) => {
                let put = |it: &mut Observed, told: Vec<_>| {
                    told.into_iter().for_each(|(id, told)| it.tell_apart(id, told));
                };
                add(self.marks(identity, observed, ids), put).await
            }
            Need::Features => {
                let read = self.features().await;
                add(ready(Ok(read)), |it, features| it.features = Some(features)).await
            }
            Need::Parts(id) => {
                let put = |it: &mut Observed, parts: Parts| _ = it.parts.insert(parts.of.clone(), parts);
                add(self.parts(observed, id), put).await
            }
            Need::Members(of, pools) => {
                let client = &self.client;
                let read = pools.into_iter().map(|pool| async move {
                    let members = told(client.members(&pool).await.map_err(CloudError::from))?;
                    Ok::<_, CloudError>((pool, members))
                });
                add(try_join_all(read), move |it, read| {
                    let Some(parts) = it.parts.get_mut(&of) else {
                        return;
                    };
                    for (pool, members) in read {
                        match members {
                            Ok(members) => _ = parts.members.insert(pool, members),
                            Err(why) => _ = parts.unread.members.insert(pool, why),
                        }
                    }
                })
                .await
            }
            Need::Monitors(of) => {
                let read = self.monitors_of(observed.parts.get(&of)).await;
                add(ready(told(read)), move |it, read| {
                    match (it.parts.get_mut(&of), read) {
                        (Some(parts), Ok(monitors)) => parts.monitors = Some(monitors),
                        (Some(parts), Err(why)) => parts.unread.monitors = Some(why),
                        (None, _) => {}
                    }
                })
                .await
            }
            Need::Ports => add(self.ports.ask(), |it, ports| it.ports = Some(ports)).await,
            Need::Port(id) => {
                let read = self.client.port(&id).await.map_err(CloudError::from);
                let put = move |it: &mut Observed, found: Option<Port>| {
                    it.asked_ports.insert(id, found.is_some());
                };
                add(ready(read), put).await
            }
            Need::Leaked => {
                let put = |it: &mut Observed, (leaked, ports)| {
                    (it.leaked, it.ports) = (Some(leaked), Some(ports));
                };
                add(self.leaked(own), put).await
            }
            Need::FloatingIps => {
                let read = self.floating_ips.ask().await.map(|listed| own.over(listed));
                add(ready(read), |it, listed| it.floating_ips = Some(listed)).await
            }
            Need::FloatingIp(address) => {
                let read = self.client.floating_ip_at(&address).await;
                let put = |it: &mut Observed, found| match found {
                    Some(found) => Arc::make_mut(it.floating_ips.get_or_insert_default()).push(found),
                    None => it.absent_addresses.push(address),
                };
                add(ready(read.map_err(CloudError::from)), put).await
            }
            Need::Networks => {
                let read = told(self.networks.ask().await);
                add(ready(read), |it, networks| it.networks = Some(networks)).await
            }
            Need::Subnets => add(self.subnets.ask(), |it, subnets| it.subnets = Some(subnets)).await,
            Need::Groups(name) => {
                let read = self.groups_of(&name);
                add(read, |it, groups| it.groups = Some(groups)).await
            }
            Need::FormerGroups(names) => {
                let named = self.groups.ask().await.map(|all| {
                    let named = all.iter().filter(|group| names.contains(&group.name));
                    named.cloned().collect()
                });
                add(ready(named), |it, groups| it.former_groups = Some(groups)).await
            }
            Need::Key(key) => {
                let told = match self.client.has_key(key.kind, &key.id).await {
                    Ok(true) => KeyAnswer::Present,
                    Ok(false) => KeyAnswer::Absent,
                    Err(error) if error.is_missing_service() => KeyAnswer::NoStore,
                    Err(error) => KeyAnswer::Unknown(error.to_string()),
                };
                add(ready(Ok((key, told))), |it, told| it.key = Some(told)).await
            }
        }
    }

    /// A list of all load balancers; also tells which changes have come to an end.
    async fn list_with(&self, list: &Listing<LoadBalancer>) -> Result<Arc<Vec<LoadBalancer>>, CloudError> {
        let asked = Instant::now();
        let all = list.ask().await?;
        self.under_way.listed(&all, asked);
        Ok(all)
    }

    /// The load balancers that the Service could mean, and all of the project.
    async fn candidates(
        &self,
        identity: &Identity,
    ) -> Result<(Vec<LoadBalancer>, Arc<Vec<LoadBalancer>>), CloudError> {
        let all = self.list_with(&self.balancers).await?;
        let candidates = all
            .iter()
            .filter(|balancer| evidence::is_candidate(identity, balancer));
        Ok((candidates.cloned().collect(), all))
    }

    /// Whose load balancers are, by their pools.
    async fn marks(
        &self,
        identity: &Identity,
        observed: &Observed,
        ids: Vec<LoadBalancerId>,
    ) -> Result<Vec<(LoadBalancerId, Told)>, CloudError> {
        let all = self.pools.ask().await?;
        let read = ids.into_iter().map(|id| {
            let pools: Vec<&Pool> = pools_of(observed, &id, &all).collect();
            if pools.is_empty() {
                // The load balancer says that it has some. One that nothing is known of is not taken.
                return Err(CloudError::transient(format!(
                    "whose load balancer {id} is cannot be told: Octavia's list of pools does not show those that it has"
                )));
            }
            let told = marks::told(identity, pools);
            Ok((id, told))
        });
        read.collect()
    }

    /// An answer that cannot be had keeps no Service from what takes no version.
    async fn features(&self) -> Features {
        let last = || self.version.lock().unwrap_or_else(PoisonError::into_inner);
        let mut known = *last();
        if known.is_none_or(|(read, _)| read.elapsed() >= VERSION_LIFE) {
            match self.versions.ask().await {
                Ok(Some(version)) => {
                    known = Some((Instant::now(), version));
                    *last() = known;
                }
                Err(_) if known.is_none() => return Features::unknown(),
                // An answer that names no version is believed for this once only, and if none was known before.
                Ok(None) | Err(_) => {}
            }
        }
        Features::of(known.map(|(_, version)| version))
    }

    async fn parts(&self, observed: &Observed, of: LoadBalancerId) -> Result<Parts, CloudError> {
        let (listeners, pools) = futures::try_join!(self.listeners.ask(), self.pools.ask())?;
        let balancer = observed.balancers.iter().find(|there| there.id == of);
        let named = balancer.map_or(&[][..], |there| &there.listeners);
        Ok(Parts {
            listeners: listeners
                .iter()
                .filter(|listener| is_of(&listener.loadbalancers, &of, named, &listener.id))
                .cloned()
                .collect(),
            pools: pools_of(observed, &of, &pools).cloned().collect(),
            members: BTreeMap::new(),
            monitors: None,
            unread: Unread::default(),
            is_predicted: false,
            of,
        })
    }

    /// All health monitors; where they are not listed, those of a load balancer's pools, one by one.
    async fn monitors_of(&self, parts: Option<&Parts>) -> Result<BTreeMap<MonitorId, Monitor>, CloudError> {
        let by_id = |one: &Monitor| (one.id.clone(), one.clone());
        if let Some(all) = self.monitors.ask().await? {
            return Ok(all.iter().map(by_id).collect());
        }
        let pools = parts.iter().flat_map(|parts| &parts.pools);
        let ids = pools.filter_map(|pool| pool.healthmonitor_id.as_ref());
        let found = try_join_all(ids.map(|id| self.client.monitor(id))).await?;
        Ok(found.iter().flatten().map(by_id).collect())
    }

    /// The security groups of exactly this name.
    async fn groups_of(&self, name: &str) -> Result<Vec<SecurityGroup>, CloudError> {
        let all = self.groups.ask().await?;
        let listed = all.iter().filter(|group| group.name == name).cloned().collect();
        Ok(self.made_groups.over(name, listed))
    }
}

/// What was read, or why it was not, where all else can go on without. A service that is asked too much is asked no more.
fn told<T>(read: Result<T, CloudError>) -> Result<Result<T, String>, CloudError> {
    match read {
        Err(error) if error.retry_after().is_some() => Err(error),
        read => Ok(read.map_err(|error| error.to_string())),
    }
}

/// Whether a part is of a load balancer: by its own word, or where it says nothing, by that of the load balancer, which has these.
fn is_of<Id: PartialEq>(
    owners: &[Reference<LoadBalancerId>],
    balancer: &LoadBalancerId,
    named: &[Reference<Id>],
    part: &Id,
) -> bool {
    match owners {
        [] => named.iter().any(|named| named.id == *part),
        owners => owners.iter().any(|owner| owner.id == *balancer),
    }
}

fn pools_of<'a>(
    observed: &'a Observed,
    of: &'a LoadBalancerId,
    all: &'a [Pool],
) -> impl Iterator<Item = &'a Pool> {
    let balancer = observed.balancers.iter().find(|there| there.id == *of);
    let named = balancer.map_or(&[][..], |there| &there.pools);
    all.iter()
        .filter(move |pool| is_of(&pool.loadbalancers, of, named, &pool.id))
}
