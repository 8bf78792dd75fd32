//! Ports that refused creations of load balancers left behind: Octavia makes the port first, looks at all else then, and does not take
//! the port back. They use up addresses, and nobody else removes them.
//!
//! Reconciles note which ports came with a creation that was refused; one background work deletes them for all Services, and for those
//! that are gone by then. A port is deleted if a creation of this process was refused as it came, if Octavia says that its load
//! balancer is not there, if no floating IP leads to it, and after ten minutes. Of other ports of that kind nobody knows whose they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::{
    BackgroundFacts, BackgroundWork, CloudError, LoadBalancerPlan, LoadBalancerStatus, LoadBalancerStep,
    Memory, Reconciler, Seen, WriteOutcome,
};
use bowline_openstack_client::{Client, Port, PortId};
use bowline_plan::{Answer, Plan, Refusal, Step as _};
use tokio::time::Instant;

use crate::observe::reads::Reads;
use crate::step::CloudStep;

/// For how long a port without its load balancer is left: its creation may be under way, and no request to Octavia lasts so long.
const AGE: Duration = Duration::from_secs(600);

/// Time between two runs. One that knows of no port asks nobody.
const PERIOD: Duration = Duration::from_secs(60);

/// The ports that came with creations that were refused, and since when that is known.
#[derive(Debug, Default)]
pub(crate) struct Leaks(Mutex<BTreeMap<PortId, Instant>>);

impl Leaks {
    /// Notes ports; those that are known keep their time.
    pub(crate) fn add(&self, ports: impl IntoIterator<Item = PortId>) {
        let mut since = self.lock();
        for port in ports {
            since.entry(port).or_insert_with(Instant::now);
        }
    }

    /// Those that have been known for long enough.
    fn ripe(&self) -> BTreeSet<PortId> {
        let since = self.lock();
        let ripe = since.iter().filter(|(_, since)| since.elapsed() >= AGE);
        ripe.map(|(port, _)| port.clone()).collect()
    }

    fn forget(&self, port: &PortId) {
        self.lock().remove(port);
    }

    /// It is looked at again after the same time.
    fn put_off(&self, port: &PortId) {
        self.lock().insert(port.clone(), Instant::now());
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PortId, Instant>> {
        // No code that can panic runs under the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Deletes the ports.
pub(crate) struct Reaper {
    pub(crate) client: Client,
    pub(crate) reads: Arc<Reads>,
    pub(crate) leaks: Arc<Leaks>,
}

impl Reconciler for Reaper {
    type Facts = BackgroundFacts;
    type Intent = ();
    /// The ports that are to go.
    type Observed = Vec<Port>;
    type Remembered = ();
    type Step = CloudStep;
    type Learned = Result<(), CloudError>;

    fn intent(&self, _: &BackgroundFacts) -> Result<(), Refusal> {
        Ok(())
    }

    async fn observe(
        &self,
        (): &(),
        last: Option<Vec<Port>>,
        _: &mut Memory<(), CloudStep>,
    ) -> Result<Vec<Port>, CloudError> {
        let ripe = self.leaks.ripe();
        match last {
            Some(last) => return Ok(last),
            None if ripe.is_empty() => return Ok(Vec::new()),
            None => {}
        }
        let Some(ports) = self.reads.without_balancer(&ripe).await? else {
            return Ok(Vec::new());
        };
        let is_gone_or_used = |id: &&PortId| ports.iter().all(|port| port.id != **id);
        ripe.iter()
            .filter(is_gone_or_used)
            .for_each(|id| self.leaks.forget(id));
        Ok(ports)
    }

    /// The next run looks anyway.
    async fn verify(
        &self,
        (): &(),
        last: Vec<Port>,
        _: &mut Memory<(), CloudStep>,
    ) -> Result<Vec<Port>, CloudError> {
        Ok(last)
    }

    fn plan(&self, (): &(), seen: &Seen<Vec<Port>, (), CloudStep>) -> LoadBalancerPlan<CloudStep> {
        let steps = seen.observed.iter().map(delete).map(LoadBalancerStep::Cloud);
        let settled = || Answer::Settled(LoadBalancerStatus::empty());
        Plan::new(Answer::apply_or(steps.collect(), settled))
    }

    async fn apply(
        &self,
        (): &(),
        _: &Seen<Vec<Port>, (), CloudStep>,
        step: &CloudStep,
    ) -> Result<Result<(), CloudError>, CloudError> {
        let CloudStep::DeletePort { port, .. } = step else {
            return Err(CloudError::other(format!("not the reaper's: {}", step.label())));
        };
        // One port must not end the run for the others.
        let deleted = self.client.delete_port(port).await;
        Ok(deleted.map(drop).map_err(CloudError::from))
    }

    fn outcome(&self, learned: &Result<(), CloudError>) -> WriteOutcome {
        match learned {
            Ok(()) => WriteOutcome::Taken,
            Err(_) => WriteOutcome::Unknown,
        }
    }

    fn learn(
        &self,
        seen: &mut Seen<Vec<Port>, (), CloudStep>,
        step: &CloudStep,
        learned: Result<(), CloudError>,
    ) {
        if let CloudStep::DeletePort { port, name } = step {
            match learned {
                Ok(()) => self.leaks.forget(port),
                Err(error) => {
                    tracing::warn!(port = %port, name, err = %error, "A port that a refused creation of a load balancer left behind is not deleted, will be tried again");
                    self.leaks.put_off(port);
                }
            }
        }
        self.predict(seen, step);
    }

    fn predict(&self, seen: &mut Seen<Vec<Port>, (), CloudStep>, step: &CloudStep) {
        if let CloudStep::DeletePort { port, .. } = step {
            seen.observed.retain(|there| there.id != *port);
        }
    }
}

impl BackgroundWork for Reaper {
    fn name(&self) -> &'static str {
        "openstack-leaked-ports"
    }

    fn period(&self) -> Duration {
        PERIOD
    }
}

/// The write that takes a port away.
pub(crate) fn delete(port: &Port) -> CloudStep {
    CloudStep::DeletePort {
        port: port.id.clone(),
        name: port.name.clone(),
    }
}
