//! Makes the writes.

use bowline_cloud_provider::{CloudError, WriteOutcome};
use bowline_cloudscale_client::{
    ApiError, Class, Client, Deleted, LoadBalancerId, LoadBalancerStatus, PoolId, Stub,
};
use bowline_plan::{Refusal, Step as _};

use crate::load_balancer::observe::{Object, Seen};
use crate::load_balancer::refused::Place;
use crate::load_balancer::step::{CloudStep, PartChange};

mod in_the_way;
mod put_back;
mod refusals;

use crate::load_balancer::apply::refusals::{can_be_in_the_way, holds_up_nothing, is_refusal, of_write};

/// What the answer to a write told.
#[derive(Debug, Default)]
pub(crate) struct Learned {
    /// What was made or changed.
    pub(crate) told: Option<Told>,
    /// Whether the old object of the step is gone, or was not asked for.
    pub(crate) old_is_gone: bool,
    /// The number of a floating IP's move among all of them: each is told of.
    pub(crate) move_number: u64,
    /// Whether the API wants no two pools of one name.
    pub(crate) is_crowded: bool,
    /// The pool that the API does not delete as long as something hangs on it.
    pub(crate) in_use: Option<PoolId>,
    /// Why the API refused something that holds up nothing else.
    pub(crate) refused: Option<Refusal>,
    /// Whether something went for it to make room there, and there was none; `None` if it says nothing about that.
    pub(crate) is_still_full: Option<(Place, bool)>,
    /// Whether nothing more is to go for something that comes.
    pub(crate) ends_exchange: bool,
    /// Whether it was refused as a conflict, by a balancer that is at rest.
    pub(crate) is_conflict: bool,
    /// Whether nothing, or only the first half, happened because the balancer is, or may have been, busy: it is to be waited for.
    pub(crate) is_busy: bool,
}

/// What is told of an object that was made or changed.
#[derive(Debug)]
pub(crate) enum Told {
    /// It is like this.
    Shown(Box<Object>),
    /// The API took it; the answer shows nothing.
    AsAsked,
}

impl Learned {
    fn told(told: Told) -> Self {
        Self {
            told: Some(told),
            ..Self::default()
        }
    }

    fn shown(object: Object) -> Self {
        Self::told(Told::Shown(Box::new(object)))
    }

    fn changed() -> Self {
        Self::told(Told::AsAsked)
    }

    pub(crate) fn gone() -> Self {
        Self {
            old_is_gone: true,
            ..Self::default()
        }
    }

    fn busy() -> Self {
        Self {
            is_busy: true,
            ..Self::default()
        }
    }
}

impl bowline_cloud_provider::Told for Learned {
    fn refused(&self) -> Option<&Refusal> {
        self.refused.as_ref()
    }

    fn made(&self) -> Option<u128> {
        let Some(Told::Shown(object)) = &self.told else {
            return None;
        };
        let id = match &**object {
            Object::Balancer(it) => it.uuid.0,
            Object::Pool(it) => it.uuid.0,
            Object::Member(_, it) => it.uuid.0,
            Object::Listener(it) => it.uuid.0,
            Object::Monitor(it) => it.uuid.0,
            Object::FloatingIp(_) => return None,
        };
        Some(id.as_u128())
    }

    /// Whether the API took it. Of a replacement the first half is enough: the second is another step by then.
    fn outcome(&self) -> WriteOutcome {
        if self.told.is_some() || self.old_is_gone {
            WriteOutcome::Taken
        } else if self.is_busy {
            WriteOutcome::PutOff
        } else {
            WriteOutcome::NotTaken
        }
    }

    /// Whether the other steps of the wave would meet the same: they are planned again as far as they can be made.
    fn ends_wave(&self) -> bool {
        self.is_busy
            || self.ends_exchange
            || self.in_use.is_some()
            || self.refused.as_ref().is_some_and(|why| why.is_limit)
    }
}

/// A write that failed.
struct Failed {
    error: ApiError,
    left: Left,
}

/// What a write left that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// Nothing is known to have changed.
    AsItWas,
    /// The old object is gone, and the new one was refused.
    NoOld,
    /// The new object is there, and the old one too.
    Both,
}

impl From<ApiError> for Failed {
    fn from(error: ApiError) -> Self {
        let left = Left::AsItWas;
        Self { error, left }
    }
}

/// Makes writes for one reconcile.
pub(crate) struct Writer<'a> {
    pub(crate) client: &'a Client,
    pub(crate) seen: &'a Seen,
}

impl Writer<'_> {
    /// Makes a step's write, and both halves of a replacement back to back.
    pub(crate) async fn apply(&self, step: &CloudStep) -> Result<Learned, CloudError> {
        let client = self.client;
        let outcome = match step {
            CloudStep::CreateBalancer { new } => {
                let created = client.create_load_balancer(new).await.map(Object::Balancer);
                created.map(Learned::shown).map_err(Failed::from)
            }
            CloudStep::RenameBalancer { balancer, name } => {
                let renamed = client.rename_load_balancer(*balancer, name).await;
                renamed.map(|()| Learned::changed()).map_err(Failed::from)
            }
            CloudStep::DeleteBalancer { balancer, .. } => {
                let deleted = client.delete_load_balancer(*balancer).await;
                deleted.map(|_| Learned::gone()).map_err(Failed::from)
            }
            CloudStep::AssignFloatingIp {
                address, balancer, ..
            } => {
                let assigned = client.assign_floating_ip(address.0, *balancer).await;
                assigned.map(|()| Learned::changed()).map_err(Failed::from)
            }
            CloudStep::Part { balancer, change } => self.change(*balancer, change).await,
        };
        match (outcome, step.balancer()) {
            (Ok(learned), _) => Ok(learned),
            (Err(Failed { error, .. }), Some(balancer))
                if let Some(busy) = self.busy(balancer, &error, Some(step)).await =>
            {
                Ok(busy)
            }
            (Err(Failed { error, left }), _) if left != Left::Both && holds_up_nothing(step, &error) => {
                let is_limit = error.class == Class::Exhausted;
                let is_conflict = error.class == Class::Conflict;
                let reason = format!("error during {}: {}", step.label(), of_write(error));
                Ok(Learned {
                    refused: Some(Refusal::new(reason).of_limit(is_limit)),
                    is_conflict,
                    old_is_gone: left == Left::NoOld,
                    ends_exchange: step.replaces(),
                    ..Learned::default()
                })
            }
            (Err(Failed { error, .. }), _) => Err(of_write(error)),
        }
    }

    /// What a write told that failed because the balancer is being changed: nothing happened, and it is to be waited for. A `step` that
    /// was refused before is known to be refused for what it asks.
    async fn busy(
        &self,
        balancer: LoadBalancerId,
        error: &ApiError,
        step: Option<&CloudStep>,
    ) -> Option<Learned> {
        // The refusal says more than a failure to look into it.
        let balancer = match is_refusal(error) {
            true => self.client.load_balancer(balancer).await.ok()?,
            false => return None,
        };
        if balancer.status == LoadBalancerStatus::Changing {
            return Some(Learned::busy());
        }
        let memory = &self.seen.memory;
        let was_refused = |step: &CloudStep| {
            let mut refused = memory.refusals.tried_again();
            refused.any(|(known, why)| !why.by.is_failure() && known.asks_for_the_same(step))
        };
        let is_refuted = memory.own.busy.is_refuted(step) || step.is_some_and(was_refused);
        (error.class == Class::Conflict && !is_refuted).then(|| Learned {
            is_conflict: true,
            ..Learned::busy()
        })
    }

    async fn change(&self, balancer: LoadBalancerId, change: &PartChange) -> Result<Learned, Failed> {
        use PartChange::{DeleteListener, DeleteMember, DeleteMonitor, DeletePool, Listener, Pool};
        match (change, change.old()) {
            // The deletion comes first, and may be all.
            (
                Pool { .. }
                | Listener { makes_room: true, .. }
                | DeletePool { .. }
                | DeleteMember { .. }
                | DeleteListener { .. }
                | DeleteMonitor { .. },
                Some(_),
            ) => match (self.remove(change).await, change) {
                (Ok(()), _) => self.second_half(change).await,
                (Err(error), DeletePool { old, .. } | Pool { old: Some(old), .. })
                    if self.is_in_use(old.id, &error).await =>
                {
                    let in_use = Some(old.id);
                    Ok(Learned {
                        in_use,
                        ..Learned::default()
                    })
                }
                (Err(error), _) => Err(error.into()),
            },
            (_, Some(_)) => self.replace(balancer, change).await,
            (_, None) => match (self.make(change).await, change) {
                (Ok(made), _) => Ok(made),
                (Err(error), Pool { new, .. })
                    if error.class != Class::Exhausted
                        && self.has_namesake(&new.name)
                        && self.blocks(balancer, &error).await =>
                {
                    Ok(Learned {
                        is_crowded: true,
                        ..Learned::default()
                    })
                }
                (Err(error), _) => Err(error.into()),
            },
        }
    }

    /// Makes what a change asks for, if it does not only delete.
    async fn make(&self, change: &PartChange) -> Result<Learned, ApiError> {
        let client = self.client;
        let object = match change {
            PartChange::Pool { new, .. } => Object::Pool(client.create_pool(new).await?),
            PartChange::Member { pool, new, .. } => {
                Object::Member(*pool, client.create_member(*pool, new).await?)
            }
            PartChange::Listener { new, .. } => {
                let mut listener = client.create_listener(new).await?;
                listener.pool.get_or_insert(Stub { uuid: new.pool }); // an answer need not show it
                Object::Listener(listener)
            }
            PartChange::Monitor { new, .. } => Object::Monitor(client.create_monitor(new).await?),
            PartChange::UpdateListener { id, change, .. } => {
                client.update_listener(*id, change).await?;
                return Ok(Learned::changed());
            }
            PartChange::UpdateMonitor { id, change, .. } => {
                client.update_monitor(*id, change).await?;
                return Ok(Learned::changed());
            }
            _ => return Ok(Learned::default()),
        };
        Ok(Learned::shown(object))
    }

    /// Deletes what goes by a change, whoever may have deleted it before.
    async fn remove(&self, change: &PartChange) -> Result<(), ApiError> {
        let client = self.client;
        match change {
            PartChange::Pool { old: Some(old), .. } | PartChange::DeletePool { old, .. } => {
                self.delete_pool(old.id).await?;
            }
            PartChange::Member {
                pool, old: Some(old), ..
            }
            | PartChange::DeleteMember { pool, old } => drop(client.delete_member(*pool, old.id).await?),
            PartChange::Listener { old: Some(old), .. } | PartChange::DeleteListener { old } => {
                client.delete_listener(old.id).await?;
            }
            PartChange::Monitor { old: Some(old), .. } | PartChange::DeleteMonitor { old, .. } => {
                client.delete_monitor(old.id).await?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Creates beside the old object and deletes that; if the API refuses, deletes and creates with no call in between. If the
    /// API refuses that too, the old object was not in the way, and is put back.
    ///
    /// The deletion is left to a later wave, where the old object is a surplus one, if the API wants the creation to be
    /// done before: nothing is created a second time for it.
    ///
    /// # Cancellation
    ///
    /// Between the halves either both objects or none are left: the next reconcile removes the surplus one or creates the
    /// missing one.
    async fn replace(&self, balancer: LoadBalancerId, change: &PartChange) -> Result<Learned, Failed> {
        match self.make(change).await {
            Ok(made) => {
                let busy = |made| Learned {
                    is_busy: true,
                    ..made
                };
                if self.seen.memory.own.busy.was_once {
                    return Ok(busy(made));
                }
                match self.remove(change).await {
                    Ok(()) => Ok(Learned {
                        old_is_gone: true,
                        ..made
                    }),
                    Err(error) if self.busy(balancer, &error, None).await.is_some() => Ok(busy(made)),
                    // The new object is found by the next reconcile.
                    Err(error) => Err(Failed {
                        error,
                        left: Left::Both,
                    }),
                }
            }
            Err(error)
                if self.blocks(balancer, &error).await
                    || self.is_in_the_way(balancer, change, &error).await =>
            {
                self.remove(change).await?;
                self.second_half(change).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the new object, if any, when the old one is gone. If it is refused all the same, the old one is put back.
    async fn second_half(&self, change: &PartChange) -> Result<Learned, Failed> {
        match self.make(change).await {
            Ok(made) => Ok(Learned {
                old_is_gone: true,
                ..made
            }),
            // Busy with the deletion: the creation is planned again as soon as it is done.
            Err(error) if error.class == Class::Conflict => Ok(Learned {
                old_is_gone: true,
                ..Learned::busy()
            }),
            Err(error) => {
                if matches!(error.class, Class::Invalid | Class::Exhausted) {
                    self.put_back(change).await;
                }
                Err(Failed {
                    error,
                    left: Left::NoOld,
                })
            }
        }
    }

    /// Whether a refusal means that the old object is in the way: not if the balancer is busy.
    async fn blocks(&self, balancer: LoadBalancerId, error: &ApiError) -> bool {
        can_be_in_the_way(error) && self.is_at_rest(balancer).await
    }

    async fn is_at_rest(&self, balancer: LoadBalancerId) -> bool {
        let balancer = self.client.load_balancer(balancer).await;
        balancer.is_ok_and(|balancer| balancer.status != LoadBalancerStatus::Changing)
    }

    fn has_namesake(&self, name: &str) -> bool {
        self.seen.pools.iter().any(|pool| pool.pool.name == name)
    }

    /// Deletes a pool; its listeners first, because the API may leave them without a pool on their ports.
    async fn delete_pool(&self, id: PoolId) -> Result<Deleted, ApiError> {
        let pool = self.seen.pool(id);
        for listener in pool.iter().flat_map(|pool| &pool.listeners) {
            self.client.delete_listener(listener.uuid).await?;
        }
        self.client.delete_pool(id).await
    }

    /// Whether a pool may have been refused to go because something hangs on it, whatever the API says: all of that goes anyway, once.
    async fn is_in_use(&self, id: PoolId, error: &ApiError) -> bool {
        let is_news = !self.seen.memory.own.pools_in_use.contains(&id);
        match self.seen.pool(id) {
            Some(pool) if is_news && is_refusal(error) => self.is_at_rest(pool.pool.load_balancer.uuid).await,
            _ => false,
        }
    }
}
