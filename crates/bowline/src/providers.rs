//! The providers that are built in, by the name that `--cloud-provider` takes.
//!
//! Each is a cargo feature. To add one: a line in `registry` and a constructor below it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_cloud_http::{CancellationToken, CloudHttpConfig, Metrics, ShownSetting, Silences};
use bowline_cloud_provider::several::{Cloud, Several};
use bowline_cloud_provider::{CloudConfig, CloudError, CloudProvider, Environment};
use bowline_kube_io::Dates;
use bowline_manager::FencingGate;
use bowline_manager::doctor::Refused;
use futures::future::try_join_all;
use prometheus_client::registry::Registry;

use crate::args::{self, CloudOptions, ProviderOptions};

/// What a provider is built from.
pub struct Site {
    /// The environment of the process.
    pub environment: Environment,
    /// When the cloud may be called.
    pub calls: Calls,
    /// The series of calls to clouds.
    pub metrics: Metrics,
    /// Ends reads and waits at the end of the process.
    pub shutdown: CancellationToken,
    /// The `User-Agent` of requests to the cloud.
    pub user_agent: String,
    /// The version of the program, for providers with a `User-Agent` of their own.
    pub version: String,
    /// The cloud's API, if the command line says where it is.
    pub base_url: Option<String>,
    /// What stands in front of the `User-Agent`, for providers that take such words: the last one stands first.
    pub user_agents: Vec<String>,
    /// Whether Services get load balancers, as far as the command line says it.
    pub balances: bool,
    /// Whether the route controller is to run.
    pub makes_routes: bool,
    /// The series of single providers.
    pub series: Series,
    /// Where jitter comes from.
    pub seed: u64,
    /// Is told the settings in force, as soon as they are known to be usable.
    pub shown: Shown,
    /// Is told what time it is at the cloud.
    pub dates: Dates,
    /// Is told of reads that have no answer for long.
    pub silences: Silences,
    /// Whether it goes on although a cloud refuses to answer what is asked first: there are other clouds.
    pub starts_anyway: bool,
    /// Configuration files that are here, and not on a disk.
    pub copies: Vec<Copied>,
}

/// A configuration file, or one that it names, that was read from the cluster. It may hold secrets.
#[derive(Clone)]
pub struct Copied {
    /// What stands for its path, and says what it is a copy of.
    pub called: String,
    /// What is in it.
    pub contents: Vec<u8>,
}

impl std::fmt::Debug for Copied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Copied").field(&self.called).finish()
    }
}

/// A configuration that can be used, for people.
#[derive(Debug, Clone, Default)]
pub struct InForce {
    /// The settings.
    pub settings: Vec<ShownSetting>,
    /// What a person should look at all the same.
    pub remarks: Vec<String>,
    /// The clouds that refuse the start, where the others go on without them.
    pub refused: Vec<Refused>,
}

/// Where a provider's configuration is told.
#[derive(Debug, Clone, Default)]
pub struct Shown(Arc<Mutex<Option<InForce>>>);

impl Shown {
    fn tell(&self, settings: Vec<ShownSetting>, remarks: Vec<String>) {
        for reason in &remarks {
            tracing::warn!(reason, "Something in the configuration needs a look");
        }
        self.change(|in_force| {
            in_force.settings.extend(settings);
            in_force.remarks.extend(remarks);
        });
    }

    fn refuse(&self, cloud: &str, error: &dyn Error) {
        let (cloud, why) = (cloud.to_owned(), error.to_string());
        self.change(|in_force| in_force.refused.push(Refused { cloud, why }));
    }

    fn change(&self, change: impl FnOnce(&mut InForce)) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(shown.get_or_insert_default());
    }

    /// The configuration; `None` if it cannot be used.
    pub fn take(&self) -> Option<InForce> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The series that single providers keep beside those of all.
#[derive(Debug, Clone, Default)]
pub struct Series {
    #[cfg(feature = "openstack")]
    openstack: bowline_openstack::Metrics,
}

impl Series {
    /// Makes those of the provider that runs visible.
    #[cfg_attr(
        not(feature = "openstack"),
        expect(unused_variables, reason = "no other provider has any")
    )]
    pub fn register(options: &ProviderOptions, registry: &mut Registry) -> Self {
        let series = Self::default();
        #[cfg(feature = "openstack")]
        if options
            .names()
            .any(|name| name == bowline_openstack::PROVIDER_NAME)
        {
            series.openstack.register(registry);
        }
        series
    }
}

/// Where phoenixNAP's guide to running the manager outside of the cluster has the path of the configuration file. There the
/// shell puts it into `--cloud-config`; without that flag it is taken from here.
const CCM_SECRET: &str = "CCM_SECRET";

/// When a cloud may be called.
#[derive(Debug, Clone)]
pub enum Calls {
    /// While this process leads.
    WhileLeading(Arc<FencingGate>),
    /// At any time: a person asked for the writes.
    Always,
    /// At any time, and never to write.
    ToRead,
    /// The same, each once: what the first answer says is what a person wants to know.
    ToReadOnce,
}

/// How long a person waits for a token, and for what else comes before all other answers.
const SIGNED_IN_WITHIN: Duration = Duration::from_secs(10);

type Cause = Box<dyn Error + Send + Sync>;
type Built = Result<Arc<dyn CloudProvider>, Cause>;

/// The same, when the cloud has answered.
type Asked<'a> = Pin<Box<dyn Future<Output = Built> + Send + 'a>>;

/// How a provider is built.
#[derive(Clone, Copy)]
enum Constructor {
    /// Without a call.
    #[cfg_attr(
        not(any(feature = "cloudscale", feature = "paper", feature = "phoenixnap")),
        expect(dead_code, reason = "every other cloud is silent")
    )]
    Silent(fn(&Site, &CloudConfig) -> Built),
    /// After questions to the cloud that decide whether there is to be a start.
    #[cfg_attr(
        not(any(feature = "cloudstack", feature = "openstack")),
        expect(dead_code, reason = "no other cloud asks")
    )]
    Asking(for<'a> fn(&'a Site, &'a CloudConfig) -> Asked<'a>),
}

/// Why there is no provider. The texts are what the framework's own managers end with.
#[derive(Debug, thiserror::Error)]
pub enum ProviderError {
    /// `external`, which stands for "not here" in the flags of other components.
    #[error("Cloud provider is nil: {:?} names no cloud; built in: {}", NOT_HERE, known())]
    Nil,
    /// No provider of this name is built in.
    #[error(
        "Cloud provider could not be initialized: unknown cloud provider {0:?}; built in: {known}{meant}",
        known = known(),
        meant = near(.0).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
    )]
    Unknown(String),
    /// The provider's file cannot be read.
    #[error("Couldn't open cloud provider configuration {path}: {source}; {named_by} names this file")]
    Config {
        /// The path.
        path: String,
        /// The flag or the variable that names it.
        named_by: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// The provider cannot be built.
    #[error("Cloud provider could not be initialized: could not init cloud provider {name:?}: {source}")]
    Init {
        /// The provider's name.
        name: String,
        /// Why.
        source: Cause,
    },
    /// The command line names none, and no deployed manager tells which one.
    #[error(
        "no cloud is named, and not one deployed manager tells which: --cloud-provider says it, one of {}",
        known()
    )]
    Unsaid,
    /// The provider does not mark what belongs to a cluster, and that was not allowed.
    #[error(
        "Cloud provider could not be initialized: no ClusterID found: cloud provider {0:?} does not mark what belongs to a \
         cluster; --allow-untagged-cloud runs it all the same"
    )]
    NoClusterId(String),
}

/// What is said of a manager that would end for [`ProviderError::NoClusterId`].
pub const UNTAGGED: &str = "--allow-untagged-cloud is missing: a manager with these flags ends at its start";

/// Whether a manager with these options runs with this provider.
pub fn may_run(provider: &dyn CloudProvider, options: &ProviderOptions) -> bool {
    provider.has_cluster_id() || options.allows_untagged
}

fn known() -> String {
    names().collect::<Vec<&str>>().join(", ")
}

// guide: registry
fn registry() -> &'static [(&'static str, Constructor)] {
    &[
        #[cfg(feature = "cloudscale")]
        ("cloudscale", Constructor::Silent(cloudscale)),
        #[cfg(feature = "cloudstack")]
        ("external-cloudstack", Constructor::Asking(cloudstack)),
        #[cfg(feature = "openstack")]
        ("openstack", Constructor::Asking(openstack)),
        #[cfg(feature = "paper")]
        ("paper", Constructor::Silent(paper)),
        #[cfg(feature = "phoenixnap")]
        ("phoenixnap", Constructor::Silent(phoenixnap)),
    ]
}
// guide: end

/// What `--cloud-provider` says in the other components of a cluster whose cloud has a manager of its own.
const NOT_HERE: &str = "external";

/// The names of the providers that are built in.
pub fn names() -> impl Iterator<Item = &'static str> {
    registry().iter().map(|(name, _)| *name)
}

/// The provider of this name.
fn find(name: &str) -> Result<&'static (&'static str, Constructor), ProviderError> {
    if name == NOT_HERE {
        return Err(ProviderError::Nil);
    }
    if name == args::UNSAID {
        return Err(ProviderError::Unsaid);
    }
    // A Helm chart of phoenixNAP's writes it with capitals; every other name is taken to the letter, as upstream does.
    let wanted = match name {
        name if name.eq_ignore_ascii_case("phoenixnap") => "phoenixnap",
        name => name,
    };
    let found = registry().iter().find(|(name, _)| *name == wanted);
    found.ok_or_else(|| ProviderError::Unknown(name.to_owned()))
}

/// Whether there is such a provider: what needs no file and no call, and is looked at before both.
///
/// # Errors
///
/// There is no provider of this name.
pub fn check(options: &ProviderOptions) -> Result<(), ProviderError> {
    options.names().try_for_each(|name| find(name).map(|_| ()))
}

/// The name that was probably meant: one that holds the given one, else one that the command line's parser takes for a
/// slip of the pen.
fn near(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let is_part = |known: &&str| !lower.is_empty() && (known.contains(&lower) || lower.contains(known));
    if let Some(known) = names().find(is_part) {
        return Some(known);
    }
    let near = args::near(&lower, names())?;
    names().find(|known| *known == near)
}

/// Builds a provider. It makes no change in the cloud, and no call unless the cloud's specification asks for one.
///
/// # Errors
///
/// There is no such provider, or it cannot be built as it is configured.
///
/// # Cancellation
///
/// May be dropped at any await: nothing is left behind.
pub async fn build(options: &ProviderOptions, site: &Site) -> Result<Arc<dyn CloudProvider>, ProviderError> {
    if options.several.is_empty() {
        let provider = Box::pin(build_one(options, &options.name, options.config.as_ref(), site)).await?;
        let Some(beside) = &options.beside else {
            return Ok(provider);
        };
        let classes = beside.classes.clone();
        let one = Several::beside_managers(Cloud { provider, classes }, &beside.platforms);
        return Ok(Arc::new(one));
    }
    // Side by side: two clouds that do not answer take no longer than one.
    let clouds = options.several.iter().map(async |cloud: &CloudOptions| {
        let provider = Box::pin(build_one(options, &cloud.name, cloud.config.as_ref(), site)).await?;
        let classes = cloud.classes.clone();
        Ok(Cloud { provider, classes })
    });
    let several = Several::new(try_join_all(clouds).await?, site.makes_routes);
    let several = several.map_err(|source| ProviderError::Init {
        name: options.name.clone(),
        source: source.into(),
    })?;
    Ok(Arc::new(several))
}

async fn build_one(
    options: &ProviderOptions,
    name: &str,
    config: Option<&PathBuf>,
    site: &Site,
) -> Result<Arc<dyn CloudProvider>, ProviderError> {
    let (name, constructor) = find(name)?;
    let unnamed = (*name == "phoenixnap")
        .then(|| site.environment.value(CCM_SECRET))
        .flatten();
    let named = config.cloned().map(|path| (path, "--cloud-config"));
    let unnamed = unnamed.filter(|path| !path.is_empty());
    let config = match named.or_else(|| unnamed.map(|path| (PathBuf::from(path), CCM_SECRET))) {
        None => CloudConfig::Absent,
        Some((path, named_by)) => {
            let shown = path.display().to_string();
            let contents = site.contents(&path).map_err(|source| ProviderError::Config {
                path: shown.clone(),
                named_by,
                source,
            })?;
            CloudConfig::Given {
                path: shown,
                contents,
            }
        }
    };
    let built = match constructor {
        Constructor::Silent(constructor) => constructor(site, &config),
        Constructor::Asking(constructor) => constructor(site, &config).await,
    };
    let provider = built.map_err(|source| ProviderError::Init {
        name: (*name).to_owned(),
        source,
    })?;
    // Who only reads has nothing to mark.
    if !provider.has_cluster_id() && matches!(site.calls, Calls::WhileLeading(_)) {
        if !options.allows_untagged {
            return Err(ProviderError::NoClusterId((*name).to_owned()));
        }
        tracing::warn!(
            provider = name,
            "The provider has no ClusterID, as --allow-untagged-cloud permits; nothing else depends on one"
        );
    }
    Ok(provider)
}

impl Site {
    /// What a cloud answered at the start, or what there is to go on with if it is only one of several.
    fn or_go_on<T>(
        &self,
        provider: &str,
        answer: Result<T, impl Into<CloudError>>,
        otherwise: T,
    ) -> Result<T, CloudError> {
        match answer.map_err(Into::into) {
            Err(error) if self.starts_anyway => {
                self.shown.refuse(provider, &error);
                tracing::error!(
                    provider,
                    err = %error,
                    "A cloud refuses the start. The other clouds are served; in this one everything fails until that is mended"
                );
                Ok(otherwise)
            }
            answer => answer,
        }
    }

    /// The contents of a file that the configuration names: those of a copy where there is one.
    fn contents(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        match self.copies.iter().find(|copy| Path::new(&copy.called) == path) {
            Some(copy) => Ok(copy.contents.clone()),
            None => std::fs::read(path),
        }
    }

    /// The file of credentials that is read again when it changes; what is only here changes no more.
    fn followed<T, E>(
        &self,
        config: &CloudConfig,
        open: impl FnOnce() -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        match config {
            CloudConfig::Given { path, .. } if self.copies.iter().any(|copy| copy.called == *path) => {
                Ok(None)
            }
            _ => open(),
        }
    }

    /// The HTTP stack's settings for a provider, with all that is the same for every one.
    fn http(&self, provider: &'static str) -> CloudHttpConfig {
        let mut config = CloudHttpConfig::new(provider, self.user_agent.as_str());
        match &self.calls {
            Calls::WhileLeading(leading) => config.gate = Arc::<FencingGate>::clone(leading),
            Calls::Always => {}
            Calls::ToRead => config.reads_only = true,
            Calls::ToReadOnce => {
                config.reads_only = true;
                config.retry.attempts = 1;
                config.retry.max_retry_after = Duration::ZERO; // the next question is not held back either
            }
        }
        // A person waits, and is to hear once that nothing is answered before it.
        config.preliminary_timeout = config.reads_only.then_some(SIGNED_IN_WITHIN);
        config.metrics = self.metrics.clone();
        config.dates = self.dates.clone();
        config.silences = self.silences.clone();
        config.shutdown = self.shutdown.clone();
        config.seed = self.seed;
        config
    }
}

#[cfg(feature = "cloudscale")]
fn cloudscale(site: &Site, config: &CloudConfig) -> Built {
    use bowline_cloud_http::{CloudHttp, SocketOptions, Transport};
    use bowline_cloudscale::{Cloudscale, PROVIDER_NAME};

    let provider = Cloudscale::from_environment::<Cause>(&site.environment, config, |settings, options| {
        let sockets = SocketOptions::from_env(|name| site.environment.value(name).map(str::to_owned))?;
        let mut http = site.http(PROVIDER_NAME);
        settings.configure(&mut http);
        let shown = [settings.shown(), options.shown()].concat();
        site.shown.tell(shown, options.remarks());
        Ok(CloudHttp::new(http, Transport::sockets(&sockets)?))
    })?;
    tracing::info!("cloudscale-cloud-controller-manager initialized");
    Ok(Arc::new(provider))
}

#[cfg(feature = "cloudstack")]
fn cloudstack<'a>(site: &'a Site, config: &'a CloudConfig) -> Asked<'a> {
    use bowline_cloud_http::{CloudHttp, SocketOptions, Transport};
    use bowline_cloudstack::{CloudStack, Introduction, Options, PROVIDER_NAME};

    Box::pin(async move {
        let options = Options::read(config)?;
        options.log();
        let mut sockets = SocketOptions::from_env(|name| site.environment.value(name).map(str::to_owned))?;
        let mut http = site.http(PROVIDER_NAME);
        options.configure(&mut http, &mut sockets);
        let transport = Transport::sockets(&sockets)?;
        site.shown.tell(options.shown(config), options.remarks());
        let clock: bowline_cloudstack::WallClock = Arc::new(jiff::Timestamp::now);
        let asking = CloudHttp::new(http.for_questions(), transport.clone());
        let introduction = Introduction::ask(asking, &options, Arc::clone(&clock)).await;
        let introduction = site.or_go_on(PROVIDER_NAME, introduction, Introduction::default())?;
        let keys = site.followed(config, || Options::credentials_file(config))?;
        let http = CloudHttp::new(http, transport);
        let provider = CloudStack::new(http, &options, keys, introduction, clock);
        Ok(Arc::new(provider) as Arc<dyn CloudProvider>)
    })
}

#[cfg(feature = "openstack")]
fn openstack<'a>(site: &'a Site, config: &'a CloudConfig) -> Asked<'a> {
    use bowline_cloud_http::{CloudHttp, SocketOptions, Transport};
    use bowline_openstack::{Client, Offer, OpenStack, Options, PROVIDER_NAME};

    Box::pin(async move {
        let options = Options::read(config, &site.environment, &|path| site.contents(path))?;
        options.log();
        let mut sockets = SocketOptions::from_env(|name| site.environment.value(name).map(str::to_owned))?;
        let mut http = site.http(PROVIDER_NAME);
        let own = format!("openstack-cloud-controller-manager/{} bowline", site.version);
        let words = site.user_agents.iter().rev().map(String::as_str);
        http.user_agent = words.chain([own.as_str()]).collect::<Vec<_>>().join(" ");
        options.configure(&mut http, &mut sockets);
        let transport = Transport::sockets(&sockets)?;
        site.shown.tell(options.shown(), options.remarks());
        let asking = CloudHttp::new(http.for_questions(), transport.clone());
        let asking = Client::new(asking, options.settings.clone());
        let offer = Offer::ask(&asking, &options, site.balances).await;
        let offer = site.or_go_on(PROVIDER_NAME, offer, Offer::EVERYTHING)?;
        let credentials = site.followed(config, || options.credentials_file(config, &site.environment))?;
        let client = asking.continued_over(CloudHttp::new(http, transport), credentials);
        let provider = OpenStack::new(client, &options, offer, &site.series.openstack);
        Ok(Arc::new(provider) as Arc<dyn CloudProvider>)
    })
}

// guide: constructor
#[cfg(feature = "paper")]
fn paper(site: &Site, config: &CloudConfig) -> Built {
    use bowline_cloud_http::{CloudHttp, SocketOptions, Transport};
    use bowline_paper::{PROVIDER_NAME, Paper};

    let settings = Paper::settings(&site.environment, config)?;
    let sockets = SocketOptions::from_env(|name| site.environment.value(name).map(str::to_owned))?;
    let http = CloudHttp::new(site.http(PROVIDER_NAME), Transport::sockets(&sockets)?);
    site.shown.tell(Vec::new(), Vec::new());
    Ok(Arc::new(Paper::new(http, &settings)))
}
// guide: end

#[cfg(feature = "phoenixnap")]
fn phoenixnap(site: &Site, config: &CloudConfig) -> Built {
    use bowline_cloud_http::{CloudHttp, SocketOptions, Transport};
    use bowline_phoenixnap::{Given, Options, PROVIDER_NAME, PhoenixNap};

    let given = Given {
        base_url: site.base_url.clone(),
    };
    let options = Options::read(&given, &site.environment, config)?;
    let credentials = site.followed(config, || options.credentials_file(&site.environment, config))?;
    options.log();
    let sockets = SocketOptions::from_env(|name| site.environment.value(name).map(str::to_owned))?;
    let mut http = site.http(PROVIDER_NAME);
    http.user_agent = format!("cloud-provider-phoenixnap/{}", site.version);
    options.configure(&mut http);
    let http = CloudHttp::new(http, Transport::sockets(&sockets)?);
    site.shown.tell(options.shown(), options.remarks());
    Ok(Arc::new(PhoenixNap::new(http, &options, credentials)))
}

#[cfg(test)]
mod tests;
