//! Makes the writes.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, Kept};
use bowline_openstack_client::{ApiError, Class, Client};
use bowline_plan::{Refusal, RefusedBy, Step as _};
use tokio::time::Instant;

use crate::load_balancer::intent::settings::Setting;
use crate::load_balancer::learned::{Learned, done, shown};
use crate::load_balancer::remedies::{self, About};
use crate::load_balancer::step::PoolSetting;
use crate::load_balancer::step::{CloudStep, GroupChange, PartChange};

mod floating_ip;
pub(crate) mod port_groups;
mod quota;

use port_groups::{PortGroups, Way};

/// What a person can do about a pool that Octavia does not delete.
const POLICY_REMEDY: &str =
    "somebody made that policy: delete it, or have it lead elsewhere (`openstack loadbalancer l7policy`)";

/// What a person can do where the driver asks for another port with the address of the given one (`create_vip_port` of
/// ovn-octavia-provider before July 2026).
const GIVEN_PORT_REMEDY: &str = "a driver such as ovn may take no port that is given: take loadbalancer.openstack.org/port-id off the Service, delete the port, and set spec.loadBalancerIP to its address; or have the operator of the cloud update the driver";

/// What a person can do about a port whose security groups may not be changed (`update_port` in Neutron's policies).
const PORT_REMEDY: &str = "Neutron lets the owner of a port, or of its network, change it: have the project of cloud.conf own the servers' ports, have the operator of the cloud allow it, or set manage-security-groups = false in cloud.conf and open the node ports by hand";

/// What a person can do where Octavia says that a change is under way, and shows none.
const BUSY_REMEDY: &str = "no change of the load balancer is shown under way; if it stays so, ask the operator of the cloud to look at Octavia's workers: what they left locked is set free by them only";

/// When the answer to the creation of a load balancer was lost, and for how long that is waited for, by the load balancer's name.
#[derive(Debug, Default)]
pub(crate) struct LateCreations(Kept<String, (Instant, Duration)>);

/// How long a load balancer is waited for whose creation was answered by an error of a server in between; twice as long each time.
const SHORTEST_WAIT: Duration = Duration::from_secs(5);

/// The longest such time, and that after no answer at all.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

impl LateCreations {
    /// Whether the load balancer of this name may still come.
    pub(crate) fn may_come(&self, name: &String) -> bool {
        let is_waited_for = |(since, wait): (Instant, Duration)| since.elapsed() < wait;
        self.0.with(name, |late| late.is_some_and(is_waited_for))
    }

    fn lost(&self, name: &String, error: &ApiError) {
        self.0.with(name, |late| {
            let wait = late.map_or(SHORTEST_WAIT, |(_, wait)| LONGEST_WAIT.min(wait * 2));
            let wait = if error.is_late() { LONGEST_WAIT } else { wait };
            *late = Some((Instant::now(), wait));
        });
    }

    fn came(&self, name: &String) {
        self.0.with(name, |late| *late = None);
    }
}

/// Makes a step's write.
pub(crate) async fn apply(
    client: &Client,
    ports: &PortGroups,
    late: &LateCreations,
    settings: &[Setting],
    step: &CloudStep,
) -> Result<Learned, CloudError> {
    let made = write(client, ports, late, settings, step).await;
    quota::named(client, step, made).await
}

async fn write(
    client: &Client,
    ports: &PortGroups,
    late: &LateCreations,
    settings: &[Setting],
    step: &CloudStep,
) -> Result<Learned, CloudError> {
    let outcome = match step {
        CloudStep::CreateBalancer { new } => match client.create_load_balancer(new).await {
            // Octavia makes the port first also where it breaks on the rest ("An unknown exception occurred.").
            Err(error) if is_refusal(&error) || error.status() == Some(500) => {
                let why = told(settings, step, &error);
                Ok(Learned::Refused(match new.vip_port_id {
                    Some(_) if About::of(&why) == About::Address => why.with_remedy(GIVEN_PORT_REMEDY),
                    _ => why,
                }))
            }
            created => {
                match &created {
                    Ok(_) => late.came(&new.name),
                    Err(error) if error.maybe_applied() => late.lost(&new.name, error),
                    Err(_) => {}
                }
                created.map(shown)
            }
        },
        // It is told at the end, where it matters, by what is refused because of it.
        CloudStep::DeletePort { port, .. } => match client.delete_port(port).await {
            Err(error) if is_refusal(&error) => Ok(Learned::Refused(told(settings, step, &error))),
            deleted => deleted.map(done),
        },
        CloudStep::DeleteBalancer {
            balancer,
            name,
            cascade,
            ..
        } => {
            late.came(name);
            client.delete_load_balancer(balancer, *cascade).await.map(done)
        }
        CloudStep::Part { balancer, change } => match part(client, balancer, change).await {
            // The pool keeps what it has, and the event names the method.
            Err(error) if is_of_setting(change, &error) => {
                Ok(Learned::Refused(remedies::refusal(settings, &error)))
            }
            // Whoever made the policy is to take it off; all else goes on.
            Err(error) if matches!(change, PartChange::DeletePool { .. }) && error.is_of_policy() => Ok(
                Learned::Refused(told(settings, step, &error).with_remedy(POLICY_REMEDY)),
            ),
            Err(error) if holds_up_nothing(change, &error) => {
                Ok(Learned::Refused(told(settings, step, &error)))
            }
            Err(error) if may_wait(step, &error) => {
                let why = told(settings, step, &error).by(RefusedBy::Failure);
                Ok(failed(why, &error))
            }
            outcome => outcome,
        },
        CloudStep::FloatingIp(change) => return floating_ip::change(client, settings, change).await,
        CloudStep::Group(change) => {
            // Whatever goes wrong here is told together with the address.
            let outcome = group(client, ports, change).await;
            return Ok(outcome.unwrap_or_else(|error| {
                let is_of_port = matches!(change, GroupChange::Join { .. } | GroupChange::Leave { .. });
                let why = match is_of_port && error.status() == Some(403) {
                    true => {
                        let text = format!("error during {}: {error}", step.label());
                        Refusal::new(text).with_remedy(PORT_REMEDY)
                    }
                    false => told(settings, step, &error),
                };
                match error.class {
                    Class::Invalid | Class::Denied | Class::Exhausted => Learned::Refused(why),
                    _ => failed(why, &error),
                }
            }));
        }
    };
    match outcome {
        Err(error) if step.balancer().is_some() && error.is_busy() => {
            let why = told(settings, step, &error).by(RefusedBy::Failure);
            Ok(Learned::Conflict {
                why: why.with_remedy(BUSY_REMEDY),
                is_of_pool: error.is_of_pool(),
                is_refusal: false,
            })
        }
        outcome => outcome.map_err(|error| remedies::of_write(settings, error)),
    }
}

/// Why a step was refused, in the words of a failed one.
fn told(settings: &[Setting], step: &CloudStep, error: &ApiError) -> Refusal {
    let mut why = remedies::refusal(settings, error);
    why.reason = format!("error during {}: {}", step.label(), why.reason);
    why
}

/// Whether nothing was made, and asking for less may help.
fn is_refusal(error: &ApiError) -> bool {
    matches!(
        error.class,
        Class::Invalid | Class::NotFound | Class::Conflict | Class::Denied | Class::Exhausted
    )
}

/// Whether Octavia refuses this change of a part and nothing else for it. At a quota something else of the Service may make room. What
/// is in the way, or gone, was not seen so: that is looked at anew.
fn holds_up_nothing(change: &PartChange, error: &ApiError) -> bool {
    let is_of_part = !matches!(change, PartChange::UpdateBalancer { .. });
    let is_refusal = matches!(error.class, Class::Invalid | Class::Denied) || error.is_of_provider();
    error.class == Class::Exhausted || is_of_part && is_refusal
}

/// Whether a change of a part failed otherwise and is left for the next reconcile, so that it costs no other part anything. What is in the
/// way, or gone, is looked at anew then. The session remembers removals that fail.
fn may_wait(step: &CloudStep, error: &ApiError) -> bool {
    match error.class {
        Class::Conflict | Class::NotFound => !error.is_busy(),
        _ => error.status() == Some(500) && !step.removes(),
    }
}

/// Of a write that failed.
fn failed(why: Refusal, error: &ApiError) -> Learned {
    match error.maybe_applied() {
        true => Learned::Unheard(why),
        false => Learned::Failed(why),
    }
}

fn is_of_setting(change: &PartChange, error: &ApiError) -> bool {
    let PartChange::UpdatePool { update, .. } = change else {
        return false;
    };
    PoolSetting::of(update).is_some() && error.class == Class::Invalid
}

async fn part(
    client: &Client,
    balancer: &bowline_openstack_client::LoadBalancerId,
    change: &PartChange,
) -> Result<Learned, ApiError> {
    match change {
        PartChange::UpdateBalancer { update, .. } => {
            client.update_load_balancer(balancer, update).await.map(shown)
        }
        PartChange::CreateListener { new } => client.create_listener(new).await.map(shown),
        PartChange::UpdateListener { id, update, .. } => client.update_listener(id, update).await.map(shown),
        PartChange::DeleteListener { id, .. } => client.delete_listener(id).await.map(done),
        PartChange::CreatePool { new } => client.create_pool(new).await.map(shown),
        PartChange::UpdatePool { id, update, .. } => client.update_pool(id, update).await.map(shown),
        PartChange::DeletePool { id, .. } => client.delete_pool(id).await.map(done),
        PartChange::SetMembers { pool, members, .. } => client.replace_members(pool, members).await.map(done),
        PartChange::AddMember { pool, new } => client.create_member(pool, new).await.map(shown),
        PartChange::UpdateMember { pool, id, update } => {
            client.update_member(pool, id, update).await.map(shown)
        }
        PartChange::RemoveMember { pool, id, .. } => client.delete_member(pool, id).await.map(done),
        PartChange::CreateMonitor { new } => client.create_monitor(new).await.map(shown),
        PartChange::UpdateMonitor { id, update, .. } => client.update_monitor(id, update).await.map(shown),
        PartChange::DeleteMonitor { id, .. } => client.delete_monitor(id).await.map(done),
    }
}

async fn group(client: &Client, ports: &PortGroups, change: &GroupChange) -> Result<Learned, ApiError> {
    match change {
        GroupChange::Create { new } => client.create_security_group(new).await.map(shown),
        GroupChange::CreateRule { new } => match client.create_security_group_rule(new).await {
            // Somebody else was faster: the next look shows it.
            Err(error) if error.class == Class::Conflict => Ok(done(())),
            created => created.map(shown),
        },
        GroupChange::DeleteRule { id, .. } => client.delete_security_group_rule(id).await.map(done),
        GroupChange::Join { group, port } => ports.write(client, port, group, Way::Join).await,
        GroupChange::Leave { group, port } => ports.leave(client, port, group).await,
        GroupChange::Delete { group, .. } => client.delete_security_group(group).await.map(done),
    }
}
