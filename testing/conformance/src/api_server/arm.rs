//! The servers that the bodies run on.

use bowline_control_plane::{ControlPlane, Options, StartError, Version};
use bowline_kube_api::KubeApi;

use super::{Body, Scope};

/// An API server to be examined.
pub enum Arm {
    /// A fresh embedded server per body, of this minor.
    Embedded(Version),
    /// One real server for all bodies.
    Real(Box<ControlPlane>),
}

/// An arm could not be used.
pub type ArmError = StartError;

impl Arm {
    /// Starts the real server.
    ///
    /// # Errors
    ///
    /// When its programs are missing, or it does not get ready.
    pub async fn real(version: Version) -> Result<Self, ArmError> {
        let plane = ControlPlane::start(Options {
            version,
            ..Options::default()
        })
        .await?;
        Ok(Self::Real(Box::new(plane)))
    }

    /// Runs one body in a scope of its own.
    ///
    /// # Panics
    ///
    /// When what the body claims does not hold.
    pub async fn check(&self, body: &Body) {
        let scope = match self {
            Self::Embedded(version) => {
                let api = KubeApi::builder().version(minor(*version)).build();
                let client = kube::Client::new(api.service(), "default");
                Scope::new(client, *version, Some(api), &body.name).await
            }
            Self::Real(plane) => Scope::new(plane.client(), plane.version(), None, &body.name).await,
        };
        (body.run)(scope).await;
    }
}

fn minor(version: Version) -> u32 {
    let (_, minor) = version.minor().split_once('.').unwrap();
    minor.parse().unwrap()
}
