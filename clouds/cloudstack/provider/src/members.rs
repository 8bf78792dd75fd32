//! Which virtual machines are the members of a Service's rules. Pure.

use std::collections::BTreeSet;

use bowline_cloud_provider::InstanceIndex;

use crate::intent::WantedNode;
use crate::objects::{Machine, NetworkId, VirtualMachineId};

/// The Nodes' virtual machines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Members {
    /// Those that were found, in the order of their Nodes.
    pub(crate) machines: Vec<Machine>,
    /// Those that a Node names but that were not found, or not with a network: they are not added, and not taken away either,
    /// because a miss in a list proves nothing.
    pub(crate) unproven: BTreeSet<VirtualMachineId>,
    /// The Nodes without a virtual machine.
    pub(crate) left_out: Vec<String>,
    /// The Nodes whose virtual machine is in no network, so that no rule can lead to it.
    pub(crate) unconnected: Vec<String>,
}

/// The virtual machines that rules can lead to, by ID and by name in lower case.
pub(crate) type MachineIndex = InstanceIndex<VirtualMachineId, Machine>;

/// An index of what was listed.
pub(crate) fn index(machines: impl IntoIterator<Item = Machine>) -> MachineIndex {
    let id = |machine: &Machine| machine.id.clone();
    let name = |machine: &Machine| machine.name.to_lowercase();
    MachineIndex::new(machines.into_iter().collect(), id, name)
}

impl Members {
    /// Finds the virtual machines of Nodes: by the ID that the Node names, else by name.
    pub(crate) fn find(nodes: &[WantedNode], machines: &MachineIndex) -> Self {
        let mut members = Self::default();
        let mut taken = BTreeSet::new();
        for node in nodes {
            let named = node.machine_id.as_ref();
            let found = named.and_then(|id| machines.with_id(id)).or_else(|| {
                let mut alike = machines.with_name(&node.node.to_lowercase());
                if alike.is_empty() {
                    alike = machines.with_name(&node.machine_name);
                }
                // Of several, as keys of an administrator see them, nobody can tell which one is meant.
                match alike[..] {
                    [only] => Some(only),
                    _ => None,
                }
            });
            match found {
                Some(machine) if machine.networks.is_empty() => {
                    members.unproven.insert(machine.id.clone());
                    members.unconnected.push(node.node.clone());
                }
                Some(machine) => {
                    if taken.insert(machine.id.clone()) {
                        members.machines.push(machine.clone());
                    }
                }
                None => {
                    members.unproven.extend(named.cloned());
                    members.left_out.push(node.node.clone());
                }
            }
        }
        members
    }

    /// The network that all of them are in: the one that is given, or the one that they have in common by default.
    pub(crate) fn network(&self, given: Option<&NetworkId>) -> Result<Option<NetworkId>, DifferentNetworks> {
        let first = self.machines.first().and_then(|machine| machine.networks.first());
        let Some(network) = given.cloned().or_else(|| first.cloned()) else {
            return Ok(None);
        };
        let is_in = |machine: &Machine| match given {
            Some(_) => machine.networks.contains(&network),
            None => machine.networks.first() == Some(&network),
        };
        if self.machines.iter().all(is_in) {
            Ok(Some(network))
        } else {
            Err(DifferentNetworks)
        }
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
        ];
        let parts = parts.iter().filter(|(_, nodes)| !nodes.is_empty());
        let texts: Vec<String> = parts
            .map(|(text, nodes)| format!("{text}: {}", nodes.join(", ")))
            .collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// What has to be done about a rule with these members.
    pub(crate) fn compare(&self, present: &BTreeSet<VirtualMachineId>) -> Difference {
        if self.machines.is_empty() {
            return Difference::default(); // better old members than none
        }
        let wanted: BTreeSet<_> = self.machines.iter().map(|machine| machine.id.clone()).collect();
        let surplus = present
            .difference(&wanted)
            .filter(|id| !self.unproven.contains(*id));
        Difference {
            missing: wanted.difference(present).cloned().collect(),
            surplus: surplus.cloned().collect(),
        }
    }
}

/// The virtual machines have no network in common.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DifferentNetworks;

/// What a rule lacks and has too much of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Difference {
    pub(crate) missing: Vec<VirtualMachineId>,
    pub(crate) surplus: Vec<VirtualMachineId>,
}

/// The IDs of all Nodes' virtual machines, if all Nodes name one.
pub(crate) fn named(nodes: &[WantedNode]) -> Option<BTreeSet<VirtualMachineId>> {
    nodes.iter().map(|node| node.machine_id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, id: Option<&str>) -> WantedNode {
        WantedNode {
            node: name.to_owned(),
            machine_name: name.to_lowercase().split('.').next().unwrap().to_owned(),
            machine_id: id.map(Into::into),
        }
    }

    fn machine(id: &str, name: &str, networks: &[&str]) -> Machine {
        Machine {
            id: id.into(),
            name: name.to_owned(),
            networks: networks.iter().map(|id| NetworkId::from(*id)).collect(),
        }
    }

    fn ids(members: &Members) -> Vec<&str> {
        members
            .machines
            .iter()
            .map(|machine| machine.id.as_str())
            .collect()
    }

    #[test]
    fn a_named_machine_goes_before_one_of_the_same_name() {
        let machines = [machine("1", "pool-a-7", &["n"]), machine("2", "pool-a-7", &["n"])];
        assert_eq!(
            ids(&Members::find(
                &[node("pool-a-7", Some("2"))],
                &index(machines.clone())
            )),
            ["2"]
        );
        // Without an ID nobody can tell which of the two it is.
        let unclear = Members::find(&[node("pool-a-7", None)], &index(machines.clone()));
        assert_eq!(ids(&unclear), Vec::<&str>::new());
        assert_eq!(unclear.left_out, ["pool-a-7"]);
    }

    #[test]
    fn domains_and_letter_case_of_nodes_do_not_count() {
        let machines = [
            machine("1", "Pool-A-7", &["n"]),
            machine("2", "pool-a-8.corp.example", &["n"]),
        ];
        let nodes = [
            node("Pool-A-7.corp.example", None),
            node("POOL-A-8.corp.example", None),
        ];
        assert_eq!(ids(&Members::find(&nodes, &index(machines.clone()))), ["1", "2"]);
        assert_eq!(
            ids(&Members::find(&[node("pool-a", None)], &index(machines.clone()))),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn a_machine_that_is_not_listed_is_not_taken_away() {
        let machines = [machine("2", "b", &["n"])];
        let members = Members::find(
            &[node("a", Some("1")), node("b", None), node("c", Some("3"))],
            &index(machines),
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
    fn a_machine_without_a_network_is_neither_added_nor_taken_away() {
        let machines = [machine("1", "a", &[]), machine("2", "b", &["n"])];
        let members = Members::find(
            &[node("a", None), node("b", None), node("c", None)],
            &index(machines.clone()),
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
    fn without_a_machine_the_members_stay() {
        let members = Members::find(&[node("a", None)], &MachineIndex::default());
        assert_eq!(members.compare(&["1".into()].into()), Difference::default());
    }

    #[test]
    fn the_network_is_the_default_one_that_all_share() {
        let both = machine("1", "a", &["n", "m"]);
        let one = machine("2", "b", &["m"]);
        let nodes = [node("a", None), node("b", None)];
        let members = Members::find(&nodes, &index([both, one]));
        assert_eq!(members.network(None), Err(DifferentNetworks));
        assert_eq!(members.network(Some(&"m".into())), Ok(Some("m".into())));
        assert_eq!(Members::default().network(None), Ok(None));
    }
}
