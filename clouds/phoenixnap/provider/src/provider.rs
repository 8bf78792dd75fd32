//! The provider as a whole.

use std::sync::Arc;

use bowline_cloud_http::{CloudHttp, CredentialsFile};
use bowline_cloud_provider::{
    BackgroundFacts, BackgroundWork, CloudError, CloudProvider, ClusterUid, InstancesV2, LoadBalancer,
    Misfit, Question, RefusalBook,
};
use bowline_phoenixnap_client::{Class, Client, Credentials};

use crate::config::{LoadBalancing, Options};
use crate::load_balancer::Balancers;
use crate::load_balancer::intent::{correct_location, correct_network};
use crate::load_balancer::observe::network::Network;
use crate::load_balancer::observe::reads::Reads;
use crate::load_balancer::sweeper::Sweeper;
use crate::load_balancer::watch::NetworkWatch;
use crate::nodes::Servers;
use crate::nodes::provider_id::PROVIDER_NAME;

/// The ServiceAccount that writes to Services are made with, where each controller has one of its own. The vendor's manager has a
/// client of this name, and rights may have been given to it.
pub const SERVICE_ACCOUNT: &str = "cloud-provider-phoenixnap-shared-informers";

/// The phoenixNAP provider.
pub struct PhoenixNap {
    client: Client,
    servers: Arc<Servers>,
    balancing: Option<Balancing>,
}

struct Balancing {
    balancers: Arc<Balancers>,
    sweeper: Arc<Sweeper>,
    watch: Arc<NetworkWatch>,
}

impl Balancing {
    fn new(client: &Client, options: &Options, id: &str) -> Self {
        let network = Arc::new(Network::new(client, id.to_owned(), options.location.clone()));
        let reads = Arc::new(Reads::new(client, Arc::clone(&network)));
        Self {
            sweeper: Arc::new(Sweeper::new(client, &reads, id)),
            watch: Arc::new(NetworkWatch { network }),
            balancers: Arc::new(Balancers {
                client: client.clone(),
                reads,
                network: id.to_owned(),
                options: options.clone(),
                refusals: RefusalBook::default(),
            }),
        }
    }

    /// Whether the public network is there, and where blocks are bought.
    async fn misfits(&self) -> Result<Vec<Misfit>, CloudError> {
        let Balancers { network, options, .. } = &*self.balancers;
        let known = match self.balancers.client.public_network(network).await {
            Ok(known) => known,
            Err(error) if error.class == Class::Denied => {
                return Ok(vec![Misfit {
                    text: format!("public network {network} of {}: {error}", options.network_source),
                    remedy: correct_network(&options.network_source, network),
                }]);
            }
            // A gateway that does not have this call: nothing is compared.
            Err(error) if error.status() == Some(404) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let (Some(wanted), Some(location)) = (&options.location, &known.location) else {
            return Ok(Vec::new());
        };
        let fits = wanted.eq_ignore_ascii_case(location);
        let misfit = || Misfit {
            text: format!(
                "IP blocks are to be bought in {wanted} ({}), and public network {network} is in {location}: none of them could be attached",
                options.location_source
            ),
            remedy: correct_location(&options.location_source, wanted, location),
        };
        Ok((!fits).then(misfit).into_iter().collect())
    }
}

impl PhoenixNap {
    /// The provider over an HTTP stack. Makes no call. With a file of credentials, those in it are used as they are then.
    #[must_use]
    pub fn new(
        http: CloudHttp,
        options: &Options,
        credentials: Option<CredentialsFile<Credentials>>,
    ) -> Self {
        let client = Client::new(http, &options.settings, credentials);
        Self {
            client: client.clone(),
            servers: Arc::new(Servers::new(&client, options.reserved_is_shut_down)),
            balancing: match &options.load_balancing {
                LoadBalancing::KubeVip { network } => Some(Balancing::new(&client, options, network)),
                LoadBalancing::Off | LoadBalancing::UnknownType(_) => None,
            },
        }
    }
}

impl CloudProvider for PhoenixNap {
    fn name(&self) -> &'static str {
        PROVIDER_NAME
    }

    fn has_bare_id(&self, _: &str) -> bool {
        true
    }

    fn has_cluster_id(&self) -> bool {
        true
    }

    /// Blocks are marked with it. Nodes are served without.
    fn cluster_uid(&self) -> ClusterUid {
        match self.balancing {
            Some(_) => ClusterUid::Required,
            None => ClusterUid::Unused,
        }
    }

    fn instances(&self) -> Option<Arc<dyn InstancesV2>> {
        Some(Arc::clone(&self.servers) as Arc<dyn InstancesV2>)
    }

    fn load_balancer(&self) -> Option<Arc<dyn LoadBalancer>> {
        Some(Arc::clone(&self.balancing.as_ref()?.balancers) as Arc<dyn LoadBalancer>)
    }

    fn service_account(&self) -> Option<&'static str> {
        Some(SERVICE_ACCOUNT)
    }

    fn left_over(&self, facts: BackgroundFacts) -> Vec<Question<'_, String>> {
        let balancing = self.balancing.iter();
        let left = balancing.map(|balancing| balancing.sweeper.left_over(facts.clone()));
        left.map(Question::new).collect()
    }

    fn sign_in(&self) -> Vec<Question<'_, ()>> {
        let signed_in = async { Ok(self.client.sign_in().await.map(|()| Vec::new())?) };
        vec![Question::new(signed_in)]
    }

    fn misfits(&self) -> Vec<Question<'_, Misfit>> {
        let balancing = self.balancing.iter();
        balancing.map(|it| Question::new(it.misfits())).collect()
    }

    fn background_work(&self) -> Vec<Arc<dyn BackgroundWork>> {
        let Some(Balancing { sweeper, watch, .. }) = &self.balancing else {
            return Vec::new();
        };
        vec![sweeper.clone(), watch.clone()]
    }
}
