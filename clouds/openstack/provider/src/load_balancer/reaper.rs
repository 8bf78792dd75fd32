//! The background work that deletes the ports that refused creations of load balancers left behind: for all Services, and for those that
//! are gone by then. A port goes if it is [ours](crate::load_balancer::leaks), if Octavia says that its load balancer is not there, and if no floating IP
//! leads to it. Of others a person is told.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{
    BackgroundFacts, BackgroundWork, CloudError, LoadBalancerPlan, LoadBalancerStatus, LoadBalancerStep,
    Memory, Reconciler, Seen,
};
use bowline_openstack_client::{Client, Port};
use bowline_plan::{Answer, Plan, Refusal, Step as _};

use crate::load_balancer::observe::reads::Reads;
use crate::load_balancer::step::{CloudStep, delete_port};

/// Time between two runs. One that knows of no port asks nobody.
const PERIOD: Duration = Duration::from_secs(60);

/// Deletes the ports.
pub(crate) struct Reaper {
    pub(crate) client: Client,
    pub(crate) reads: Arc<Reads>,
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
        match last {
            Some(last) => Ok(last),
            None if self.reads.leaks.is_due() => self.reads.left_behind().await,
            None => Ok(Vec::new()),
        }
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
        let steps = seen.observed.iter().map(delete_port).map(LoadBalancerStep::Cloud);
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

    fn learn(
        &self,
        seen: &mut Seen<Vec<Port>, (), CloudStep>,
        step: &CloudStep,
        learned: Result<(), CloudError>,
    ) {
        if let CloudStep::DeletePort { port, name } = step {
            match learned {
                Ok(()) => self.reads.leaks.forget(port),
                Err(error) => {
                    tracing::warn!(port = %port, name, err = %error, "A port that a refused creation of a load balancer left behind is not deleted, will be tried again");
                    self.reads.leaks.put_off(port);
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
