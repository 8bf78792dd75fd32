//! `cloud-controller-manager`: run the manager until it is told to stop.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use bowline_cloud_http::{CancellationToken, Silences};
use bowline_kube_io::{Clock as _, Kube, KubeMetrics, SystemClock};
use bowline_manager::config::Lookup;
use bowline_manager::controllers::ControllerName;
use bowline_manager::health::Health;
use bowline_manager::metrics::process::ProcessCollector;
use bowline_manager::metrics::{BuildInfo, Metrics};
use bowline_manager::serving::{Authorities, Pages, Server, SetVerbosity, Site, SiteParts};
use bowline_manager::{End, FencingGate, KubeReviews, Manager};
use prometheus_client::registry::Registry;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Surroundings, connect, exit};
use crate::args::Options;
use crate::logging::{Streams, Verbosity};
use crate::version::Version;
use crate::{logging, migration, providers};

/// Why the manager could not be started.
struct Fatal {
    text: String,
    code: u8,
}

fn fatal<E: ToString>(code: u8) -> impl Fn(E) -> Fatal {
    move |error| Fatal {
        text: error.to_string(),
        code,
    }
}

/// Runs the manager; gives the exit status.
pub fn run(options: Options, surroundings: Surroundings) -> u8 {
    let (log, verbosity) = logging::start(options.logging.clone());
    exit_on_panic(log.clone());
    tracing::info!(version = options.version.git_version, "Version");
    logging::flags(options.logging.verbosity, &options.flags);
    for gate in &options.idle_gates {
        tracing::warn!(gate, "Feature gate has no effect here");
    }
    for flag in &options.idle_flags {
        tracing::warn!(flag, "Flag has no effect here");
    }
    for flag in &options.deprecated_flags {
        tracing::info!(flag, "Flag is deprecated");
    }
    // One thread: the work is waiting, and a small manager is a cheap one.
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return die(&fatal(exit::FATAL)(format!(
                "could not start the runtime: {error}"
            )));
        }
    };
    let manager = async {
        let signals = Signals::listen().map_err(|error| format!("could not listen to signals: {error}"));
        let signals = signals.map_err(fatal(exit::FATAL))?;
        until_signalled(signals, |stop| {
            start(options, surroundings, stop, Some(verbosity))
        })
        .await
    };
    let code = runtime.block_on(async {
        tokio::select! {
            biased;
            code = manager => code,
            never = log.keep_flushed() => match never {},
        }
    });
    // What still blocks in the background must not hold up the end.
    runtime.shutdown_background();
    let code = code.unwrap_or_else(|error| die(&error));
    log.flush();
    code
}

/// Runs the manager in the caller's runtime until `stop`; gives the exit status.
///
/// For a program that holds a manager, such as the demo: it takes no signals, and the log is the caller's, so that
/// `/debug/`, which changes its verbosity, is not served.
pub async fn run_until(options: Options, surroundings: Surroundings, stop: CancellationToken) -> u8 {
    start(options, surroundings, stop, None)
        .await
        .unwrap_or_else(|error| die(&error))
}

/// From now on a panic, in whichever thread and task, ends the process at once: it is a defect, and nobody knows
/// what the rest of the process would still be worth.
///
/// Nothing is tidied up and the lease is kept, as when the process is killed; the next one goes on from there. The
/// image's program cannot unwind at all (decision 0028), and so that every build behaves alike, this is not left to it.
#[expect(
    clippy::exit,
    reason = "nothing may run after a panic, not even what unwinding would drop"
)]
fn exit_on_panic(log: Streams) {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        log.try_flush();
        std::process::exit(exit::PANIC.into());
    }));
}

fn die(error: &Fatal) -> u8 {
    tracing::error!(target: logging::FATAL, "{}", error.text);
    error.code
}

/// The signals that end the process.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Runs the work; the first signal asks it to stop, the second one does not wait for that.
async fn until_signalled<F>(
    mut signals: Signals,
    work: impl FnOnce(CancellationToken) -> F,
) -> Result<u8, Fatal>
where
    F: Future<Output = Result<u8, Fatal>>,
{
    let stop = CancellationToken::new();
    let mut work = Box::pin(work(stop.clone()));
    tokio::select! {
        biased;
        result = &mut work => return result,
        name = signals.next() => {
            tracing::info!(signal = name, "Asked to stop");
            stop.cancel();
        }
    }
    tokio::select! {
        biased;
        result = work => result,
        name = signals.next() => {
            tracing::warn!(signal = name, "Asked to stop at once");
            Ok(exit::FAILURE)
        }
    }
}

async fn start(
    mut options: Options,
    surroundings: Surroundings,
    stop: CancellationToken,
    verbosity: Option<Verbosity>,
) -> Result<u8, Fatal> {
    // The command line alone tells that there is no such cloud.
    providers::check(&options.provider).map_err(fatal(exit::FATAL))?;
    if let Some(file) = &options.migration {
        let loaded = migration::load(file.config.as_deref()).map_err(fatal(exit::FAILURE))?;
        options.configz["Generic"]["LeaderMigration"] = loaded.configz;
        options.manager.migration = Some(loaded.migration);
    }
    let gate = Arc::new(if options.manager.election.is_some() {
        FencingGate::closed(Arc::new(SystemClock))
    } else {
        FencingGate::open()
    });
    let mut registry = Registry::default();
    registry.register_collector(Box::new(ProcessCollector::default()));
    let of_clouds = bowline_cloud_http::Metrics::default();
    of_clouds.register(&mut registry);
    let of_provider = providers::Series::register(&options.provider, &mut registry);
    let of_kube = KubeMetrics::registered(&mut registry);
    let metrics = Arc::new(Metrics::new(registry, &build_info(&options.version)));

    // Before the cloud: who has not said where the cluster is, need not be told what else is missing.
    let kube = connect::api_server(&options, &surroundings, Arc::clone(&gate) as Arc<_>, of_kube)
        .await
        .map_err(fatal(exit::FAILURE))?;

    // Reads and waits for the cloud go on while the controllers drain, and end with the process.
    let site = providers::Site {
        environment: surroundings.environment.clone(),
        calls: providers::Calls::WhileLeading(Arc::clone(&gate)),
        metrics: of_clouds,
        shutdown: CancellationToken::new(),
        user_agent: options.version.user_agent(&options.program),
        version: options.version.git_version.clone(),
        base_url: options.provider.base_url.clone(),
        user_agents: options.provider.user_agents.clone(),
        balances: options.manager.controllers.includes(ControllerName::Service),
        makes_routes: options.manager.makes_routes(),
        series: of_provider,
        seed: surroundings.seed,
        shown: providers::Shown::default(),
        dates: bowline_kube_io::Dates::default(),
        silences: Silences::default(),
        starts_anyway: !options.provider.several.is_empty(),
        copies: Vec::new(),
    };
    let provider = tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(exit::SUCCESS),
        provider = providers::build(&options.provider, &site) => provider,
    }
    .map_err(fatal(exit::FATAL))?;
    options.manager.check(&*provider).map_err(fatal(exit::FATAL))?;

    let health = Arc::new(Health::default());
    let server = tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(exit::SUCCESS),
        server = serve(&options, &surroundings, &kube, &health, &metrics, verbosity) => server?,
    };
    let manager = Manager {
        config: options.manager,
        kube,
        provider,
        gate,
        silences: site.silences,
        identity: surroundings.identity,
        health,
        metrics,
        seed: surroundings.seed,
    };
    Ok(match manager.run(server, stop).await {
        End::Stopped => {
            tracing::info!("Stopped");
            exit::SUCCESS
        }
        End::LeadershipLost => die(&fatal(exit::FAILURE)("leaderelection lost")),
        End::CannotStart { reason } => die(&fatal(exit::FATAL)(reason)),
        End::Failed { task } => die(&fatal(exit::FATAL)(format!("{task} ended"))),
    })
}

async fn serve(
    options: &Options,
    surroundings: &Surroundings,
    kube: &Kube,
    health: &Arc<Health>,
    metrics: &Arc<Metrics>,
    verbosity: Option<Verbosity>,
) -> Result<Option<Server>, Fatal> {
    let Some(config) = &options.serving else {
        return Ok(None);
    };
    let delegate = async |flag, path: &Option<PathBuf>| {
        let delegate = connect::delegate(options, surroundings, (flag, path.as_deref()), kube).await;
        delegate.map_err(fatal(exit::FAILURE))
    };
    let tokens = delegate("--authentication-kubeconfig", &options.kube.authentication).await?;
    let access = delegate("--authorization-kubeconfig", &options.kube.authorization).await?;
    if !tokens.is_named && config.access.lookup != Lookup::Skipped {
        tracing::warn!(
            "The authority of client certificates is not looked up: there is no --authentication-kubeconfig, and \
             the process does not run in a pod"
        );
    }
    let cluster = tokens.is_named.then(|| tokens.kube.clone());
    let authorities = Authorities::establish(&config.access, cluster).await;
    let authorities = authorities.map_err(fatal(exit::FAILURE))?;
    let of_serving = metrics.serving().clone();
    let reviews = KubeReviews::new(&tokens.kube, &access.kube, of_serving, surroundings.seed);
    let debug = verbosity.filter(|_| config.profiling);
    let clock = Arc::new(SystemClock);
    let flags = options.flags.iter();
    let parts = SiteParts {
        health: Arc::clone(health),
        metrics: Arc::clone(metrics),
        authorities,
        reviews: Some(Arc::new(reviews)),
        pages: Pages {
            component: options.program.clone(),
            version: options.version.git_version.clone(),
            compiler: options.version.compiler.to_owned(),
            started: clock.now(),
            configz: options.configz.clone(),
            flags: flags
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
        },
        clock,
        debug: debug.map(|verbosity| -> SetVerbosity { Arc::new(move |level| verbosity.set(level)) }),
    };
    let server = Server::bind(config, Site::new(&config.access, parts)).map_err(fatal(exit::FAILURE))?;
    if let Ok(address) = server.local_address() {
        tracing::info!(%address, "Serving securely");
    }
    Ok(Some(server))
}

fn build_info(version: &Version) -> BuildInfo {
    let labels = [
        ("major", version.major.as_str()),
        ("minor", version.minor.as_str()),
        ("git_version", version.git_version.as_str()),
        ("git_commit", version.git_commit),
        ("git_tree_state", version.git_tree_state),
        ("build_date", version.build_date),
        // The label is part of the series that dashboards know; there is no Go here.
        ("go_version", ""),
        ("compiler", version.compiler),
        ("platform", version.platform.as_str()),
    ];
    BuildInfo {
        labels: labels.map(|(name, value)| (name, value.to_owned())).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{stderr, stdout};
    use std::process::Command;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;
    use crate::args::{LoggingFormat, LoggingOptions, SplitStream};

    /// What the next test runs in a process of its own.
    #[test]
    #[ignore = "ends the process"]
    fn panics_in_a_task() {
        let split = SplitStream {
            buffer: 1 << 16,
            flush_period: Duration::from_secs(5),
        };
        let streams = Streams::split(split, stdout(), Arc::new(Mutex::new(stderr())));
        exit_on_panic(streams.clone());
        let options = LoggingOptions {
            format: LoggingFormat::Text,
            verbosity: 0,
            modules: Vec::new(),
            split: Some(split),
            is_quiet: false,
        };
        tracing::subscriber::with_default(logging::log_to(options, streams, jiff::Timestamp::now), || {
            tracing::info!("Held back")
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            // Nobody waits for this task.
            tokio::spawn(async { panic!("on purpose") });
            std::future::pending::<()>().await;
        });
    }

    #[test]
    fn a_panic_ends_the_process_with_status_2_and_its_log_whole() {
        let program = std::env::current_exe().unwrap();
        let arguments = [
            "--exact",
            "commands::run::tests::panics_in_a_task",
            "--ignored",
            "--nocapture",
        ];
        let output = Command::new(program).args(arguments).output().unwrap();
        let [info, error] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert_eq!(output.status.code(), Some(2), "{info}{error}");
        assert!(
            error.contains("panicked at") && error.contains("on purpose"),
            "{error}"
        );
        assert!(info.contains("Held back"), "{info}");
    }
}
