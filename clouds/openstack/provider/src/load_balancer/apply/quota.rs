//! What a refusal for a quota is told with: the quota, and how much of it is used, where the API tells them.

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_openstack_client::{BalancerQuota, Client};

use crate::allowance;
use crate::load_balancer::learned::Learned;
use crate::load_balancer::step::{CloudStep, FloatingIpChange};

/// Adds it to the answer of a write, with one call. The book of refusals holds the write back, so that is rarely asked.
pub(super) async fn named(
    client: &Client,
    step: &CloudStep,
    made: Result<Learned, CloudError>,
) -> Result<Learned, CloudError> {
    let said = match &made {
        Ok(Learned::Refused(why)) if why.is_limit => &*why.reason,
        Err(error) if error.kind() == ErrorKind::Exhausted => error.message(),
        _ => return made,
    };
    let Some(told) = of(client, step, said).await else {
        return made;
    };
    match made {
        Ok(Learned::Refused(mut why)) => {
            why.reason = format!("{}; {told}", why.reason);
            Ok(Learned::Refused(why))
        }
        made => made.map_err(|error| error.context(told)),
    }
}

/// A quota of Octavia: the word for it in `QuotaException`, which may be that of a part where a load balancer is made with all of them;
/// its name for people; what the project may have.
type OfOctavia = (&'static str, &'static str, fn(&BalancerQuota) -> Option<i64>);

const OF_OCTAVIA: [OfOctavia; 5] = [
    ("resources: load", "load balancers", |quota| quota.load_balancer),
    ("resources: listener", "listeners", |quota| quota.listener),
    ("resources: pool", "pools", |quota| quota.pool),
    ("resources: member", "members", |quota| quota.member),
    ("resources: health", "health monitors", |quota| {
        quota.health_monitor
    }),
];

/// The quota of what a step makes; `None` where it is not told.
async fn of(client: &Client, step: &CloudStep, said: &str) -> Option<String> {
    match step {
        CloudStep::CreateBalancer { .. } | CloudStep::Part { .. } => {
            let said = said.to_ascii_lowercase();
            let (_, what, of) = OF_OCTAVIA.iter().find(|(word, ..)| said.contains(word))?;
            let most = of(&client.load_balancer_quota().await.ok()??)?;
            (most >= 0).then(|| format!("the project may have {most} {what}"))
        }
        CloudStep::FloatingIp(FloatingIpChange::Create { .. }) => {
            let usage = client.floating_ip_quota().await.ok()??;
            let quota = allowance::of_quota("floating IPs", usage.used + usage.reserved, usage.limit);
            quota.is_lacking.then_some(quota.text)
        }
        _ => None,
    }
}
