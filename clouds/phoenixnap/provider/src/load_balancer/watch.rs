//! Looks at the public network of Services when the controllers start, and now and then after that. Nobody waits for it: the API
//! may take its time, and nothing depends on the answer.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{
    BackgroundFacts, BackgroundWork, CloudError, LoadBalancerPlan, LoadBalancerStatus, Memory, Reconciler,
    Seen,
};
use bowline_plan::{Answer, Plan, Refusal};

use crate::load_balancer::observe::network::{AGE, Network};
use crate::load_balancer::step::CloudStep;

/// Time between two tries to read what is not known.
const AGAIN: Duration = Duration::from_secs(30);

/// Keeps what is known of the public network current.
pub(crate) struct NetworkWatch {
    pub(crate) network: Arc<Network>,
}

impl Reconciler for NetworkWatch {
    type Facts = BackgroundFacts;
    type Intent = ();
    type Observed = ();
    type Remembered = ();
    type Step = CloudStep;
    type Learned = ();

    fn intent(&self, _facts: &BackgroundFacts) -> Result<(), Refusal> {
        Ok(())
    }

    /// A failure is told by the read itself, and is none of this work.
    async fn observe(&self, _: &(), _: Option<()>, _: &mut Memory<(), CloudStep>) -> Result<(), CloudError> {
        self.network.refresh().await;
        Ok(())
    }

    fn plan(&self, _: &(), _: &Seen<(), (), CloudStep>) -> LoadBalancerPlan<CloudStep> {
        Plan::new(Answer::Settled(LoadBalancerStatus::empty()))
    }
}

impl BackgroundWork for NetworkWatch {
    fn name(&self) -> &'static str {
        "phoenixnap-network"
    }

    fn period(&self) -> Duration {
        match self.network.known() {
            Some(_) => AGE,
            None => AGAIN,
        }
    }

    fn first(&self) -> Duration {
        Duration::ZERO
    }
}
