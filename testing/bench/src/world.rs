//! An API server and a cloud, as one row needs them.

use anyhow::{Context, Result};
use bowline_control_plane::{ControlPlane, Options, Version};

use crate::simulator::{Program, Simulator};

/// What a manager is measured in. Everything in it ends when this is dropped.
pub(crate) struct World {
    pub(crate) plane: ControlPlane,
    pub(crate) cloud: Simulator,
    /// For everything that this program asks the API server.
    pub(crate) client: kube::Client,
}

impl World {
    /// Starts an API server, and a cloud with this many servers.
    pub(crate) async fn start(simulator: &Program, servers: u32) -> Result<Self> {
        let plane = ControlPlane::start(Options {
            version: Version::wanted()?,
            ..Options::default()
        })
        .await
        .context("cannot start the API server")?;
        let cloud = Simulator::start(simulator, servers).await?;
        let client = plane.client();
        Ok(Self { plane, cloud, client })
    }
}
