//! What a cloud says about itself to be played: the whole of what there is to write per cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Gate, Transport};
use bowline_cloud_kit::project::{self, Project};
use bowline_cloud_kit::{CloudService, Double, Entry};
use bowline_cloud_provider::{AddressType, CloudProvider, InstanceMetadata, NodeAddress};
use bowline_kit::scenario::Complaint;
use bowline_kube_api::KubeApi;
use futures::future::BoxFuture;
use http::Method;
use serde_json::Value;

/// A provider and the simulator of its cloud.
///
/// The simulator is filled and looked at through this, past its API, and what it tells is what the provider is held
/// to: an implementation reads the simulator's own model, never the provider's.
pub trait CloudUnderTest: Send + Sync + Sized + 'static {
    /// The value of `--cloud-provider`, which is also the scheme of provider IDs.
    const NAME: &'static str;

    /// Whether what costs money is claimed first, and waited for if it may be on its way: then nothing is tried again soon.
    const WAITS_FOR_CLAIMS: bool = false;

    /// The page of the cloud's manual, in `docs/clouds`. Only asked of clouds with [`Ability::Manual`].
    const MANUAL: &'static str = Self::NAME;

    /// What is particular about where it is played, where that is not the only place.
    const PLACE: Option<&'static str> = None;

    /// The longest delay that is kept when the API states one: some clouds' contracts bound it.
    const LONGEST_DELAY: Duration = Duration::MAX;

    /// Whether a call comes before all others, such as a login.
    const SIGNS_IN: bool = false;

    /// How many writes to the cloud make a route.
    const WRITES_OF_A_ROUTE: usize = 1;

    /// What the cloud and its provider can do. A scenario that needs more is listed as not applicable.
    const ABILITIES: &'static [Ability];

    /// The secret that the provider is given. It must appear nowhere.
    const SECRET: &'static str;

    /// An empty project that accepts [`SECRET`](Self::SECRET). The same seed gives the same ids.
    fn new(seed: u64) -> Self;

    /// The API, with its journal and its faults.
    fn service(&self) -> CloudService;

    /// The project as its owner sees it.
    fn project(&self) -> &dyn Project;

    /// The simulator as a runner of scenarios takes it, with its switches and objects, where scenarios of this cloud alone need that.
    fn double(&self) -> Option<&dyn Double> {
        None
    }

    /// Lets the credentials read only, where there are such.
    fn read_only(&self) {
        panic!("no credentials of this cloud read only");
    }

    /// Adds something of this cloud's own; its ID.
    ///
    /// # Errors
    ///
    /// If there is no such kind here.
    fn add(&self, kind: &str, _spec: Value) -> Result<String, Complaint> {
        Err(format!("no {kind} can be added"))
    }

    /// The provider as the program builds it, over the transport of the seat.
    fn provider(&self, seat: Seat) -> Arc<dyn CloudProvider>;

    /// Adds a running instance.
    fn add_instance(&self, instance: &Instance);

    /// Removes the instance of this name, as its owner does: from then on the API proves that it is gone.
    fn remove_instance(&self, name: &str) {
        assert!(self.project().delete_instance(name), "no instance {name}");
    }

    /// What the Node of each instance must show, by the instance's name.
    fn instances(&self) -> BTreeMap<String, InstanceMetadata> {
        let instances = self.project().instances().into_iter();
        instances.map(|it| (it.name.clone(), shown(it))).collect()
    }

    /// Starts or stops an instance. Only asked of clouds with [`Ability::PowerState`].
    fn set_power(&self, name: &str, is_on: bool) {
        assert!(self.project().switch_instance(name, is_on), "no instance {name}");
    }

    /// Gives an instance other addresses. Only asked of clouds with [`Ability::NewAddresses`].
    fn renumber(&self, _name: &str) {}

    /// Makes the credentials wrong, or good for another place; `None` makes them right again.
    fn deny(&self, denial: Option<Denial>);

    /// Everything that the provider made, without ids, times and addresses that the cloud chose: two histories that end
    /// the same give the same text.
    fn state(&self) -> String;

    /// What must never be and is, in words: duplicates, orphans, writes side by side where the cloud forbids them.
    fn violations(&self) -> Vec<String> {
        self.project().violations()
    }

    /// The load balancers that bear the mark of a Service, those left out that are being taken away.
    fn balancers(&self) -> Vec<Balancer> {
        Vec::new()
    }

    /// Deletes the balancer of a Service by hand, by the Service's [mark](Self::mark).
    fn lose_balancer(&self, _service: &str) {}

    /// From now on the cloud is as slow and as strict as it may be: asynchronous states, writes side by side refused.
    fn be_strict(&self) {}

    /// What people do by hand to what is ours, other than deleting a balancer, and what a check is to put right: says
    /// what it was, if there was anything to do it to. The number chooses.
    fn tamper(&self, _dice: usize) -> Option<String> {
        None
    }

    /// Turns a plain Service of type LoadBalancer into one that asks for this cloud's balancer.
    fn ask(&self, _service: &mut Value, _wish: Wish) {}

    /// Puts something of the owner's into the project, for a `YOUR_...` in an example of the manual, and answers what is written
    /// there: its address or ID.
    ///
    /// # Panics
    ///
    /// If no example of this cloud has the word.
    fn own(&self, word: &str) -> String {
        panic!("what is {word}?")
    }

    /// Puts an address of the owner's into the project, which Services may ask for. Only asked of clouds with
    /// [`Ability::ChosenAddresses`].
    fn own_address(&self) -> String {
        self.own("YOUR_FLOATING_IP")
    }

    /// Has a Service ask for this address, or for none any more. Only asked of clouds with [`Ability::ChosenAddresses`].
    fn choose_address(&self, service: &mut Value, address: Option<&str>) {
        service["spec"]["loadBalancerIP"] = address.into();
    }

    /// The [mark](Self::mark) of the Service whose balancer this address leads to.
    fn leads_to(&self, address: &str) -> Option<String> {
        let mut balancers = self.balancers().into_iter();
        let led = balancers.find(|it| it.addresses.iter().any(|its| its == address));
        led.map(|it| it.service)
    }

    /// All routes, as `destination -> instance`, whoever made them; the name of the instance, or anything else if there is
    /// none.
    fn routes(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// Whether a call lists the routes. One listing is one such call: of several pages, the first.
    fn lists_routes(&self, call: &Entry) -> bool {
        call.method == Method::GET && call.path.ends_with("/routes") && call.query.is_empty()
    }

    /// Adds a route that the provider did not make. Only asked of clouds with [`Ability::Routes`].
    fn add_stray_route(&self, _destination: &str, _stray: StrayRoute) {}

    /// From now on providers make routes that name addresses of their Node. Only asked of clouds with
    /// [`Ability::RoutesByAddress`], before a provider is built.
    fn route_by_address(&self) {}

    /// How the cloud names the owner of the balancer of a Service: as [`Balancer::service`] does. Most mark with the UID.
    fn mark(service: &Value) -> String {
        service["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether a call is made by the clock, whatever happens in the cluster, by work of the provider that belongs to no
    /// Service. Such calls are left out where calls are counted.
    fn is_by_the_clock(_call: &Entry) -> bool {
        false
    }

    /// Whether something that was made is still to be taken away by such work.
    fn is_at_work(&self) -> bool {
        false
    }

    /// The label of a step without what the cloud or the clock chooses, which nobody can predict. Most choose ids only.
    fn foreseen(label: &str) -> String {
        without_ids(label)
    }

    /// What else runs in a cluster of this cloud and has a part in its balancers, such as an announcer of addresses.
    fn companion(&self, _api: &KubeApi) -> Option<BoxFuture<'static, ()>> {
        None
    }
}

fn shown(instance: project::Instance) -> InstanceMetadata {
    let address = |(kind, address)| {
        let kind = match kind {
            "InternalIP" => AddressType::InternalIp,
            "ExternalIP" => AddressType::ExternalIp,
            _ => AddressType::Hostname,
        };
        NodeAddress::new(kind, address)
    };
    InstanceMetadata {
        provider_id: Some(instance.provider_id),
        instance_type: instance.instance_type,
        zone: instance.zone.unwrap_or_default(),
        region: instance.region,
        addresses: instance.addresses.into_iter().map(address).collect(),
        ..InstanceMetadata::default()
    }
}

/// What not every cloud can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ability {
    /// Services get load balancers.
    LoadBalancers,
    /// A balancer has parts that follow its Service's ports and annotations.
    ServiceParts,
    /// The Nodes are behind the balancers, each as `instance:node port`.
    BalancedNodes,
    /// A Node is behind the balancers whatever its kubelet says of its health.
    UnreadyNodes,
    /// A Node is behind the balancers while it is ready.
    ReadyNodesOnly,
    /// A balancer without Nodes has nothing behind it. Without it, the last ones stay.
    EmptyBalancers,
    /// A balancer that is lost is found missing by the periodic check.
    Repair,
    /// A Service may ask for an address that the owner has, and that another Service asked for before.
    ChosenAddresses,
    /// An address that a Service had from the cloud may be asked for by another one when it was given back.
    ReturnedAddresses,
    /// The cloud tells which instance is switched off.
    PowerState,
    /// An instance may get other addresses.
    NewAddresses,
    /// Credentials may be good and see none of the cluster's instances.
    OtherProjects,
    /// Nodes get routes to their pods.
    Routes,
    /// Routes may name addresses of their Node, and then follow them.
    RoutesByAddress,
    /// A manual has worked examples.
    Manual,
}

impl Ability {
    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let all = [
            Self::LoadBalancers,
            Self::ServiceParts,
            Self::BalancedNodes,
            Self::UnreadyNodes,
            Self::ReadyNodesOnly,
            Self::EmptyBalancers,
            Self::Repair,
            Self::ChosenAddresses,
            Self::ReturnedAddresses,
            Self::PowerState,
            Self::NewAddresses,
            Self::OtherProjects,
            Self::Routes,
            Self::RoutesByAddress,
            Self::Manual,
        ];
        all.into_iter().find(|it| format!("{it:?}") == name)
    }

    /// What is missing without it, as the list of tests says it.
    #[must_use]
    pub fn missing(self) -> &'static str {
        match self {
            Self::LoadBalancers => "no load balancers",
            Self::ServiceParts => "nothing of a balancer changes with its service",
            Self::BalancedNodes => "no nodes behind balancers",
            Self::UnreadyNodes => "nodes that are not ready are left out",
            Self::ReadyNodesOnly => "nodes need not be ready",
            Self::EmptyBalancers => "the last nodes stay behind balancers",
            Self::Repair => "no periodic check of balancers",
            Self::ChosenAddresses => "addresses do not move from one service to another",
            Self::ReturnedAddresses => "nobody chooses an address that was given back",
            Self::PowerState => "no power state",
            Self::NewAddresses => "addresses never change",
            Self::OtherProjects => "one project only",
            Self::Routes => "no routes",
            Self::RoutesByAddress => "routes name no addresses",
            Self::Manual => "no manual",
        }
    }
}

/// A route that the provider did not make. All but the last one bear the mark of the cluster `kubernetes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrayRoute {
    /// It has no instance.
    Nowhere,
    /// It has no instance any more, and the cloud says so.
    Blackhole,
    /// It is another cluster's.
    OfOthers,
}

/// An instance to be added. The cloud chooses type, zone and addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its name, which is its Node's.
    pub name: String,
    /// Whether it is to be of another type, in another zone if there is one, and with several addresses of a kind.
    pub is_special: bool,
}

impl Instance {
    /// An instance like most.
    #[must_use]
    pub fn plain(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            is_special: false,
        }
    }
}

/// What is wrong with the credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The API does not know them.
    Unknown,
    /// They are another project's, which is empty. Only asked of clouds with [`Ability::OtherProjects`].
    OtherProject,
}

/// How much a Service asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// No more than it takes to get a balancer.
    Plain,
    /// A balancer with parts of every kind that the cloud has.
    Rich,
    /// Something else than before in as many respects as can be changed. The ports have been changed already.
    Changed,
}

/// A load balancer as the cloud has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Balancer {
    /// The [mark](CloudUnderTest::mark) of its Service.
    pub service: String,
    /// Where it is reached.
    pub addresses: Vec<String>,
    /// What is behind each port, `instance:node port` by `TCP/80`. Left empty without [`Ability::BalancedNodes`].
    pub ports: BTreeMap<String, BTreeSet<String>>,
}

/// What one process builds its provider from.
pub struct Seat {
    /// The way to the API.
    pub transport: Transport,
    /// Open while the process leads.
    pub gate: Arc<dyn Gate>,
    /// Where jitter comes from.
    pub seed: u64,
    /// Where calls are counted.
    pub metrics: bowline_cloud_http::Metrics,
    /// Where a read is noted that has no answer for long.
    pub silences: bowline_cloud_http::Silences,
}

impl Seat {
    /// The HTTP stack, configured as the provider wants it.
    #[must_use]
    pub fn http(self, provider: &'static str, configure: impl FnOnce(&mut CloudHttpConfig)) -> CloudHttp {
        let mut config = CloudHttpConfig::new(provider, "bowline/conformance");
        configure(&mut config);
        config.seed = self.seed;
        config.gate = self.gate;
        config.metrics = self.metrics;
        config.silences = self.silences;
        CloudHttp::new(config, self.transport)
    }
}

/// A label without UUIDs.
pub fn without_ids(label: &str) -> String {
    let is_of_id = |it: char| it.is_ascii_hexdigit() || it == '-';
    let words = label.split_inclusive(|it| !is_of_id(it)).map(|word| {
        let id = word.trim_end_matches(|it| !is_of_id(it));
        match uuid::Uuid::parse_str(id) {
            Ok(_) => format!("[id]{}", &word[id.len()..]),
            Err(_) => word.to_owned(),
        }
    });
    words.collect()
}
