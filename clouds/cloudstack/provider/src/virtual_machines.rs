//! The virtual machines that the keys see, found by ID or by name, and the networks that they are in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_cloud_provider::{CloudError, InstanceIndex};
use bowline_cloudstack_client::{
    Client, Counted, Detail, Lookup, Network, NetworkId, VirtualMachine, VirtualMachineId,
    VirtualMachineQuery, VmState,
};
use tokio::time::Instant;

/// How long a list that many want at a time waits for them: a new Node concerns all Services, which look at members of their own
/// before they need to know all virtual machines.
const GATHER: Duration = Duration::from_millis(50);

/// How long a tier of a VPC is remembered: another ACL list can be put on it.
const TIER_LIFE: Duration = Duration::from_secs(30);

/// How long any other network is remembered. Its services change with its offering only. One that offers no load balancing is
/// not remembered at all: people mend that while a Service waits for it.
const NETWORK_LIFE: Duration = Duration::from_secs(300);

/// The service of a network that is load balancing.
pub(crate) const LB: &str = "Lb";

type Listing<T> = SharedRead<Result<Arc<T>, CloudError>>;

/// One network; none if the API itself says that there is none with this ID.
type NetworkRead = SharedRead<Result<Option<Arc<Network>>, CloudError>>;

type Networks = BTreeMap<NetworkId, (Option<Known>, NetworkRead)>;

/// Reads virtual machines and networks. What several ask for at the same time is read once.
pub(crate) struct VirtualMachines {
    client: Client,
    /// Everything about every virtual machine.
    all: Listing<VirtualMachineIndex>,
    /// Of every virtual machine its name, state and network interfaces.
    members: Listing<MemberIndex>,
    /// Networks as they were a moment ago, and how each is read that is not known, or not any more.
    networks: Mutex<Networks>,
}

/// A network as it was a moment ago.
struct Known {
    network: Arc<Network>,
    /// When the read began.
    begun: Instant,
}

impl VirtualMachines {
    pub(crate) fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            all: listing(client, Detail::All, Duration::ZERO, VirtualMachineIndex::new),
            members: listing(client, Detail::Networks, GATHER, |listed| {
                member_index(listed.items.iter().filter_map(member))
            }),
            networks: Mutex::default(),
        }
    }

    /// Every virtual machine that the keys see, in the project, with everything about it: for the metadata of Nodes.
    pub(crate) async fn all(&self) -> Result<Arc<VirtualMachineIndex>, CloudError> {
        self.all.ask().await
    }

    /// Every virtual machine that the keys see, in the project, as a member of load balancer rules.
    pub(crate) async fn members(&self) -> Result<Arc<MemberIndex>, CloudError> {
        self.members.ask().await
    }

    /// What the API says about one virtual machine.
    pub(crate) async fn by_id(&self, id: &VirtualMachineId) -> Result<Lookup<VirtualMachine>, CloudError> {
        Ok(self.client.virtual_machine(id).await?)
    }

    /// The virtual machines of the account itself whose names hold this one. An administrator's keys see those of all accounts
    /// otherwise.
    pub(crate) async fn own_named(&self, name: &str) -> Result<VirtualMachineIndex, CloudError> {
        let query = VirtualMachineQuery::Own(name.to_owned());
        let listed = self.client.virtual_machines(&query).await?;
        Ok(VirtualMachineIndex::new(listed))
    }

    /// Whether to ask for a network costs no call.
    pub(crate) fn knows(&self, id: &NetworkId) -> bool {
        let networks = self.networks();
        let known = networks.get(id).and_then(|(known, _)| known.as_ref());
        known.is_some_and(Known::is_fresh)
    }

    /// One network, half a minute old at most if it is a tier; `None` if the API itself says that there is none with this ID. One
    /// read answers all who ask while it is under way: many Services begin together and have one network.
    pub(crate) async fn network(&self, id: &NetworkId) -> Result<Option<Arc<Network>>, CloudError> {
        let unread = || (None, self.reading(id));
        let read = match self.networks().entry(id.clone()).or_insert_with(unread) {
            (Some(known), _) if known.is_fresh() => return Ok(Some(Arc::clone(&known.network))),
            (_, read) => read.clone(),
        };
        let begun = Instant::now();
        let found = read.ask().await?;
        if let Some((known, _)) = self.networks().get_mut(id) {
            *known = found.clone().map(|network| Known { network, begun });
        }
        Ok(found)
    }

    fn reading(&self, id: &NetworkId) -> NetworkRead {
        let source = (self.client.clone(), id.clone());
        SharedRead::single(Duration::ZERO, &source, |(client, id)| async move {
            Ok(client.network(&id).await?.map(Arc::new))
        })
    }

    fn networks(&self) -> MutexGuard<'_, Networks> {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn is_fresh(&self) -> bool {
        let life = match self.network.vpc_id {
            Some(_) => TIER_LIFE,
            None => NETWORK_LIFE,
        };
        self.network.offers(LB) && self.begun.elapsed() < life
    }
}

fn listing<T: Send + Sync + 'static>(
    client: &Client,
    detail: Detail,
    gather: Duration,
    index: fn(Counted<VirtualMachine>) -> T,
) -> Listing<T> {
    SharedRead::listing(gather, client, move |client| async move {
        let query = VirtualMachineQuery::All(detail);
        Ok(Arc::new(index(client.virtual_machines(&query).await?)))
    })
}

/// A list of virtual machines.
#[derive(Debug)]
pub(crate) struct VirtualMachineIndex {
    /// By ID in lower case, and by name. Those that are on their way out have no name any more.
    instances: InstanceIndex<String, VirtualMachine>,
    /// Whether the server counted just as many.
    is_counted: bool,
}

impl VirtualMachineIndex {
    pub(crate) fn new(listed: Counted<VirtualMachine>) -> Self {
        let id = |instance: &VirtualMachine| instance.id.as_str().to_ascii_lowercase();
        let name = |instance: &VirtualMachine| match is_going(instance) {
            true => String::new(),
            false => instance.name.clone(),
        };
        Self {
            instances: InstanceIndex::new(listed.items, id, name),
            is_counted: listed.is_counted,
        }
    }

    /// Why nothing follows from what is not in it. Wrong keys or a wrong project see nothing at all.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        match (self.instances.is_empty(), self.is_counted) {
            (true, _) => Some("is empty"),
            (false, false) => Some("does not come to the server's own count"),
            (false, true) => None,
        }
    }

    /// All that are listed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &VirtualMachine> {
        self.instances.iter()
    }

    /// The virtual machine with this ID in any letter case, whatever its state.
    pub(crate) fn with_id(&self, id: &str) -> Option<&VirtualMachine> {
        self.instances.with_id(&id.to_ascii_lowercase())
    }

    /// The virtual machines of a Node by the Node's name. Several may be of several accounts or projects.
    pub(crate) fn with_name(&self, node: &str) -> Vec<&VirtualMachine> {
        of_node(&self.instances, node)
    }
}

/// The virtual machines of a Node by the Node's name: those of the whole name, else those of what is before its first dot.
pub(crate) fn of_node<'a, K: Ord, T>(instances: &'a InstanceIndex<K, T>, node: &str) -> Vec<&'a T> {
    match instances.with_name(node) {
        found if found.is_empty() => instances.with_name(node.split('.').next().unwrap_or_default()),
        found => found,
    }
}

/// A virtual machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) id: VirtualMachineId,
    pub(crate) name: String,
    /// The networks that it is in; the default one first.
    pub(crate) networks: Vec<NetworkId>,
}

/// The virtual machines that rules can lead to, by ID and by name.
pub(crate) type MemberIndex = InstanceIndex<VirtualMachineId, Instance>;

/// An index of what was listed.
pub(crate) fn member_index(instances: impl IntoIterator<Item = Instance>) -> MemberIndex {
    let id = |instance: &Instance| instance.id.clone();
    let name = |instance: &Instance| instance.name.clone();
    MemberIndex::new(instances.into_iter().collect(), id, name)
}

/// A virtual machine as a member of rules; `None` if it is on its way out: the API lists none of these among the members of a rule.
pub(crate) fn member(instance: &VirtualMachine) -> Option<Instance> {
    if matches!(
        instance.state,
        VmState::Destroyed | VmState::Expunging | VmState::Error | VmState::Unknown
    ) {
        return None;
    }
    let nics = instance.default_nic().into_iter().chain(&instance.nics);
    let mut networks = Vec::new();
    for id in nics.filter_map(|nic| nic.network_id.as_ref()) {
        if !networks.contains(id) {
            networks.push(id.clone());
        }
    }
    Some(Instance {
        id: instance.id.clone(),
        name: instance.name.clone(),
        networks,
    })
}

/// Whether a virtual machine is deleted. It can be recovered for a while, but no Node of it is to stay for that.
pub(crate) fn is_going(instance: &VirtualMachine) -> bool {
    matches!(instance.state, VmState::Destroyed | VmState::Expunging)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(instances: &[(&str, &str, &str)]) -> VirtualMachineIndex {
        let items = instances.iter().map(|(id, name, state)| {
            serde_json::from_value(serde_json::json!({ "id": id, "name": name, "state": state })).unwrap()
        });
        VirtualMachineIndex::new(Counted {
            items: items.collect(),
            is_counted: true,
        })
    }

    fn named(instances: &[(&str, &str, &str)], name: &str) -> String {
        let index = index(instances);
        let found = index.with_name(name);
        found
            .iter()
            .map(|instance| instance.id.as_str())
            .collect::<Vec<_>>()
            .join("+")
    }

    #[test]
    fn a_name_is_matched_whole_in_any_case_and_without_its_domain_then() {
        let instances = [
            ("1", "Pool-A-7", "Running"),
            ("2", "pool-a-7.corp.example", "Running"),
        ];
        assert_eq!(named(&instances, "pool-a-7"), "1");
        assert_eq!(named(&instances, "Pool-A-7.corp.example"), "2");
        assert_eq!(named(&instances[..1], "Pool-A-7.corp.example"), "1");
        for other in ["pool-a-70", "pool-a", "ool-a-7", "", ".corp.example"] {
            assert_eq!(named(&instances, other), "", "{other}");
        }
    }

    #[test]
    fn those_that_go_have_no_name_and_several_that_stay_are_told() {
        let instances = |second: &'static str| [("1", "db", "Running"), ("2", "db", second)];
        for (state, expected) in [
            ("Destroyed", "1"),
            ("Expunging", "1"),
            ("Stopped", "1+2"),
            ("Error", "1+2"),
        ] {
            assert_eq!(named(&instances(state), "db"), expected, "{state}");
        }
        assert_eq!(named(&[("1", "db", "Destroyed")], "db"), "");
    }

    #[test]
    fn an_id_is_found_in_any_letter_case_and_state() {
        let index = index(&[("0b6f-AA", "a", "Expunging")]);
        assert!(index.with_id("0B6F-aa").is_some());
        assert!(index.with_id("0b6f").is_none());
    }

    #[test]
    fn the_default_network_comes_first_and_what_goes_is_left_out() {
        let mut read: VirtualMachine = serde_json::from_str(
            r#"{"id":"v","name":"a","state":"Running","nic":[{"networkid":"n"},{"networkid":"m","isdefault":true},{}]}"#,
        )
        .unwrap();
        assert_eq!(member(&read).unwrap().networks, ["m", "n"].map(NetworkId::from));
        for state in [
            VmState::Destroyed,
            VmState::Expunging,
            VmState::Error,
            VmState::Unknown,
        ] {
            read.state = state;
            assert_eq!(member(&read), None, "no rule leads to it");
        }
    }
}
