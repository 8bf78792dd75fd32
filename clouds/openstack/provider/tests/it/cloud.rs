//! A provider over a simulator in memory.

use std::io;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, SocketOptions, Transport};
use bowline_cloud_provider::{CloudConfig, Environment};
use bowline_openstack::{Client, Metrics, Offer, OpenStack, Options, OptionsError, StartError};
use bowline_openstack_sim::OpenstackSim;

/// What the first project's user writes into the file.
const LOGIN: &str = "[Global]
auth-url = http://cloud.test/identity/v3
username = demo
password = demo
tenant-name = demo
domain-id = default
region = RegionOne
";

/// The options of a file that has the login and this.
pub(crate) fn options(more: &str) -> Result<Options, OptionsError> {
    options_in(more, &[])
}

/// The same in an environment.
pub(crate) fn options_in(more: &str, variables: &[(&str, &str)]) -> Result<Options, OptionsError> {
    let config = CloudConfig::Given {
        path: "cloud.conf".to_owned(),
        contents: format!("{LOGIN}{more}").into_bytes(),
    };
    let environment: Environment = variables.iter().copied().collect();
    Options::read(&config, &environment, &|_| Err(io::ErrorKind::NotFound.into()))
}

/// A client of the simulator that has made no call.
pub(crate) fn client(sim: &OpenstackSim, options: &Options) -> Client {
    let mut config = CloudHttpConfig::new("openstack", "test");
    options.configure(&mut config, &mut SocketOptions::default());
    let http = CloudHttp::new(config, Transport::memory(sim.service()));
    Client::new(http, options.settings.clone())
}

/// A provider as the program starts it.
pub(crate) async fn started(
    sim: &OpenstackSim,
    options: &Options,
    balances: bool,
) -> Result<OpenStack, StartError> {
    let client = client(sim, options);
    let offer = Offer::ask(&client, options, balances).await?;
    Ok(OpenStack::new(client, options, offer, &Metrics::default()))
}

/// A provider with a file that has the login and this.
pub(crate) async fn provider(sim: &OpenstackSim, more: &str) -> OpenStack {
    started(sim, &options(more).unwrap(), true).await.unwrap()
}

/// The operations of the simulator's journal, in order.
pub(crate) fn calls(sim: &OpenstackSim) -> Vec<String> {
    sim.journal()
        .entries()
        .iter()
        .map(|entry| entry.operation.clone())
        .collect()
}
