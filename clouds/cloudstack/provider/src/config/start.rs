//! What is asked of the server before the manager runs: whether the keys are any good, its version, and the project.

use std::time::Duration;

use bowline_cloud_http::CloudHttp;
use bowline_cloudstack_client::{ApiError, Class, Client, ProjectId, WallClock};
use tokio::time::timeout;

use super::Options;
use crate::version::{self, Version};

/// How long the start waits for the server. What is not known by then is asked for when it is needed.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the server said at start. What it did not say is asked for at the first need.
#[derive(Debug, Clone, Default)]
pub struct Introduction {
    pub(crate) version: Option<Version>,
    pub(crate) project: Option<ProjectId>,
}

impl Introduction {
    /// Asks. Made before this process leads, because wrong keys are to be seen at once and on every replica: `http` must let
    /// it pass.
    ///
    /// # Errors
    ///
    /// What no second try would change: keys or a signature that are refused, a server that cannot be trusted or does not
    /// know the API, a project that there is not. A server that cannot be reached, or is in trouble, is none: the manager
    /// starts, and asks again.
    pub async fn ask(http: CloudHttp, options: &Options, clock: WallClock) -> Result<Self, ApiError> {
        let client = Client::new(http, &options.settings, None, clock);
        let questions = async {
            let version = match &options.version {
                Some(version) => version.clone(),
                None => version::ask(&client).await?,
            };
            tracing::info!(%version, "CloudStack server");
            let project = client.project().await?.cloned();
            Ok(Self {
                version: Some(version),
                project,
            })
        };
        match timeout(PATIENCE, questions).await {
            Ok(Ok(introduction)) => return Ok(introduction),
            Ok(Err(error)) if is_final(&error) => return Err(error),
            Ok(Err(error)) => {
                tracing::warn!(err = %error, "The CloudStack server is in trouble, starting all the same");
            }
            Err(_) => tracing::warn!(
                seconds = PATIENCE.as_secs(),
                "The CloudStack server does not answer, starting all the same"
            ),
        }
        Ok(Self::default())
    }
}

fn is_final(error: &ApiError) -> bool {
    error.is_insecure()
        || matches!(
            error.class,
            Class::Unauthenticated | Class::Denied | Class::Invalid | Class::NotFound | Class::Unusable
        )
}
