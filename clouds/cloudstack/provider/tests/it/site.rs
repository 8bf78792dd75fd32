//! The API and what is needed to build a provider over it.

use std::sync::Arc;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, SocketOptions, Transport};
use bowline_cloud_provider::{CloudConfig, CloudProvider};
use bowline_cloudstack::{CloudStack, Introduction, Options, PROVIDER_NAME, WallClock};
use bowline_cloudstack_client::ApiError;
use bowline_cloudstack_sim::kit::Clock;
use bowline_cloudstack_sim::{Builder, CloudstackSim};

use crate::disguise::{Dialect, Disguise};

/// A simulator and the file that leads to it.
pub(crate) struct Site {
    pub(crate) sim: CloudstackSim,
    clock: Clock,
    lines: String,
    disguise: Option<Disguise>,
}

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
            disguise: None,
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

    /// Lets the API answer in another way.
    pub(crate) fn disguised(mut self, dialect: Dialect) -> Self {
        self.disguise = Some(Disguise::new(dialect));
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
        let transport = match &self.disguise {
            Some(disguise) => Transport::memory(disguise.over(self.sim.service())),
            None => Transport::memory(self.sim.service()),
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

    /// The commands that the API was given since the last look.
    pub(crate) fn commands(&self) -> Vec<String> {
        let entries = self.sim.journal().entries();
        entries.into_iter().map(|entry| entry.operation).collect()
    }
}
