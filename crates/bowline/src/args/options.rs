//! Flags resolved into what the parts of the program are told, once.

use std::path::PathBuf;
use std::time::Duration;

use bowline_cloud_provider::ServiceClasses;
use bowline_manager::config::{
    Config, ControllerSettings, ElectionConfig, NodeLifecycleSettings, NodeSettings, Ownership, Platforms,
    RangeError, RangeFlags, Ranges, RouteSettings, RouteTiming, ServingConfig,
};
use bowline_manager::controllers::{ControllerName, ControllerSelection};

use super::clouds;
use super::configz;
use super::features;
use super::flag::Status;
use super::parse::Flags;
use super::serving;
use super::table;
use super::validate::Checks;
use crate::version::Version;

/// Everything the command line decides.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program's name: in the user agent, and as the component of events about the lease.
    pub program: String,
    /// The version to report.
    pub version: Version,
    /// The cloud.
    pub provider: ProviderOptions,
    /// The API server.
    pub kube: ApiServerOptions,
    /// The manager.
    pub manager: Config,
    /// Whether controllers move between components, and the file that says which.
    pub migration: Option<MigrationOptions>,
    /// The secure port; `None`: nothing is served.
    pub serving: Option<ServingConfig>,
    /// The log.
    pub logging: LoggingOptions,
    /// Feature gates that were set and have no effect here.
    pub idle_gates: Vec<String>,
    /// Flags on the command line that are accepted and have no effect here.
    pub idle_flags: Vec<&'static str>,
    /// Flags on the command line that should not be used any more.
    pub deprecated_flags: Vec<&'static str>,
    /// The configuration in effect, as `/configz` shows it.
    pub configz: serde_json::Value,
    /// Flags on the command line, in the order of the table.
    pub given_flags: Vec<&'static str>,
    /// Each flag with its value, for the log.
    pub flags: Vec<(&'static str, String)>,
}

/// Which cloud, and its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderOptions {
    /// The provider's name.
    pub name: String,
    /// The file of `--cloud-config`.
    pub config: Option<PathBuf>,
    /// The clouds, if `--cloud-provider` names several; else none.
    pub several: Vec<clouds::CloudOptions>,
    /// What is this manager's where others are beside it, with one cloud each; else `None`.
    pub beside: Option<Beside>,
    /// Where the cloud's API is, if it is said on the command line.
    pub base_url: Option<String>,
    /// What stands in front of the `User-Agent` of requests to the cloud, in the order given.
    pub user_agents: Vec<String>,
    /// Whether a provider without cluster ID is fine.
    pub allows_untagged: bool,
}

/// What is a manager's of a cluster in which others run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// Which Services it serves.
    pub classes: ServiceClasses,
    /// The schemes of its Nodes; none: the provider's own.
    pub platforms: Vec<String>,
}

impl ProviderOptions {
    /// The files of all providers; they may hold secrets.
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let of_several = self.several.iter().filter_map(|cloud| cloud.config.as_ref());
        self.config.iter().chain(of_several)
    }

    /// The names of all providers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let only = self.several.is_empty().then_some(self.name.as_str());
        only.into_iter()
            .chain(self.several.iter().map(|cloud| cloud.name.as_str()))
    }
}

/// Leader migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationOptions {
    /// The file of `--leader-migration-config`; `None`: the built-in assignment.
    pub config: Option<PathBuf>,
}

/// How to reach the API server.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiServerOptions {
    /// The kubeconfig file.
    pub kubeconfig: Option<PathBuf>,
    /// What names it, for errors.
    pub kubeconfig_source: &'static str,
    /// The server's address.
    pub master: Option<String>,
    /// The pace of requests, if one was asked for.
    pub pace: Option<Pace>,
    /// The kubeconfig of the cluster that reviews tokens, if it is another one.
    pub authentication: Option<PathBuf>,
    /// The kubeconfig of the cluster that answers access reviews, if it is another one.
    pub authorization: Option<PathBuf>,
}

/// The rate of Kubernetes' client library where none is set.
const LIBRARY_QPS: f64 = 5.0;

/// A steady rate with a burst.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Requests per second.
    pub qps: f64,
    /// Requests that may begin at once.
    pub burst: u32,
}

/// What is logged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggingOptions {
    /// The form of lines.
    pub format: LoggingFormat,
    /// The verbosity.
    pub verbosity: u8,
    /// The verbosity of source files whose name without ending matches a pattern, the first match first.
    pub modules: Vec<(String, u8)>,
    /// Whether info lines go to stdout; `None`: everything goes to stderr.
    pub split: Option<SplitStream>,
    /// Whether nothing is logged, whatever the verbosity.
    pub is_quiet: bool,
}

/// Info lines apart from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitStream {
    /// Bytes of info lines that may wait to be written; 0: none.
    pub buffer: usize,
    /// The longest time that they wait.
    pub flush_period: Duration,
}

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoggingFormat {
    /// klog's.
    Text,
    /// One JSON object each.
    Json,
}

/// Resolves all flags. What is wrong with them goes to `errors`; the result counts only if there is none.
pub(super) fn resolve(flags: &Flags, program: &str, version: Version, errors: &mut Vec<String>) -> Options {
    let mut checks = Checks::new(flags, errors);
    checks.accepted_flags();
    let several = clouds::read(flags, &mut checks);
    let mut provider = provider(flags, several, &mut checks);
    let ownership = ownership(flags, &provider, &mut checks);
    let service_classes = clouds::classes(flags, &provider.several, &mut checks);
    provider.beside = beside(ownership.as_ref(), &service_classes).filter(|_| provider.several.is_empty());
    let kube = kube(flags, &mut checks);
    let election = election(flags, &mut checks);
    let controllers = controllers(flags, &mut checks);
    let gates = flags.gates("feature-gates");
    Options {
        program: program.to_owned(),
        version,
        kube,
        manager: Config {
            election,
            cluster_name: flags.text("cluster-name"),
            settings: ControllerSettings {
                ownership,
                ..settings(flags, &controllers, &mut checks)
            },
            controllers,
            service_classes,
            service_accounts: flags.switch("use-service-account-credentials"),
            ..Config::default()
        },
        provider,
        migration: (flags.switch("leader-elect") && flags.switch("enable-leader-migration")).then(|| {
            MigrationOptions {
                config: flags.path("leader-migration-config"),
            }
        }),
        serving: serving::resolve(flags, &mut checks),
        logging: logging(flags, &mut checks),
        idle_gates: gates
            .iter()
            .map(|(name, _)| name)
            .filter(|name| !features::has_effect(name))
            .cloned()
            .collect(),
        idle_flags: given_with(flags, Status::Accepted),
        deprecated_flags: given_with(flags, Status::Deprecated),
        configz: configz::page(flags),
        given_flags: flags.given().collect(),
        flags: flags.all().collect(),
    }
}

/// The flags on the command line that have this status.
fn given_with(flags: &Flags, status: Status) -> Vec<&'static str> {
    let has = |name: &str| table::find(table::flag_table(), name).is_some_and(|flag| flag.status == status);
    flags.given().filter(|name| has(name)).collect()
}

fn provider(flags: &Flags, several: Vec<clouds::CloudOptions>, checks: &mut Checks<'_>) -> ProviderOptions {
    let name = flags.text("cloud-provider");
    if name.is_empty() {
        checks.fault("--cloud-provider cannot be empty");
    }
    ProviderOptions {
        name,
        config: flags.path("cloud-config").filter(|_| several.is_empty()),
        several,
        beside: None,
        base_url: flags.stated("base-url"),
        user_agents: flags.list("user-agent"),
        allows_untagged: flags.switch("allow-untagged-cloud"),
    }
}

fn kube(flags: &Flags, checks: &mut Checks<'_>) -> ApiServerOptions {
    let is_paced = flags.is_given("kube-api-qps") || flags.is_given("kube-api-burst");
    let qps = flags.float("kube-api-qps");
    // Below zero there is no limit, and zero is none of one's own, as for the client library of the Go managers.
    let pace = (is_paced && qps >= 0.0).then(|| Pace {
        qps: if qps == 0.0 { LIBRARY_QPS } else { qps },
        burst: u32::try_from(checks.at_least("kube-api-burst", 1)).unwrap_or(u32::MAX),
    });
    ApiServerOptions {
        kubeconfig: flags.path("kubeconfig"),
        kubeconfig_source: "--kubeconfig",
        master: flags.stated("master"),
        pace,
        authentication: flags.path("authentication-kubeconfig"),
        authorization: flags.path("authorization-kubeconfig"),
    }
}

fn election(flags: &Flags, checks: &mut Checks<'_>) -> Option<ElectionConfig> {
    // Checked by the Go managers also where nobody is elected.
    if flags.text("leader-elect-resource-lock") != "leases" {
        checks.fault("resourceLock value must be \"leases\"");
    }
    if !flags.switch("leader-elect") {
        return None;
    }
    for name in ["leader-elect-resource-name", "leader-elect-resource-namespace"] {
        if flags.text(name).is_empty() {
            checks.fault(format!("--{name} cannot be empty"));
        }
    }
    let config = ElectionConfig {
        namespace: flags.text("leader-elect-resource-namespace"),
        name: flags.text("leader-elect-resource-name"),
        lease_duration: checks.period("leader-elect-lease-duration"),
        renew_deadline: checks.period("leader-elect-renew-deadline"),
        retry_period: checks.period("leader-elect-retry-period"),
        recovery_limit: Some(checks.pause("leader-recovery-limit")).filter(|limit| !limit.is_zero()),
    };
    if config.recovery_limit.is_some() && flags.switch("enable-leader-migration") {
        checks.fault("--leader-recovery-limit cannot be used with --enable-leader-migration: leave it out until the migration is over");
    }
    if config.lease_duration <= config.renew_deadline {
        checks.fault("--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline");
    }
    if config.renew_deadline <= config.retry_period.mul_f64(1.2) {
        checks.fault(
            "--leader-elect-renew-deadline must be greater than 1.2 times --leader-elect-retry-period",
        );
    }
    if config.lease_duration < Duration::from_secs(1) {
        checks.fault("--leader-elect-lease-duration must be at least 1s: the lease counts whole seconds");
    }
    Some(config)
}

/// The provider whose manager does not know the route controller: to ask for it is a fault, to switch it off is none.
const WITHOUT_ROUTES: &str = "phoenixnap";

fn controllers(flags: &Flags, checks: &mut Checks<'_>) -> ControllerSelection {
    let list = flags.list("controllers");
    let selection = ControllerSelection::parse(list.iter().map(String::as_str)).unwrap_or_else(|faults| {
        for fault in faults {
            checks.fault(fault);
        }
        ControllerSelection::all()
    });
    if selection.names(ControllerName::Route)
        && flags.text("cloud-provider").eq_ignore_ascii_case(WITHOUT_ROUTES)
    {
        let name = ControllerName::Route.alias();
        checks.fault(format!(
            "{name:?} is not in the list of known controllers: {WITHOUT_ROUTES} has no routes"
        ));
    }
    selection
}

/// What a controller is told that does not run is not looked at: a manifest may well say anything there.
fn settings(flags: &Flags, selected: &ControllerSelection, checks: &mut Checks<'_>) -> ControllerSettings {
    // Upstream refuses numbers of workers that make no sense. They limit nothing here, so no controller is told them.
    checks.at_least("concurrent-node-syncs", 1);
    checks.at_least("concurrent-node-status-updates", 0);
    let mut period_of = |controller, name| match selected.includes(controller) {
        true => checks.period(name),
        false => flags.duration(name).unsigned_abs(),
    };
    let node_status_update_frequency = period_of(ControllerName::Node, "node-status-update-frequency");
    let node_monitor_period = period_of(ControllerName::NodeLifecycle, "node-monitor-period");
    let node_lifecycle = NodeLifecycleSettings {
        node_monitor_period,
        node_deletion_confirmation: checks.pause("node-deletion-confirmation"),
        node_deletion_share: checks.share("node-deletion-share"),
        node_deletion_window: checks.period("node-deletion-window"),
    };
    let node = NodeSettings {
        node_status_update_frequency,
        needs_witnesses: node_lifecycle.is_guarded(),
        ownership: None,
        keeps_additional_labels: features::is_on(&flags.gates("feature-gates"), features::ADDITIONAL_LABELS),
    };
    checks.at_least("concurrent-service-syncs", 1);
    ControllerSettings {
        node,
        node_lifecycle,
        ownership: None,
        routes: routes(flags),
        node_networks: node_networks(flags),
    }
}

/// Whose Nodes are looked at; `None`: all that the cloud does not call another's. With several clouds a Node is of one of them or left alone.
fn ownership(flags: &Flags, provider: &ProviderOptions, checks: &mut Checks<'_>) -> Option<Ownership> {
    const GATE: &str = "CloudProviderNodeOwnership";
    let platforms = flags.list("cloud-provider-platforms");
    let wait = checks.pause("node-lifecycle-wait-timeout");
    let is_on = features::is_on(&flags.gates("feature-gates"), GATE) || !provider.several.is_empty();
    if !platforms.is_empty() && !is_on {
        checks.fault(format!(
            "--cloud-provider-platforms needs the feature gate {GATE}"
        ));
    }
    let is_scheme =
        |text: &str| !text.is_empty() && !text.contains([':', '/']) && !text.contains(char::is_whitespace);
    if let Some(wrong) = platforms.iter().find(|text| !is_scheme(text)) {
        checks.fault(format!(
            "--cloud-provider-platforms: {wrong:?} is no scheme of provider IDs: give what stands before \"://\" in them"
        ));
    }
    is_on.then(|| Ownership {
        platforms: match platforms.is_empty() {
            true => Platforms::OfProvider,
            false if platforms.iter().any(|text| text == "*") => Platforms::All,
            false => Platforms::These(platforms.into_iter().collect()),
        },
        wait,
    })
}

/// `None` where all Nodes are this manager's, or the cloud tells which are not.
fn beside(ownership: Option<&Ownership>, classes: &ServiceClasses) -> Option<Beside> {
    let platforms = match &ownership?.platforms {
        Platforms::OfProvider => Vec::new(),
        Platforms::These(these) => these.iter().cloned().collect(),
        Platforms::All => return None,
    };
    Some(Beside {
        classes: classes.clone(),
        platforms,
    })
}

/// `None` if node IPAM is not asked for: manifests name these flags for other programs, too.
fn node_networks(flags: &Flags) -> Option<Result<Ranges, Vec<RangeError>>> {
    let ranges = || {
        Ranges::new(&RangeFlags {
            cluster_cidr: &flags.text("cluster-cidr"),
            service_range: &flags.text("service-cluster-ip-range"),
            mask: flags.int("node-cidr-mask-size"),
            mask_ipv4: flags.int("node-cidr-mask-size-ipv4"),
            mask_ipv6: flags.int("node-cidr-mask-size-ipv6"),
            allocator: &flags.text("cidr-allocator-type"),
        })
    };
    flags.switch("allocate-node-cidrs").then(ranges)
}

fn routes(flags: &Flags) -> RouteSettings {
    let gates = flags.gates("feature-gates");
    let timing = if features::is_on(&gates, "CloudControllerManagerWatchBasedRoutesReconciliation") {
        RouteTiming::WatchBased
    } else {
        // Less than zero is zero, which is refused where the controller runs.
        let period = flags.duration("route-reconciliation-period");
        RouteTiming::Periodic(period.try_into().unwrap_or_default())
    };
    RouteSettings::new(
        flags.switch("configure-cloud-routes"),
        &flags.text("cluster-cidr"),
        timing,
    )
}

fn logging(flags: &Flags, checks: &mut Checks<'_>) -> LoggingOptions {
    let gates = flags.gates("feature-gates");
    let format = match flags.text("logging-format").as_str() {
        "text" => LoggingFormat::Text,
        "json" if !features::is_on(&gates, "LoggingBetaOptions") => {
            checks.fault("--logging-format=json needs the feature gate LoggingBetaOptions");
            LoggingFormat::Json
        }
        "json" => LoggingFormat::Json,
        other => {
            checks.fault(format!("--logging-format must be text or json, got {other:?}"));
            LoggingFormat::Text
        }
    };
    let modules = checks.modules("vmodule");
    if format == LoggingFormat::Json && !modules.is_empty() {
        checks.fault("--vmodule is only supported for the text log format");
    }
    let (splits, buffer) = match format {
        LoggingFormat::Text => ("log-text-split-stream", "log-text-info-buffer-size"),
        LoggingFormat::Json => ("log-json-split-stream", "log-json-info-buffer-size"),
    };
    for name in ALPHA_LOGGING.iter().filter(|name| flags.is_changed(name)) {
        if !features::is_on(&gates, "LoggingAlphaOptions") {
            checks.fault(format!("--{name} needs the feature gate LoggingAlphaOptions"));
        }
    }
    let flush_period = checks.period("log-flush-frequency");
    let buffer = usize::try_from(checks.at_least(buffer, 0)).unwrap_or(usize::MAX);
    if buffer > MAX_LOG_BUFFER {
        checks.fault(format!(
            "the buffer for info lines must have at most {MAX_LOG_BUFFER} bytes, got {buffer}"
        ));
    }
    let split = flags
        .switch(splits)
        .then_some(SplitStream { buffer, flush_period });
    LoggingOptions {
        format,
        verbosity: u8::try_from(checks.at_least("v", 0)).unwrap_or(u8::MAX),
        modules,
        split,
        is_quiet: false,
    }
}

/// The flags that are still in the making.
const ALPHA_LOGGING: [&str; 4] = [
    "log-json-info-buffer-size",
    "log-json-split-stream",
    "log-text-info-buffer-size",
    "log-text-split-stream",
];

/// The buffer is taken as a whole at the start: more than this is a slip of the pen.
const MAX_LOG_BUFFER: usize = 64 << 20;
