//! The provider as a whole.

use std::sync::Arc;

use bowline_cloud_http::{CloudHttp, CredentialsFile};
use bowline_cloud_provider::{CloudProvider, InstancesV2, LoadBalancer};
use bowline_cloudstack_client::{Client, Keys, Project, WallClock};

use crate::config::Options;
use crate::config::start::Introduction;
use crate::load_balancer::Balancers;
use crate::nodes::Instances;
use crate::provider_id::{self, PROVIDER_NAME, Reference};
use crate::version::ServerVersion;
use crate::virtual_machines::VirtualMachines;

/// The ServiceAccount that annotations of Services are written with, where each controller has one of its own: the Go manager's,
/// which is the process's, too.
pub const SERVICE_ACCOUNT: &str = "cloud-controller-manager";

/// The Apache CloudStack provider.
pub struct CloudStack {
    instances: Arc<Instances>,
    balancers: Arc<dyn LoadBalancer>,
}

impl CloudStack {
    /// The provider over an HTTP stack. Makes no call. With a file of keys, those in it are used as they are then.
    #[must_use]
    pub fn new(
        http: CloudHttp,
        options: &Options,
        keys: Option<CredentialsFile<Keys>>,
        introduction: Introduction,
        clock: WallClock,
    ) -> Self {
        let mut settings = options.settings.clone();
        if let Some(project) = introduction.project {
            settings.project = Some(Project::Id(project));
        }
        let client = Client::new(http, &settings, keys, Arc::clone(&clock));
        let virtual_machines = Arc::new(VirtualMachines::new(&client));
        let version = ServerVersion::new(&client, options.version.clone(), introduction.version);
        Self {
            balancers: Arc::new(Balancers::new(
                &client,
                Arc::clone(&virtual_machines),
                version,
                clock,
            )),
            instances: Arc::new(Instances::new(virtual_machines, options.nodes.clone())),
        }
    }
}

impl CloudProvider for CloudStack {
    fn name(&self) -> &'static str {
        PROVIDER_NAME
    }

    fn has_bare_id(&self, id: &str) -> bool {
        matches!(provider_id::parse(id), Reference::Instance(_))
    }

    fn has_cluster_id(&self) -> bool {
        true
    }

    fn instances(&self) -> Option<Arc<dyn InstancesV2>> {
        Some(Arc::clone(&self.instances) as Arc<dyn InstancesV2>)
    }

    fn load_balancer(&self) -> Option<Arc<dyn LoadBalancer>> {
        Some(Arc::clone(&self.balancers))
    }

    fn service_account(&self) -> Option<&'static str> {
        Some(SERVICE_ACCOUNT)
    }
}
