//! Which virtual machines are the members of a Service's rules. Pure.

use std::collections::{BTreeMap, BTreeSet};

use bowline_cloud_provider::keys;
use bowline_plan::{Refusal, refusal};

use crate::load_balancer::intent::WantedNode;
use crate::load_balancer::objects::{NetworkId, VirtualMachineId};
use crate::virtual_machines::{Instance, MemberIndex, of_node};

/// The Nodes' virtual machines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Members {
    /// Those that were found, in the order of their Nodes.
    pub(crate) instances: Vec<Instance>,
    /// Those that a Node names but that were not found, or not with a network: they are not added, and not taken away either,
    /// because a miss in a list proves nothing.
    pub(crate) unproven: BTreeSet<VirtualMachineId>,
    /// The Nodes without a virtual machine.
    pub(crate) left_out: Vec<String>,
    /// The Nodes whose virtual machine is in no network, so that no rule can lead to it.
    pub(crate) unconnected: Vec<String>,
    /// Those that are in other networks than the one that rules lead to, each with its network.
    pub(crate) outside: Vec<String>,
    /// Nodes that have the same virtual machine, by two.
    pub(crate) twins: Vec<[String; 2]>,
    /// The Nodes whose name another virtual machine has than they name, where these are more than those that have the one that they
    /// name: what is seen is another account, in which names are the same. (Nodes that joined since have one there.)
    pub(crate) elsewhere: Vec<String>,
}

impl Members {
    /// Finds the virtual machines of Nodes: by the ID that the Node names, else by name.
    pub(crate) fn find(nodes: &[WantedNode], instances: &MemberIndex) -> Self {
        let elsewhere = elsewhere(nodes, instances);
        if !elsewhere.is_empty() {
            return Self {
                unproven: nodes.iter().filter_map(|node| node.instance_id.clone()).collect(),
                left_out: nodes.iter().map(|node| node.node.clone()).collect(),
                elsewhere,
                ..Self::default()
            };
        }
        let mut members = Self::default();
        let mut taken: BTreeMap<&VirtualMachineId, &str> = BTreeMap::new();
        for node in nodes {
            let named = node.instance_id.as_ref();
            let found = named
                .and_then(|id| instances.with_id(id))
                .or_else(|| by_name(instances, node));
            match found {
                Some(instance) if instance.networks.is_empty() => {
                    members.unproven.insert(instance.id.clone());
                    members.unconnected.push(node.node.clone());
                }
                Some(instance) => match taken.get(&instance.id) {
                    Some(first) => members.twins.push([(*first).to_owned(), node.node.clone()]),
                    None => {
                        taken.insert(&instance.id, &node.node);
                        members.instances.push(instance.clone());
                    }
                },
                None => {
                    members.unproven.extend(named.cloned());
                    members.left_out.push(node.node.clone());
                }
            }
        }
        members
    }

    /// The network that rules lead to: the one that is given, if one of them is in it, or the one that all have in common by default.
    pub(crate) fn network(&self, given: Option<&NetworkId>) -> Result<Option<NetworkId>, Refusal> {
        let first = self.instances.first();
        let default = first.and_then(|instance| instance.networks.first());
        let Some(network) = given.or(default).cloned() else {
            return Ok(None);
        };
        let is_in = |instance: &Instance| match given {
            Some(_) => instance.networks.contains(&network),
            None => instance.networks.first() == Some(&network),
        };
        let mut instances = self.instances.iter();
        if given.is_some() && instances.clone().any(is_in) || instances.all(is_in) {
            return Ok(Some(network));
        }
        let (text, odd) = self.by_networks(given);
        Err(refusal!(
            "found hosts that belong to different networks: {text}";
            "a load balancer rule leads to one network; exclude {odd} from load balancers: kubectl label node NAME {}=",
            keys::LABEL_EXCLUDE_FROM_BALANCERS
        ))
    }

    /// Who is not in the network that is given, or that most have, for people: with the networks, and the names alone.
    fn by_networks(&self, given: Option<&NetworkId>) -> (String, String) {
        let mut hosts: BTreeMap<&NetworkId, Vec<&str>> = BTreeMap::new();
        for Instance { name, networks, .. } in &self.instances {
            let is_in = |network: &&NetworkId| given == Some(*network);
            if let Some(network) = networks.iter().find(is_in).or(networks.first()) {
                hosts.entry(network).or_default().push(name);
            }
        }
        let most = hosts.iter().max_by_key(|(_, names)| names.len());
        let Some(most) = given.or(most.map(|(network, _)| *network)) else {
            return Default::default();
        };
        hosts.remove(most);
        let odd: Vec<&str> = hosts.values().flatten().copied().collect();
        let hosts = hosts
            .iter()
            .map(|(network, names)| format!("{} in {network}", names.join(", ")));
        let text = format!("{}; the others in {most}", hosts.collect::<Vec<_>>().join("; "));
        (text, odd.join(", "))
    }

    /// Those in a network: a rule leads to no others.
    pub(crate) fn within(&self, network: &NetworkId) -> Self {
        let mut within = self.clone();
        let instances = std::mem::take(&mut within.instances).into_iter();
        let (inside, outside) = instances.partition(|instance| instance.networks.contains(network));
        within.instances = inside;
        let outside: Vec<Instance> = outside;
        let outside = outside.iter().filter_map(|instance| {
            let other = instance.networks.first()?;
            Some(format!(
                "{} (in network {other}, the rules lead to {network})",
                instance.name
            ))
        });
        within.outside = outside.collect();
        within
    }

    /// Whether every Node has its virtual machine among them.
    pub(crate) fn is_whole(&self) -> bool {
        self.left_out.is_empty() && self.unconnected.is_empty()
    }

    /// Which Nodes are not among them, and why; `None` if all are.
    pub(crate) fn missing(&self) -> Option<String> {
        let parts = [
            ("no virtual machine is known for nodes", &self.left_out),
            (
                "the virtual machine has no NIC with a network on nodes",
                &self.unconnected,
            ),
            (
                "the virtual machine is in another network on nodes",
                &self.outside,
            ),
        ];
        let parts = parts.iter().filter(|(_, nodes)| !nodes.is_empty());
        let texts: Vec<String> = parts
            .map(|(text, nodes)| format!("{text}: {}", nodes.join(", ")))
            .collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// What has to be done about a rule with these members.
    pub(crate) fn compare(&self, present: &BTreeSet<VirtualMachineId>) -> Difference {
        if self.instances.is_empty() {
            return Difference::default(); // better old members than none
        }
        let wanted = self.instances.iter().map(|instance| instance.id.clone());
        let wanted: BTreeSet<_> = wanted.collect();
        let surplus = present
            .difference(&wanted)
            .filter(|id| !self.unproven.contains(*id));
        Difference {
            missing: wanted.difference(present).cloned().collect(),
            surplus: surplus.cloned().collect(),
        }
    }
}

/// What a rule lacks and has too much of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Difference {
    pub(crate) missing: Vec<VirtualMachineId>,
    pub(crate) surplus: Vec<VirtualMachineId>,
}

/// The virtual machine that alone bears the name of a Node. Of several, as keys of an administrator see them, nobody can tell
/// which one is meant.
fn by_name<'a>(instances: &'a MemberIndex, node: &WantedNode) -> Option<&'a Instance> {
    match of_node(instances, &node.node)[..] {
        [only] => Some(only),
        _ => None,
    }
}

/// The Nodes of [`Members::elsewhere`].
fn elsewhere(nodes: &[WantedNode], instances: &MemberIndex) -> Vec<String> {
    let (mut elsewhere, mut here) = (Vec::new(), 0);
    for node in nodes {
        let Some(id) = &node.instance_id else { continue };
        if instances.with_id(id).is_some() {
            here += 1;
        } else if by_name(instances, node).is_some() {
            elsewhere.push(node.node.clone());
        }
    }
    if elsewhere.len() > here {
        elsewhere
    } else {
        Vec::new()
    }
}

/// Nodes that name the same virtual machine, by two.
pub(crate) fn named_twins(nodes: &[WantedNode]) -> Vec<[String; 2]> {
    let mut first = BTreeMap::new();
    let twins = nodes.iter().filter_map(|node| {
        let one = *first.entry(node.instance_id.as_ref()?).or_insert(&node.node);
        (*one != node.node).then(|| [one.clone(), node.node.clone()])
    });
    twins.collect()
}

/// The IDs of all Nodes' virtual machines, if all Nodes name one.
pub(crate) fn named(nodes: &[WantedNode]) -> Option<BTreeSet<VirtualMachineId>> {
    nodes.iter().map(|node| node.instance_id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_machines::member_index;

    fn node(name: &str, id: Option<&str>) -> WantedNode {
        WantedNode {
            node: name.to_owned(),
            instance_id: id.map(Into::into),
        }
    }

    fn instance(id: &str, name: &str, networks: &[&str]) -> Instance {
        Instance {
            id: id.into(),
            name: name.to_owned(),
            networks: networks.iter().map(|id| NetworkId::from(*id)).collect(),
        }
    }

    fn ids(members: &Members) -> Vec<&str> {
        members
            .instances
            .iter()
            .map(|instance| instance.id.as_str())
            .collect()
    }

    #[test]
    fn a_named_instance_goes_before_one_of_the_same_name() {
        let instances = [
            instance("1", "pool-a-7", &["n"]),
            instance("2", "pool-a-7", &["n"]),
        ];
        assert_eq!(
            ids(&Members::find(
                &[node("pool-a-7", Some("2"))],
                &member_index(instances.clone())
            )),
            ["2"]
        );
        // Without an ID nobody can tell which of the two it is.
        let unclear = Members::find(&[node("pool-a-7", None)], &member_index(instances.clone()));
        assert_eq!(ids(&unclear), Vec::<&str>::new());
        assert_eq!(unclear.left_out, ["pool-a-7"]);
    }

    #[test]
    fn domains_and_letter_case_of_nodes_do_not_count() {
        let instances = [
            instance("1", "Pool-A-7", &["n"]),
            instance("2", "pool-a-8.corp.example", &["n"]),
        ];
        let nodes = [
            node("Pool-A-7.corp.example", None),
            node("POOL-A-8.corp.example", None),
        ];
        assert_eq!(
            ids(&Members::find(&nodes, &member_index(instances.clone()))),
            ["1", "2"]
        );
        assert_eq!(
            ids(&Members::find(
                &[node("pool-a", None)],
                &member_index(instances.clone())
            )),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn where_most_nodes_do_not_have_the_instance_that_they_name_names_alone_do_not_count() {
        let of_another_account = member_index([instance("8", "a", &["n"]), instance("9", "b", &["n"])]);
        let members = Members::find(&[node("a", Some("1")), node("b", None)], &of_another_account);
        assert_eq!(ids(&members), Vec::<&str>::new());
        assert_eq!(members.elsewhere, ["a"]);
        assert_eq!(members.compare(&["1".into()].into()), Difference::default());
        // One was made anew under its old name; the other tells that the account is right.
        let remade = Members::find(&[node("a", Some("1")), node("b", Some("9"))], &of_another_account);
        assert_eq!(ids(&remade), ["8", "9"]);
        // One that joined since was initialised from the other account, and tells nothing.
        let nodes = [node("a", Some("1")), node("b", Some("2")), node("c", Some("7"))];
        let of_another_account = member_index([
            instance("7", "c", &["n"]),
            instance("8", "a", &["n"]),
            instance("9", "b", &["n"]),
        ]);
        assert_eq!(Members::find(&nodes, &of_another_account).elsewhere, ["a", "b"]);
    }

    #[test]
    fn an_instance_that_is_not_listed_is_not_taken_away() {
        let instances = [instance("2", "b", &["n"])];
        let members = Members::find(
            &[node("a", Some("1")), node("b", None), node("c", Some("3"))],
            &member_index(instances),
        );
        assert_eq!(ids(&members), ["2"]);
        assert_eq!(members.left_out, ["a", "c"]);
        let present = ["1", "3", "4"].map(VirtualMachineId::from).into();
        let difference = members.compare(&present);
        assert_eq!(
            (difference.missing, difference.surplus),
            (vec!["2".into()], vec!["4".into()])
        );
    }

    #[test]
    fn an_instance_without_a_network_is_neither_added_nor_taken_away() {
        let instances = [instance("1", "a", &[]), instance("2", "b", &["n"])];
        let members = Members::find(
            &[node("a", None), node("b", None), node("c", None)],
            &member_index(instances.clone()),
        );
        assert_eq!(ids(&members), ["2"]);
        assert_eq!(members.network(None), Ok(Some("n".into())));
        assert_eq!(
            members.compare(&["1", "2"].map(VirtualMachineId::from).into()),
            Difference::default()
        );
        assert_eq!(
            members.missing().unwrap(),
            "no virtual machine is known for nodes: c; the virtual machine has no NIC with a network on nodes: a"
        );
    }

    #[test]
    fn without_an_instance_the_members_stay() {
        let members = Members::find(&[node("a", None)], &MemberIndex::default());
        assert_eq!(members.compare(&["1".into()].into()), Difference::default());
    }

    #[test]
    fn the_network_is_the_default_one_that_all_share() {
        let both = instance("1", "a", &["n", "m"]);
        let one = instance("2", "b", &["m"]);
        let nodes = [node("a", None), node("b", None)];
        let members = Members::find(&nodes, &member_index([both, one]));
        let refusal = members.network(None).unwrap_err();
        assert_eq!(
            refusal.reason,
            "found hosts that belong to different networks: b in m; the others in n"
        );
        assert!(refusal.remedy.unwrap().contains("exclude b from load balancers"));
        assert_eq!(members.network(Some(&"m".into())), Ok(Some("m".into())));
        // Where rules lead already, one elsewhere keeps nobody out.
        assert_eq!(members.network(Some(&"n".into())), Ok(Some("n".into())));
        let within = members.within(&"n".into());
        assert_eq!(ids(&within), ["1"]);
        assert_eq!(
            within.missing().unwrap(),
            "the virtual machine is in another network on nodes: b (in network m, the rules lead to n)"
        );
        assert!(members.network(Some(&"elsewhere".into())).is_err());
        assert_eq!(Members::default().network(None), Ok(None));
    }
}
