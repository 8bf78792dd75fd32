//! Writes floating IPs.

use bowline_cloud_provider::{CloudError, spelling};
use bowline_openstack_client::{ApiError, Client, NewFloatingIp, PortId, SubnetId};

use crate::load_balancer::intent::settings::Setting;
use crate::load_balancer::learned::{Learned, done, shown};
use crate::load_balancer::remedies;
use crate::load_balancer::step::FloatingIpChange;

/// Makes a write.
pub(super) async fn change(
    client: &Client,
    settings: &[Setting],
    change: &FloatingIpChange,
) -> Result<Learned, CloudError> {
    let made = match change {
        FloatingIpChange::Create { new, other_subnets } => create(client, new, other_subnets).await,
        FloatingIpChange::Attach {
            id,
            port,
            fixed,
            revision,
            ..
        } => {
            let attached = client.attach_floating_ip(id, port.as_ref(), fixed.as_deref(), *revision);
            attached.await.map(shown)
        }
        FloatingIpChange::Delete { id, .. } => client.delete_floating_ip(id).await.map(done),
    };
    let error = match made {
        Ok(learned) => return Ok(learned),
        Err(error) => error,
    };
    match (change, change.place()) {
        (
            FloatingIpChange::Attach {
                address, revision, ..
            },
            _,
        ) if error.is_outdated() => changed(client, address, *revision).await,
        (_, Some((port, fixed))) if error.is_associated() => present(client, port, fixed).await,
        _ => Err(remedies::of_write(settings, error)),
    }
}

/// Creates one in the first of its subnets that has an address left.
async fn create(client: &Client, new: &NewFloatingIp, others: &[SubnetId]) -> Result<Learned, ApiError> {
    let mut attempt = new.clone();
    for next in others {
        match client.create_floating_ip(&attempt).await {
            Ok(created) => return Ok(shown(created)),
            // Whether it came to be is not known: another try might make a second one. Where one is there, no place helps.
            Err(error) if error.maybe_applied() || error.is_associated() => return Err(error),
            Err(error) => {
                let subnet = attempt.subnet_id.as_ref().map(|id| id.as_str());
                tracing::warn!(subnet, err = %error, "No floating IP from this subnet, the next one is tried");
            }
        }
        attempt.subnet_id = Some(next.clone());
    }
    client.create_floating_ip(&attempt).await.map(shown)
}

/// A floating IP that was changed since it was read, as it is now.
async fn changed(client: &Client, address: &str, before: Option<u64>) -> Result<Learned, CloudError> {
    match client.floating_ip_at(address).await? {
        Some(now) if now.revision_number == before => Err(CloudError::transient(format!(
            "Neutron says that floating IP {address} was changed, and does not show how: it is looked at again"
        ))),
        Some(now) => Ok(shown(now)),
        None => Ok(Learned::Done(None)),
    }
}

/// The floating IP that leads to an address of a port already, which the list that was read before does not show: it was behind.
async fn present(client: &Client, port: &PortId, fixed: Option<&str>) -> Result<Learned, CloudError> {
    let there = client.floating_ips_of(port).await?;
    let leads_to_address = |shown: &Option<String>| {
        let shown = shown.as_deref().map(spelling::of_address);
        shown.is_none_or(|shown| fixed.is_none_or(|fixed| spelling::of_address(fixed) == shown))
    };
    let found = there
        .into_iter()
        .find(|there| leads_to_address(&there.fixed_ip_address));
    // Neutron's own words name the address of the new one, another one each time.
    let hidden = || {
        CloudError::transient(format!(
            "Neutron says that a floating IP leads to port {port} already, and shows none: it is looked for again. If that goes on, the floating IP belongs to another project, and whoever runs that has to take it away"
        ))
    };
    found.map(shown).ok_or_else(hidden)
}
