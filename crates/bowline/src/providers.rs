//! The providers that are built in, by the name that `--cloud-provider` takes.
//!
//! Each is a cargo feature. To add one: a line in `registry` and a constructor below it.

use std::error::Error;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bowline_cloud_http::{CancellationToken, CloudHttpConfig, Metrics, ShownSetting};
use bowline_cloud_provider::several::{Cloud, Several};
use bowline_cloud_provider::{CloudConfig, CloudProvider, Environment};
use bowline_kube_io::Dates;
use bowline_manager::FencingGate;
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
    /// Whether the manager starts although a cloud refuses to answer what is asked first: other clouds are to be served.
    pub starts_anyway: bool,
}

/// A configuration that can be used, for people.
#[derive(Debug, Clone, Default)]
pub struct InForce {
    /// The settings.
    pub settings: Vec<ShownSetting>,
    /// What a person should look at all the same.
    pub remarks: Vec<String>,
}

/// Where a provider's configuration is told.
#[derive(Debug, Clone, Default)]
pub struct Shown(Arc<Mutex<Option<InForce>>>);

impl Shown {
    fn tell(&self, settings: Vec<ShownSetting>, remarks: Vec<String>) {
        for reason in &remarks {
            tracing::warn!(reason, "Something in the configuration needs a look");
        }
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let in_force = shown.get_or_insert_default();
        in_force.settings.extend(settings);
        in_force.remarks.extend(remarks);
    }

    /// The configuration; `None` if it cannot be used.
    #[must_use]
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
    #[must_use]
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
#[derive(Debug)]
pub enum ProviderError {
    /// `external`, which stands for "not here" in the flags of other components.
    Nil,
    /// No provider of this name is built in.
    Unknown(String),
    /// The provider's file cannot be read.
    Config {
        /// The path.
        path: String,
        /// The flag or the variable that names it.
        named_by: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// The provider cannot be built.
    Init {
        /// The provider's name.
        name: String,
        /// Why.
        source: Cause,
    },
    /// The command line names none, and no deployed manager tells which one.
    Unsaid,
    /// The provider does not mark what belongs to a cluster, and that was not allowed.
    NoClusterId(String),
}

impl std::fmt::Display for ProviderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const FAILED: &str = "Cloud provider could not be initialized";
        let known = names().collect::<Vec<&str>>().join(", ");
        match self {
            Self::Nil => write!(
                f,
                "Cloud provider is nil: {NOT_HERE:?} names no cloud; built in: {known}"
            ),
            Self::Unknown(name) => {
                write!(f, "{FAILED}: unknown cloud provider {name:?}; built in: {known}")?;
                match near(name) {
                    Some(near) => write!(f, "; did you mean {near:?}?"),
                    None => Ok(()),
                }
            }
            Self::Unsaid => write!(
                f,
                "no cloud is named, and not one deployed manager tells which: --cloud-provider says it, one of {known}"
            ),
            Self::Config {
                path,
                named_by,
                source,
            } => write!(
                f,
                "Couldn't open cloud provider configuration {path}: {source}; {named_by} names this file"
            ),
            Self::Init { name, source } => {
                write!(f, "{FAILED}: could not init cloud provider {name:?}: {source}")
            }
            Self::NoClusterId(name) => write!(
                f,
                "{FAILED}: no ClusterID found: cloud provider {name:?} does not mark what belongs to a cluster; \
                 --allow-untagged-cloud runs it all the same"
            ),
        }
    }
}

impl Error for ProviderError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Config { source, .. } => Some(source),
            Self::Init { source, .. } => Some(&**source),
            Self::Nil | Self::Unknown(_) | Self::Unsaid | Self::NoClusterId(_) => None,
        }
    }
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
    let mut clouds = Vec::new();
    for CloudOptions {
        name,
        config,
        classes,
    } in &options.several
    {
        clouds.push(Cloud {
            provider: Box::pin(build_one(options, name, config.as_ref(), site)).await?,
            classes: classes.clone(),
        });
    }
    let several = Several::new(clouds, site.makes_routes);
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
            let contents = std::fs::read(&path).map_err(|source| ProviderError::Config {
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
    fn or_go_on<T, E: Error>(&self, provider: &str, answer: Result<T, E>, otherwise: T) -> Result<T, E> {
        match answer {
            Err(error) if self.starts_anyway => {
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
        config.metrics = self.metrics.clone();
        config.dates = self.dates.clone();
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
        let keys = Options::credentials_file(config)?;
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
        let options = Options::read(config, &site.environment, &|path| std::fs::read(path))?;
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
        let credentials = options.credentials_file(config, &site.environment)?;
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
    let credentials = options.credentials_file(&site.environment, config)?;
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
mod tests {
    use super::*;

    fn site(variables: &[(&str, &str)]) -> Site {
        Site {
            environment: variables.iter().copied().collect(),
            calls: Calls::ToRead,
            metrics: Metrics::default(),
            shutdown: CancellationToken::new(),
            user_agent: "test".to_owned(),
            version: "v1.2.3".to_owned(),
            base_url: None,
            user_agents: Vec::new(),
            balances: true,
            makes_routes: true,
            series: Series::default(),
            seed: 0,
            shown: Shown::default(),
            dates: Dates::default(),
            starts_anyway: false,
        }
    }

    fn options(name: &str, allows_untagged: bool) -> ProviderOptions {
        ProviderOptions {
            name: name.to_owned(),
            several: Vec::new(),
            beside: None,
            config: None,
            base_url: None,
            user_agents: Vec::new(),
            allows_untagged,
        }
    }

    /// The text without what all of them begin with.
    async fn error(options: &ProviderOptions, site: &Site) -> String {
        let text = build(options, site).await.err().unwrap().to_string();
        match text.strip_prefix("Cloud provider could not be initialized: ") {
            Some(rest) => rest.to_owned(),
            None => text,
        }
    }

    #[tokio::test]
    async fn an_unknown_name_is_refused_with_the_known_ones() {
        for name in ["nimbus", "cloudstack", "External-CloudStack", "Cloudscale", ""] {
            let text = error(&options(name, true), &site(&[])).await;
            let expected = format!("unknown cloud provider {name:?}; built in: ");
            assert!(text.starts_with(&expected), "{text}");
        }
        let text = error(&options("external", true), &site(&[])).await;
        assert!(text.starts_with("Cloud provider is nil"), "{text}");
    }

    #[cfg(all(feature = "cloudscale", feature = "cloudstack", feature = "phoenixnap"))]
    /// Otherwise a cloud that asks to be left alone is told as one that does not answer.
    #[test]
    fn who_reads_once_does_not_repeat_a_call_or_hold_the_next_one_back() {
        let site = Site {
            calls: Calls::ToReadOnce,
            ..site(&[])
        };
        let http = site.http("nimbus");
        assert!(http.reads_only);
        assert_eq!(http.retry.attempts, 1);
        assert_eq!(http.retry.max_retry_after, Duration::ZERO);
    }

    #[test]
    fn a_near_name_is_told() {
        for (name, meant) in [
            ("cloudscal", Some("cloudscale")),
            ("clodscale", Some("cloudscale")),
            ("Cloudscale", Some("cloudscale")),
            ("cloudstack", Some("external-cloudstack")),
            ("external-cloudstck", Some("external-cloudstack")),
            ("phenixnap", Some("phoenixnap")),
            ("aws", None),
            ("", None),
        ] {
            assert_eq!(near(name), meant, "{name}");
            let text = ProviderError::Unknown(name.to_owned()).to_string();
            assert_eq!(text.contains("; did you mean \""), meant.is_some(), "{text}");
        }
    }

    #[test]
    fn who_names_no_cloud_is_not_told_that_it_is_unknown() {
        let text = check(&options(args::UNSAID, false)).unwrap_err().to_string();
        assert!(text.starts_with("no cloud is named"), "{text}");
    }

    #[cfg(feature = "cloudscale")]
    #[tokio::test]
    async fn cloudscale_needs_a_token_and_the_word_that_no_cluster_id_is_fine() {
        assert_eq!(
            error(&options("cloudscale", true), &site(&[])).await,
            "could not init cloud provider \"cloudscale\": no CLOUDSCALE_ACCESS_TOKEN configured"
        );
        let mut site = site(&[("CLOUDSCALE_ACCESS_TOKEN", "secret")]);
        // A command that only reads marks nothing.
        assert!(build(&options("cloudscale", false), &site).await.is_ok());
        let gate = FencingGate::closed(Arc::new(bowline_kube_io::SystemClock));
        site.calls = Calls::WhileLeading(Arc::new(gate));
        assert!(
            error(&options("cloudscale", false), &site)
                .await
                .starts_with("no ClusterID found")
        );
        assert_eq!(
            build(&options("cloudscale", true), &site).await.unwrap().name(),
            "cloudscale"
        );
    }

    /// An expired credential of one is no reason to leave the others unserved.
    #[test]
    fn a_cloud_that_refuses_the_start_keeps_no_other_from_it() {
        let mut site = site(&[]);
        let refused = || Err::<&str, _>(std::fmt::Error);
        assert_eq!(site.or_go_on("openstack", refused(), "all"), Err(std::fmt::Error));
        site.starts_anyway = true;
        assert_eq!(site.or_go_on("openstack", refused(), "all"), Ok("all"));
        let answer = Ok::<_, std::fmt::Error>("some");
        assert_eq!(site.or_go_on("openstack", answer, "all"), Ok("some"));
    }

    /// Nothing starts with one cloud of two.
    #[cfg(all(feature = "cloudscale", feature = "openstack"))]
    #[tokio::test]
    async fn of_several_clouds_the_one_without_configuration_is_named() {
        let cloud = |name: &str| CloudOptions {
            name: name.to_owned(),
            config: None,
            classes: bowline_cloud_provider::ServiceClasses::default(),
        };
        let mut options = options("cloudscale,openstack", true);
        options.several = vec![cloud("cloudscale"), cloud("openstack")];
        let with_token = site(&[("CLOUDSCALE_ACCESS_TOKEN", "secret")]);
        for (site, named) in [
            (site(&[]), "\"cloudscale\": no CLOUDSCALE_ACCESS_TOKEN configured"),
            (with_token, "\"openstack\": "),
        ] {
            let text = error(&options, &site).await;
            assert!(
                text.starts_with(&format!("could not init cloud provider {named}")),
                "{text}"
            );
        }
        options.several[1].name = "nimbus".to_owned();
        let text = ProviderError::to_string(&check(&options).unwrap_err());
        assert!(text.contains("unknown cloud provider \"nimbus\""), "{text}");
    }

    #[cfg(feature = "paper")]
    #[tokio::test]
    async fn paper_needs_to_know_where_its_api_is_and_marks_what_it_makes() {
        assert_eq!(
            error(&options("paper", false), &site(&[])).await,
            "could not init cloud provider \"paper\": PAPER_API_URL is not set"
        );
        let site = site(&[("PAPER_API_URL", "http://127.0.0.1:1"), ("PAPER_TOKEN", "secret")]);
        assert_eq!(
            build(&options("paper", false), &site).await.unwrap().name(),
            "paper"
        );
    }

    #[cfg(feature = "phoenixnap")]
    #[tokio::test]
    async fn phoenixnap_needs_credentials_and_its_name_may_have_capitals() {
        assert_eq!(
            error(&options("phoenixnap", false), &site(&[])).await,
            "could not init cloud provider \"phoenixnap\": --cloud-config is required, unless both PNAP_CLIENT_ID and \
             PNAP_CLIENT_SECRET are in the environment"
        );
        let mut site = site(&[("PNAP_CLIENT_ID", "id"), ("PNAP_CLIENT_SECRET", "secret")]);
        for name in ["phoenixnap", "PhoenixNAP"] {
            assert_eq!(
                build(&options(name, false), &site).await.unwrap().name(),
                "phoenixnap"
            );
        }
        site.base_url = Some("sim.test".to_owned());
        assert_eq!(
            error(&options("phoenixnap", false), &site).await,
            "could not init cloud provider \"phoenixnap\": --base-url is not an absolute URL of http or https: \
             it does not begin with http:// or https://"
        );
    }

    #[cfg(feature = "phoenixnap")]
    #[tokio::test]
    async fn phoenixnap_takes_its_file_from_the_variable_of_its_guide_if_the_flag_is_not_given() {
        let site = site(&[("CCM_SECRET", "/nonexistent/cloud-sa.json")]);
        let text = error(&options("phoenixnap", false), &site).await;
        assert!(
            text.starts_with("Couldn't open cloud provider configuration /nonexistent/cloud-sa.json: "),
            "{text}"
        );
        assert!(text.ends_with("; CCM_SECRET names this file"), "{text}");
        let mut given = options("phoenixnap", false);
        given.config = Some("/nonexistent/given.json".into());
        assert!(error(&given, &site).await.contains("/nonexistent/given.json"));
    }

    #[cfg(feature = "cloudstack")]
    #[tokio::test]
    async fn cloudstack_needs_a_file_with_its_three_keys() {
        let mut options = options("external-cloudstack", false);
        let nothing_given =
            "could not init cloud provider \"external-cloudstack\": no cloud provider config given";
        assert!(error(&options, &site(&[])).await.starts_with(nothing_given));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cloud-config");
        options.config = Some(path.clone());
        for (text, expected) in [
            (
                "[Global]\napi-url = http://127.0.0.1:1\napi-key = k\n",
                nothing_given,
            ),
            (
                "[Global]\nretries = 3\n",
                "could not init cloud provider \"external-cloudstack\": could not parse cloud provider config: can't \
                 store data at section \"Global\", variable \"retries\" (line 2)",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let text = error(&options, &site(&[])).await;
            assert!(text.starts_with(expected), "{text}");
        }
    }

    /// What `doctor` tells of the configuration with this file.
    #[cfg(any(feature = "cloudscale", feature = "cloudstack", feature = "phoenixnap"))]
    async fn remarks(name: &str, file: &str, variables: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(name, true);
        let path = folder.path().join("cloud-config");
        std::fs::write(&path, file).unwrap();
        options.config = Some(path);
        let site = site(variables);
        build(&options, &site).await.unwrap();
        site.shown.take().unwrap().remarks
    }

    #[cfg(feature = "cloudstack")]
    #[tokio::test]
    async fn a_misspelt_option_of_cloudstack_and_an_open_connection_are_remarked() {
        let file = "[Global]\napi-url = http://127.0.0.1:1\napi-key = k\nsecret-key = s\nversion = 4.20.1.0\n\
                    ssl-no-verify\nignore-unknown\nregoin = ch\n";
        let told = remarks("external-cloudstack", file, &[]).await;
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("`ssl-no-verify` is on"), "{told:?}");
        assert!(told[1].contains("\"regoin\""), "{told:?}");
    }

    #[cfg(feature = "cloudscale")]
    #[tokio::test]
    async fn a_file_in_which_cloudscale_does_not_look_is_remarked() {
        let told = remarks("cloudscale", "", &[("CLOUDSCALE_ACCESS_TOKEN", "secret")]).await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("--cloud-config received but ignored"),
            "{told:?}"
        );
    }

    #[cfg(feature = "phoenixnap")]
    #[tokio::test]
    async fn a_type_of_load_balancer_that_phoenixnap_does_not_know_is_remarked() {
        let file = r#"{"clientID": "a", "clientSecret": "b", "loadbalancer": "metal://network"}"#;
        let told = remarks("phoenixnap", file, &[]).await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].contains("the load balancer type is not known, kube-vip is the only one, not \"metal\""),
            "{told:?}"
        );
    }

    #[tokio::test]
    async fn a_config_file_that_cannot_be_read_is_named() {
        let mut options = options(names().next().unwrap(), true);
        options.config = Some("/nonexistent/cloud.conf".into());
        let text = error(&options, &site(&[])).await;
        assert!(
            text.starts_with("Couldn't open cloud provider configuration /nonexistent/cloud.conf: "),
            "{text}"
        );
        assert!(text.ends_with("; --cloud-config names this file"), "{text}");
    }
}
