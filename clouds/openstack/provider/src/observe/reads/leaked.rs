//! Which ports Octavia made for load balancers that are not there.

use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_cloud_provider::{CloudError, spelling};
use bowline_openstack_client::{FloatingIp, LoadBalancer, LoadBalancerId, Port, PortId};
use futures::future::try_join_all;

use super::Reads;
use crate::observe::{Leaked, Remembered};

/// The load balancer that Octavia made a port for, where name, owner and device all say so: as of its amphorae (`allocate_vip` of Octavia
/// 19), and of the provider ovn (`create_vip_port` of ovn-octavia-provider; its older ports bear the name alone).
fn made_for(port: &Port) -> Option<LoadBalancerId> {
    let id = port.device_id.strip_prefix("lb-")?;
    let name = match port.device_owner.as_str() {
        "Octavia" => "octavia-lb-",
        "ovn-lb:vip" => "ovn-lb-vip-",
        _ => return None,
    };
    (port.name.strip_prefix(name) == Some(id)).then(|| LoadBalancerId::from(id))
}

/// The lists that tell it, each once for all who ask.
struct Lists {
    balancers: Arc<Vec<LoadBalancer>>,
    floating_ips: Arc<Vec<FloatingIp>>,
    ports: Arc<Vec<Port>>,
}

impl Lists {
    /// The ports whose load balancer is not listed, and that no floating IP leads to.
    fn suspects(&self) -> impl Iterator<Item = (LoadBalancerId, &Port)> {
        let is_used = |port: &Port| {
            let mut leading = self.floating_ips.iter();
            leading.any(|there| there.port_id.as_ref() == Some(&port.id))
        };
        let made = self.ports.iter().filter_map(|port| Some((made_for(port)?, port)));
        made.filter(move |(id, port)| !self.is_listed(id) && !is_used(port))
    }

    fn is_listed(&self, id: &LoadBalancerId) -> bool {
        self.balancers.iter().any(|there| there.id == *id)
    }

    /// Whether Neutron shows the port of a load balancer that Octavia shows, if there is any: the two are of one cloud and one project.
    fn is_credible(&self) -> bool {
        let mut made = self.ports.iter().filter_map(made_for);
        self.balancers.is_empty() || made.any(|id| self.is_listed(&id))
    }
}

impl Reads {
    async fn lists(&self) -> Result<Lists, CloudError> {
        let (balancers, floating_ips, ports) = futures::try_join!(
            self.list_with(&self.balancers),
            self.floating_ips.ask(),
            self.ports.ask()
        )?;
        Ok(Lists {
            balancers,
            floating_ips,
            ports,
        })
    }

    /// Those of which Octavia says that their load balancer is not there: a list alone proves nothing.
    async fn proved(
        &self,
        suspects: impl Iterator<Item = (LoadBalancerId, &Port)>,
    ) -> Result<Vec<Port>, CloudError> {
        let read = suspects.map(|(id, port)| async move {
            let there = self.client.load_balancer(&id).await?;
            Ok::<_, CloudError>(there.is_none().then(|| port.clone()))
        });
        Ok(try_join_all(read).await?.into_iter().flatten().collect())
    }

    /// What came with the creation that was just refused.
    pub(super) async fn leaked(&self, own: &Remembered) -> Result<Leaked, CloudError> {
        let Some(before) = &own.ports_before else {
            return Ok(Leaked::default());
        };
        let lists = self.lists().await?;
        let is_new = |port: &Port| before.iter().all(|there| there.id != port.id);
        let came: Vec<_> = lists.suspects().filter(|(_, port)| is_new(port)).collect();
        let asked = own.refused_address.as_deref().map(spelling::of_address);
        let has_asked = |port: &Port| {
            let mut addresses = port.fixed_ips.iter().map(|fixed| &fixed.ip_address);
            addresses.any(|address| Some(spelling::of_address(address)) == asked)
        };
        Ok(Leaked {
            came: came.iter().map(|(_, port)| port.id.clone()).collect(),
            in_the_way: self
                .proved(came.into_iter().filter(|(_, port)| has_asked(port)))
                .await?,
        })
    }

    /// Those of these ports that are there and whose load balancer is not; `None` if the cloud cannot be believed.
    pub(crate) async fn without_balancer(
        &self,
        known: &BTreeSet<PortId>,
    ) -> Result<Option<Vec<Port>>, CloudError> {
        let lists = self.lists().await?;
        if !lists.is_credible() {
            return Ok(None);
        }
        let suspects = lists.suspects().filter(|(_, port)| known.contains(&port.id));
        Ok(Some(self.proved(suspects).await?))
    }
}
