//! Which ports Octavia made for load balancers that are not there.

use bowline_cloud_provider::CloudError;
use bowline_openstack_client::{LoadBalancerId, Port};
use futures::future::try_join_all;

use super::Reads;
use crate::observe::Leaked;

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

impl Reads {
    /// Each load balancer that the list does not have is asked for: only that proves that it is not there.
    pub(super) async fn leaked(&self) -> Result<Leaked, CloudError> {
        let lists = (
            self.list_with(&self.balancers),
            self.floating_ips.ask(),
            self.ports.ask(),
        );
        let (balancers, floating_ips, ports) = futures::try_join!(lists.0, lists.1, lists.2)?;
        let is_used = |port: &Port| {
            floating_ips
                .iter()
                .any(|there| there.port_id.as_ref() == Some(&port.id))
        };
        let is_listed = |id: &LoadBalancerId| balancers.iter().any(|there| there.id == *id);
        let made = || ports.iter().filter_map(|port| Some((made_for(port)?, port)));
        let read =
            made()
                .filter(|(id, port)| !is_listed(id) && !is_used(port))
                .map(|(id, port)| async move {
                    let there = self.client.load_balancer(&id).await?;
                    Ok::<_, CloudError>(there.is_none().then(|| port.clone()))
                });
        Ok(Leaked {
            ports: try_join_all(read).await?.into_iter().flatten().collect(),
            is_credible: made().any(|(id, _)| is_listed(&id)),
        })
    }
}
