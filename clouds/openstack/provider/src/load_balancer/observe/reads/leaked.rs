//! Which ports Octavia made for load balancers that are not there.

use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_cloud_provider::CloudError;
use bowline_openstack_client::{FloatingIp, LoadBalancer, LoadBalancerId, Port, PortId};
use futures::future::try_join_all;

use super::Reads;
use crate::load_balancer::leaks::Leak;
use crate::load_balancer::memory::Remembered;
use crate::load_balancer::observed::Leaked;
use crate::load_balancer::vip_ports;

/// The lists that tell it, each once for all who ask.
struct Lists {
    balancers: Arc<Vec<LoadBalancer>>,
    floating_ips: Arc<Vec<FloatingIp>>,
    ports: Arc<Vec<Port>>,
}

impl Lists {
    fn alone(&self) -> impl Iterator<Item = (LoadBalancerId, &Port)> {
        vip_ports::without_balancer(&self.ports, &self.balancers)
    }

    fn is_used(&self, port: &Port) -> bool {
        let mut leading = self.floating_ips.iter();
        leading.any(|there| there.port_id.as_ref() == Some(&port.id))
    }

    /// Whether Neutron shows the port of a load balancer that Octavia shows, if there is any: the two are of one cloud and one project.
    fn is_credible(&self) -> bool {
        let mut made = self.ports.iter().filter_map(vip_ports::made_for);
        self.balancers.is_empty() || made.any(|id| self.balancers.iter().any(|there| there.id == id))
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
    async fn proved(&self, suspects: Vec<(LoadBalancerId, &Port)>) -> Result<Vec<Port>, CloudError> {
        let read = suspects.into_iter().map(|(id, port)| async move {
            let there = self.client.load_balancer(&id).await?;
            Ok::<_, CloudError>(there.is_none().then(|| port.clone()))
        });
        Ok(try_join_all(read).await?.into_iter().flatten().collect())
    }

    /// What came with the creation that was just refused, and the ports that there are now.
    pub(super) async fn leaked(&self, own: &Remembered) -> Result<(Leaked, Arc<Vec<Port>>), CloudError> {
        let lists = self.lists().await?;
        let mut leaked = Leaked::default();
        if let (Some(refused), Some(before)) = (&own.refused_creation, &own.ports_before)
            && let Some(place) = &refused.place
        {
            let came = lists.alone();
            let came = came.filter(|(_, port)| !before.contains(&port.id) && place.fits(port));
            let came: Vec<_> = came.collect();
            if !refused.had_port {
                leaked.doubtful = self.proved(came).await?;
            } else if place.address.is_some() {
                // The creation had the address, so nobody else did.
                let unused = came.into_iter().filter(|(_, port)| !lists.is_used(port));
                leaked.in_the_way = self.proved(unused.collect()).await?;
                let ids = leaked.in_the_way.iter().map(|port| &port.id);
                ids.for_each(|id| self.leaks.put_off(id));
            } else if !came.is_empty() {
                let came = came.iter().map(|(_, port)| port.id.clone()).collect();
                self.leaks.add(Leak::new(Arc::clone(before), place.clone(), came));
            }
        }
        Ok((leaked, lists.ports))
    }

    /// The ports that refused creations of this process left behind a while ago, and that are to go.
    pub(crate) async fn left_behind(&self) -> Result<Vec<Port>, CloudError> {
        let lists = self.lists().await?;
        if !lists.is_credible() {
            return Ok(Vec::new());
        }
        let there: BTreeSet<_> = lists.ports.iter().map(|port| &port.id).collect();
        let alone: Vec<&Port> = lists.alone().map(|(_, port)| port).collect();
        for port in self.leaks.tell_apart(&there, &alone) {
            tracing::warn!(port = %port, "Octavia made a port for a load balancer that is not there, as a refused creation leaves it, and it cannot be told whether that was this cluster's: the port stays. If nothing needs it, delete it (`openstack port delete`)");
        }
        let ripe = self.leaks.ripe();
        let suspects = lists
            .alone()
            .filter(|(_, port)| ripe.contains(&port.id) && !lists.is_used(port));
        let ports = self.proved(suspects.collect()).await?;
        let is_to_go = |id: &PortId| ports.iter().any(|port| port.id == *id);
        let others = ripe.iter().filter(|id| !is_to_go(id));
        others.for_each(|id| self.leaks.forget(id));
        Ok(ports)
    }
}
