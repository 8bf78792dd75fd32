//! Simulated clouds, as far as the story needs to know them.
//!
//! A cloud is added with a module of its own that implements [`Cloud`], a cargo feature, and a line in [`NAMES`] and
//! [`start`].

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anyhow::bail;
use bowline_cloud_kit::dataplane::Transport;
pub(crate) use bowline_cloud_kit::project::{Instance, Project};
use bowline_cloud_kit::{Entry, Journal};

use crate::service::Port;

#[cfg(feature = "cloudscale")]
mod cloudscale;
#[cfg(feature = "cloudstack")]
mod cloudstack;
mod hints;
#[cfg(feature = "openstack")]
mod openstack;
#[cfg(feature = "phoenixnap")]
mod phoenixnap;
mod served;
mod thing;

pub(crate) use served::Served;
pub(crate) use thing::{Thing, Tone};

/// Clouds that this build can play; the first one is the default.
pub const NAMES: &[&str] = &[
    #[cfg(feature = "cloudscale")]
    "cloudscale",
    #[cfg(feature = "cloudstack")]
    "cloudstack",
    #[cfg(feature = "openstack")]
    "openstack",
    #[cfg(feature = "phoenixnap")]
    "phoenixnap",
];

/// A place where a Service's address listens.
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

/// How the story calls what a Service gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    /// What the plan creates, with its article.
    pub(crate) made: &'static str,
    /// What traffic comes through.
    pub(crate) front: &'static str,
    /// What a deleted Service waits for.
    pub(crate) released: &'static str,
    /// What is true some time after that.
    pub(crate) gone: &'static str,
}

impl Words {
    /// For a cloud that has load balancers.
    pub(crate) const BALANCER: Self = Self {
        made: "a balancer",
        front: "balancer",
        released: "the balancer is gone",
        gone: "the balancer is gone",
    };
}

/// An address that an instance announces, so that all traffic for it arrives there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Announcement {
    pub(crate) address: IpAddr,
    /// The instance's name.
    pub(crate) instance: String,
    pub(crate) ports: Vec<Port>,
}

/// The network of a cloud that has no load balancers.
pub(crate) trait Announcer: Send + Sync {
    /// Says who announces what from now on, instead of what was said before.
    fn announce(&self, announcements: Vec<Announcement>);
}

/// A simulated cloud with three instances.
pub(crate) trait Cloud: Send + Sync {
    /// The name for people.
    fn title(&self) -> &'static str;
    /// The manifest whose command line starts the manager.
    fn manifest(&self) -> &'static str;
    /// Environment of the manager: where the API is, and credentials for it.
    fn environment(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    /// The same as the file that the manifest mounts for `--cloud-config`; `None` if it mounts none.
    fn config(&self) -> Option<String> {
        None
    }
    /// What the manager is told besides, to do what the manifest leaves out.
    fn flags(&self) -> Vec<String> {
        Vec::new()
    }
    /// Its API.
    fn served(&self) -> &Served;
    /// The base URL of the API.
    fn url(&self) -> String {
        self.served().url()
    }
    /// The record of every API call.
    fn journal(&self) -> &Journal {
        self.served().journal()
    }
    /// A change in people's words, such as `create pool (tcp/8080)`.
    fn describe(&self, change: &Entry) -> String;

    /// What its owner has in it.
    fn project(&self) -> &dyn Project;
    /// All instances, in order of creation.
    fn instances(&self) -> Vec<Instance> {
        self.project().instances()
    }
    /// How often the cloud has told the manager that the instance of this provider ID does not exist.
    fn proofs_of_absence(&self, provider_id: &str) -> usize;

    /// Switches an outage of the API on or off. Traffic goes on.
    fn set_outage(&self, on: bool);
    /// Whether there is one.
    fn has_outage(&self) -> bool;
    /// What is in the project besides its instances.
    fn things(&self) -> Vec<Thing>;

    /// How the story calls what a Service gets.
    fn words(&self) -> Words {
        Words::BALANCER
    }
    /// Where instances announce the addresses of Services themselves; `None` in a cloud that has load balancers.
    fn announcer(&self) -> Option<&dyn Announcer> {
        None
    }
    /// The instance that announces the address of a Service and takes all of its traffic, if that is the way of this cloud.
    fn announcing(&self) -> Option<Instance> {
        self.announcer()?;
        let targets = self.targets();
        let mut instances = self.instances().into_iter();
        instances.find(|instance| targets.contains(&instance.address()))
    }
    /// The instance that each pod network is sent to, by the network; `None` in a cloud without routes.
    fn routes(&self) -> Option<BTreeMap<String, String>> {
        None
    }
    /// What costs money now, where somebody should watch it.
    fn bill(&self) -> Option<String> {
        None
    }

    /// How many load balancers, or what stands for them, there are.
    fn balancers(&self) -> usize;
    /// The instances' addresses that traffic is sent to, without repetition.
    fn targets(&self) -> Vec<IpAddr>;
    /// Every place where a Service's address should listen.
    fn wanted(&self) -> Vec<(Transport, SocketAddr)>;
    /// Where such a place is on this machine, once it listens.
    fn bound_to(&self, transport: Transport, wanted: SocketAddr) -> Option<SocketAddr>;
    /// Every place where a Service's address listens.
    fn listeners(&self) -> Vec<Listener> {
        let wanted = self.wanted().into_iter();
        wanted
            .filter_map(|(transport, wanted)| {
                Some(Listener {
                    transport,
                    wanted,
                    actual: self.bound_to(transport, wanted)?,
                })
            })
            .collect()
    }
    /// Where such a place really is; `None` while nothing listens.
    fn listener(&self, transport: Transport, address: IpAddr, port: u16) -> Option<SocketAddr> {
        let wanted = SocketAddr::new(address, port);
        let listeners = self.listeners().into_iter();
        listeners
            .filter(|listener| listener.transport == transport && listener.wanted == wanted)
            .map(|listener| listener.actual)
            .next()
    }
    /// Sends what is meant for an instance's address and port to where it really is.
    fn move_target(&self, transport: Transport, wanted: SocketAddr, actual: SocketAddr);
    /// What is broken inside of the simulated cloud, such as things left over; empty if all is well.
    fn complaints(&self) -> Vec<String> {
        self.project().violations()
    }

    /// What a reader could do to this machine, or look at.
    fn own_hints(&self, instance: &str) -> Vec<Hint>;
    /// The same, and what a reader could do to the API.
    fn hints(&self, instance: &str) -> Vec<Hint> {
        let mut hints = self.own_hints(instance);
        hints.extend(hints::of_api(&self.url()));
        hints
    }
}

/// What a cloud does by its fields `sim`, the simulator, and `served`.
macro_rules! on_its_simulator {
    () => {
        fn served(&self) -> &$crate::cloud::Served {
            &self.served
        }

        fn describe(&self, change: &bowline_cloud_kit::Entry) -> String {
            describe(change)
        }

        fn project(&self) -> &dyn $crate::cloud::Project {
            &self.sim
        }

        fn set_outage(&self, on: bool) {
            self.sim
                .set_behaviour(|behaviour| behaviour.maintenance = on);
        }

        fn has_outage(&self) -> bool {
            self.sim.behaviour().maintenance
        }

        fn bound_to(&self, transport: Transport, wanted: SocketAddr) -> Option<SocketAddr> {
            self.sim.bound_to(transport, wanted.ip(), wanted.port())
        }

        fn move_target(&self, transport: Transport, wanted: SocketAddr, actual: SocketAddr) {
            self.sim.move_member(transport, wanted, actual);
        }
    };
}
use on_its_simulator;

/// A change, with what tells it from another in brackets.
fn worded(what: &str, details: &str) -> String {
    match details {
        "" => what.to_owned(),
        _ => format!("{what} ({details})"),
    }
}

/// As much of an ID as tells it from another.
fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

/// Starts the cloud of this name, with its instances. The same seed gives the same ids.
pub(crate) async fn start(name: &str, seed: u64) -> anyhow::Result<Arc<dyn Cloud>> {
    match name {
        #[cfg(feature = "cloudscale")]
        "cloudscale" => Ok(Arc::new(cloudscale::Cloudscale::start(seed).await?)),
        #[cfg(feature = "cloudstack")]
        "cloudstack" => Ok(Arc::new(cloudstack::CloudStack::start(seed).await?)),
        #[cfg(feature = "openstack")]
        "openstack" => Ok(Arc::new(openstack::OpenStack::start(seed).await?)),
        #[cfg(feature = "phoenixnap")]
        "phoenixnap" => Ok(Arc::new(phoenixnap::PhoenixNap::start(seed).await?)),
        other => bail!("this demo was built without the cloud `{other}` (see the features of its crate)"),
    }
}

/// Names of the instances to begin with.
pub(crate) const INSTANCES: [&str; 3] = ["demo-node-1", "demo-node-2", "demo-node-3"];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A request in a journal, for what a cloud makes of it.
    pub(super) fn entry(method: http::Method, path: &str, body: Option<serde_json::Value>) -> Entry {
        Entry {
            seq: 0,
            at: Duration::ZERO,
            method,
            path: path.to_owned(),
            operation: String::new(),
            query: Vec::new(),
            body,
            write: true,
            lanes: Vec::new(),
            in_flight_with: Vec::new(),
            outcome: None,
            handled: None,
        }
    }
}
