//! What is asked of the cloud before the manager runs: whether the login is any good, and where its services are.

use std::time::Duration;

use bowline_openstack_client::{ApiError, Class, Client, Service};
use bowline_plan::Classified;
use tokio::time::timeout;

use crate::config::Options;
use crate::routes;

/// How long a start waits for the cloud in all. What it has not told by then is asked when it is needed.
const PATIENCE: Duration = Duration::from_secs(20);

/// What this cloud offers of what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Whether Nodes can be looked for.
    pub(crate) has_instances: bool,
    /// Whether the router takes routes.
    pub(crate) has_routes: bool,
}

/// There is no use in a start.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StartError {
    /// Keystone refuses the login, or cannot be reached.
    #[error("cannot log in to OpenStack: {0}")]
    Login(ApiError),
    /// There is nothing to make load balancers with.
    #[error(
        "Services are to get load balancers, but the cloud offers none: {0}. The manager starts without load balancers \
         with `enabled = false` in section [LoadBalancer], or without the service controller \
         (--controllers=*,-service-lb-controller)"
    )]
    NoLoadBalancers(ApiError),
}

impl Classified for StartError {
    fn class(&self) -> Class {
        let (Self::Login(error) | Self::NoLoadBalancers(error)) = self;
        error.class
    }
}

impl Offer {
    /// All that there is, for who has no occasion to ask: whatever is missing then fails when it is needed.
    pub const EVERYTHING: Self = Self {
        has_instances: true,
        has_routes: true,
    };

    /// Logs in and looks for the services. Made before this process leads, because a wrong configuration is to be seen at
    /// once and on every replica: `client` must be let pass.
    ///
    /// Load balancers are only looked for if `balances`: if their controller runs.
    ///
    /// # Errors
    ///
    /// The login fails, or the catalog has nothing to make load balancers with. A service that is there and does not answer
    /// is none: it is asked again when it is needed.
    pub async fn ask(client: &Client, options: &Options, balances: bool) -> Result<Self, StartError> {
        let asked = timeout(PATIENCE, Self::find_out(client, options, balances)).await;
        asked.unwrap_or_else(|_| {
            tracing::warn!(
                seconds = PATIENCE.as_secs(),
                "OpenStack does not answer in time, starting all the same"
            );
            Ok(Self::EVERYTHING)
        })
    }

    async fn find_out(client: &Client, options: &Options, balances: bool) -> Result<Self, StartError> {
        client.login().await.map_err(StartError::Login)?;
        let network = offers(client, Service::Network).await;
        if balances && options.load_balancer.is_some() {
            network.clone().map_err(StartError::NoLoadBalancers)?;
            offers(client, Service::LoadBalancer)
                .await
                .map_err(StartError::NoLoadBalancers)?;
            if let Err(error) = offers(client, Service::KeyManager).await {
                tracing::warn!(err = %error, "Without a key manager, Services with certificates get no load balancers");
            }
        }
        if options.router.is_none() {
            tracing::info!(
                "router-id not set in cloud provider config, there will be no routes. Where pod networks need them, set it in section [Route]"
            );
        }
        let has_routes = network.is_ok() && options.router.is_some() && takes_routes(client).await;
        let instances = network.and(offers(client, Service::Compute).await);
        if let Err(error) = &instances {
            tracing::error!(err = %error, "Nodes are not looked after");
        }
        Ok(Self {
            has_instances: instances.is_ok(),
            has_routes,
        })
    }
}

/// Whether Neutron lets routers have routes. Where it is in trouble they are asked for again when they are needed.
async fn takes_routes(client: &Client) -> bool {
    match routes::are_offered(client).await {
        Ok(true) => true,
        Ok(false) => {
            tracing::warn!("Neutron has neither extraroute nor extraroute-atomic, there will be no routes");
            false
        }
        Err(error) if matches!(error.class, Class::NotFound | Class::Denied | Class::Invalid) => {
            tracing::error!(err = %error, "Neutron's extensions cannot be listed, there will be no routes");
            false
        }
        Err(error) => {
            tracing::warn!(err = %error, "Neutron's extensions cannot be listed now; they are asked for again with the routes");
            true
        }
    }
}

/// Whether the catalog has a service that can be used.
async fn offers(client: &Client, service: Service) -> Result<(), ApiError> {
    match client.find(service).await {
        Err(error) if !error.is_missing_service() => {
            tracing::warn!(
                service = service.kind(),
                err = %error,
                "An OpenStack service is in trouble, starting all the same"
            );
            Ok(())
        }
        found => found,
    }
}
