//! The handle to a running simulator.

use std::net::{IpAddr, SocketAddr};

use bowline_cloud_kit::dataplane::Transport;
use bowline_cloud_kit::{Mark, Running, Shared};

use crate::behaviour::{Behaviour, JobFault};
use crate::jobs::JobRecord;
use crate::model::{
    AclItem, AclList, FirewallRule, LoadBalancerRule, Network, PublicAddress, VirtualMachine, Vpc,
};
use crate::operation::Operation;
use crate::options;
use crate::state::State;

mod manual;
mod project;

/// A simulated Apache CloudStack. Clones share it.
#[derive(Clone, Debug)]
pub struct CloudstackSim {
    pub(crate) shared: Shared<State>,
    pub(crate) running: Running,
}

bowline_cloud_kit::double! {
    CloudstackSim by &str;
    vms: VirtualMachine, all vms, one vm, edit edit_vm;
    networks: Network, all networks, edit edit_network;
    vpcs: Vpc, all vpcs;
    addresses: PublicAddress, edit edit_address;
    rules: LoadBalancerRule, all rules;
    firewall: FirewallRule, all firewall_rules;
    acl_lists: AclList;
    acl_items: AclItem, all acl_items;
}

impl CloudstackSim {
    /// The API key of the user who is there if none is named.
    pub const API_KEY: &str = options::API_KEY;

    /// The secret key of the user who is there if none is named.
    pub const SECRET_KEY: &str = options::SECRET_KEY;

    /// The path of the API, below the base URL.
    pub const PATH: &str = options::PATH;

    bowline_cloud_kit::handle!(State, Behaviour);

    /// The commands since a mark in the journal, in order of arrival, polls of jobs left out.
    pub fn calls_since(&self, mark: Mark) -> Vec<String> {
        let calls = self.journal().since(mark).into_iter().map(|it| it.operation);
        calls
            .filter(|it| it != Operation::QueryAsyncJobResult.name())
            .collect()
    }

    /// Makes jobs fail that are accepted from now on. Rules are tried in the order in which they were added.
    pub fn fail_jobs(&self, fault: JobFault) {
        self.write(|state| state.jobs.add_fault(fault));
    }

    /// Lets all new jobs succeed.
    pub fn clear_job_faults(&self) {
        self.write(|state| state.jobs.clear_faults());
    }

    /// An administrator ends the jobs that never end: they fail.
    pub fn end_stuck_jobs(&self) {
        self.write(|state| {
            state.jobs.end_stuck();
            state.finish_due_jobs();
        });
    }

    /// The jobs in order of acceptance.
    pub fn jobs(&self) -> Vec<JobRecord> {
        self.read().jobs.records()
    }

    /// The id of the zone that is there from the start.
    pub fn zone(&self) -> String {
        self.read().home.zone.clone()
    }

    /// The id of the isolated network `k8s` that is there from the start.
    pub fn network(&self) -> String {
        self.read().home.network.clone()
    }

    /// The virtual machine of a name.
    pub fn vm_named(&self, name: &str) -> Option<VirtualMachine> {
        self.read().vms.values().find(|it| it.name == name).cloned()
    }

    /// The public addresses that are somebody's, those for source NAT left out.
    pub fn addresses(&self) -> Vec<PublicAddress> {
        let state = self.read();
        let held = state.addresses.values();
        let held = held.filter(|it| it.owner.is_some() && !it.is_source_nat);
        held.cloned().collect()
    }

    /// The record of one public address, free or not.
    pub fn address(&self, address: IpAddr) -> Option<PublicAddress> {
        let state = self.read();
        state.addresses.values().find(|it| it.address == address).cloned()
    }

    /// The first load balancer rule of a name.
    pub fn rule_named(&self, name: &str) -> Option<LoadBalancerRule> {
        self.read().rules.values().find(|it| it.name == name).cloned()
    }

    /// A rule as its network's router carries it, which is not always as it is stored: see [`Self::check_invariants`].
    pub fn carried_rule(&self, id: &str) -> Option<LoadBalancerRule> {
        self.read().routers.running_rule(id).cloned()
    }

    /// The names of a rule's members in order.
    pub fn member_names(&self, rule: &str) -> Vec<String> {
        let state = self.read();
        let members = state.rules.get(rule).map(|it| it.members.as_slice());
        let vms = members
            .unwrap_or_default()
            .iter()
            .filter_map(|id| state.vms.get(id));
        vms.map(|vm| vm.name.clone()).collect()
    }

    /// Sends what is meant for a virtual machine's address and port to another place: for machines whose loopback
    /// interface has no other address than 127.0.0.1, where these addresses cannot be bound.
    pub fn move_member(&self, transport: Transport, wanted: SocketAddr, actual: SocketAddr) {
        self.write(|state| state.moved.set(transport, wanted, actual));
    }
}
