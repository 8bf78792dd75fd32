//! The provider as the program starts it: all but load balancers is asked of it.

use std::io;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, SocketOptions, Transport};
use bowline_cloud_provider::{CloudConfig, Environment};
use bowline_kit::scenario::Complaint;
use bowline_openstack::{Client, Metrics, Offer, OpenStack, Options};
use bowline_openstack_sim::OpenstackSim;

/// What the first project's user writes into the file.
pub(crate) const LOGIN: &str = "[Global]
auth-url = http://cloud.test/identity/v3
username = demo
password = demo
tenant-name = demo
domain-id = default
region = RegionOne
";

/// A provider, once one is wanted.
#[derive(Default)]
pub(crate) struct Whole {
    pub(crate) is_wanted: bool,
    /// Whether the service controller is not among the controllers.
    pub(crate) balances_nothing: bool,
    pub(crate) cloud: Option<OpenStack>,
    /// What is in the file behind the login.
    pub(crate) file: String,
    pub(crate) variables: Vec<(String, String)>,
}

impl Whole {
    pub(crate) async fn start(&mut self, sim: &OpenstackSim) -> Result<(), Complaint> {
        self.cloud = None;
        let variables = self.variables.iter();
        let environment: Environment = variables
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let config = CloudConfig::Given {
            path: "cloud.conf".to_owned(),
            contents: format!("{LOGIN}{}", self.file).into_bytes(),
        };
        let options = Options::read(&config, &environment, &|_| Err(io::ErrorKind::NotFound.into()));
        let options = options.map_err(|error| error.to_string())?;
        let mut config = CloudHttpConfig::new("openstack", "test");
        options.configure(&mut config, &mut SocketOptions::default());
        let http = CloudHttp::new(config, Transport::memory(sim.service()));
        let client = Client::new(http, options.settings.clone());
        let offer = Offer::ask(&client, &options, !self.balances_nothing).await;
        let offer = offer.map_err(|error| error.to_string())?;
        self.cloud = Some(OpenStack::new(client, &options, offer, &Metrics::default()));
        Ok(())
    }
}
