//! Makes the writes: each is one command, which starts a job.

use bowline_cloud_provider::CloudError;
use bowline_cloudstack_client::{
    ApiError, Association, Class, Client, Deleted, JobId, Made, NewFilter, NewLoadBalancerRule, Started,
};
use tokio::time::{Instant, timeout};

use crate::load_balancer::claim::VALIDITY;
use crate::load_balancer::intent::Identity;
use crate::load_balancer::objects::FirewallId;
use crate::load_balancer::observe::address_requests::AddressRequests;
use crate::load_balancer::observe::failures::Failure;
use crate::load_balancer::observe::learn::Learned;
use crate::load_balancer::observe::observed::{Pending, Seen};
use crate::load_balancer::observe::refused::refused;
use crate::load_balancer::step::{Acquisition, Closing, CloudStep, RuleChange};

/// Makes writes for one reconcile.
pub(crate) struct Writer<'a> {
    pub(crate) client: &'a Client,
    pub(crate) identity: &'a Identity,
    pub(crate) observed: &'a Seen,
}

/// The job of a command that was taken, and what it makes; `None` if nothing is left to do.
type Taken = Option<(JobId, Made)>;

fn making<Id: Into<Made>>(started: Started<Id>) -> Taken {
    Some((started.job, started.id.map_or(Made::Untold, Into::into)))
}

fn deleting(deleted: Deleted) -> Taken {
    match deleted {
        Deleted::Started(job) => Some((job, Made::Untold)),
        Deleted::AlreadyGone => None,
    }
}

impl Writer<'_> {
    /// Makes one write. Fails only if nothing was sent, because this process may not write now. Of a request for an address it
    /// is noted whether anything may come.
    pub(crate) async fn apply(
        &self,
        step: &CloudStep,
        address_requests: &AddressRequests,
    ) -> Result<Learned, CloudError> {
        let since = Instant::now();
        let request = step.address_request();
        let sent = match &request {
            Some(request) => {
                address_requests.asked(&self.identity.uid, request);
                timeout(VALIDITY, self.send(step)).await
            }
            None => Ok(self.send(step).await),
        };
        let error = match sent {
            Ok(Ok(taken)) => return Ok(self.taken(step, taken, since)),
            Ok(Err(error)) => error,
            Err(_) => {
                let told = CloudError::transient(format!("no answer within {} s", VALIDITY.as_secs()));
                return Ok(Learned::Failed(
                    Failure::new(step.said(told), false).unheard(true),
                ));
            }
        };
        if let Some(request) = &request {
            address_requests.answered(&self.identity.uid, request, &error);
        }
        if error.class == Class::NotSent {
            return Err(error.into());
        }
        let mut learned = refused(self.client, self.identity, self.observed, step, &error).await;
        if let Learned::Failed(failure) = &mut learned {
            let is_in_doubt = request.is_some() || step.takes_away();
            failure.is_definite &= !(is_in_doubt && error.maybe_applied());
        }
        Ok(learned)
    }

    fn taken(&self, step: &CloudStep, taken: Taken, since: Instant) -> Learned {
        let Some((job, makes)) = taken else {
            return Learned::Gone;
        };
        Learned::Started(Box::new(Pending {
            job,
            step: step.clone(),
            makes,
            since,
            heard: since,
            nonsense: 0,
            is_rollback: self.observed.memory.own.failure.is_some(),
        }))
    }

    async fn send(&self, step: &CloudStep) -> Result<Taken, ApiError> {
        let client = self.client;
        Ok(match step {
            CloudStep::Associate(Acquisition { address, to, .. }) => {
                let to = match &to.vpc {
                    Some(vpc) => Association::Vpc(vpc.clone()),
                    None => Association::Network(to.network.clone()),
                };
                let ip = address.as_ref().map(|address| address.ip.as_str());
                making(client.associate_ip_address(&to, ip).await?)
            }
            CloudStep::Release { address, .. } => {
                deleting(client.disassociate_ip_address(&address.id).await?)
            }
            CloudStep::CreateRule(new) => {
                let new = NewLoadBalancerRule {
                    name: new.name.clone(),
                    algorithm: new.algorithm.clone(),
                    protocol: new.protocol.as_str().into(),
                    public_ip: new.address.id.clone(),
                    public_port: new.public_port,
                    private_port: new.private_port,
                    network: new.network.clone(),
                    cidrs: new.cidrs.clone(),
                };
                making(client.create_load_balancer_rule(&new).await?)
            }
            CloudStep::ChangeRule(rule, change) => {
                let id = &rule.id;
                let job = match change {
                    RuleChange::Update(to) => client.update_load_balancer_rule(id, to).await?,
                    RuleChange::Delete(_) => {
                        return Ok(deleting(client.delete_load_balancer_rule(id).await?));
                    }
                    RuleChange::Stick(new) => {
                        return Ok(making(client.create_stickiness_policy(id, new).await?));
                    }
                    RuleChange::Unstick(old) => {
                        return Ok(deleting(client.delete_stickiness_policy(&old.id).await?));
                    }
                    RuleChange::Assign(added) => client.assign_to_load_balancer_rule(id, added).await?,
                    RuleChange::Unassign(left) => client.remove_from_load_balancer_rule(id, left).await?,
                };
                Some((job, Made::Untold))
            }
            CloudStep::Open(new) => {
                let filter = NewFilter {
                    protocol: new.ingress.protocol.to_string(),
                    port: new.ingress.port,
                    cidrs: new.sources.clone(),
                };
                match &new.at.id {
                    FirewallId::Address(id) => making(client.create_firewall_rule(id, &filter).await?),
                    FirewallId::Acl(id) => {
                        making(client.create_network_acl(id, &new.network, &filter).await?)
                    }
                }
            }
            CloudStep::Close(Closing { at, rule, .. }) => deleting(match at.id {
                FirewallId::Address(_) => client.delete_firewall_rule(&rule.id).await?,
                FirewallId::Acl(_) => client.delete_network_acl(&rule.id.as_str().into()).await?,
            }),
        })
    }
}
