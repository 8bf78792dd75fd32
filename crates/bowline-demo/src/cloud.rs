//! Simulated clouds, as far as the story needs to know them.
//!
//! A cloud is added with a module of its own that implements [`Cloud`], a cargo feature, and a line in [`NAMES`] and
//! [`start`].

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anyhow::bail;
use bowline_cloud_kit::dataplane::Transport;
use bowline_cloud_kit::{Entry, Journal};

#[cfg(feature = "cloudscale")]
mod cloudscale;

/// Values of `--cloud-provider` that this build can play; the first one is the default.
pub const NAMES: &[&str] = &[
    #[cfg(feature = "cloudscale")]
    "cloudscale",
];

/// Whether a machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Power {
    On,
    Off,
}

/// A machine as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Its name, which is the Node's name too.
    pub(crate) name: String,
    /// Where its workload listens.
    pub(crate) address: IpAddr,
    pub(crate) power: Power,
}

/// What a Node must look like once it is initialised.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedNode {
    pub(crate) provider_id: String,
    pub(crate) instance_type: String,
    pub(crate) zone: String,
    pub(crate) region: String,
    /// Type and address, in any order. There may be more.
    pub(crate) addresses: Vec<(&'static str, String)>,
}

/// A place where a balancer listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Listener {
    pub(crate) transport: Transport,
    /// Where clients are told to go.
    pub(crate) wanted: SocketAddr,
    /// Where it is on this machine.
    pub(crate) actual: SocketAddr,
}

/// Something to try, with the command that does it.
#[derive(Clone, Debug)]
pub(crate) struct Hint {
    pub(crate) what: String,
    pub(crate) command: String,
}

/// A simulated cloud with three machines.
pub(crate) trait Cloud: Send + Sync {
    /// The name for people.
    fn title(&self) -> &'static str;
    /// The manifest whose command line starts the manager.
    fn manifest(&self) -> &'static str;
    /// Environment of the manager: where the API is, and credentials for it.
    fn environment(&self) -> Vec<(String, String)>;
    /// The base URL of the API.
    fn url(&self) -> String;
    /// The record of every API call.
    fn journal(&self) -> &Journal;
    /// A change in people's words, such as `create pool (tcp/8080)`.
    fn describe(&self, change: &Entry) -> String;

    /// All machines, in order of creation.
    fn machines(&self) -> Vec<Machine>;
    /// What the Node of a machine must look like; none if there is no such machine.
    fn expected_node(&self, machine: &str) -> Option<ExpectedNode>;
    /// Powers a machine off or on.
    fn set_power(&self, machine: &str, power: Power);
    /// Deletes a machine.
    fn delete_machine(&self, machine: &str);
    /// How often the cloud has told the manager that the machine of this provider ID does not exist.
    fn proofs_of_absence(&self, provider_id: &str) -> usize;

    /// Switches an outage of the API on or off. Traffic goes on.
    fn set_outage(&self, on: bool);

    /// How many load balancers there are.
    fn balancers(&self) -> usize;
    /// The addresses that balancers send traffic to, without repetition.
    fn targets(&self) -> Vec<IpAddr>;
    /// Every place where a balancer listens.
    fn listeners(&self) -> Vec<Listener>;
    /// Where a balancer's listener really is; none while it does not listen.
    fn listener(&self, transport: Transport, address: IpAddr, port: u16) -> Option<SocketAddr> {
        let wanted = SocketAddr::new(address, port);
        let listeners = self.listeners().into_iter();
        listeners
            .filter(|listener| listener.transport == transport && listener.wanted == wanted)
            .map(|listener| listener.actual)
            .next()
    }
    /// Sends what is meant for a machine's address and port to where it really is.
    fn move_target(&self, transport: Transport, wanted: SocketAddr, actual: SocketAddr);
    /// What is broken inside of the simulated cloud, such as things left over; empty if all is well.
    fn complaints(&self) -> Vec<String>;

    /// What a reader could do to this machine and to the API.
    fn hints(&self, machine: &str) -> Vec<Hint>;
}

/// Starts the cloud of this name, with its machines. The same seed gives the same ids.
pub(crate) async fn start(name: &str, seed: u64) -> anyhow::Result<Arc<dyn Cloud>> {
    match name {
        #[cfg(feature = "cloudscale")]
        "cloudscale" => Ok(Arc::new(cloudscale::Cloudscale::start(seed).await?)),
        other => bail!("this demo was built without the cloud `{other}` (see the features of its crate)"),
    }
}

/// Names of the machines to begin with.
pub(crate) const MACHINES: [&str; 3] = ["demo-node-1", "demo-node-2", "demo-node-3"];
