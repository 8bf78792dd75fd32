//! The API and what is needed to build a provider over it.

use std::sync::Arc;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, SocketOptions, Transport};
use bowline_cloud_provider::{CloudConfig, CloudProvider};
use bowline_cloudstack::{CloudStack, Introduction, Options, PROVIDER_NAME, WallClock};
use bowline_cloudstack_client::ApiError;
use bowline_cloudstack_sim::kit::{Clock, CloudService};
use bowline_cloudstack_sim::{Builder, CloudstackSim};

/// A simulator and the file that leads to it.
pub(crate) struct Site {
    pub(crate) sim: CloudstackSim,
    clock: Clock,
    lines: String,
    /// What stands in front of the API, if anything does.
    pub(crate) front: Option<Front>,
}

pub(crate) type Front = Box<dyn Fn(CloudService) -> Transport + Send + Sync>;

impl Site {
    pub(crate) fn new() -> Self {
        Self::built(|builder| builder)
    }

    pub(crate) fn built(change: impl FnOnce(Builder) -> Builder) -> Self {
        let clock = Clock::default();
        Self {
            sim: change(
                CloudstackSim::builder()
                    .behaviour(bowline_kit::world().behaviour())
                    .seed(7)
                    .clock(clock),
            )
            .build(),
            clock,
            lines: String::new(),
            front: None,
        }
    }

    /// The wall time.
    pub(crate) fn now(&self) -> jiff::Timestamp {
        self.clock.now()
    }

    /// Adds lines to the file.
    pub(crate) fn with(mut self, lines: &str) -> Self {
        self.lines.push_str(lines);
        self
    }

    pub(crate) fn options(&self) -> Options {
        let (api_key, secret_key) = (CloudstackSim::API_KEY, CloudstackSim::SECRET_KEY);
        let contents = format!(
            "[Global]\napi-url = http://cloud.test/client/api\napi-key = {api_key}\nsecret-key = {secret_key}\n{}",
            self.lines
        );
        let config = CloudConfig::Given {
            path: "cloud-config".to_owned(),
            contents: contents.into_bytes(),
        };
        Options::read(&config).unwrap()
    }

    fn http(&self, options: &Options) -> CloudHttp {
        let mut config = CloudHttpConfig::new(PROVIDER_NAME, "test");
        options.configure(&mut config, &mut SocketOptions::default());
        let service = self.sim.service();
        let transport = match &self.front {
            Some(front) => front(service),
            None => Transport::memory(service),
        };
        CloudHttp::new(config, transport)
    }

    /// The provider as the program starts it.
    pub(crate) async fn start(&self) -> Result<CloudStack, ApiError> {
        let options = self.options();
        let clock = self.clock;
        let clock: WallClock = Arc::new(move || clock.now());
        let introduction = Introduction::ask(self.http(&options), &options, Arc::clone(&clock)).await?;
        let provider = CloudStack::new(self.http(&options), &options, None, introduction, clock);
        assert_eq!(provider.name(), PROVIDER_NAME);
        Ok(provider)
    }
}
